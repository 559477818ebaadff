//! Counts the language contract, the table of each catalog in both styles, the tools, and typical answers.
//! Invariant: a table is counted without its contract. An answer is counted in the form in which a host passes it to the model.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// A text that a model reads, with the number of its tokens.
pub struct CountedText {
    pub name: String,
    pub tokens: usize,
    /// The largest number of tokens that the design allows, whatever the budget is.
    pub limit: Option<usize>,
    /// The number of capabilities that the text teaches. `None` for a text that is not a table.
    pub capabilities: Option<usize>,
}

impl CountedText {
    fn new(name: impl Into<String>, text: &str) -> Self {
        Self { name: name.into(), tokens: count(text), limit: None, capabilities: None }
    }

    fn at_most(self, limit: usize) -> Self {
        Self { limit: Some(limit), ..self }
    }
}

/// Counts the o200k tokens of a text.
pub fn count(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().count_ordinary(text)
}

/// Counts every text that a model reads.
pub fn all(root: &Path) -> Result<Vec<CountedText>> {
    let mut out = tables(root)?;
    out.extend(tools(root)?);
    out.push(instructions(root)?);
    out.extend(answers(root)?);
    Ok(out)
}

fn tables(root: &Path) -> Result<Vec<CountedText>> {
    let cases = read_cases(&root.join("tests/teach/whole.case"))?;
    let mut out = Vec::new();
    let mut contracts = [0, 0];
    let mut tables = Vec::new();
    for case in &cases {
        let (contract, table): (Vec<&str>, Vec<&str>) = case.output.lines().partition(|line| line.starts_with("# "));
        let style = usize::from(case.name.ends_with(" by name"));
        contracts[style] = contracts[style].max(count(&contract.join("\n")));
        let catalog = case.name.trim_end_matches(" by name");
        let capabilities = Some(count_capabilities(root, catalog)?);
        tables
            .push(CountedText { capabilities, ..CountedText::new(format!("table {}", case.name), &table.join("\n")) });
    }
    for (tokens, style) in contracts.into_iter().zip(["symbols", "names"]) {
        out.push(CountedText { name: format!("contract {style}"), tokens, limit: Some(400), capabilities: None });
    }
    out.extend(tables);
    Ok(out)
}

/// Counts the capabilities of a shipped catalog: the keys below `capabilities` of its file.
fn count_capabilities(root: &Path, catalog: &str) -> Result<usize> {
    let path = root.join(format!("catalogs/{catalog}.yaml"));
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let part = text.split("\ncapabilities:\n").nth(1).context("no capabilities")?;
    let key = |line: &&str| {
        line.starts_with("  ") && !line.starts_with("   ") && line.contains(':') && !line.starts_with("  #")
    };
    Ok(part.lines().filter(key).count())
}

fn tools(root: &Path) -> Result<Vec<CountedText>> {
    let mut out = Vec::new();
    let mut all = 0;
    let mut core = 0;
    let mut with_titles = 0;
    let cases = read_cases(&root.join("tests/wire/tools.case"))?;
    let is_list = |case: &&Case| case.input.starts_with("names");
    let offered = cases.iter().find(|case| case.input == "names of core").context("tools.case lists no core")?;
    let offered: Vec<&str> = offered.output.lines().collect();
    for case in cases.iter().filter(|case| !is_list(case)) {
        let tool: Value = serde_json::from_str(&case.output).with_context(|| format!("tools.case: {}", case.name))?;
        // The title and the hints are left out, because a host does not pass them to the model.
        let passed = serde_json::json!({
            "name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"]
        });
        let compact = serde_json::to_string(&passed)?;
        let name = tool["name"].as_str().context("a tool has a name")?.to_owned();
        let counted = CountedText::new(format!("tool {name}"), &compact);
        all += counted.tokens;
        with_titles += count(&serde_json::to_string(&tool)?);
        if offered.contains(&name.as_str()) {
            core += counted.tokens;
        }
        out.push(counted);
    }
    ensure!(all > 0, "tools.case has no tools");
    let total = |name: &str, tokens, limit| CountedText {
        name: name.to_owned(),
        tokens,
        limit: Some(limit),
        capabilities: None,
    };
    out.push(total("tools all", all, 1_700));
    out.push(total("tools all, with titles and hints", with_titles, 2_000));
    out.push(total("tools core", core, 950));
    Ok(out)
}

fn instructions(root: &Path) -> Result<CountedText> {
    let cases = read_cases(&root.join("tests/wire/instructions.case"))?;
    let case = cases.first().context("instructions.case is empty")?;
    Ok(CountedText::new("instructions", &case.output).at_most(250))
}

fn answers(root: &Path) -> Result<Vec<CountedText>> {
    let mut out = Vec::new();
    for case in read_cases(&root.join("tests/context/find_and_call.case"))? {
        let counted = CountedText::new(format!("answers {}", case.name), before_rows(&case)?);
        // Only the default form of the answer has a limit of the design.
        out.push(if case.name.ends_with("by name") { counted.at_most(800) } else { counted });
    }
    let conversation = read_cases(&root.join("tests/context/demo.case"))?;
    let unchanged =
        conversation.iter().flat_map(|case| case.output.lines()).find(|line| line.contains("Session unchanged"));
    out.push(CountedText::new("answer unchanged", unchanged.context("no case answers that nothing changed")?));
    for case in read_cases(&root.join("tests/lang/plan/realistic.case"))? {
        out.push(CountedText::new(format!("plan {}", case.name), &case.output));
    }
    Ok(out)
}

/// Returns the text of a conversation before the rows of its last result.
fn before_rows(case: &Case) -> Result<&str> {
    let header = case.output.rfind("\n## ").with_context(|| format!("`{}` ends in no result", case.name))?;
    let after = case.output[header + 1..].find('\n').map_or(case.output.len(), |end| header + 1 + end);
    Ok(&case.output[..after])
}

/// One case of a golden file.
struct Case {
    name: String,
    input: String,
    output: String,
}

/// Reads the cases of a golden file.
fn read_cases(path: &Path) -> Result<Vec<Case>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    text.split("=== ").skip(1).map(|part| parse_case(part).with_context(|| path.display().to_string())).collect()
}

fn parse_case(part: &str) -> Result<Case> {
    let (name, rest) = part.split_once('\n').context("a case has a name and an input")?;
    let (input, output) = rest.split_once("---\n").with_context(|| format!("`{name}` has no `---`"))?;
    let input: Vec<&str> = input.lines().filter(|line| !line.starts_with("#!")).collect();
    Ok(Case { name: name.to_owned(), input: input.join("\n"), output: output.trim_end().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::parse_case;

    #[test]
    fn a_case_has_a_name_and_an_output() {
        let case = parse_case("a name\n#! tags = x\none\ntwo\n---\nout\nput\n").unwrap();
        let parts = (case.name.as_str(), case.input.as_str(), case.output.as_str());
        assert_eq!(parts, ("a name", "one\ntwo", "out\nput"));
        assert!(parse_case("a name\nno line\n").is_err());
    }
}

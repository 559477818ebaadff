//! Reads the name, the input and the output of each case of a golden file.
//! Invariant: a file that cannot be read as cases is an error that names the file.

use std::path::Path;

use anyhow::{Context, Result};

pub struct Case {
    pub name: String,
    pub input: String,
    pub output: String,
}

pub fn read(path: &Path) -> Result<Vec<Case>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    text.split("=== ").skip(1).map(|part| case(part).with_context(|| path.display().to_string())).collect()
}

fn case(part: &str) -> Result<Case> {
    let (name, rest) = part.split_once('\n').context("a case has a name and an input")?;
    let (input, output) = rest.split_once("---\n").with_context(|| format!("`{name}` has no `---`"))?;
    let input: Vec<&str> = input.lines().filter(|line| !line.starts_with("#!")).collect();
    Ok(Case { name: name.to_owned(), input: input.join("\n"), output: output.trim_end().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::case;

    #[test]
    fn a_case_has_a_name_and_an_output() {
        let read = case("a name\n#! tags = x\none\ntwo\n---\nout\nput\n").unwrap();
        let parts = (read.name.as_str(), read.input.as_str(), read.output.as_str());
        assert_eq!(parts, ("a name", "one\ntwo", "out\nput"));
        assert!(case("a name\nno line\n").is_err());
    }
}

//! Rule `paths`: every path in the pages for developers exists.
//! Invariant: only code spans that look like a path are checked. A path may be relative to the root or to `crates/`.

use std::path::Path;

use super::Finding;

const RULE: &str = "paths";

const PAGES: &[&str] =
    &["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/building.md", "docs/decisions.md", "docs/symptoms.md"];

/// Checks the paths in all pages for developers.
pub fn check(root: &Path) -> Vec<Finding> {
    let mut findings = Vec::new();
    for page in PAGES {
        let text = std::fs::read_to_string(root.join(page)).unwrap_or_default();
        for (line, path) in paths(&text) {
            if !root.join(path).exists() && !root.join("crates").join(path).exists() {
                let wrong = format!("`{path}` does not exist");
                findings.push(Finding::new(RULE, (page, line), wrong, "write the present path, or take it out"));
            }
        }
    }
    findings
}

/// Returns the code spans that look like a path, with their lines. Code blocks are skipped.
fn paths(text: &str) -> Vec<(usize, &str)> {
    let mut paths = Vec::new();
    let mut in_block = false;
    for (index, line) in text.lines().enumerate() {
        in_block ^= line.trim_start().starts_with("```");
        if !in_block {
            let spans = line.split('`').skip(1).step_by(2);
            paths.extend(spans.filter(|span| is_path(span)).map(|span| (index + 1, span)));
        }
    }
    paths
}

fn is_path(span: &str) -> bool {
    let endings = [".rs", ".md", ".txt", ".case", ".yaml", ".json", ".py", ".sh", ".h", ".js", ".tsv", ".toml", "/"];
    let plain = span.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    let begins = span.starts_with(|c: char| c.is_ascii_lowercase());
    plain && begins && span.contains('/') && endings.iter().any(|ending| span.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_code_spans_are_read() {
        let text = "See `a/b.rs` and `c/`, not `d.rs`, `e/f`, `/g/h.rs`, `GET /x/` or `t/<name>.rs`.\n```text\n`x/y.rs`\n```\n`z/y.md`\n";
        assert_eq!(paths(text), [(1, "a/b.rs"), (1, "c/"), (5, "z/y.md")]);
    }

    #[test]
    fn missing_paths_are_found() {
        let root = std::env::temp_dir().join(format!("xtask-paths-{}", std::process::id()));
        std::fs::create_dir_all(root.join("crates/a/src")).unwrap();
        std::fs::write(root.join("ARCHITECTURE.md"), "`crates/a/src/` `a/src/` `b/src/`\n").unwrap();
        let findings = check(&root);
        assert_eq!(findings.iter().map(|f| f.wrong.as_str()).collect::<Vec<_>>(), ["`b/src/` does not exist"]);
        std::fs::remove_dir_all(&root).unwrap();
    }
}

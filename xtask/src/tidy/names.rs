//! Rule `names`: no file, folder or module has a name such as `utils` that does not describe its content.
//! Invariant: only whole names are compared, so `commonmark.rs` is allowed.

use std::collections::BTreeSet;

use proc_macro2::Delimiter;

use super::Finding;
use crate::source::tokens;
use crate::source::{SourceFile, Tree};

const RULE: &str = "names";
const REFUSED: &[&str] = &["utils", "util", "common", "helpers", "helper", "misc", "v2"];
const FIX: &str = "name it after its content, or move each part next to its use";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let paths = tree.files.iter().map(|file| file.path.as_str()).chain(tree.src_texts().map(|(path, _)| path));
    let refused: BTreeSet<String> = paths.flat_map(refused_parts).collect();
    let files = refused.iter().map(|path| {
        let name = path.rsplit('/').next().unwrap_or(path);
        Finding::new(RULE, (path, 1), format!("`{name}` says nothing about its content"), FIX)
    });
    files.chain(tree.files.iter().flat_map(inline_modules)).collect()
}

/// Returns, for each part of the path with a refused name, the path up to this part. Extensions are ignored.
fn refused_parts(path: &str) -> Vec<String> {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    let prefixes = ends.map(|end| &path[..end]);
    let name = |prefix: &str| prefix.rsplit('/').next().and_then(|last| last.split('.').next()).map(String::from);
    prefixes.filter(|prefix| name(prefix).is_some_and(|n| REFUSED.contains(&n.as_str()))).map(String::from).collect()
}

/// Returns a finding for each inline module with a refused name, such as `mod utils { … }`.
fn inline_modules(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    tokens::levels(file.tokens(), &mut |level| {
        for module in
            level.windows(3).filter(|three| three[0].is_word("mod") && three[2].group(Delimiter::Brace).is_some())
        {
            if let Some(name) = module[1].word().filter(|name| REFUSED.contains(name)) {
                let wrong = format!("module `{name}` says nothing about its content");
                findings.push(Finding::new(RULE, (&file.path, module[1].line), wrong, FIX));
            }
        }
    });
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::sample::tree;

    fn findings(files: &[(&str, &str)]) -> Vec<(String, usize)> {
        check(&tree(files)).into_iter().map(|finding| (finding.path, finding.line)).collect()
    }

    #[test]
    fn files_folders_and_modules_are_found_once() {
        assert_eq!(findings(&[("crates/a/src/utils.rs", "")]), [("crates/a/src/utils.rs".into(), 1)]);
        assert_eq!(findings(&[("tests/common/mod.rs", ""), ("tests/common/x.rs", "")]), [("tests/common".into(), 1)]);
        assert_eq!(findings(&[("crates/a/src/web/helpers.js", "")]), [("crates/a/src/web/helpers.js".into(), 1)]);
        assert_eq!(findings(&[("crates/a/src/x.rs", "mod v2;\nmod misc {}\n")]), [("crates/a/src/x.rs".into(), 2)]);
    }

    #[test]
    fn longer_names_are_left_alone() {
        let text = "// utils\nmod helpful {}\nfn util() {}\n";
        assert_eq!(findings(&[("crates/a/src/commonmark.rs", text), ("crates/a/src/utility/v20.rs", "")]), []);
    }
}

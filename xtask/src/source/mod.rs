//! Reads the source tree of the workspace: every Rust file (parsed once), other text files below `src`, and the packages.
//! Invariant: paths are relative to the root and use `/`. A file that cannot be parsed is kept with its text and its error.

pub mod tokens;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context;
use proc_macro2::TokenStream;

use crate::metadata::{self, Package};
use tokens::{Attribute, Kind, Token};

/// All source files and packages of the workspace.
#[derive(Default)]
pub struct Tree {
    pub packages: Vec<Package>,
    pub files: Vec<SourceFile>,
    /// The text files below a folder `src` that are not Rust, each with its path and its text.
    pub texts: Vec<(String, String)>,
    /// Sources in other languages that stand outside of `src`: path and text.
    pub scripts: Vec<(String, String)>,
    /// The text of the root manifest.
    pub manifest: String,
    /// The text of ARCHITECTURE.md, if this file exists.
    pub architecture: Option<String>,
}

/// One Rust file.
pub struct SourceFile {
    pub path: String,
    pub text: String,
    /// The crate whose folder contains the file. `None` for the tests and benches of the workspace.
    pub owner: Option<String>,
    /// Whether the file is below the folder `src` of its crate.
    pub in_src: bool,
    pub parsed: Result<Parsed, Unparsed>,
    /// Whether the whole file is test code.
    pub is_test: bool,
    /// For each line whether it is test code. The index 0 is line 1.
    test_lines: Vec<bool>,
}

pub struct Parsed {
    pub ast: syn::File,
    pub tokens: Vec<Token>,
}

/// The first syntax error of a file that is not valid Rust.
#[derive(Debug)]
pub struct Unparsed {
    pub line: usize,
    pub message: String,
}

impl Tree {
    pub fn read(root: &Path) -> anyhow::Result<Tree> {
        let mut paths = BTreeSet::new();
        for top in ["crates", "xtask", "tests", "benches", "fuzz", "scripts"] {
            walk(root, top, &mut paths)?;
        }
        let manifest = std::fs::read_to_string(root.join("Cargo.toml")).context("Cargo.toml cannot be read")?;
        let packages = metadata::read(root, &["--no-deps", "--offline"])?;
        let mut tree = Tree { packages, manifest, ..Tree::default() };
        for path in paths {
            let bytes = std::fs::read(root.join(&path)).with_context(|| format!("{path} cannot be read"))?;
            match String::from_utf8(bytes) {
                Ok(text) => tree.add(path, text),
                Err(_) => anyhow::ensure!(!path.ends_with(".rs"), "{path} is not UTF-8"),
            }
        }
        tree.mark_test_files();
        let architecture = root.join("ARCHITECTURE.md");
        if architecture.exists() {
            tree.architecture = Some(std::fs::read_to_string(architecture).context("ARCHITECTURE.md cannot be read")?);
        }
        Ok(tree)
    }

    /// Returns the path and the text of every text file below a folder `src`, including Rust files.
    pub fn src_texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.files.iter().filter(|f| f.in_src).map(|f| (f.path.as_str(), f.text.as_str()));
        files.chain(self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str())))
    }

    fn add(&mut self, path: String, text: String) {
        if path.ends_with(".rs") {
            self.files.push(SourceFile::new(path, text));
        } else if crate_of(&path).1 {
            self.texts.push((path, text));
        } else {
            self.scripts.push((path, text));
        }
    }

    /// Marks the files of test modules as test code: after `#[cfg(test)] mod x;` these are x.rs and all files in x/.
    fn mark_test_files(&mut self) {
        let roots: Vec<String> = self.files.iter().flat_map(SourceFile::test_modules).collect();
        for file in &mut self.files {
            file.is_test |= roots.iter().any(|root| file.is_under(root));
        }
    }
}

impl SourceFile {
    fn new(path: String, text: String) -> SourceFile {
        let (owner, in_src) = crate_of(&path);
        let parsed = parse(&text);
        let mut test_lines = vec![false; text.lines().count()];
        if let Ok(parsed) = &parsed {
            for attribute in tokens::attributes(&parsed.tokens).iter().filter(|attribute| attribute.is_test()) {
                let from = attribute.covers.start() - 1;
                let to = (*attribute.covers.end()).min(test_lines.len());
                test_lines[from..to].fill(true);
            }
        }
        let is_test = path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs");
        SourceFile { path, text, owner, in_src, parsed, is_test, test_lines }
    }

    /// Returns whether a line is test code. Lines are counted from 1.
    pub fn is_test_line(&self, line: usize) -> bool {
        self.is_test || self.test_lines.get(line.wrapping_sub(1)).copied().unwrap_or(false)
    }

    pub fn tokens(&self) -> &[Token] {
        self.parsed.as_ref().map_or(&[], |parsed| &parsed.tokens)
    }

    pub fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Returns whether the file is lib.rs or main.rs of a crate.
    pub fn is_root(&self) -> bool {
        let at_top = self.path.split_once("/src/").is_some_and(|(_, inside)| !inside.contains('/'));
        self.in_src && at_top && matches!(self.name(), "lib.rs" | "main.rs")
    }

    /// Returns the folder with the files of the modules that this file declares.
    fn module_folder(&self) -> String {
        match self.name() {
            "mod.rs" | "lib.rs" | "main.rs" => self.folder().to_string(),
            _ => self.path.trim_end_matches(".rs").to_string(),
        }
    }

    /// Returns whether the file is the module with this path (without `.rs`), or a module below it.
    pub fn is_under(&self, module: &str) -> bool {
        let stem = self.path.trim_end_matches(".rs");
        stem.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns the path (without `.rs`) of the modules in other files that an attribute of this file covers. For `#![…]` at the top of the
    /// file these are all modules below the file, and for `#[…] mod x;` it is the module x.
    fn covered_modules(&self, attribute: &Attribute) -> Option<String> {
        if std::ptr::eq(attribute.on, self.tokens()) {
            return Some(self.module_folder());
        }
        let [.., keyword, name, end] = attribute.on else {
            return None;
        };
        let name = name.word().filter(|_| keyword.is_word("mod") && end.is_mark(';'))?;
        let neighbours = tokens::attributes(self.tokens()).into_iter().filter(|a| std::ptr::eq(a.on, attribute.on));
        Some(match neighbours.filter_map(|a| path_attribute(&a)).next() {
            Some(path) => format!("{}/{}", self.folder(), path.trim_end_matches(".rs")),
            None => format!("{}/{name}", self.module_folder()),
        })
    }

    fn test_modules(&self) -> Vec<String> {
        let attributes = tokens::attributes(self.tokens());
        attributes.iter().filter(|attribute| attribute.is_test()).filter_map(|a| self.covered_modules(a)).collect()
    }
}

/// Returns the file of `#[path = "file"]`.
fn path_attribute(attribute: &Attribute) -> Option<String> {
    match attribute.body {
        [path, _, Token { kind: Kind::Literal(literal), .. }] if path.is_word("path") => {
            Some(literal.trim_matches('"').to_string())
        }
        _ => None,
    }
}

/// Returns the folder name of the crate that contains a path, and whether the path is below the folder `src` of this crate. A crate may be
/// in the folder of another crate, such as `crates/testkit/api`.
fn crate_of(path: &str) -> (Option<String>, bool) {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["crates", _, nested, folder @ ("src" | "tests" | "build"), ..] if !is_crate_part(nested) => {
            (Some((*nested).to_owned()), *folder == "src")
        }
        ["crates", name, folder, ..] => (Some((*name).to_owned()), *folder == "src"),
        ["xtask", folder, ..] => (Some("xtask".to_owned()), *folder == "src"),
        _ => (None, false),
    }
}

/// Returns whether a folder with this name in the folder of a crate belongs to that crate. Other folders there are crates.
fn is_crate_part(folder: &str) -> bool {
    matches!(folder, "src" | "tests" | "build" | "benches" | "examples")
}

fn parse(text: &str) -> Result<Parsed, Unparsed> {
    let stream: TokenStream = text.trim_start_matches('\u{feff}').parse().map_err(|error: proc_macro2::LexError| {
        Unparsed { line: error.span().start().line, message: format!("not Rust: {error}") }
    })?;
    let ast = syn::parse2(stream.clone())
        .map_err(|error| Unparsed { line: error.span().start().line, message: format!("not Rust: {error}") })?;
    Ok(Parsed { ast, tokens: tokens::read(stream) })
}

fn walk(root: &Path, folder: &str, paths: &mut BTreeSet<String>) -> anyhow::Result<()> {
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
        return Ok(());
    };
    for entry in entries {
        let entry = entry.with_context(|| format!("{folder} cannot be listed"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        let kind = entry.file_type().with_context(|| format!("{path} cannot be read"))?;
        if name.starts_with('.') || kind.is_symlink() {
            continue;
        }
        if kind.is_dir() {
            if !matches!(name.as_str(), "target" | "node_modules") {
                walk(root, &path, paths)?;
            }
        } else if name.ends_with(".rs") || crate_of(&path).1 || is_script(&name) {
            paths.insert(path);
        }
    }
    Ok(())
}

/// Returns whether a file outside of `src` is source code in another language than Rust.
fn is_script(name: &str) -> bool {
    [".c", ".h", ".js", ".mjs", ".py", ".sh"].iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
pub mod sample {
    //! Makes source trees for tests.
    use super::*;

    pub fn tree(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::default();
        for (path, text) in files {
            tree.add(path.to_string(), text.to_string());
        }
        tree.mark_test_files();
        tree
    }

    /// An empty list of line numbers, for comparisons.
    pub const NONE: [usize; 0] = [];

    /// Applies a rule to a tree with one file, and returns the line numbers of the findings.
    pub fn lines(rule: fn(&Tree) -> Vec<crate::tidy::Finding>, path: &str, text: &str) -> Vec<usize> {
        rule(&tree(&[(path, text)])).iter().map(|finding| finding.line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_test(files: &[(&str, &str)], path: &str) -> bool {
        sample::tree(files).files.iter().find(|file| file.path == path).unwrap().is_test
    }

    #[test]
    fn files_know_their_crate() {
        assert_eq!(crate_of("crates/base/src/a/b.rs"), (Some("base".into()), true));
        assert_eq!(crate_of("crates/base/tests/b.rs"), (Some("base".into()), false));
        assert_eq!(crate_of("crates/base/build/b.rs"), (Some("base".into()), false));
        assert_eq!(crate_of("crates/base/src/tests/b.rs"), (Some("base".into()), true));
        assert_eq!(crate_of("crates/testkit/api/src/b.rs"), (Some("api".into()), true));
        assert_eq!(crate_of("crates/testkit/api/tests/it/b.rs"), (Some("api".into()), false));
        assert_eq!(crate_of("xtask/src/main.rs"), (Some("xtask".into()), true));
        assert_eq!(crate_of("tests/a.rs"), (None, false));
    }

    #[test]
    fn test_lines_are_known() {
        let tree =
            sample::tree(&[("crates/a/src/x.rs", "//! X.\nfn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n")]);
        let file = &tree.files[0];
        assert!(!file.is_test);
        assert_eq!(
            (1..=6).map(|line| file.is_test_line(line)).collect::<Vec<_>>(),
            [false, false, true, true, true, true]
        );
    }

    #[test]
    fn test_files_are_found_by_folder_name_and_declaration() {
        let declares = ("crates/a/src/x.rs", "#[cfg(test)]\nmod cases;\nmod real;\n");
        assert!(is_test(&[("crates/a/src/x/tests.rs", "")], "crates/a/src/x/tests.rs"));
        assert!(is_test(&[("crates/a/tests/all.rs", "")], "crates/a/tests/all.rs"));
        assert!(is_test(&[("crates/a/src/x.rs", "#![cfg(test)]\nfn f() {}")], "crates/a/src/x.rs"));
        assert!(is_test(&[declares, ("crates/a/src/x/cases.rs", "")], "crates/a/src/x/cases.rs"));
        assert!(is_test(&[declares, ("crates/a/src/x/cases/one.rs", "")], "crates/a/src/x/cases/one.rs"));
        assert!(!is_test(&[declares, ("crates/a/src/x/real.rs", "")], "crates/a/src/x/real.rs"));
        assert!(!is_test(&[declares, ("crates/a/src/cases.rs", "")], "crates/a/src/cases.rs"));
        let elsewhere = ("crates/a/src/lib.rs", "#[path = \"t/odd.rs\"]\n#[cfg(test)]\nmod odd;\n");
        assert!(is_test(&[elsewhere, ("crates/a/src/t/odd.rs", "")], "crates/a/src/t/odd.rs"));
    }
}

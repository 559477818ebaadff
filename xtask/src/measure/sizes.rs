//! Counts the lines, files, functions, comments and log statements of a source tree.
//! Invariant: test code is counted separately, even inside of `src`. A line with code and a comment counts as code.

use std::collections::BTreeMap;

use proc_macro2::Delimiter;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::prose::comments::{self, Kind};
use crate::source::tokens::{self, Token};
use crate::source::{SourceFile, Tree};

/// The numbers of code lines, without comments and blank lines.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct CodeLines {
    pub product: usize,
    pub tests: usize,
}

#[derive(Debug)]
pub struct File {
    pub path: String,
    /// The number of lines outside of test code, including comments and blank lines.
    pub lines: usize,
}

#[derive(Debug)]
pub struct Function {
    pub name: String,
    pub path: String,
    pub lines: usize,
}

#[derive(Debug, Default)]
pub struct Sizes {
    pub crates: BTreeMap<String, CodeLines>,
    pub files: Vec<File>,
    pub functions: Vec<Function>,
    /// The number of comment lines inside of function bodies.
    pub inner_comments: usize,
    /// The number of lines in headers and doc comments.
    pub documentation: usize,
    /// The number of log statements in the product.
    pub logs: usize,
    /// The number of log statements in `CRATES_OF_RUNS`.
    pub logs_of_runs: usize,
    /// The number of code lines in `CRATES_OF_RUNS`.
    pub lines_of_runs: usize,
}

/// The crates whose code executes runs.
const CRATES_OF_RUNS: &[&str] = &["app", "exec", "js", "server", "session", "upstream"];

const LOG_MACROS: &[&str] = &[
    "trace",
    "debug",
    "info",
    "warn",
    "error",
    "event",
    "span",
    "trace_span",
    "debug_span",
    "info_span",
    "warn_span",
    "error_span",
];

pub fn sizes(tree: &Tree) -> Sizes {
    let mut sizes = Sizes::default();
    for file in &tree.files {
        count_file(file, &mut sizes);
    }
    sizes
}

/// Returns whether the file is part of the product: a file in `src` or `build` of a crate that is not for tests.
fn is_product(file: &SourceFile) -> bool {
    let shipped = file.in_src || file.path.contains("/build/") || file.path.ends_with("/build.rs");
    file.path.starts_with("crates/") && !file.path.starts_with("crates/testkit/") && shipped && !file.is_test
}

fn count_file(file: &SourceFile, sizes: &mut Sizes) {
    let product = is_product(file);
    let blocks = comments::blocks(&file.path, &file.text).unwrap_or_default();
    let mut comment_lines: BTreeMap<usize, Kind> = BTreeMap::new();
    for block in blocks.iter().filter(|block| block.kind != Kind::Trailing) {
        comment_lines.extend(block.lines.iter().map(|(line, _)| (*line, block.kind)));
    }
    let mut own_lines = 0;
    let mut code = CodeLines::default();
    for (index, line) in file.text.lines().enumerate() {
        let number = index + 1;
        let in_product = product && !file.is_test_line(number);
        own_lines += usize::from(in_product);
        match comment_lines.get(&number) {
            Some(Kind::Inner) => sizes.inner_comments += usize::from(in_product),
            Some(_) => sizes.documentation += usize::from(in_product),
            None if line.trim().is_empty() => {}
            None if in_product => code.product += 1,
            None => code.tests += 1,
        }
    }
    let owner = file.owner.clone().unwrap_or_else(|| format!("{}/", file.path.split('/').next().unwrap_or_default()));
    let total = sizes.crates.entry(owner.clone()).or_default();
    total.product += code.product;
    total.tests += code.tests;
    if !product {
        return;
    }
    sizes.files.push(File { path: file.path.clone(), lines: own_lines });
    let logs = count_logs(file);
    sizes.logs += logs;
    if CRATES_OF_RUNS.contains(&owner.as_str()) {
        sizes.logs_of_runs += logs;
        sizes.lines_of_runs += code.product;
    }
    if let Ok(parsed) = &file.parsed {
        FunctionCounter { file, sizes }.visit_file(&parsed.ast);
    }
}

/// Counts the log macros of `tracing`, and the functions with the attribute `instrument`.
fn count_logs(file: &SourceFile) -> usize {
    let mut count = 0;
    tokens::levels(file.tokens(), &mut |level| {
        count += level.windows(3).filter(|three| is_log(file, three)).count();
    });
    let attributes = tokens::attributes(file.tokens());
    count + attributes.iter().filter(|a| a.body.iter().any(|token| token.is_word("instrument"))).count()
}

fn is_log(file: &SourceFile, three: &[Token]) -> bool {
    let [name, mark, group] = three else { return false };
    let called = mark.is_mark('!') && group.group(Delimiter::Parenthesis).is_some();
    called && !file.is_test_line(name.line) && name.word().is_some_and(|word| LOG_MACROS.contains(&word))
}

struct FunctionCounter<'a> {
    file: &'a SourceFile,
    sizes: &'a mut Sizes,
}

impl FunctionCounter<'_> {
    /// Adds a function to the list, unless it is test code.
    fn add(&mut self, name: &syn::Ident, span: proc_macro2::Span) {
        let first_line = span.start().line;
        if !self.file.is_test_line(first_line) {
            let lines = span.end().line - first_line + 1;
            self.sizes.functions.push(Function { name: name.to_string(), path: self.file.path.clone(), lines });
        }
    }
}

impl<'ast> Visit<'ast> for FunctionCounter<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig.ident, item.sig.span().join(item.block.span()).unwrap_or(item.block.span()));
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig.ident, item.sig.span().join(item.block.span()).unwrap_or(item.block.span()));
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.add(&item.sig.ident, item.sig.span().join(block.span()).unwrap_or(block.span()));
        }
        visit::visit_trait_item_fn(self, item);
    }
}

impl Sizes {
    pub fn product(&self) -> usize {
        self.crates.values().map(|count| count.product).sum()
    }

    pub fn tests(&self) -> usize {
        self.crates.values().map(|count| count.tests).sum()
    }

    /// Returns the quantile of the file sizes: `percent` of the files have at most this number of lines.
    pub fn quantile(&self, percent: usize) -> usize {
        let mut lines: Vec<usize> = self.files.iter().map(|file| file.lines).collect();
        lines.sort_unstable();
        lines.get(lines.len().saturating_sub(1) * percent / 100).copied().unwrap_or_default()
    }

    pub fn longest_file(&self) -> String {
        let longest = self.files.iter().max_by_key(|file| file.lines);
        longest.map_or("-".to_owned(), |file| format!("{} {}", file.lines, file.path))
    }

    pub fn longest_function(&self) -> String {
        let longest = self.functions.iter().max_by_key(|function| function.lines);
        longest.map_or("-".to_owned(), |function| {
            let file = function.path.rsplit("crates/").next().unwrap_or_default();
            format!("{} {} in {file}", function.lines, function.name)
        })
    }

    pub fn share(&self, lines: usize) -> String {
        format!("{:.1}", 100.0 * lines as f64 / self.product().max(1) as f64)
    }

    pub fn run_log_share(&self) -> String {
        format!("{:.1}", 1000.0 * self.logs_of_runs as f64 / self.lines_of_runs.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::sample::tree;

    #[test]
    fn code_comments_and_tests_are_counted_apart() {
        let text = "//! A.\n\n/// Doc.\npub fn f() {\n    // Why.\n    tracing::info!(x); // tail\n}\n\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n";
        let tree = tree(&[("crates/exec/src/lib.rs", text), ("crates/exec/tests/it/main.rs", "fn h() {}\n")]);
        let sizes = sizes(&tree);
        assert_eq!(sizes.crates["exec"], CodeLines { product: 3, tests: 5 });
        assert_eq!((sizes.inner_comments, sizes.documentation), (1, 2));
        assert_eq!((sizes.logs, sizes.logs_of_runs, sizes.lines_of_runs), (1, 1, 3));
        let functions: Vec<_> = sizes.functions.iter().map(|f| (f.name.as_str(), f.lines)).collect();
        assert_eq!(functions, [("f", 4)]);
        assert_eq!(sizes.files.len(), 1);
        assert_eq!(sizes.quantile(50), 8);
    }

    #[test]
    fn crates_for_tests_are_not_part_of_the_product() {
        let sizes = sizes(&tree(&[("crates/testkit/src/lib.rs", "fn f() {}\n"), ("xtask/src/main.rs", "fn f() {}\n")]));
        assert_eq!((sizes.product(), sizes.tests()), (0, 2));
    }
}

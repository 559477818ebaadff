//! Rules `file-lines`, `function-lines`, `parameters`, `folder-files`, `crate-lines`: how big a thing may grow.
//! Invariant: test code is never counted; an excess passes only with an allow that gives its reason.

use std::collections::BTreeMap;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::Finding;
use super::allows::{Allows, HEAD};
use super::source::{SourceFile, Tree};

const FILE: &str = "file-lines";
const FUNCTION: &str = "function-lines";
const PARAMETERS: &str = "parameters";
const FOLDER: &str = "folder-files";
const CRATE: &str = "crate-lines";

const MOST_FILE_LINES: usize = 500;
const MOST_FUNCTION_LINES: usize = 60;
const MOST_PARAMETERS: usize = 5;
const MOST_FOLDER_FILES: usize = 15;
const MOST_CRATE_LINES: usize = 8_000;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let allows: Vec<Allows> = tree.files.iter().map(Allows::of).collect();
    let files: Vec<Counted> = tree.files.iter().zip(&allows).map(|(file, allows)| Counted { file, allows }).collect();
    let mut findings = Vec::new();
    for counted in &files {
        findings.extend(file_lines(counted));
        findings.extend(functions(counted));
    }
    findings.extend(folders(&files));
    findings.extend(crates(&files));
    findings.extend(allows.iter().flat_map(|a| a.findings(&[FILE, FUNCTION, PARAMETERS, FOLDER, CRATE])));
    findings
}

struct Counted<'a> {
    file: &'a SourceFile,
    allows: &'a Allows<'a>,
}

fn file_lines(counted: &Counted) -> Option<Finding> {
    let lines = counted.file.code_lines();
    if lines <= MOST_FILE_LINES || counted.allows.excuse(FILE, HEAD) {
        return None;
    }
    let wrong = format!("{lines} lines without tests ({MOST_FILE_LINES} allowed)");
    Some(Finding::new(FILE, (&counted.file.path, 1), wrong, fix(FILE, "split it by kind", "in its first 10 lines")))
}

fn folders(files: &[Counted]) -> Vec<Finding> {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for counted in files.iter().filter(|c| !c.file.is_test) {
        *folders.entry(counted.file.folder()).or_default() += 1;
    }
    let over = folders.into_iter().filter(|(_, count)| *count > MOST_FOLDER_FILES);
    over.filter_map(|(folder, count)| {
        let roots = ["/mod.rs", "/lib.rs", "/main.rs", ".rs"].map(|end| format!("{folder}{end}"));
        let mut heads = files.iter().filter(|c| roots.contains(&c.file.path)).peekable();
        let path = heads.peek().map_or(folder, |head| &head.file.path);
        let place = (path, 1);
        if heads.any(|head| head.allows.excuse(FOLDER, HEAD)) {
            return None;
        }
        let wrong = format!("{count} Rust files in {folder} ({MOST_FOLDER_FILES} allowed)");
        Some(Finding::new(FOLDER, place, wrong, fix(FOLDER, "group some in a folder", "at the top of its mod.rs")))
    })
    .collect()
}

fn crates(files: &[Counted]) -> Vec<Finding> {
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    for file in files.iter().map(|c| c.file).filter(|file| file.in_src) {
        *sizes.entry(file.owner.as_deref().unwrap_or_default()).or_default() += file.code_lines();
    }
    let over = sizes.into_iter().filter(|(_, lines)| *lines > MOST_CRATE_LINES);
    over.filter_map(|(owner, lines)| {
        let mut roots = files.iter().filter(|c| c.file.is_root() && c.file.owner.as_deref() == Some(owner)).peekable();
        let path = roots.peek().map_or(owner, |root| &root.file.path);
        let place = (path, 1);
        if roots.any(|root| root.allows.excuse(CRATE, HEAD)) {
            return None;
        }
        let wrong = format!("crate `{owner}` has {lines} lines without tests ({MOST_CRATE_LINES} allowed)");
        Some(Finding::new(CRATE, place, wrong, fix(CRATE, "split the crate", "at the top of lib.rs or main.rs")))
    })
    .collect()
}

fn fix(rule: &str, first: &str, place: &str) -> String {
    format!("{first}, or write `// tidy: allow({rule}) <reason>` {place}")
}

fn functions(counted: &Counted) -> Vec<Finding> {
    let mut visitor = Functions { counted, in_trait_impl: false, findings: Vec::new() };
    if let Ok(parsed) = &counted.file.parsed {
        visitor.visit_file(&parsed.ast);
    }
    visitor.findings
}

struct Functions<'a> {
    counted: &'a Counted<'a>,
    /// The signature is the trait's, where it was counted if the trait is ours.
    in_trait_impl: bool,
    findings: Vec<Finding>,
}

/// The places of one function.
struct Place {
    /// Its first line, attributes and doc comments included.
    top: usize,
    /// The line its signature starts on.
    start: usize,
}

impl Functions<'_> {
    fn weigh(&mut self, place: Place, signature: &syn::Signature, block: Option<&syn::Block>) {
        if self.counted.file.is_test_line(place.start) {
            return;
        }
        let name = &signature.ident;
        let lines = block.map_or(0, |block| block.brace_token.span.close().end().line + 1 - place.start);
        if lines > MOST_FUNCTION_LINES {
            let wrong = format!("`{name}` is {lines} lines long ({MOST_FUNCTION_LINES} allowed)");
            self.report(FUNCTION, &place, wrong, "split it");
        }
        let parameters = signature.inputs.iter().filter(|input| matches!(input, syn::FnArg::Typed(_))).count();
        if parameters > MOST_PARAMETERS && !self.in_trait_impl {
            let wrong = format!("`{name}` has {parameters} parameters ({MOST_PARAMETERS} allowed)");
            self.report(PARAMETERS, &place, wrong, "give what belongs together a type");
        }
    }

    fn report(&mut self, rule: &'static str, place: &Place, wrong: String, first: &str) {
        let file = self.counted.file;
        let above: Vec<&str> = file.text.lines().take(place.top - 1).collect();
        let comments = above.iter().rev().take_while(|line| line.trim_start().starts_with("//")).count();
        if !self.counted.allows.excuse(rule, place.top - comments..=place.start) {
            let fix = fix(rule, first, "on the line before it");
            self.findings.push(Finding::new(rule, (&file.path, place.start), wrong, fix));
        }
    }
}

fn place(attributes: &[syn::Attribute], visibility: &syn::Visibility, signature: &syn::Signature) -> Place {
    let start = match visibility {
        syn::Visibility::Inherited => signature.span().start().line,
        shown => shown.span().start().line,
    };
    let top = attributes.first().map_or(start, |first| first.pound_token.span.start().line);
    Place { top, start }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let outer = std::mem::replace(&mut self.in_trait_impl, item.trait_.is_some());
        visit::visit_item_impl(self, item);
        self.in_trait_impl = outer;
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let outer = std::mem::replace(&mut self.in_trait_impl, false);
        self.weigh(place(&item.attrs, &item.vis, &item.sig), &item.sig, Some(&item.block));
        visit::visit_item_fn(self, item);
        self.in_trait_impl = outer;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.weigh(place(&item.attrs, &item.vis, &item.sig), &item.sig, Some(&item.block));
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        let place = place(&item.attrs, &syn::Visibility::Inherited, &item.sig);
        self.weigh(place, &item.sig, item.default.as_ref());
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::sample::tree;
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<(&'static str, usize)> {
        check(&tree(files)).iter().map(|finding| (finding.rule, finding.line)).collect()
    }

    fn one(text: &str) -> Vec<(&'static str, usize)> {
        found(&[("crates/a/src/x.rs", text)])
    }

    fn long(head: &str, lines: usize) -> String {
        format!("{head} {{\n{}}}\n", "    g();\n".repeat(lines - 2))
    }

    #[test]
    fn a_file_may_have_500_lines_and_any_number_of_tests() {
        let full = "// line\n".repeat(500);
        assert_eq!(one(&full), []);
        assert_eq!(one(&format!("{full}// one more\n")), [(FILE, 1)]);
        assert_eq!(one(&format!("{full}#[cfg(test)]\nmod tests {{\n\n\n}}\n")), []);
        assert_eq!(found(&[("crates/a/src/x/tests.rs", &"// line\n".repeat(900))]), []);
        assert_eq!(one(&format!("//! X.\n// tidy: allow(file-lines) a table\n{full}")), []);
        assert_eq!(one(&format!("{full}// tidy: allow(file-lines) too late\n")), [(FILE, 1), ("allow", 501)]);
    }

    #[test]
    fn a_function_may_have_60_lines() {
        assert_eq!(one(&long("fn f()", 60)), []);
        assert_eq!(one(&long("fn f()", 61)), [(FUNCTION, 1)]);
        assert_eq!(one(&long("/// Doc.\n#[inline]\npub async fn f()", 60)), []);
        assert_eq!(one(&long("/// Doc.\n#[inline]\npub async fn f()", 61)), [(FUNCTION, 3)]);
        assert_eq!(one(&format!("impl X for Y {{\n{}}}\n", long("fn f()", 61))), [(FUNCTION, 2)]);
        assert_eq!(one(&format!("trait X {{\n{}}}\n", long("fn f()", 61))), [(FUNCTION, 2)]);
        assert_eq!(one(&long("#[test]\nfn f()", 90)), []);
        assert_eq!(found(&[("crates/a/tests/x.rs", &long("fn f()", 90))]), []);
    }

    #[test]
    fn a_long_function_is_excused_by_the_comment_before_it() {
        let body = long("/// Doc.\n#[inline]\nfn f()", 61);
        assert_eq!(one(&format!("// tidy: allow(function-lines) a table\n{body}")), []);
        assert_eq!(one(&body.replace("fn f", "// tidy: allow(function-lines) a table\nfn f")), []);
        assert_eq!(one(&format!("// tidy: allow(function-lines)\n{body}")), [("allow", 1)]);
        assert_eq!(one(&format!("// tidy: allow(function-lines) a table\n\n{body}")), [(FUNCTION, 5), ("allow", 1)]);
        assert_eq!(one("// tidy: allow(function-lines) a table\nfn f() {}\n"), [("allow", 1)]);
    }

    #[test]
    fn a_function_may_have_5_parameters_and_self() {
        assert_eq!(one("impl X { fn f(&self, a: A, b: A, c: A, d: A, e: A) {} }"), []);
        assert_eq!(one("fn f(a: A, b: A, c: A, d: A, e: A, g: A) {}"), [(PARAMETERS, 1)]);
        assert_eq!(one("trait T { fn f(&self, a: A, b: A, c: A, d: A, e: A, g: A); }"), [(PARAMETERS, 1)]);
        assert_eq!(one("impl T for X { fn f(a: A, b: A, c: A, d: A, e: A, g: A) {} }"), []);
        assert_eq!(
            one("// tidy: allow(parameters) as the C function has them\nfn f(a: A, b: A, c: A, d: A, e: A, g: A) {}"),
            []
        );
    }

    #[test]
    fn a_folder_may_have_15_files() {
        let paths: Vec<String> = (0..16).map(|n| format!("crates/a/src/x/f{n}.rs")).collect();
        let mut files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "//! F.\n")).collect();
        assert_eq!(found(&files[..15]), []);
        assert_eq!(found(&files), [(FOLDER, 1)]);
        files.push(("crates/a/src/x.rs", "//! X.\n// tidy: allow(folder-files) one per kind\n"));
        assert_eq!(found(&files), []);
        let tests: Vec<String> = (0..30).map(|n| format!("crates/a/tests/f{n}.rs")).collect();
        assert_eq!(found(&tests.iter().map(|path| (path.as_str(), "//! F.\n")).collect::<Vec<_>>()), []);
    }

    #[test]
    fn a_crate_may_have_8000_lines() {
        let text = "// line\n".repeat(500);
        let paths: Vec<String> = (0..17).map(|n| format!("crates/a/src/d{n}/f.rs")).collect();
        let mut files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), text.as_str())).collect();
        assert_eq!(found(&files[..16]), []);
        assert_eq!(found(&files), [(CRATE, 1)]);
        files.push(("crates/a/src/lib.rs", "//! A.\n// tidy: allow(crate-lines) until the split\n"));
        assert_eq!(found(&files), []);
        files.push(("crates/b/src/lib.rs", "//! B.\n// tidy: allow(crate-lines) not needed\n"));
        assert_eq!(found(&files), [("allow", 2)]);
    }
}

//! Rule `errors`: the error type of a `Result` is not a text, because a caller cannot handle a text by its variants.
//! Invariant: the rule checks only types. It does not check the messages of errors.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::Finding;
use crate::source::{SourceFile, Tree};

const RULE: &str = "errors";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.in_src) {
        let mut visitor = Results { file, findings: Vec::new() };
        if let Ok(parsed) = &file.parsed {
            visitor.visit_file(&parsed.ast);
        }
        findings.extend(visitor.findings);
    }
    findings
}

struct Results<'a> {
    file: &'a SourceFile,
    findings: Vec<Finding>,
}

impl Results<'_> {
    fn report(&mut self, line: usize, wrong: &str) {
        if !self.file.is_test_line(line) {
            let fix = "make it an enum with a variant for each thing a caller can do about it";
            self.findings.push(Finding::new(RULE, (&self.file.path, line), wrong, fix));
        }
    }
}

impl<'ast> Visit<'ast> for Results<'_> {
    fn visit_path_segment(&mut self, segment: &'ast syn::PathSegment) {
        if segment.ident == "Result"
            && let syn::PathArguments::AngleBracketed(arguments) = &segment.arguments
            && let Some(syn::GenericArgument::Type(error)) = arguments.args.get(1)
            && is_text(error)
        {
            self.report(segment.ident.span().start().line, "the error of this Result is a text");
        }
        visit::visit_path_segment(self, segment);
    }

    /// Finds `type Result<T, E = String> = …`.
    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        if item.ident.to_string().contains("Result") {
            for default in item.generics.type_params().filter_map(|param| param.default.as_ref()) {
                if is_text(default) {
                    self.report(default.span().start().line, "the error of this Result is a text by default");
                }
            }
        }
        visit::visit_item_type(self, item);
    }

    /// Finds `type Err = String` of FromStr, `type Error = String` of TryFrom and the like.
    fn visit_impl_item_type(&mut self, item: &'ast syn::ImplItemType) {
        if (item.ident == "Err" || item.ident == "Error") && is_text(&item.ty) {
            self.report(item.ident.span().start().line, "the error of this impl is a text");
        }
        visit::visit_impl_item_type(self, item);
    }
}

fn is_text(ty: &syn::Type) -> bool {
    let has_name = |ty: &syn::Type, name: &str| match ty {
        syn::Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == name),
        _ => false,
    };
    match ty {
        syn::Type::Reference(reference) => has_name(&reference.elem, "str") || is_text(&reference.elem),
        syn::Type::Paren(inner) => is_text(&inner.elem),
        syn::Type::Group(inner) => is_text(&inner.elem),
        other => has_name(other, "String"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::sample::{NONE, lines};

    fn findings(text: &str) -> usize {
        lines(check, "crates/a/src/x.rs", text).len()
    }

    #[test]
    fn texts_as_errors_are_found_wherever_a_type_stands() {
        for text in [
            "fn f() -> Result<u8, String> { g() }",
            "fn f() -> std::result::Result<u8, std::string::String> { g() }",
            "fn f() -> Result<u8, &'static str> { g() }",
            "type Outcome<T> = Result<T, String>;",
            "type Result<T, E = String> = std::result::Result<T, E>;",
            "trait T { fn f(&self) -> Result<(), &str>; }",
            "struct S { done: Option<Result<(), String>> }",
            "fn f(g: impl Fn() -> Result<(), String>) {}",
            "fn f() { let all = x.collect::<Result<Vec<_>, String>>(); }",
            "impl FromStr for X { type Err = String; }",
        ] {
            assert_eq!(findings(text), 1, "{text}");
        }
    }

    #[test]
    fn other_types_are_left_alone() {
        for text in [
            "fn f() -> Result<String, Error> { g() }",
            "fn f() -> Result<&str, Error> { g() }",
            "type Result<T, E = Error> = std::result::Result<T, E>;",
            "fn f() -> fmt::Result { g() }",
            "fn f() -> Result<u8, Box<dyn Error>> { g() }",
            "fn f() -> Either<u8, String> { g() }",
            "impl Iterator for X { type Item = String; }",
            "// Result<u8, String>\nconst X: &str = \"Result<u8, String>\";",
            "#[cfg(test)]\nmod tests { fn f() -> Result<u8, String> { g() } }",
        ] {
            assert_eq!(findings(text), 0, "{text}");
        }
        assert_eq!(lines(check, "crates/a/tests/x.rs", "fn f() -> Result<u8, String> { g() }"), NONE);
    }
}

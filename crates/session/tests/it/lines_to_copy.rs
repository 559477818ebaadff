//! Every suggested line of every golden case: with it the program is right, or only mistakes without a correction are
//! left.
//! Invariant: a diagnostic's `fix` is what its `copy` shows; `$` marks what only the author knows.

use base::{Code, Diagnostic, Edit, Limits, LineIndex, apply_edits, render_for_model};
use lang::scope::Scope;
use lang::{check, syntax};
use session::compile_stages;

use crate::golden_scopes;

/// The mistakes of a corrected program with their lines, where `$` stands for a right value.
fn left(scope: &Scope, text: &str) -> Vec<(Code, String, u32)> {
    let parsed = syntax::parse(text, &Limits::default());
    let index = LineIndex::new(text);
    let wrong = |found: Vec<Diagnostic>| -> Vec<(Code, String, u32)> {
        let errors = found.into_iter().filter(Diagnostic::is_error);
        errors.map(|d| (d.code, d.message, index.location(d.span.start).line)).collect()
    };
    let found = wrong(parsed.diagnostics);
    if !found.is_empty() {
        return found;
    }
    check::check_taught(scope, &parsed.program).map_or_else(wrong, |()| Vec::new())
}

/// The text with this line in place of the lines that its correction touches, and the line's number.
fn with_line(text: &str, fix: &[Edit], line: &str) -> Option<(String, u32)> {
    let (start, end) = (fix.iter().map(|e| e.span.start).min()?, fix.iter().map(|e| e.span.end).max()?);
    let first = text[..start as usize].rfind('\n').map_or(0, |at| at + 1);
    let last = text[end as usize..].find('\n').map_or(text.len(), |at| end as usize + at);
    let number = text[..first].matches('\n').count() as u32 + 1;
    Some((format!("{}{line}{}", &text[..first], &text[last..]), number))
}

#[test]
fn every_suggested_line_of_the_golden_cases_compiles() {
    let (mut copied, mut clean, mut wrong) = (0, 0, Vec::new());
    for folder in ["check", "plan"] {
        for (case, _) in testkit::golden::with_expectations(std::path::Path::new("../../tests/lang").join(folder)) {
            let (scope, text) = (golden_scopes::scope(&case), case.input.as_str());
            let found = compile_stages(&scope, text, &Limits::default()).diagnostics;
            let said = render_for_model(text, &found);
            let errors: Vec<&Diagnostic> = found.iter().filter(|d| d.is_error()).collect();
            for diagnostic in &errors {
                let Some(copy) = &diagnostic.copy else { continue };
                copied += 1;
                if diagnostic.fix.is_empty() {
                    // The end of a block, a name for a result, or a seed for plasm_context: not a correction of the
                    // line itself.
                    if !matches!(diagnostic.code.0, 103 | 109 | 113 | 209) {
                        wrong.push(format!("a line to copy that corrects nothing\n{text}\n{said}"));
                    }
                    continue;
                }
                let Some((put, number)) = with_line(text, &diagnostic.fix, copy) else { continue };
                let after = left(&scope, &put);
                let known = |code: &Code, message: &str| errors.iter().any(|d| d.code == *code && d.message == message);
                let this = |code: &Code, message: &str| *code == diagnostic.code && *message == diagnostic.message;
                // The line is right apart from other reported mistakes. A mistake that appears elsewhere belongs to
                // another correction.
                let fewer =
                    after.iter().all(|(code, said, line)| !this(code, said) && (*line != number || known(code, said)));
                // Unclosed text may continue in the following lines; then only its own mistake is corrected.
                let form = diagnostic.code.0 < 200 && !after.iter().any(|(code, said, _)| this(code, said));
                if !fewer && !form {
                    wrong.push(format!("{text}\n{said}\nput in place:\n{put}\n{after:?}"));
                }
                clean += usize::from(after.is_empty());
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(copied > 150 && clean > 130, "{copied} lines to copy, {clean} of them leave nothing to say");
}

#[test]
fn every_correction_of_the_parser_reduces_mistakes() {
    let (mut corrected, mut wrong) = (0, Vec::new());
    for (case, _) in testkit::golden::with_expectations(std::path::Path::new("../../tests/lang/syntax")) {
        if ["mode", "eol", "bom", "show", "bytes", "statements", "nesting"].iter().any(|a| case.attribute(a).is_some())
        {
            continue;
        }
        let text = case.input.as_str();
        let parsed = syntax::parse(text, &Limits::default());
        let errors = |found: &[Diagnostic]| found.iter().filter(|d| d.is_error()).count();
        let mut together: Vec<&Edit> = Vec::new();
        for diagnostic in &parsed.diagnostics {
            if diagnostic.fix.iter().all(|e| together.iter().all(|o| e.is_disjoint_from(o))) {
                together.extend(&diagnostic.fix);
            }
        }
        if together.is_empty() {
            continue;
        }
        corrected += 1;
        let right = apply_edits(text, 0..text.len(), together);
        let after = syntax::parse(&right, &Limits::default()).diagnostics;
        let said = render_for_model(text, &parsed.diagnostics);
        // A block must be opened correctly before it can lack its end.
        let unclosed = after.iter().any(|d| d.code == lang::codes::UNCLOSED_HEREDOC);
        if errors(&after) >= errors(&parsed.diagnostics) + usize::from(unclosed) {
            let after = render_for_model(&right, &after);
            wrong.push(format!("{text}\n{said}\nwritten so:\n{right}\n{after}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(corrected > 60, "{corrected} cases have corrections");
}

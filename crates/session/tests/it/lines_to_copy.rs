//! The corrections that diagnostics suggest in golden cases: with each of them the program has fewer mistakes.
//! Invariant: the edits in a diagnostic's `fix` produce the line in its `copy`; `$` marks a value that only the author
//! knows.

use base::{Code, Diagnostic, Edit, Limits, LineIndex, apply_edits, render_for_model};
use lang::scope::Scope;
use lang::{check, syntax};
use session::compile_stages;

use crate::golden_scopes;

/// Returns the mistakes of a corrected program with their lines. A `$` counts as a valid value.
fn remaining_mistakes(scope: &Scope, text: &str) -> Vec<(Code, String, u32)> {
    let parsed = syntax::parse(text, &Limits::default());
    let index = LineIndex::new(text);
    let errors_with_lines = |diagnostics: Vec<Diagnostic>| -> Vec<(Code, String, u32)> {
        let errors = diagnostics.into_iter().filter(Diagnostic::is_error);
        errors.map(|d| (d.code, d.message, index.location(d.span.start).line)).collect()
    };
    let syntax_errors = errors_with_lines(parsed.diagnostics);
    if !syntax_errors.is_empty() {
        return syntax_errors;
    }
    check::check_taught(scope, &parsed.program).map_or_else(errors_with_lines, |()| Vec::new())
}

/// Returns the text with this line in place of the lines that the correction touches, and the number of the line.
fn replace_corrected_line(text: &str, fix: &[Edit], line: &str) -> Option<(String, u32)> {
    let start = fix.iter().map(|e| e.span.start).min()?;
    let end = fix.iter().map(|e| e.span.end).max()?;
    let first = text[..start as usize].rfind('\n').map_or(0, |at| at + 1);
    let last = text[end as usize..].find('\n').map_or(text.len(), |at| end as usize + at);
    let number = text[..first].matches('\n').count() as u32 + 1;
    Some((format!("{}{line}{}", &text[..first], &text[last..]), number))
}

#[test]
fn every_suggested_line_of_the_golden_cases_compiles() {
    let mut suggested_lines = 0;
    let mut clean_programs = 0;
    let mut problems = Vec::new();
    for folder in ["check", "plan"] {
        for (case, _) in testkit::golden::with_expectations(std::path::Path::new("../../tests/lang").join(folder)) {
            let scope = golden_scopes::scope(&case);
            let text = case.input.as_str();
            let diagnostics = compile_stages(&scope, text, &Limits::default()).diagnostics;
            let rendered = render_for_model(text, &diagnostics);
            let errors: Vec<&Diagnostic> = diagnostics.iter().filter(|d| d.is_error()).collect();
            for diagnostic in &errors {
                let Some(copy) = &diagnostic.copy else { continue };
                suggested_lines += 1;
                if diagnostic.fix.is_empty() {
                    // These codes suggest the end of a block, a name for a result, or a seed for plasm_context. None of
                    // them corrects the line itself.
                    if !matches!(diagnostic.code.0, 103 | 109 | 113 | 209) {
                        problems.push(format!("a suggested line without a correction\n{text}\n{rendered}"));
                    }
                    continue;
                }
                let Some((corrected, number)) = replace_corrected_line(text, &diagnostic.fix, copy) else { continue };
                let remaining = remaining_mistakes(&scope, &corrected);
                let is_reported =
                    |code: &Code, message: &str| errors.iter().any(|d| d.code == *code && d.message == message);
                let is_corrected_mistake =
                    |code: &Code, message: &str| *code == diagnostic.code && *message == diagnostic.message;
                // The line is right apart from other reported mistakes. A mistake that appears elsewhere belongs to
                // another correction.
                let is_improved = remaining.iter().all(|(code, message, line)| {
                    !is_corrected_mistake(code, message) && (*line != number || is_reported(code, message))
                });
                // Unclosed text may continue in the following lines; then only its own mistake is corrected.
                let is_syntax_corrected = diagnostic.code.0 < 200
                    && !remaining.iter().any(|(code, message, _)| is_corrected_mistake(code, message));
                if !is_improved && !is_syntax_corrected {
                    problems.push(format!("{text}\n{rendered}\nwith the suggested line:\n{corrected}\n{remaining:?}"));
                }
                clean_programs += usize::from(remaining.is_empty());
            }
        }
    }
    assert!(problems.is_empty(), "{} problems\n\n{}", problems.len(), problems.join("\n\n"));
    assert!(
        suggested_lines > 150 && clean_programs > 130,
        "{suggested_lines} suggested lines, {clean_programs} of them leave no mistake"
    );
}

#[test]
fn every_correction_of_the_parser_reduces_mistakes() {
    let mut corrected_cases = 0;
    let mut problems = Vec::new();
    for (case, _) in testkit::golden::with_expectations(std::path::Path::new("../../tests/lang/syntax")) {
        if ["mode", "eol", "bom", "show", "bytes", "statements", "nesting"].iter().any(|a| case.attribute(a).is_some())
        {
            continue;
        }
        let text = case.input.as_str();
        let parsed = syntax::parse(text, &Limits::default());
        let errors = |found: &[Diagnostic]| found.iter().filter(|d| d.is_error()).count();
        let mut compatible_edits: Vec<&Edit> = Vec::new();
        for diagnostic in &parsed.diagnostics {
            if diagnostic.fix.iter().all(|e| compatible_edits.iter().all(|o| e.is_disjoint_from(o))) {
                compatible_edits.extend(&diagnostic.fix);
            }
        }
        if compatible_edits.is_empty() {
            continue;
        }
        corrected_cases += 1;
        let corrected = apply_edits(text, 0..text.len(), compatible_edits);
        let after = syntax::parse(&corrected, &Limits::default()).diagnostics;
        let rendered = render_for_model(text, &parsed.diagnostics);
        // A block must be opened correctly before it can lack its end.
        let unclosed = after.iter().any(|d| d.code == lang::codes::UNCLOSED_HEREDOC);
        if errors(&after) >= errors(&parsed.diagnostics) + usize::from(unclosed) {
            let after = render_for_model(&corrected, &after);
            problems.push(format!("{text}\n{rendered}\ncorrected:\n{corrected}\n{after}"));
        }
    }
    assert!(problems.is_empty(), "{} problems\n\n{}", problems.len(), problems.join("\n\n"));
    assert!(corrected_cases > 60, "{corrected_cases} cases have corrections");
}

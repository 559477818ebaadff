//! Corrects the mistakes that the checker reports. A correction is an edit of the author's own text.
//! Invariant: the author's text is kept, and a value that only the author knows becomes a placeholder (`$`). A
//! corrected line is shown only after the whole corrected program was parsed and checked.

mod call;
mod filter;
mod foreign;
mod key;

pub(super) use filter::WrittenFilters;

use base::{Code, Diagnostic, Edit, Limits, Span, apply_edits, closest_name};

use super::{check, check_taught};
use crate::copy_lines::{add_copy_lines, add_copy_lines_from};
use crate::scope::{Scope, looks_like_symbol};
use crate::syntax::parse;
use crate::syntax::tree::Name;

/// The size in bytes up to which every correction is tried on its own. A larger program is checked again only once,
/// because each check costs time in proportion to the size.
const MAX_BYTES_FOR_SINGLE_TRIALS: usize = 16_384;

/// The most rounds of corrections. A round may uncover mistakes that have corrections of their own.
const MAX_CORRECTION_ROUNDS: usize = 4;

/// Adds lines to copy to the mistakes of a program. A correction that does not remove its mistake is dropped.
/// Corrections of syntax errors are kept untested, because the check finds other mistakes once the syntax is right.
pub fn add_corrections(
    scope: &Scope,
    text: &str,
    limits: &Limits,
    mut diagnostics: Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    if diagnostics.iter().all(|d| d.fix.is_empty()) {
        return diagnostics;
    }
    let rounds = if text.len() > MAX_BYTES_FOR_SINGLE_TRIALS { 1 } else { MAX_CORRECTION_ROUNDS };
    if let Some(corrected) = correct_fully(scope, text, limits, &diagnostics, rounds) {
        return add_copy_lines_from(text, diagnostics, &corrected);
    }
    let errors: Vec<(Code, String)> = error_identities(&diagnostics);
    let has_syntax_errors = diagnostics.iter().any(|d| d.is_error() && d.code.0 < 200);
    for diagnostic in diagnostics.iter_mut().filter(|d| !d.fix.is_empty() && !has_syntax_errors) {
        let text = apply_edits(text, 0..text.len(), &diagnostic.fix);
        let corrected_error = (diagnostic.code, diagnostic.message.clone());
        if rounds == 1
            || !is_improvement(
                &corrected_error,
                errors.clone(),
                error_identities(&remaining_errors(scope, &text, limits)),
            )
        {
            diagnostic.fix.clear();
        }
    }
    add_copy_lines(text, diagnostics)
}

/// Applies all corrections, and then the corrections of the mistakes that this uncovered. Returns the program if no
/// mistake remains.
fn correct_fully(
    scope: &Scope,
    text: &str,
    limits: &Limits,
    diagnostics: &[Diagnostic],
    rounds: usize,
) -> Option<String> {
    let mut corrected = apply_compatible_fixes(text, diagnostics)?;
    for _ in 1..rounds {
        let remaining = remaining_errors(scope, &corrected, limits);
        if remaining.is_empty() {
            return Some(corrected);
        }
        corrected = apply_compatible_fixes(&corrected, &remaining)?;
    }
    remaining_errors(scope, &corrected, limits).is_empty().then_some(corrected)
}

/// Applies all corrections that do not overlap. Returns `None` if there are no corrections.
fn apply_compatible_fixes(text: &str, diagnostics: &[Diagnostic]) -> Option<String> {
    let mut compatible: Vec<&Edit> = Vec::new();
    for diagnostic in diagnostics.iter().filter(|d| d.is_error()) {
        if diagnostic.fix.iter().all(|edit| compatible.iter().all(|other| edit.is_disjoint_from(other))) {
            compatible.extend(&diagnostic.fix);
        }
    }
    (!compatible.is_empty()).then(|| apply_edits(text, 0..text.len(), compatible))
}

/// Returns whether a correction removed its own mistake and added no other mistake.
fn is_improvement(
    corrected_error: &(Code, String),
    mut before: Vec<(Code, String)>,
    after: Vec<(Code, String)>,
) -> bool {
    let mut take = |wanted: &(Code, String)| before.iter().position(|b| b == wanted).map(|at| before.swap_remove(at));
    take(corrected_error).is_some() && after.iter().all(|remaining| take(remaining).is_some())
}

/// Returns the errors of a corrected program. A `$` in it counts as a correct value.
fn remaining_errors(scope: &Scope, text: &str, limits: &Limits) -> Vec<Diagnostic> {
    let parsed = parse(text, limits);
    let errors =
        |diagnostics: Vec<Diagnostic>| diagnostics.into_iter().filter(Diagnostic::is_error).collect::<Vec<_>>();
    let diagnostics = errors(parsed.diagnostics);
    if !diagnostics.is_empty() {
        return diagnostics;
    }
    match check(scope, &parsed.program) {
        Ok(_) => Vec::new(),
        Err(_) => check_taught(scope, &parsed.program).map_or_else(errors, |()| Vec::new()),
    }
}

/// Returns the code and the message of each error. They identify an error whose position has moved.
fn error_identities(diagnostics: &[Diagnostic]) -> Vec<(Code, String)> {
    diagnostics.iter().filter(|d| d.is_error()).map(|d| (d.code, d.message.clone())).collect()
}

/// Returns the edit that replaces a wrong name by the known name that the author certainly meant. Symbols and names of
/// one or two letters are never replaced, because a similar symbol or short name has an unrelated meaning.
pub(super) fn rename_edit<'n>(name: &Name, known: impl IntoIterator<Item = &'n str>) -> Option<Edit> {
    if looks_like_symbol(&name.text) || name.text.chars().count() < 3 {
        return None;
    }
    closest_name(&name.text, known).map(|meant| Edit::replace(name.span, meant))
}

/// The most fields, besides the key, that a taught table shows for an entity (docs/teaching.md).
pub(super) const MAX_FIELDS_SHOWN: usize = 14;
/// The most parameters that a taught table shows for a capability.
pub(super) const MAX_PARAMS_SHOWN: usize = 8;
/// The most slots that a taught table shows for an object.
pub(super) const MAX_SLOTS_SHOWN: usize = 5;

/// Returns the list of all names that are valid here, for a message. The list is empty if a taught table shows all of
/// them, or if a correction exists.
pub(super) fn list_all_names<'n>(names: impl IntoIterator<Item = &'n str>, shown: usize, fix: Option<&Edit>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if names.len() <= shown || fix.is_some() { String::new() } else { format!("; all: {}", names.join(", ")) }
}

/// Returns the edit that adds an item to a list: behind the last item or, if the list is empty, at `end`.
pub(super) fn list_append_edit(last: Option<Span>, end: u32, more: &str) -> Edit {
    match last {
        Some(last) => Edit::insert(last.end, format!(", {more}")),
        None => Edit::insert(end, more),
    }
}

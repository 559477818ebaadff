//! Corrects what the checker refuses. Each correction is made in the author's own text and shown only if it is right.
//! Invariant: the author's text is kept, and a value that only the author knows is a place to fill, `$`. A line of a
//! corrected program is shown only after the code that runs programs has parsed and checked the program.

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

/// A program of more bytes than this is checked again only once: a check for each correction would cost as much as the
/// program each time.
const MAX_TRIAL_BYTES: usize = 16_384;

/// The most rounds of corrections. Corrections bring other mistakes to light, which have corrections of their own.
const MAX_ROUNDS: usize = 4;

/// Adds lines to copy to the mistakes of a program. A correction that does not remove its mistake is left out.
/// Corrections of syntax errors are always kept, because the mistakes that come to light after them are other ones.
pub fn add_corrections(
    scope: &Scope,
    text: &str,
    limits: &Limits,
    mut diagnostics: Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    if diagnostics.iter().all(|d| d.fix.is_empty()) {
        return diagnostics;
    }
    let rounds = if text.len() > MAX_TRIAL_BYTES { 1 } else { MAX_ROUNDS };
    if let Some(corrected) = fully_corrected(scope, text, limits, &diagnostics, rounds) {
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

/// Applies all corrections, and those of the mistakes that they bring to light. Returns the program if no mistake
/// remains.
fn fully_corrected(
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

/// Applies all corrections that do not overlap. Returns `None` if there are none.
fn apply_compatible_fixes(text: &str, diagnostics: &[Diagnostic]) -> Option<String> {
    let mut compatible: Vec<&Edit> = Vec::new();
    for diagnostic in diagnostics.iter().filter(|d| d.is_error()) {
        if diagnostic.fix.iter().all(|edit| compatible.iter().all(|other| edit.is_disjoint_from(other))) {
            compatible.extend(&diagnostic.fix);
        }
    }
    (!compatible.is_empty()).then(|| apply_edits(text, 0..text.len(), compatible))
}

/// Returns whether a correction removed its own mistake and added no other.
fn is_improvement(
    corrected_error: &(Code, String),
    mut before: Vec<(Code, String)>,
    after: Vec<(Code, String)>,
) -> bool {
    let mut take = |wanted: &(Code, String)| before.iter().position(|b| b == wanted).map(|at| before.swap_remove(at));
    take(corrected_error).is_some() && after.iter().all(|remaining| take(remaining).is_some())
}

/// Returns the errors of a corrected program, in which `$` stands for the right value.
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

/// Returns the code and the message of each error, by which it is recognized when its position moves.
fn error_identities(diagnostics: &[Diagnostic]) -> Vec<(Code, String)> {
    diagnostics.iter().filter(|d| d.is_error()).map(|d| (d.code, d.message.clone())).collect()
}

/// Returns the edit that replaces a wrong name by the one that was certainly meant. Symbols are not compared, because
/// their number is their meaning, and neither are names of one or two letters.
pub(super) fn rename_edit<'n>(name: &Name, known: impl IntoIterator<Item = &'n str>) -> Option<Edit> {
    if looks_like_symbol(&name.text) || name.text.chars().count() < 3 {
        return None;
    }
    closest_name(&name.text, known).map(|meant| Edit::replace(name.span, meant))
}

/// The most fields beside the key that a table shows of an entity (docs/teaching.md).
pub(super) const FIELDS_SHOWN: usize = 14;
/// The most parameters that a table shows of a capability.
pub(super) const PARAMS_SHOWN: usize = 8;
/// The most slots that a table shows of an object.
pub(super) const SLOTS_SHOWN: usize = 5;

/// Lists every name that could stand in a place, for a message, if a table may not have shown them all and no
/// correction is certain.
pub(super) fn list_all_names<'n>(names: impl IntoIterator<Item = &'n str>, shown: usize, fix: Option<&Edit>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if names.len() <= shown || fix.is_some() { String::new() } else { format!("; all: {}", names.join(", ")) }
}

/// Returns the edit that adds to a list: behind its last item or, in an empty list, at `end`, before what closes it.
pub(super) fn append_edit(last: Option<Span>, end: u32, more: &str) -> Edit {
    match last {
        Some(last) => Edit::insert(last.end, format!(", {more}")),
        None => Edit::insert(end, more),
    }
}

//! Corrections of what the checker refuses: each is made in the author's own text, and shown only when it is right.
//! Invariant: what the author wrote is kept; a value that only the author knows is a place to fill, `$`; a corrected program
//! was parsed and checked by the code that runs programs before a line of it is shown.

mod call;
mod filter;
mod foreign;
mod key;

pub(super) use filter::BraceSpan;

use base::{Code, Diagnostic, Edit, Limits, Span, apply_edits, closest_name};

use super::{check, check_taught};
use crate::copy_lines::{add_copy_lines, add_copy_lines_of};
use crate::scope::{Scope, looks_like_symbol};
use crate::syntax::parse;
use crate::syntax::tree::Name;

/// Programs longer than this are checked again only once: each correction alone would cost as much as the program.
const LONG: usize = 16_384;

/// Corrections bring other mistakes to light, which have corrections of their own; so often they are made.
const ROUNDS: usize = 4;

/// The mistakes of a program with their lines to copy. A correction that does not correct is left out; one of the form of the
/// text is kept, since what comes to light after it is another mistake.
pub fn add_corrections(scope: &Scope, text: &str, limits: &Limits, mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    if found.iter().all(|d| d.fix.is_empty()) {
        return found;
    }
    let rounds = if text.len() > LONG { 1 } else { ROUNDS };
    if let Some(right) = fully_corrected(scope, text, limits, (&found, rounds)) {
        return add_copy_lines_of(text, found, &right);
    }
    let errors: Vec<(Code, String)> = error_identities(&found);
    let form = found.iter().any(|d| d.is_error() && d.code.0 < 200);
    for diagnostic in found.iter_mut().filter(|d| !d.fix.is_empty() && !form) {
        let text = apply_edits(text, 0..text.len(), &diagnostic.fix);
        let this = (diagnostic.code, diagnostic.message.clone());
        if rounds == 1
            || !is_improvement(&this, errors.clone(), error_identities(&remaining_errors(scope, &text, limits)))
        {
            diagnostic.fix.clear();
        }
    }
    add_copy_lines(text, found)
}

/// The program with everything corrected, if that is what the corrections lead to.
fn fully_corrected(
    scope: &Scope,
    text: &str,
    limits: &Limits,
    (found, rounds): (&[Diagnostic], usize),
) -> Option<String> {
    let mut now = apply_compatible_fixes(text, found)?;
    for _ in 1..rounds {
        let left = remaining_errors(scope, &now, limits);
        if left.is_empty() {
            return Some(now);
        }
        now = apply_compatible_fixes(&now, &left)?;
    }
    remaining_errors(scope, &now, limits).is_empty().then_some(now)
}

/// All corrections that can be made together; none if a mistake has none and no other stands for it.
fn apply_compatible_fixes(text: &str, found: &[Diagnostic]) -> Option<String> {
    let mut together: Vec<&Edit> = Vec::new();
    for diagnostic in found.iter().filter(|d| d.is_error()) {
        if diagnostic.fix.iter().all(|edit| together.iter().all(|other| edit.is_disjoint_from(other))) {
            together.extend(&diagnostic.fix);
        }
    }
    (!together.is_empty()).then(|| apply_edits(text, 0..text.len(), together))
}

/// Whether only mistakes are left that were there before, and this one not.
fn is_improvement(this: &(Code, String), mut before: Vec<(Code, String)>, after: Vec<(Code, String)>) -> bool {
    let mut take = |wanted: &(Code, String)| before.iter().position(|b| b == wanted).map(|at| before.swap_remove(at));
    take(this).is_some() && after.iter().all(|left| take(left).is_some())
}

/// What is wrong with a corrected program. `$` stands for the right value.
fn remaining_errors(scope: &Scope, text: &str, limits: &Limits) -> Vec<Diagnostic> {
    let parsed = parse(text, limits);
    let errors = |found: Vec<Diagnostic>| found.into_iter().filter(Diagnostic::is_error).collect::<Vec<_>>();
    let found = errors(parsed.diagnostics);
    if !found.is_empty() {
        return found;
    }
    match check(scope, &parsed.program) {
        Ok(_) => Vec::new(),
        Err(_) => check_taught(scope, &parsed.program).map_or_else(errors, |()| Vec::new()),
    }
}

fn error_identities(found: &[Diagnostic]) -> Vec<(Code, String)> {
    found.iter().filter(|d| d.is_error()).map(|d| (d.code, d.message.clone())).collect()
}

/// The one of these names that was surely meant, in place of a wrong one. A symbol is not like another: its number is its
/// meaning; nor is a name of a letter or two.
pub(super) fn rename_edit<'n>(name: &Name, known: impl IntoIterator<Item = &'n str>) -> Option<Edit> {
    if looks_like_symbol(&name.text) || name.text.chars().count() < 3 {
        return None;
    }
    closest_name(&name.text, known).map(|meant| Edit::replace(name.span, meant))
}

/// Of longer lists a table shows some (docs/teaching.md): fields beside the key, parameters, slots of an object.
pub(super) const FIELDS_SHOWN: usize = 14;
pub(super) const PARAMS_SHOWN: usize = 8;
pub(super) const SLOTS_SHOWN: usize = 5;

/// Every name that could stand here, where a table may not have shown it and what was meant is not certain.
pub(super) fn list_all_names<'n>(names: impl IntoIterator<Item = &'n str>, shown: usize, fix: Option<&Edit>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if names.len() <= shown || fix.is_some() { String::new() } else { format!("; all: {}", names.join(", ")) }
}

/// `, more` after the last of a list, or `more` where it has none: at `end`, before what closes it.
pub(super) fn append_edit(last: Option<Span>, end: u32, more: &str) -> Edit {
    match last {
        Some(last) => Edit::insert(last.end, format!(", {more}")),
        None => Edit::insert(end, more),
    }
}

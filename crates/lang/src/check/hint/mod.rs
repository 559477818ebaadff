//! Corrections of what the checker refuses: each is made in the author's own text, and shown only when it is right.
//! Invariant: what the author wrote is kept; a value that only the author knows is a place to fill, `$`; a corrected program
//! was parsed and checked by the code that runs programs before a line of it is shown.

mod call;
mod filter;
mod foreign;
mod key;

pub(super) use filter::{Braces, test_op};

use base::{Code, Diagnostic, Edit, Limits, Span, edited, nearest};

use super::{check, check_taught};
use crate::lines::with_lines;
use crate::scope::{Scope, looks_like_symbol};
use crate::syntax::tree::Name;
use crate::syntax::{parse, parse_taught};

/// Programs longer than this are checked again only once: each correction alone would cost as much as the program.
const LONG: usize = 16_384;

/// The mistakes of a program with their lines to copy; a correction that does not correct is left out.
pub fn corrected(scope: &Scope, text: &str, limits: &Limits, mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let errors: Vec<(Code, String)> =
        found.iter().filter(|d| d.is_error()).map(|d| (d.code, d.message.clone())).collect();
    let mut together: Vec<&Edit> = Vec::new();
    for edit in found.iter().flat_map(|d| &d.fix) {
        if together.iter().all(|other| edit.beside(other)) {
            together.push(edit);
        }
    }
    if together.is_empty() {
        return found;
    }
    let all_right = mistakes(scope, &edited(text, (0, text.len()), together), limits).is_empty();
    if !all_right {
        let long = text.len() > LONG;
        for diagnostic in found.iter_mut().filter(|d| !d.fix.is_empty()) {
            let text = edited(text, (0, text.len()), &diagnostic.fix);
            let this = (diagnostic.code, diagnostic.message.clone());
            if long || !corrects(&this, errors.clone(), mistakes(scope, &text, limits)) {
                diagnostic.fix.clear();
            }
        }
    }
    with_lines(text, found)
}

/// Whether only mistakes are left that were there before, and this one not.
fn corrects(this: &(Code, String), mut before: Vec<(Code, String)>, after: Vec<(Code, String)>) -> bool {
    let mut take = |wanted: &(Code, String)| before.iter().position(|b| b == wanted).map(|at| before.swap_remove(at));
    take(this).is_some() && after.iter().all(|left| take(left).is_some())
}

/// What is wrong with a corrected program. `$` stands for the right value.
fn mistakes(scope: &Scope, text: &str, limits: &Limits) -> Vec<(Code, String)> {
    let plain = parse(text, limits);
    let parsed = if plain.diagnostics.iter().any(Diagnostic::is_error) { parse_taught(text, limits) } else { plain };
    let wrong = |found: Vec<Diagnostic>| -> Vec<(Code, String)> {
        found.into_iter().filter(Diagnostic::is_error).map(|d| (d.code, d.message)).collect()
    };
    let found = wrong(parsed.diagnostics);
    if !found.is_empty() {
        return found;
    }
    match check(scope, &parsed.program) {
        Ok(_) => Vec::new(),
        Err(_) => check_taught(scope, &parsed.program).map_or_else(wrong, |()| Vec::new()),
    }
}

/// The one of these names that was surely meant, in place of a wrong one. A symbol is not like another: its number is its
/// meaning; nor is a name of a letter or two.
pub(super) fn renamed<'n>(name: &Name, known: impl IntoIterator<Item = &'n str>) -> Option<Edit> {
    if looks_like_symbol(&name.text) || name.text.chars().count() < 3 {
        return None;
    }
    nearest(&name.text, known).map(|meant| Edit::replace(name.span, meant))
}

/// `, more` after the last of a list, or `more` where it has none: at `end`, before what closes it.
pub(super) fn added(last: Option<Span>, end: u32, more: &str) -> Edit {
    match last {
        Some(last) => Edit::insert(last.end, format!(", {more}")),
        None => Edit::insert(end, more),
    }
}

//! What a model reads: sessions, plans, results and errors as short text.
//! Invariant: all that the model needs is in the text, because hosts do not show it anything else.

mod cell;
mod discovery;
mod effects;
mod result;

use base::render_for_model;
use session::{CatalogUpdate, Error, JsError, OpenedSession, PlannedProgram, ResourceUri, RunResult, TaughtTable};

pub use cell::cell;
pub use discovery::{discovered, listed};
use effects::after_rows;
pub use effects::running;
pub use result::{Shown, rows_table, run_result};

/// A host shows at most this much of one answer.
const HARD_CAP: usize = 40_000;

/// An answer within what hosts show, cut after a whole line where it is longer.
pub fn capped(text: String) -> String {
    if text.chars().count() <= HARD_CAP {
        return text;
    }
    let kept: String = text.chars().take(HARD_CAP - 100).collect();
    let lines = kept.rfind('\n').map_or(kept.as_str(), |at| &kept[..at]);
    format!("{lines}\n(cut at {HARD_CAP} characters; ask for less at once)")
}

/// The answer of `plasm_context`.
pub fn opened(opened: &OpenedSession) -> String {
    let slot = opened.slot;
    let notice = if opened.continuity.previous_execute.is_some() {
        "\n\n**The earlier session was missing or expired.** Every earlier e#, m#, p# and r# is void; read only the table in this answer."
    } else if opened.continuity.refreshed {
        "\n\n**This session was opened again on the newest catalogs.** Every earlier e#, m#, p# and r# is void; read only the table in this answer."
    } else {
        ""
    };
    let newer: String = opened.catalog_updates.iter().map(said).collect();
    match &opened.taught {
        TaughtTable::Text(table) => format!("`{slot}`{notice}\n\n{table}{newer}"),
        TaughtTable::Unchanged { entities } => {
            let range = if *entities == 1 { "`e1`".to_owned() } else { format!("`e1`…`e{entities}`") };
            format!("`{slot}` _Session unchanged ({range}). {}_{newer}", teach::UNCHANGED_USE)
        }
    }
}

/// What a model may do about it, said once.
fn said(newer: &CatalogUpdate) -> String {
    let CatalogUpdate { api, pinned, offered } = newer;
    let versions =
        if pinned == offered { format!("version {pinned} as well") } else { format!("{pinned} → {offered}") };
    format!(
        "\n\n_`{api}` is offered in a newer form ({versions}); this session keeps its own. `refresh: true` moves it there, with \
         new symbols._"
    )
}

/// The answer of `plasm_run`: rows, what follows them, what was mended.
pub fn ran(ran: &RunResult, shown_chars: usize) -> Shown {
    let artifact = ResourceUri::run(ran.slot, ran.number);
    let Shown { text, lossy } = run_result(&ran.outcome, &artifact, shown_chars);
    let (after, notes) = (after_rows(ran), render_for_model(&ran.program, &ran.notes));
    // An empty line: what follows is no row of the last table.
    let after = if after.is_empty() { after } else { format!("\n{after}") };
    let parts: Vec<&str> = [text.as_str(), &after, &notes].into_iter().filter(|part| !part.is_empty()).collect();
    Shown { text: parts.join("\n"), lossy }
}

/// The answer of `plasm`.
pub fn planned(planned: &PlannedProgram, program: &str) -> String {
    // The first line says by what the plan is run.
    let explained = match (&planned.commit, planned.explained.split_once('\n')) {
        (Some(commit), Some((first, rest))) => format!("{first} · {commit}\n{rest}"),
        (Some(commit), None) => format!("{} · {commit}", planned.explained),
        (None, _) => planned.explained.clone(),
    };
    if planned.notes.is_empty() {
        return explained;
    }
    format!("{explained}\n{}", render_for_model(program, &planned.notes))
}

/// One failure: a code to branch on, what is wrong, what to do.
pub fn error(error: &Error) -> String {
    match error {
        Error::Program { text, diagnostics } => {
            let lines = render_for_model(text, diagnostics);
            format!("{}: nothing ran; correct and send the whole program again\n{lines}", error.code())
        }
        Error::Review { explained, commit } => {
            format!(
                "{}: nothing ran; read the plan, then send plan_commit_ref: {commit} to run it (or force: true)\n{explained}",
                error.code()
            )
        }
        Error::Interrupted { receipts } | Error::NotKept { receipts, .. } => {
            format!("{}: {error}\n{}", error.code(), effects::alone(receipts))
        }
        Error::Js(JsError::Fenced { explained }) => format!("{}: {error}\n{explained}", error.code()),
        Error::Shared(inner) => self::error(inner),
        other => format!("{}: {other}", other.code()),
    }
}

//! Sessions, plans, results and errors as the short text that a model reads.
//! Invariant: everything that the model needs is in the text, because many hosts show it nothing else.

mod discovery;
mod effects;
mod result;

use base::render_for_model;
use session::{CatalogUpdate, OpenedSession, PlannedProgram, ResourceUri, RunResult, TaughtTable};

pub use discovery::{discovered, listed};
use effects::after_rows;
pub use effects::running;
pub use result::{ShownResult, cell, rows_table, run_result};

/// Hosts show at most this many characters of one answer.
const MAX_ANSWER_CHARS: usize = 40_000;

/// Cuts an answer that is longer than hosts show. The cut falls after a whole line and is announced.
pub fn capped(text: String) -> String {
    if text.chars().count() <= MAX_ANSWER_CHARS {
        return text;
    }
    // The last line must fit below the limit, too.
    let kept: String = text.chars().take(MAX_ANSWER_CHARS - 100).collect();
    let lines = kept.rfind('\n').map_or(kept.as_str(), |line_end| &kept[..line_end]);
    format!("{lines}\n(cut at {MAX_ANSWER_CHARS} characters; ask for less at once)")
}

/// Renders the answer of `plasm_context`.
pub fn opened(opened: &OpenedSession) -> String {
    let slot = opened.slot;
    let notice = if opened.continuity.previous_execute.is_some() {
        "\n\n**The earlier session was missing or expired.** Every earlier e#, m#, p# and r# is void; read only the table in this answer."
    } else if opened.continuity.refreshed {
        "\n\n**This session was opened again on the newest catalogs.** Every earlier e#, m#, p# and r# is void; read only the table in this answer."
    } else {
        ""
    };
    let updates: String = opened.catalog_updates.iter().map(catalog_update).collect();
    match &opened.taught {
        TaughtTable::Text(table) => format!("`{slot}`{notice}\n\n{table}{updates}"),
        TaughtTable::Unchanged { entities } => {
            let range = if *entities == 1 { "`e1`".to_owned() } else { format!("`e1`…`e{entities}`") };
            format!("`{slot}` _Session unchanged ({range}). {}_{updates}", teach::UNCHANGED_USE)
        }
    }
}

/// Tells a model once that a catalog of its session has a newer form, and how to move to that form.
fn catalog_update(update: &CatalogUpdate) -> String {
    let CatalogUpdate { api, pinned, offered } = update;
    let versions =
        if pinned == offered { format!("version {pinned} as well") } else { format!("{pinned} → {offered}") };
    format!(
        "\n\n_`{api}` is offered in a newer form ({versions}); this session keeps its own. `refresh: true` moves it there, with \
         new symbols._"
    )
}

/// Renders the answer of `plasm_run`: the rows, then handles and receipts, then corrections that were made while compiling.
pub fn run(run: &RunResult, shown_chars: usize) -> ShownResult {
    let artifact = ResourceUri::run(run.slot, run.number);
    let ShownResult { text, lossy } = run_result(&run.outcome, &artifact, shown_chars);
    let mut parts = vec![text];
    let after_rows = after_rows(run);
    if !after_rows.is_empty() {
        // An empty line separates the last table from the lines that are no rows of it.
        parts.push(format!("\n{after_rows}"));
    }
    parts.push(render_for_model(&run.program, &run.notes));
    parts.retain(|part| !part.is_empty());
    ShownResult { text: parts.join("\n"), lossy }
}

/// Renders the answer of `plasm`.
pub fn planned(planned: &PlannedProgram, program: &str) -> String {
    // The first line names the plan commit with which the plan can be run.
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

/// Renders a failure: the code, the mistake, and the remedy.
pub fn error(error: &app::Error) -> String {
    match error {
        app::Error::Session(error) => session_error(error),
        app::Error::BadArguments(_)
        | app::Error::NoCatalog(_)
        | app::Error::NotOperator
        | app::Error::Withdrawn
        | app::Error::Panicked => format!("{}: {error}", error.code()),
    }
}

/// Renders a failure of a use case.
pub fn session_error(error: &session::Error) -> String {
    use session::{Error, JsError};
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
        Error::NotKept { receipts, .. } => {
            format!("{}: {error}\n{}", error.code(), effects::receipts_without_result(receipts))
        }
        Error::Js(JsError::Fenced { explained }) => format!("{}: {error}\n{explained}", error.code()),
        Error::Shared(inner) => session_error(inner),
        other => format!("{}: {other}", other.code()),
    }
}

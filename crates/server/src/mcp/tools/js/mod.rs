//! The tools around JavaScript, by what they are about.
//! Invariant: each answers JSON, and the same as text; a body that the wire contract gives for a failure is exactly that body.

mod executions;
mod heaps;
mod run_js;
mod sessions;

pub use executions::{cancel, get, list, output};
pub use heaps::{delete_tags, diff, get_tags, query, set_tags};
pub use run_js::run;
pub use sessions::{fork, promote, rewind, sessions, snapshots};

use rmcp::model::Tool;
use serde_json::{Value, json};
use session::Error;

use super::{Answer, Name};

pub fn tool(name: Name) -> Option<Tool> {
    Some(match name {
        Name::RunJs => run_js::tool(),
        Name::GetExecution | Name::GetExecutionOutput | Name::CancelExecution | Name::ListExecutions => {
            executions::tool(name)?
        }
        Name::ListSessions
        | Name::ListSessionSnapshots
        | Name::ForkSession
        | Name::PromoteSession
        | Name::RewindSession => sessions::tool(name)?,
        Name::GetHeapTags | Name::SetHeapTags | Name::DeleteHeapTags | Name::QueryHeapsByTags | Name::DiffHeaps => {
            heaps::tool(name)?
        }
        _ => return None,
    })
}

/// A body that says what is wrong in its own way.
fn refused(error: &Error, body: Value) -> Answer {
    let outcome = Answer::failed(error).outcome;
    let mut answer = Answer::structured(body, None);
    answer.result.is_error = Some(true);
    Answer { outcome, ..answer }
}

/// `{ok}`
fn done(ended: Result<(), Error>) -> Answer {
    match ended {
        Ok(()) => Answer::structured(json!({"ok": true}), None),
        Err(error) => refused(&error, json!({"ok": false, "error": error.to_string()})),
    }
}

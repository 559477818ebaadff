//! `tokamak execution`: runs of JavaScript, looked at and ended.
//! Invariant: nothing here starts or goes on with a run.

use std::path::Path;

use access::Caller;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::js;
use crate::args::{Execution, ExecutionAction};
use crate::failure::Failure;
use crate::log;
use crate::output::Output;

pub async fn run(file: Option<&Path>, args: &Execution, output: &Output) -> Result<(), Failure> {
    log::init("error");
    let stop = CancellationToken::new();
    let service = js::open(file, &args.place, &stop).await?;
    let caller = Caller::local();
    match &args.action {
        ExecutionAction::List { limit } => {
            let found = service.executions(&caller, None, (*limit).clamp(1, 1_000)).await?;
            if output.json {
                output.value(&server::view::json(&server::view::ExecutionList::new(&found)));
                return Ok(());
            }
            for one in &found {
                let session = one.session.as_deref().unwrap_or("-");
                output.line(&format!(
                    "{} {:14} {} {session}",
                    output.bold(&one.id.to_string()),
                    one.state,
                    one.accepted
                ));
            }
        }
        ExecutionAction::Show { id } => {
            let found = service.execution(&caller, id).await?;
            if output.json {
                output.value(&server::view::json(&server::view::ExecutionView::new(&found)));
                return Ok(());
            }
            output.line(&format!("{} {}", output.bold(&found.id.to_string()), js::said(&found)));
            output.value(&server::view::json(&server::view::ExecutionView::new(&found)));
        }
        ExecutionAction::Output { id, line_offset, line_limit } => {
            if output.json {
                let asked = session::OutputRequest {
                    line_offset: Some(*line_offset),
                    line_limit: *line_limit,
                    ..session::OutputRequest::default()
                };
                output.value(&server::view::json(&service.execution_output(&caller, id, &asked).await?));
                return Ok(());
            }
            js::console(&service, id, (*line_offset, *line_limit), output).await?;
        }
        ExecutionAction::Cancel { id } => {
            service.cancel_execution(&caller, id).await?;
            if output.json {
                output.value(&json!({"ok": true}));
            } else {
                output.line(&format!("{id} cancelled"));
            }
        }
    }
    Ok(())
}

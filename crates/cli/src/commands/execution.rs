//! `tokamak execution`: lists, shows and cancels runs of JavaScript, and prints their console output.
//! Invariant: no command of this file starts or continues a run.

use std::path::Path;

use app::calls::{CancelExecution, GetExecution, GetExecutionOutput, ListExecutions};
use app::{App, Context};
use serde_json::json;
use server::view;

use super::{js, with_app};
use crate::args::{ExecutionAction, ExecutionArgs, Settings};
use crate::failure::Failure;
use crate::output::Output;

pub async fn run(config_file: Option<&Path>, args: &ExecutionArgs, output: &Output) -> Result<(), Failure> {
    with_app(config_file, Settings::from(&args.folder), async |app| run_action(&app, &args.action, output).await).await
}

async fn run_action(app: &App, action: &ExecutionAction, output: &Output) -> Result<(), Failure> {
    match action {
        ExecutionAction::List { limit } => {
            let request = ListExecutions { after: None, limit: Some(*limit) };
            let executions = app.call(&Context::command("list_executions"), request).await?;
            if output.json {
                output.value(&view::json(&view::ExecutionList::new(&executions)));
                return Ok(());
            }
            for execution in &executions.executions {
                let id = output.bold(&execution.id.to_string());
                let session = execution.session.as_deref().unwrap_or("-");
                output.line(&format!("{id} {:14} {} {session}", execution.state, execution.accepted));
            }
        }
        ExecutionAction::Show { id } => {
            let request = GetExecution { execution_id: id.clone(), wait_ms: 0 };
            let execution = app.call(&Context::command("get_execution"), request).await?;
            if !output.json {
                let id = output.bold(&execution.id.to_string());
                output.line(&format!("{id} {}", js::describe_state(&execution)));
            }
            output.value(&view::json(&view::ExecutionView::new(&execution)));
        }
        ExecutionAction::Output { id, line_offset, line_limit } => {
            if output.json {
                let request = GetExecutionOutput {
                    execution_id: id.clone(),
                    line_offset: Some(*line_offset),
                    line_limit: *line_limit,
                    ..GetExecutionOutput::default()
                };
                let page = app.call(&Context::command("get_execution_output"), request).await?;
                output.value(&view::json(&page));
                return Ok(());
            }
            js::print_console(app, id, *line_offset, *line_limit, output).await?;
        }
        ExecutionAction::Cancel { id } => {
            let request = CancelExecution { execution_id: id.clone() };
            app.call(&Context::command("cancel_execution"), request).await?;
            output.value_or_line(&json!({"ok": true}), &format!("the run {id} is cancelled"));
        }
    }
    Ok(())
}

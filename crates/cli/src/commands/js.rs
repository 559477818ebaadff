//! `tokamak js`: runs JavaScript and TypeScript files one after the other on one heap.
//! Invariant: the first file that fails ends the command with exit code 1. The heaps of the earlier files are stored.

use std::io::Read;
use std::path::Path;

use access::Caller;
use app::calls::{GetExecutionOutput, RunJs};
use app::{App, Context};
use serde_json::Value;
use server::view;
use session::{Completion, Execution, ExecutionState, PendingReview, SessionTarget};
use tokio_util::sync::CancellationToken;

use super::open_app;
use crate::args::{JsArgs, Settings};
use crate::failure::Failure;
use crate::output::Output;
use crate::{config, log};

pub async fn run(config_file: Option<&Path>, args: &JsArgs, output: &Output) -> Result<(), Failure> {
    log::init("error");
    let settings = Settings::from(&args.folder);
    let stop = CancellationToken::new();
    let mut app = open_app(config_file, &settings, &stop).await?;
    let mut request = RunJs {
        heap: args.heap.map(|key| key.to_string()),
        require_heap: true,
        // The command waits until the run ends, because it has no other work.
        wait_ms: Some(u64::MAX),
        timeout_ms: args.timeout_ms,
        memory_mb: args.memory_mb,
        ..RunJs::default()
    };
    if let Some(session) = &args.session {
        match app.service().session_target(&Caller::local(), session).await? {
            SessionTarget::Logical(id) => request.logical_session_ref = Some(id),
            SessionTarget::Named(name) => request.connection.session_name = Some(name),
            SessionTarget::None => {}
        }
    }
    let mut answers = Vec::new();
    for (index, path) in args.files.iter().enumerate() {
        if args.cold && index > 0 {
            // The engine of a new app has no heaps in memory, so it loads the heap from storage and verifies it.
            app = open_app(config_file, &settings, &stop).await?;
        }
        request.code = read_source(path)?;
        let is_last = index + 1 == args.files.len();
        if is_last && !args.tag.is_empty() {
            request.tags = Some(args.tag.iter().cloned().collect());
        }
        let answer = app.call(&Context::command("run_js"), request.clone()).await?;
        if output.json {
            answers.push(view::json(&view::RunJsView::new(&answer)));
        } else {
            print_result(&app, &answer.execution, output).await?;
        }
        let execution = answer.execution;
        if execution.state != ExecutionState::Completed {
            if output.json {
                output.value(&Value::Array(answers));
            }
            return Err(Failure::Found(format!("{} {}", path.display(), describe_state(&execution))));
        }
        request.heap = execution.heap.map(|key| key.to_string());
    }
    if output.json {
        output.value(&Value::Array(answers));
    } else if let Some(heap) = request.heap {
        output.notice(&format!("heap {heap}"));
    }
    Ok(())
}

fn read_source(path: &Path) -> Result<String, Failure> {
    if path != Path::new("-") {
        return config::read_text(path);
    }
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).map_err(|cause| Failure::Unreadable { path: path.to_owned(), cause })?;
    config::decode_text(path, bytes)
}

/// Prints the console output, the result and the warning of a run.
async fn print_result(app: &App, execution: &Execution, output: &Output) -> Result<(), Failure> {
    print_console(app, &execution.id.to_string(), 0, None, output).await?;
    match &execution.result {
        Some(Completion::Json(value)) => output.value(value),
        Some(Completion::Inspected(text)) => output.line(text),
        Some(Completion::Undefined) | None => {}
    }
    if let Some(warning) = &execution.warning {
        output.notice(&format!("warning: {warning}"));
    }
    Ok(())
}

/// Prints the console output of a run page by page, from the line `line_offset` on. `line_limit` is the largest number of lines; `None`
/// prints all lines.
pub async fn print_console(
    app: &App,
    execution_id: &str,
    mut line_offset: u64,
    mut line_limit: Option<u64>,
    output: &Output,
) -> Result<(), Failure> {
    loop {
        let request = GetExecutionOutput {
            execution_id: execution_id.to_owned(),
            line_offset: Some(line_offset),
            line_limit,
            ..GetExecutionOutput::default()
        };
        let page = app.call(&Context::command("get_execution_output"), request).await?;
        if !page.data.is_empty() {
            output.line(page.data.strip_suffix('\n').unwrap_or(&page.data));
        }
        line_limit = line_limit.map(|limit| limit.saturating_sub(page.next_line_offset - line_offset));
        line_offset = page.next_line_offset;
        if !page.has_more || line_limit == Some(0) {
            if page.dropped_bytes > 0 {
                output.notice(&format!(
                    "the run printed {} more bytes of console output, which were not stored",
                    page.dropped_bytes
                ));
            }
            return Ok(());
        }
    }
}

/// Describes the state of a run that did not complete: its error, or the reviews that it waits for.
pub fn describe_state(execution: &Execution) -> String {
    match &execution.error {
        Some(error) => {
            let stack = error.stack.trim_end();
            let stack = if stack.is_empty() { String::new() } else { format!("\n{stack}") };
            format!("{}: {}: {}{stack}", execution.state, error.name, error.message)
        }
        None => {
            let warning = execution.warning.as_ref().map(|warning| format!(": {warning}")).unwrap_or_default();
            let reviews = execution.reviews.iter().map(|review| describe_review(execution, review));
            format!("{}{warning}{}", execution.state, reviews.collect::<String>())
        }
    }
}

/// Describes a write that waits for a review: its plan, and the command that approves the plan. After the approval only a server continues
/// the run.
fn describe_review(execution: &Execution, review: &PendingReview) -> String {
    let session = execution.session.as_deref().unwrap_or_default();
    let plan = review.plan.trim_end();
    let commit = &review.commit;
    format!(
        "\n{plan}\n{commit} waits for a review; to approve it: tokamak run --session {session} --commit {commit}\nthen a \
         server on this data folder continues the run, if its time (--timeout-ms) is not over"
    )
}

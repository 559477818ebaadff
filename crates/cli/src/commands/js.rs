//! `tokamak js`: runs files in order on one heap.
//! Invariant: the first file that does not complete ends the command with exit code 1; what completed before it is kept.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use access::Caller;
use serde_json::Value;
use session::{
    Completion, Execution, ExecutionState, OutputRequest, PendingReview, RunJsRequest, Service, SessionTarget,
};
use tokio_util::sync::CancellationToken;

use crate::args::{Js, Place, Settings};
use crate::config::{self, Config};
use crate::failure::Failure;
use crate::output::Output;
use crate::{log, wiring};

pub async fn run(file: Option<&Path>, args: &Js, output: &Output) -> Result<(), Failure> {
    log::init("error");
    let stop = CancellationToken::new();
    let mut service = open(file, &args.place, &stop).await?;
    let mut heap = args.heap.map(|key| key.to_string());
    let mut shown = Vec::new();
    let session = match &args.session {
        Some(name) => service.session_target(&Caller::local(), name).await?,
        None => SessionTarget::None,
    };
    for (at, path) in args.files.iter().enumerate() {
        if args.cold && at > 0 {
            // A new engine knows no heap: this one comes out of storage, verified.
            service = open(file, &args.place, &stop).await?;
        }
        let last = at + 1 == args.files.len();
        let asked = RunJsRequest {
            code: source(path)?,
            heap: heap.clone(),
            session: session.clone(),
            tags: (last && !args.tag.is_empty()).then(|| args.tag.iter().cloned().collect()),
            require_heap: true,
            wait_ms: Some(u64::MAX),
            timeout_ms: args.timeout_ms,
            memory_mb: args.memory_mb,
            ..RunJsRequest::default()
        };
        let ran = service.run_js(&Caller::local(), &asked).await?;
        if output.json {
            let beginning = OutputRequest { byte_offset: Some(0), byte_limit: Some(4_000), ..OutputRequest::default() };
            let output = match ran.output_bytes {
                0 => None,
                _ => Some(service.execution_output(&Caller::local(), &ran.id.to_string(), &beginning).await?),
            };
            let answer = app::calls::RunJsAnswer { execution: ran.clone(), output };
            shown.push(server::view::json(&server::view::RunJsView::new(&answer)));
        } else {
            print(&service, &ran, output).await?;
        }
        if ran.state != ExecutionState::Completed {
            if output.json {
                output.value(&Value::Array(shown));
            }
            return Err(Failure::Found(format!("{} {}", path.display(), said(&ran))));
        }
        heap = ran.heap.map(|key| key.to_string());
    }
    if output.json {
        output.value(&Value::Array(shown));
    } else if let Some(heap) = heap {
        output.notice(&format!("heap {heap}"));
    }
    Ok(())
}

/// The service of a data folder, without the demo API unless sessions need it.
pub async fn open(file: Option<&Path>, place: &Place, stop: &CancellationToken) -> Result<Arc<Service>, Failure> {
    let config =
        Config::read(file, &Settings { data: place.data.clone(), keep: place.keep.clone(), ..Settings::default() })?;
    Ok(wiring::app(&config, stop).await?.app.service().clone())
}

fn source(path: &Path) -> Result<String, Failure> {
    if path != Path::new("-") {
        return config::read_text(path);
    }
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).map_err(|cause| Failure::Unreadable { path: path.to_owned(), cause })?;
    config::text_of(path, bytes)
}

async fn print(service: &Service, ran: &Execution, output: &Output) -> Result<(), Failure> {
    console(service, &ran.id.to_string(), (0, None), output).await?;
    match &ran.result {
        Some(Completion::Json(value)) => output.value(value),
        Some(Completion::Inspected(text)) => output.line(text),
        Some(Completion::Undefined) | None => {}
    }
    if let Some(warning) = &ran.warning {
        output.notice(&format!("warning: {warning}"));
    }
    Ok(())
}

/// Console output from a line on, page by page.
pub async fn console(
    service: &Service,
    id: &str,
    (mut line, mut left): (u64, Option<u64>),
    output: &Output,
) -> Result<(), Failure> {
    loop {
        let asked = OutputRequest { line_offset: Some(line), line_limit: left, ..OutputRequest::default() };
        let page = service.execution_output(&Caller::local(), id, &asked).await?;
        let text = page.data.strip_suffix('\n').unwrap_or(&page.data);
        if !page.data.is_empty() {
            output.line(text);
        }
        left = left.map(|left| left.saturating_sub(page.next_line_offset - line));
        line = page.next_line_offset;
        if !page.has_more || left == Some(0) {
            if page.dropped_bytes > 0 {
                output.notice(&format!("{} more bytes were printed and not kept", page.dropped_bytes));
            }
            return Ok(());
        }
    }
}

/// Why a run did not complete.
pub fn said(ran: &Execution) -> String {
    match &ran.error {
        Some(error) => {
            let stack = error.stack.trim_end();
            let line = if stack.is_empty() { String::new() } else { format!("\n{stack}") };
            format!("{}: {}: {}{line}", ran.state, error.name, error.message)
        }
        None => {
            let warning = ran.warning.as_ref().map(|warning| format!(": {warning}")).unwrap_or_default();
            let reviews = ran.reviews.iter().map(|review| waits(ran, review));
            format!("{}{warning}{}", ran.state, reviews.collect::<String>())
        }
    }
}

/// A write that waits for someone to look at it: its plan, and what lets it happen. No command goes on with a run after that.
fn waits(ran: &Execution, review: &PendingReview) -> String {
    let session = ran.session.as_deref().unwrap_or_default();
    let approve = format!("tokamak run --session {session} --commit {}", review.commit);
    let commit = &review.commit;
    format!(
        "\n{}\n{commit} waits for a review; to let it happen: {approve}\nthe run then goes on in a server on this data \
         folder, while it has time left (--timeout-ms)",
        review.plan.trim_end()
    )
}

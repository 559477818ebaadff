//! `GET …/operations/{h}/stream`: the progress of an operation as server-sent events.
//! Invariant: `snapshot` comes first, `progress` after each change, `terminal` last; then the stream ends. A client that closes
//! the stream does not stop the operation, and may open the stream again.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use app::calls::WatchOperation;
use app::{App, Context, Error};
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::{Stream, StreamExt};
use serde::Serialize;
use session::{DetachedRun, RunAnswer};

use super::answer;
use crate::http::HttpState;
use crate::http::auth::HttpCall;
use crate::http::problem::Problem;
use crate::view::{OperationState, RunningMeta};
use crate::{text, view};

/// Proxies close a connection that stays silent for longer.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Answers `GET …/operations/{h}/stream`.
pub async fn follow_operation(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    Path((prompt_hash, session, handle)): Path<(String, String, String)>,
) -> Result<impl IntoResponse, Problem> {
    let address = state.app.execute_address(context.caller.clone(), &prompt_hash, &session).await?;
    let watch = Watch {
        app: state.app.clone(),
        context: Context { caller: address.caller, ..context },
        session: address.session.to_string(),
        handle,
        last_seen: None,
    };
    // The state is read before the stream begins, so that an unknown operation is a 404 and not an event.
    let first = watch.next_state().await?;
    let events = events(watch, first).take_until(state.streams_end.cancelled_owned());
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE_INTERVAL)))
}

/// One client that watches an operation.
struct Watch {
    app: Arc<App>,
    context: Context,
    /// The id of the logical session.
    session: String,
    /// The handle of the operation.
    handle: String,
    /// The state of the last event. `None` before the first.
    last_seen: Option<DetachedRun>,
}

impl Watch {
    /// Waits until the state differs from the last one that was seen.
    async fn next_state(&self) -> Result<RunAnswer, Error> {
        let request = WatchOperation {
            session: self.session.clone(),
            handle: self.handle.clone(),
            last_seen: self.last_seen.clone(),
        };
        self.app.call(&self.context, request).await
    }
}

/// The next step of the stream.
enum StreamStep {
    /// Sends the event of a state that was read already.
    Send(Watch, Box<Result<RunAnswer, Error>>),
    /// Waits for the next state and sends its event.
    Wait(Watch),
    /// The terminal event was sent.
    End,
}

/// The data of a `snapshot` event for an operation that had ended before the stream began.
#[derive(Serialize)]
struct EndedOperation {
    op: OperationState,
}

/// The data of a `terminal` event for an operation that failed.
#[derive(Serialize)]
struct FailedOperation {
    /// Always `failed`.
    state: &'static str,
    /// The stable code of the failure.
    code: &'static str,
    /// The failure as a model would read it.
    detail: String,
}

/// Returns the events of an operation, beginning with the state that was read first.
fn events(watch: Watch, first: RunAnswer) -> impl Stream<Item = Result<Event, Infallible>> {
    futures::stream::unfold(StreamStep::Send(watch, Box::new(Ok(first))), |step| async move {
        let (mut watch, state) = match step {
            StreamStep::End => return None,
            StreamStep::Send(watch, state) => (watch, *state),
            StreamStep::Wait(watch) => {
                let state = watch.next_state().await;
                (watch, state)
            }
        };
        Some(match state {
            Ok(RunAnswer::Running(operation)) => {
                let kind = if watch.last_seen.is_some() { "progress" } else { "snapshot" };
                let event = event(kind, &RunningMeta::new(&operation));
                watch.last_seen = Some(operation);
                (event, StreamStep::Wait(watch))
            }
            Ok(RunAnswer::Finished(run)) if watch.last_seen.is_some() => {
                (event("terminal", &answer::finished_json(&run)), StreamStep::End)
            }
            Ok(RunAnswer::Finished(run)) => {
                // The operation ended before the stream began. Its client still gets a snapshot first.
                let event = event("snapshot", &EndedOperation { op: OperationState::ended(&watch.handle) });
                // Stands for the snapshot that was just sent. The next step only checks that there is one.
                watch.last_seen = Some(DetachedRun {
                    slot: run.slot,
                    handle: watch.handle.clone(),
                    task: String::new(),
                    progress: session::RunProgress::default(),
                    stopping: false,
                    silent_seconds: None,
                });
                (event, StreamStep::Send(watch, Box::new(Ok(RunAnswer::Finished(run)))))
            }
            Err(error) => {
                let failed = FailedOperation { state: "failed", code: error.code(), detail: text::error(&error) };
                (event("terminal", &failed), StreamStep::End)
            }
        })
    })
}

fn event(kind: &str, data: &impl Serialize) -> Result<Event, Infallible> {
    Ok(Event::default().event(kind).data(view::json(data).to_string()))
}

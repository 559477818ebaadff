//! `GET …/operations/{h}/stream`: an operation as server-sent events.
//! Invariant: `snapshot` first, `progress` when something moved, `terminal` last, after which the stream ends. Who goes away
//! stops nothing, and may come back.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::Stream;
use serde_json::{Value, json};
use session::{DetachedRun, Error, ExecuteAddress, RunAnswer, Service};

use super::answer;
use crate::http::App;
use crate::http::auth::AsCaller;
use crate::http::problem::Problem;
use crate::{plasm, text};

/// A silent connection is closed by what is in between.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

pub async fn operation(
    State(app): State<App>,
    AsCaller(caller): AsCaller,
    Path((prompt_hash, session, handle)): Path<(String, String, String)>,
) -> Result<impl IntoResponse, Problem> {
    let service = app.service.clone();
    let address =
        service.execute_address(caller, &prompt_hash, &session).await.map_err(|error| Problem::from(&error))?;
    let following = Following { service, address, handle, seen: None };
    // The first look is made before the stream begins: what is not there is a 404, not an event.
    let first = following.look().await.map_err(|error| Problem::from(&error))?;
    let events = futures::StreamExt::take_until(events(following, first), app.over.cancelled_owned());
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE)))
}

struct Following {
    service: Arc<Service>,
    address: ExecuteAddress,
    handle: String,
    seen: Option<DetachedRun>,
}

impl Following {
    async fn look(&self) -> Result<RunAnswer, Error> {
        let session = self.address.session.to_string();
        self.service.watch(&self.address.caller, (&session, &self.handle), self.seen.as_ref()).await
    }
}

/// What the next event is made of.
enum Next {
    Answer(Following, Box<Result<RunAnswer, Error>>),
    Look(Following),
    End,
}

fn events(following: Following, first: RunAnswer) -> impl Stream<Item = Result<Event, Infallible>> {
    futures::stream::unfold(Next::Answer(following, Box::new(Ok(first))), |next| async move {
        let (mut following, answer) = match next {
            Next::End => return None,
            Next::Answer(following, answer) => (following, *answer),
            Next::Look(following) => {
                let answer = following.look().await;
                (following, answer)
            }
        };
        Some(match answer {
            Ok(RunAnswer::Running(operation)) => {
                let kind = if following.seen.is_some() { "progress" } else { "snapshot" };
                let event = event(kind, &plasm::running(&operation));
                following.seen = Some(operation);
                (event, Next::Look(following))
            }
            Ok(RunAnswer::Finished(ran)) => {
                let result = json!(answer::result(&ran));
                if following.seen.is_some() {
                    (event("terminal", &result), Next::End)
                } else {
                    // Who asks for what is over sees that there was an operation, then its end.
                    let over = json!({"op": {"handle": following.handle, "state": "ended"}});
                    following.seen = Some(ended(&ran, &following.handle));
                    (event("snapshot", &over), Next::Answer(following, Box::new(Ok(RunAnswer::Finished(ran)))))
                }
            }
            Err(error) => {
                let problem = json!({"state": "failed", "code": error.code(), "detail": text::error(&error)});
                (event("terminal", &problem), Next::End)
            }
        })
    })
}

fn ended(ran: &session::RunResult, handle: &str) -> DetachedRun {
    let progress = session::RunProgress::default();
    DetachedRun {
        slot: ran.slot,
        handle: handle.to_owned(),
        task: String::new(),
        progress,
        stopping: false,
        silent_seconds: None,
    }
}

fn event(kind: &str, data: &Value) -> Result<Event, Infallible> {
    Ok(Event::default().event(kind).data(data.to_string()))
}

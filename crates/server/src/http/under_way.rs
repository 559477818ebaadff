//! Calls under way, so that a stop can wait for exactly those.
//! Invariant: a call counts from its request to the last byte of its answer, streams included.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt;
use tokio::sync::watch;

/// Cloned into every call; the count is how many clones of the guard are alive.
#[derive(Clone)]
pub struct UnderWay(Arc<watch::Sender<usize>>);

struct Guard(Arc<watch::Sender<usize>>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

impl UnderWay {
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    fn enter(&self) -> Guard {
        self.0.send_modify(|count| *count += 1);
        Guard(self.0.clone())
    }

    /// When none is left. A stream that only waits for events is no call and does not count.
    pub async fn none_left(&self) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

pub async fn count(State(under_way): State<UnderWay>, request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let guard = under_way.enter();
    let (parts, body) = next.run(request).await.into_parts();
    let counted = body.into_data_stream().map(move |frame| {
        let _held = &guard;
        frame
    });
    Response::from_parts(parts, Body::from_stream(counted))
}

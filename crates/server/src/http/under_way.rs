//! Calls under way, so that a stop can wait for exactly those.
//! Invariant: a call counts from its request to the last byte of its answer, streams included; an answer whose length is known
//! keeps it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
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
    next.run(request).await.map(|body| Body::new(Counted { body, _guard: guard }))
}

/// The body of an answer, which counts as long as it is there. It is handed on as it is: a stream of its frames would hide how
/// long it is, and a short answer would leave in three pieces instead of one.
struct Counted {
    body: Body,
    _guard: Guard,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

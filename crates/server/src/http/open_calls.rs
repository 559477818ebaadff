//! Counts open calls, so that a shutdown waits for exactly those.
//! Invariant: a call counts from its request to the last byte of its answer, even if the answer is a stream. An answer with a known
//! length keeps its length.

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

/// The number of open calls. Clones share it.
#[derive(Clone)]
pub struct OpenCalls(Arc<watch::Sender<usize>>);

/// One open call. Dropping it ends the call.
struct OpenCall(Arc<watch::Sender<usize>>);

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

impl OpenCalls {
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    fn enter(&self) -> OpenCall {
        self.0.send_modify(|count| *count += 1);
        OpenCall(self.0.clone())
    }

    /// Waits until no call is open. A GET stream that waits for events is not a call and does not count.
    pub async fn wait_for_none(&self) {
        // Waiting fails only without a sender, and `self` holds one.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

/// Counts a request as an open call.
pub async fn count(State(open_calls): State<OpenCalls>, request: Request, next: Next) -> Response {
    // Calls that change something are POSTs. Streams of events are GETs, which end only when the shutdown ends them.
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let call = open_calls.enter();
    held_until_answered(next.run(request).await, call)
}

/// Holds a value until the answer was taken or its client has broken off.
pub fn held_until_answered<H: Send + Unpin + 'static>(response: Response, held: H) -> Response {
    response.map(|body| Body::new(HoldingBody { body, _held: held }))
}

/// The body of an answer that holds a value until it is dropped. It passes on the frames and the size hint of the inner body: a stream
/// of frames would hide the length, and a short answer would leave in three packets instead of one.
struct HoldingBody<H> {
    body: Body,
    _held: H,
}

impl<H: Send + Unpin> HttpBody for HoldingBody<H> {
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

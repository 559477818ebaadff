//! Accepts connections, serves each in a task of its own, and drains them when the server stops.
//! Invariant: `connections` learns of every byte, request and answer, since its limits rest on that.

use std::convert::Infallible;
use std::future::Future;
use std::io::IoSlice;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connections::{Admission, Connection, Connections};
use super::open_calls::OpenCalls;
use super::problem::Problem;
use crate::warn_seldom::WarnSeldom;

/// The pause after a failed accept. If the process has no file descriptor left, other connections get time to close.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(100);
/// The bytes that are read ahead of a request, and thereby the longest head.
const READ_AHEAD_BYTES: usize = 64 * 1024;
/// Smaller answers are not counted. All connections together have few of them.
const COUNTED_FROM: usize = 16 * 1024;
/// The time after which a client is asked to repeat a request that found no room for its answer.
const RETRY_AFTER_SECONDS: u64 = 2;

/// How the server stops.
pub struct Shutdown {
    /// Cancelled at the start of the shutdown. No connection is accepted after it.
    pub stop: CancellationToken,
    /// Cancelled when the last call was answered, or the time for that is over. It ends the streams that wait for events.
    pub streams_end: CancellationToken,
    /// The time for open calls to finish.
    pub drain: Duration,
    /// The calls that are waited for.
    pub open_calls: OpenCalls,
}

/// Serves until the shutdown starts, then waits for open calls for at most `drain`.
pub async fn serve(listener: TcpListener, router: Router, connections: Arc<Connections>, shutdown: &Shutdown) {
    let tasks = TaskTracker::new();
    let ended = CancellationToken::new();
    tokio::spawn(connections.clone().sweep_until(ended.clone()));
    let failures = WarnSeldom::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &connections, &failures) => accepted,
            () = shutdown.stop.cancelled() => break,
        };
        let Some((stream, address)) = accepted else { continue };
        match connections.admit(address) {
            Admission::Admitted(connection) => {
                tasks.spawn(serve_connection(stream, router.clone(), connection, connections.clone()));
            }
            Admission::Refused => {
                failures.warn(|times| {
                    tracing::warn!(%address, times, "an address has as many connections as `connections.per_address` allows");
                });
            }
        }
    }
    // Closed before the drain, so that a successor can listen on the same address.
    drop(listener);
    connections.close_all();
    tasks.close();
    let finished = async {
        let calls_end = async {
            shutdown.open_calls.wait_for_none().await;
            shutdown.streams_end.cancel();
        };
        // A connection closes after its open answers. Streams have no last answer of their own, so they are ended when the last
        // call is answered.
        tokio::join!(tasks.wait(), calls_end);
    };
    if tokio::time::timeout(shutdown.drain, finished).await.is_err() {
        tracing::warn!(drain = ?shutdown.drain, "requests were still running at the end of the drain time");
        shutdown.streams_end.cancel();
    }
    ended.cancel();
}

/// Accepts one connection when there is a place for it. `None` after a failure, which was logged.
async fn accept(
    listener: &TcpListener,
    connections: &Connections,
    failures: &WarnSeldom,
) -> Option<(TcpStream, IpAddr)> {
    // Before the connection is accepted, so that connections beyond the limit wait in the system's queue and cost this process
    // nothing.
    connections.wait_for_place().await;
    match listener.accept().await {
        Ok((stream, address)) => {
            // Without this option, a small answer waits for the client's delayed acknowledgement: a call took 44 ms instead of 2.
            let _ = stream.set_nodelay(true);
            Some((stream, address.ip().to_canonical()))
        }
        Err(error) => {
            let limit = base::system_limit(&error);
            failures.warn(|times| tracing::warn!(%error, limit, times, "could not accept a connection"));
            tokio::time::sleep(ACCEPT_RETRY_PAUSE).await;
            None
        }
    }
}

/// Serves one connection until it ends or has to end.
async fn serve_connection(
    stream: TcpStream,
    router: Router,
    connection: Arc<Connection>,
    connections: Arc<Connections>,
) {
    let observed = ObservedStream { stream, connection: connection.clone(), connections: connections.clone() };
    let io = TokioIo::new(observed);
    let service = ConnectionService {
        router: TowerToHyperService::new(router),
        connection: connection.clone(),
        connections: connections.clone(),
    };
    let mut builder = http1::Builder::new();
    // `connections` ends slow heads, because this timer would also run between two requests.
    builder.header_read_timeout(None::<Duration>).max_buf_size(READ_AHEAD_BYTES);
    {
        let mut serving = std::pin::pin!(builder.serve_connection(io, service));
        let mut is_closing = false;
        loop {
            tokio::select! {
                ended = serving.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a connection ended early");
                    }
                    break;
                }
                () = connection.close.cancelled(), if !is_closing => {
                    is_closing = true;
                    serving.as_mut().graceful_shutdown();
                }
                () = connection.cut.cancelled() => break,
            }
        }
    }
    connections.remove(&connection);
}

/// Answers the requests of one connection with the router.
struct ConnectionService {
    router: TowerToHyperService<Router>,
    connection: Arc<Connection>,
    connections: Arc<Connections>,
}

impl Service<hyper::Request<Incoming>> for ConnectionService {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, mut request: hyper::Request<Incoming>) -> Self::Future {
        self.connection.on_request();
        request.extensions_mut().insert(self.connection.clone());
        let answer = self.router.call(request);
        let (connection, connections) = (self.connection.clone(), self.connections.clone());
        Box::pin(async move { Ok(bounded(answer.await?, connection, connections).await) })
    }
}

/// Counts the answer while its client reads it, and adds what the client must know of the connection.
async fn bounded(response: Response, connection: Arc<Connection>, connections: Arc<Connections>) -> Response {
    let size = response.body().size_hint().exact().map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let mut counted = 0;
    let mut response = match size {
        Some(bytes) if bytes > connection.answer_bytes() => {
            let detail = format!(
                "the answer has {bytes} bytes, and `connections.answer_mb` allows {}; ask for a part of it",
                connection.answer_bytes()
            );
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "answer_too_large", detail).into_response()
        }
        Some(bytes) if bytes >= COUNTED_FROM && !connections.take_room(&connection, bytes).await => {
            let detail = "too many answers wait for clients that do not read them; try again";
            let mut response = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "answers_waiting", detail).into_response();
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS));
            response
        }
        Some(bytes) if bytes >= COUNTED_FROM => {
            counted = bytes;
            response
        }
        _ => response,
    };
    let headers = response.headers_mut();
    if connection.must_leave() {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if !headers.contains_key(header::CONNECTION)
        && let Ok(keep_alive) = HeaderValue::from_str(&format!("timeout={}", connection.idle_seconds()))
    {
        headers.insert(header::HeaderName::from_static("keep-alive"), keep_alive);
    }
    response.map(|body| Body::new(CountedAnswer { body, counted, is_stream: size.is_none(), connection, connections }))
}

/// The body of an answer, whose bytes count until the client has read them.
struct CountedAnswer {
    body: Body,
    /// The bytes that are counted now: the whole answer, or the last frame of a stream.
    counted: usize,
    /// The size of the answer is not known, so each frame is counted when it comes.
    is_stream: bool,
    connection: Arc<Connection>,
    connections: Arc<Connections>,
}

/// Why a stream of events ends early.
#[derive(Debug, thiserror::Error)]
#[error("too many answers wait for clients that do not read them")]
struct NoRoom;

impl HttpBody for CountedAnswer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let Poll::Ready(Some(Ok(frame))) = &polled else { return polled };
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        if !self.is_stream || bytes < COUNTED_FROM {
            return polled;
        }
        let counted = self.counted;
        self.connection.release_when_flushed(counted);
        let fits = bytes <= self.connection.answer_bytes() && self.connections.try_take_room(&self.connection, bytes);
        self.counted = if fits { bytes } else { 0 };
        if fits { polled } else { Poll::Ready(Some(Err(axum::Error::new(NoRoom)))) }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for CountedAnswer {
    fn drop(&mut self) {
        // Hyper drops a body whose last piece it has not written yet, so its bytes still wait for the client.
        self.connection.release_when_flushed(self.counted);
        self.connection.on_answered();
    }
}

/// A connection's stream that reports what the client sends and takes.
struct ObservedStream {
    stream: TcpStream,
    connection: Arc<Connection>,
    connections: Arc<Connections>,
}

impl ObservedStream {
    fn report_write(&self, polled: Poll<std::io::Result<usize>>) -> Poll<std::io::Result<usize>> {
        match &polled {
            Poll::Ready(Ok(bytes)) => self.connection.on_written(*bytes),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.connection.on_stalled(),
        }
        polled
    }
}

impl AsyncRead for ObservedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.connection.on_read();
        }
        polled
    }
}

impl AsyncWrite for ObservedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.report_write(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.report_write(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Hyper flushes when everything that it had to write is written.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        if polled.is_ready() {
            self.connections.flushed(&self.connection);
        }
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

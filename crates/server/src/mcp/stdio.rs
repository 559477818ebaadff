//! MCP on standard input and output.
//! Invariant: standard output carries only protocol messages, each on one whole line. A line that is not a message is answered
//! with the error that JSON-RPC defines, and the connection goes on.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use app::App;
use rmcp::{ServerHandler, ServiceExt};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, Interest};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{HandlerFactory, McpOptions, OwnHandler};
use crate::message::{self, IdScanner, LINE_BYTES, MESSAGE_BYTES, Message, Mistake};
use crate::under_way::{NotBegun, RequestUnderWay, UnderWay};

#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The client's first messages are not those of the protocol.
    #[error("the MCP handshake failed")]
    Handshake(#[source] Box<rmcp::service::ServerInitializeError>),
    /// The task of the connection panicked or was aborted.
    #[error("the MCP connection broke")]
    Broken(#[source] tokio::task::JoinError),
}

/// The number of lines that may wait to be written to standard output. If it is reached, the tasks that produce lines wait, so a
/// client that does not read cannot fill the memory.
const MAX_WAITING_LINES: usize = 64;
/// The time in which the SDK ends after the last answer.
const SDK_END: Duration = Duration::from_secs(1);

/// Serves one client until it closes its end, no longer reads, or `stop` is cancelled. Then open calls may finish within `drain`.
pub async fn serve_stdio(
    app: Arc<App>,
    options: McpOptions,
    drain: Duration,
    stop: CancellationToken,
) -> Result<(), StdioError> {
    let (to_sdk, sdk_in) = tokio::io::duplex(MESSAGE_BYTES);
    let (sdk_out, from_sdk) = tokio::io::duplex(MESSAGE_BYTES);
    let (answers, lines) = mpsc::channel(MAX_WAITING_LINES);
    let open = OpenRequests::new(options.connections.requests_under_way);
    let connection_end = CancellationToken::new();
    tokio::spawn(forward(from_sdk, answers.clone(), open.clone()));
    let writing = tokio::spawn(write_lines(lines, tokio::io::stdout()));
    let handler = HandlerFactory::new(app, &options, OwnHandler).handler(base::TenantId::local());
    let sdk_end = CancellationToken::new();
    let (sdk_ends, cut) = (sdk_end.clone().drop_guard(), connection_end.clone());
    let serving = tokio::spawn(async move {
        let _sdk_ends = sdk_ends;
        serve_on(handler, (sdk_in, sdk_out), cut).await
    });
    let reading = async {
        let mut to_sdk = to_sdk;
        tokio::select! {
            () = read_lines(&mut to_sdk, &answers, &open) => {}
            () = stop.cancelled() => {}
            // The answers are not read any more, so no more requests are taken.
            () = answers.closed() => return,
            () = output_is_closed() => return,
            () = sdk_end.cancelled() => return,
        }
        // The SDK ends soon after its input does, whether or not calls are open, so its input stays open for them.
        if tokio::time::timeout(drain, open.wait_for_none()).await.is_err() {
            tracing::warn!(?drain, "requests were still running at the end of the drain time");
        }
    };
    reading.await;
    drop(answers);
    let aborting = serving.abort_handle();
    let served = match tokio::time::timeout(SDK_END, serving).await {
        Ok(served) => served.unwrap_or_else(|error| Err(StdioError::Broken(error))),
        Err(_) => {
            connection_end.cancel();
            aborting.abort();
            Ok(())
        }
    };
    // The last answers are written before the process ends, unless the client does not read them.
    let _ = tokio::time::timeout(drain, writing).await;
    served
}

/// Waits until the client has closed its end of standard output, which a client may do without closing standard input.
async fn output_is_closed() {
    // Unchecked, because the check would also make writes to standard output return before they are done. Nothing is written here.
    let own = std::io::stdout().as_fd().try_clone_to_owned();
    // A file cannot be watched. It has no reader, so it is not closed either.
    let Ok(output) = own.and_then(pipe::Sender::from_owned_fd_unchecked) else {
        return std::future::pending().await;
    };
    // The system reports an error as soon as a pipe has no reader.
    if output.ready(Interest::ERROR).await.is_err() {
        std::future::pending().await
    }
}

/// The requests of the client that were not answered yet, by id.
#[derive(Clone)]
struct OpenRequests {
    under_way: UnderWay,
    begun: Arc<Mutex<HashMap<String, RequestUnderWay>>>,
}

/// Standard input is one connection.
const CONNECTION: &str = "stdio";

impl OpenRequests {
    fn new(most: usize) -> Self {
        Self { under_way: UnderWay::new(most), begun: Arc::default() }
    }

    fn begun(&self) -> std::sync::MutexGuard<'_, HashMap<String, RequestUnderWay>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a request, or says why it may not begin.
    fn begin(&self, id: &Value) -> Result<(), Mistake> {
        let request = self.under_way.begin(CONNECTION, id).map_err(|not_begun| match not_begun {
            NotBegun::Duplicate => Mistake::duplicate_id(id.clone()),
            NotBegun::TooMany(most) => Mistake::too_many_under_way(id.clone(), most),
        })?;
        self.begun().insert(id.to_string(), request);
        Ok(())
    }

    /// Ends the request that a line of the SDK answers, if it is an answer.
    fn note_line(&self, line: &str) {
        #[derive(serde::Deserialize)]
        struct Line {
            #[serde(default)]
            id: Value,
            method: Option<serde::de::IgnoredAny>,
        }
        if let Ok(Line { id, method: None }) = serde_json::from_str(line) {
            self.begun().remove(&id.to_string());
        }
    }

    /// A withdrawn request gets no answer from the SDK.
    fn note_withdrawal(&self, line: &[u8]) {
        #[derive(serde::Deserialize)]
        struct Cancelled {
            method: String,
            params: CancelledParams,
        }
        #[derive(serde::Deserialize)]
        struct CancelledParams {
            #[serde(rename = "requestId")]
            request_id: Value,
        }
        if let Ok(cancelled) = serde_json::from_slice::<Cancelled>(line)
            && cancelled.method == "notifications/cancelled"
        {
            self.begun().remove(&cancelled.params.request_id.to_string());
        }
    }

    async fn wait_for_none(&self) {
        self.under_way.wait_for_none().await;
    }
}

/// Serves the SDK's side of the connection until it ends.
async fn serve_on(
    handler: impl ServerHandler,
    streams: (DuplexStream, DuplexStream),
    end: CancellationToken,
) -> Result<(), StdioError> {
    let running = match handler.serve_with_ct(streams, end).await {
        Ok(running) => running,
        // A client that closes the connection before the handshake is not a failure.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(rmcp::service::ServerInitializeError::Cancelled) => return Ok(()),
        Err(error) => return Err(StdioError::Handshake(Box::new(error))),
    };
    running.waiting().await.map(|_| ()).map_err(StdioError::Broken)
}

/// Passes standard input to the SDK, until it ends. Lines that are not messages are answered here, because the SDK would end the
/// connection.
async fn read_lines(to_sdk: &mut DuplexStream, answers: &mpsc::Sender<Vec<u8>>, open: &OpenRequests) {
    let mut input = BufReader::new(tokio::io::stdin());
    loop {
        let mut line = Vec::new();
        // One byte more than a line may have shows that a line is too long.
        let read_limit = LINE_BYTES as u64 + 1;
        match (&mut input).take(read_limit).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) if line.trim_ascii().is_empty() => continue,
            Ok(_) => {}
        }
        let is_whole = line.len() as u64 != read_limit || line.ends_with(b"\n");
        let message = if is_whole {
            message::read(line.trim_ascii())
        } else {
            let mut scanner = IdScanner::new();
            scanner.feed(&line);
            drop(std::mem::take(&mut line));
            skip_line(&mut input, &mut scanner).await;
            Err(Mistake::line_too_long(scanner.id()))
        };
        let admitted = message.and_then(|message| {
            if let Message::Request(id) = &message {
                open.begin(id)?;
            }
            Ok(message)
        });
        let sent = match admitted {
            Ok(Message::Request(_)) => write_line(to_sdk, &line).await,
            Ok(Message::Notification) => {
                open.note_withdrawal(&line);
                write_line(to_sdk, &line).await
            }
            // The server sends no requests, so a response answers nothing. Before the handshake the SDK would end the connection
            // over it.
            Ok(Message::Answer) => Ok(()),
            Err(mistake) => {
                tracing::warn!(code = mistake.code, reason = mistake.text, "not a JSON-RPC message");
                answers.send(mistake.answer().into_bytes()).await.map_err(|_| std::io::ErrorKind::BrokenPipe.into())
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

/// Skips the rest of a line that is too long to be kept. The id of its message may be in there.
async fn skip_line(input: &mut (impl AsyncBufReadExt + Unpin), scanner: &mut IdScanner) {
    loop {
        let bytes = match input.fill_buf().await {
            Ok([]) | Err(_) => return,
            Ok(bytes) => bytes,
        };
        let line_end = bytes.iter().position(|byte| *byte == b'\n');
        let skipped = line_end.map_or(bytes.len(), |end| end + 1);
        scanner.feed(&bytes[..skipped]);
        input.consume(skipped);
        if line_end.is_some() {
            return;
        }
    }
}

/// Passes the SDK's messages line by line to the one writer of standard output.
async fn forward(from_sdk: DuplexStream, answers: mpsc::Sender<Vec<u8>>, open: OpenRequests) {
    let mut lines = BufReader::new(from_sdk).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        open.note_line(&line);
        if answers.send(line.into_bytes()).await.is_err() {
            return;
        }
    }
}

/// Writes all lines in the order of their arrival. This is the only writer, so no two lines mix.
async fn write_lines(mut lines: mpsc::Receiver<Vec<u8>>, mut output: impl AsyncWrite + Unpin) {
    while let Some(line) = lines.recv().await {
        if write_line(&mut output, &line).await.is_err() {
            return;
        }
    }
}

/// Writes one line with its line feed, and flushes it, because a client waits for each answer.
async fn write_line(output: &mut (impl AsyncWrite + Unpin), line: &[u8]) -> std::io::Result<()> {
    output.write_all(line.trim_ascii_end()).await?;
    output.write_all(b"\n").await?;
    output.flush().await
}

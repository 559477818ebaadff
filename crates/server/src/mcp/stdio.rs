//! MCP on standard input and output.
//! Invariant: standard output carries only protocol messages, each on one whole line. A line that is not a message is answered
//! with the error that JSON-RPC defines, and the connection goes on.

use std::sync::Arc;
use std::time::Duration;

use app::App;
use rmcp::{ServerHandler, ServiceExt};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::{HandlerFactory, McpOptions, OwnHandler};
use crate::message::{self, LINE_BYTES, MESSAGE_BYTES, MessageKind, Mistake};

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

/// Serves one client until it closes its end or `stop` is cancelled. After a stop, open calls may finish within `drain`.
pub async fn serve_stdio(
    app: Arc<App>,
    options: McpOptions,
    drain: Duration,
    stop: CancellationToken,
) -> Result<(), StdioError> {
    let (to_sdk, sdk_in) = tokio::io::duplex(MESSAGE_BYTES);
    let (sdk_out, from_sdk) = tokio::io::duplex(MESSAGE_BYTES);
    let (answers, lines) = mpsc::channel(MAX_WAITING_LINES);
    let reading = tokio::spawn(read_lines(to_sdk, answers.clone()));
    tokio::spawn(forward(from_sdk, answers));
    let writing = tokio::spawn(write_lines(lines, tokio::io::stdout()));
    let connection_end = CancellationToken::new();
    let draining = tokio::spawn(drain_on_stop(stop, reading.abort_handle(), drain, connection_end.clone()));
    let handler = HandlerFactory::new(app, &options, OwnHandler).handler(base::TenantId::local());
    let served = serve_on(handler, (sdk_in, sdk_out), connection_end).await;
    reading.abort();
    draining.abort();
    // The last answers are written before the process ends.
    let _ = writing.await;
    served
}

/// After a stop, ends the input, as if the client had closed it: the SDK answers the open calls and then ends. The connection
/// is cut when the time to finish is over.
async fn drain_on_stop(
    stop: CancellationToken,
    input: AbortHandle,
    drain: Duration,
    connection_end: CancellationToken,
) {
    stop.cancelled().await;
    input.abort();
    tokio::time::sleep(drain).await;
    connection_end.cancel();
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

/// Passes standard input to the SDK. Lines that are not messages are answered here, because the SDK would end the connection.
async fn read_lines(mut to_sdk: DuplexStream, answers: mpsc::Sender<Vec<u8>>) {
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
        let kind = if is_whole { message::read(line.trim_ascii()) } else { Err(Mistake::too_large()) };
        let sent = match kind {
            Ok(MessageKind::Call) => write_line(&mut to_sdk, &line).await,
            // The server sends no requests, so a response answers nothing. Before the handshake the SDK would end the connection
            // over it.
            Ok(MessageKind::Answer) => Ok(()),
            Err(mistake) => {
                tracing::warn!(code = mistake.code, reason = mistake.text, "not a JSON-RPC message");
                if !is_whole {
                    skip_line(&mut input).await;
                }
                answers.send(mistake.answer().into_bytes()).await.map_err(|_| std::io::ErrorKind::BrokenPipe.into())
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

/// Skips the rest of a line that is too long to be kept.
async fn skip_line(input: &mut (impl AsyncBufReadExt + Unpin)) {
    loop {
        let bytes = match input.fill_buf().await {
            Ok([]) | Err(_) => return,
            Ok(bytes) => bytes,
        };
        let line_end = bytes.iter().position(|byte| *byte == b'\n');
        let skipped = line_end.map_or(bytes.len(), |end| end + 1);
        input.consume(skipped);
        if line_end.is_some() {
            return;
        }
    }
}

/// Passes the SDK's messages line by line to the one writer of standard output.
async fn forward(from_sdk: DuplexStream, answers: mpsc::Sender<Vec<u8>>) {
    let mut lines = BufReader::new(from_sdk).lines();
    while let Ok(Some(line)) = lines.next_line().await {
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

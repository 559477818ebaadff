//! MCP on standard input and output.
//! Invariant: nothing but protocol messages goes to standard output, whole lines at a time; a line that is no message is
//! answered as JSON-RPC says, and the connection lives on.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ServiceExt;
use session::Service;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::{McpOptions, Root, Roots};
use crate::message::{self, Kind, LINE_BYTES, MESSAGE_BYTES, Mistake};

#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    #[error("the MCP handshake failed")]
    Handshake(#[source] Box<rmcp::service::ServerInitializeError>),
    #[error("the MCP connection broke")]
    Broken(#[source] tokio::task::JoinError),
}

/// Lines under way between the streams and the SDK.
const WAITING: usize = 64;

/// Serves one client until it closes its end or `stop` is cancelled; then calls under way may finish for `drain`.
pub async fn serve_stdio(
    service: Arc<Service>,
    options: McpOptions,
    drain: Duration,
    stop: CancellationToken,
) -> Result<(), StdioError> {
    let (to_sdk, sdk_in) = tokio::io::duplex(MESSAGE_BYTES);
    let (sdk_out, from_sdk) = tokio::io::duplex(MESSAGE_BYTES);
    let (answers, lines) = mpsc::channel(WAITING);
    let reading = tokio::spawn(read_lines(to_sdk, answers.clone()));
    tokio::spawn(forward(from_sdk, answers));
    let writing = tokio::spawn(write_lines(lines, tokio::io::stdout()));
    let (over, no_more_input) = (CancellationToken::new(), reading.abort_handle());
    let ending = tokio::spawn(end(stop, no_more_input, drain, over.clone()));
    let served = serve_on(Roots::new(&options).root(service, base::TenantId::local()), (sdk_in, sdk_out), over).await;
    reading.abort();
    ending.abort();
    // What was answered last is written before the process ends.
    let _ = writing.await;
    served
}

/// To the SDK a stop looks like a client that has nothing more to say: it answers what it was asked, then ends.
async fn end(stop: CancellationToken, input: AbortHandle, drain: Duration, over: CancellationToken) {
    stop.cancelled().await;
    input.abort();
    tokio::time::sleep(drain).await;
    over.cancel();
}

async fn serve_on(
    root: Root,
    streams: (DuplexStream, DuplexStream),
    stop: CancellationToken,
) -> Result<(), StdioError> {
    let running = match root.serve_with_ct(streams, stop).await {
        Ok(running) => running,
        // A client that leaves before it says hello is not a failure.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(rmcp::service::ServerInitializeError::Cancelled) => return Ok(()),
        Err(error) => return Err(StdioError::Handshake(Box::new(error))),
    };
    running.waiting().await.map(|_| ()).map_err(StdioError::Broken)
}

/// Standard input to the SDK, but for lines that are no message: those are answered here.
async fn read_lines(mut to_sdk: DuplexStream, answers: mpsc::Sender<Vec<u8>>) {
    let mut input = BufReader::new(tokio::io::stdin());
    loop {
        let mut line = Vec::new();
        let most = LINE_BYTES as u64 + 1;
        match (&mut input).take(most).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) if line.trim_ascii().is_empty() => continue,
            Ok(_) => {}
        }
        let whole = line.len() as u64 != most || line.ends_with(b"\n");
        let kind = if whole { message::read(line.trim_ascii()) } else { Err(Mistake::too_large()) };
        let sent = match kind {
            Ok(Kind::Call) => write_line(&mut to_sdk, &line).await,
            // We ask clients nothing, so there is nothing to answer; before the handshake the SDK would hang up over it.
            Ok(Kind::Answer) => Ok(()),
            Err(mistake) => {
                tracing::warn!(code = mistake.code, why = mistake.text, "not a JSON-RPC message");
                if !whole {
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

/// The rest of a line that is too long to be kept.
async fn skip_line(input: &mut (impl AsyncBufReadExt + Unpin)) {
    loop {
        let (skipped, ended) = match input.fill_buf().await {
            Ok([]) | Err(_) => return,
            Ok(bytes) => match bytes.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (bytes.len(), false),
            },
        };
        input.consume(skipped);
        if ended {
            return;
        }
    }
}

/// The SDK's messages, line by line, to the one writer.
async fn forward(from_sdk: DuplexStream, answers: mpsc::Sender<Vec<u8>>) {
    let mut lines = BufReader::new(from_sdk).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if answers.send(line.into_bytes()).await.is_err() {
            return;
        }
    }
}

async fn write_lines(mut lines: mpsc::Receiver<Vec<u8>>, mut output: impl AsyncWrite + Unpin) {
    while let Some(line) = lines.recv().await {
        if write_line(&mut output, &line).await.is_err() {
            return;
        }
    }
}

async fn write_line(output: &mut (impl AsyncWrite + Unpin), line: &[u8]) -> std::io::Result<()> {
    output.write_all(line.trim_ascii_end()).await?;
    output.write_all(b"\n").await?;
    output.flush().await
}

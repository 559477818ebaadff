//! An HTTP/1 server that performs the actions of a test's script.
//! Invariant: the server sends only the bytes that the script contains.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::Origin;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A running server. It stops when it is dropped.
pub struct Server {
    pub origin: Origin,
    pub port: u16,
    state: Arc<State>,
    task: JoinHandle<()>,
}

/// A request as the server read it.
#[derive(Debug, Clone)]
pub struct Received {
    /// The first line, such as `GET /a?b HTTP/1.1`.
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A step of the answer to a request.
pub enum Action {
    /// The server sends these bytes.
    Reply(Vec<u8>),
    Pause(Duration),
    /// The server sends these bytes repeatedly, with a pause after each time, until the client closes the connection.
    Flood(Vec<u8>, Duration),
    /// The server closes the connection.
    Close,
}

#[derive(Default)]
struct State {
    /// All requests so far, in the order of their arrival.
    received: Mutex<Vec<Received>>,
    /// The number of accepted connections.
    connections: AtomicUsize,
    /// The bytes that `Action::Flood` has sent.
    sent_bytes: AtomicUsize,
    /// The number of requests that have arrived and have no answer yet.
    concurrent: AtomicUsize,
    max_concurrent: AtomicUsize,
}

type Script = dyn Fn(usize, &Received) -> Vec<Action> + Send + Sync;

impl Server {
    /// Starts a server. `script` returns the actions for the request with this number, from 0.
    pub async fn start(script: impl Fn(usize, &Received) -> Vec<Action> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let script = Arc::new(script) as Arc<Script>;
        let task = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                shared.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(socket, Arc::clone(&shared), Arc::clone(&script)));
            }
        });
        Self { origin: Origin::parse(&format!("http://127.0.0.1:{port}")).unwrap(), port, state, task }
    }

    /// Starts a server that sends the same answer to every request.
    pub async fn always(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::start(move |_, _| vec![reply(&text)]).await
    }

    pub fn received(&self) -> Vec<Received> {
        self.state.received.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    pub fn sent_bytes(&self) -> usize {
        self.state.sent_bytes.load(Ordering::SeqCst)
    }

    /// Returns the largest number of requests that had arrived and had no answer at one time.
    pub fn max_concurrent(&self) -> usize {
        self.state.max_concurrent.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub fn reply(text: &str) -> Action {
    Action::Reply(text.as_bytes().to_vec())
}

pub fn ok(body: &str) -> String {
    with_status("200 OK", "", body)
}

/// Returns an answer. Each line of `headers` ends with `\r\n`.
pub fn with_status(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

async fn serve(mut socket: TcpStream, state: Arc<State>, script: Arc<Script>) {
    while let Some(received) = receive(&mut socket).await {
        let concurrent = state.concurrent.fetch_add(1, Ordering::SeqCst) + 1;
        state.max_concurrent.fetch_max(concurrent, Ordering::SeqCst);
        let number = {
            let mut all_received = state.received.lock().unwrap();
            all_received.push(received.clone());
            all_received.len() - 1
        };
        let mut has_answered = false;
        for action in script(number, &received) {
            if !matches!(action, Action::Pause(_)) && !std::mem::replace(&mut has_answered, true) {
                state.concurrent.fetch_sub(1, Ordering::SeqCst);
            }
            if perform(&mut socket, action, &state).await.is_none() {
                return;
            }
        }
    }
}

/// Performs one action. Returns `None` when the connection is closed.
async fn perform(socket: &mut TcpStream, action: Action, state: &State) -> Option<()> {
    match action {
        Action::Reply(bytes) => socket.write_all(&bytes).await.ok(),
        Action::Pause(time) => {
            tokio::time::sleep(time).await;
            Some(())
        }
        Action::Flood(bytes, gap) => loop {
            socket.write_all(&bytes).await.ok()?;
            state.sent_bytes.fetch_add(bytes.len(), Ordering::SeqCst);
            if !gap.is_zero() {
                tokio::time::sleep(gap).await;
            }
        },
        Action::Close => None,
    }
}

async fn receive(socket: &mut TcpStream) -> Option<Received> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.ok()?);
    }
    let text = String::from_utf8(head).unwrap();
    let mut lines = text.strip_suffix("\r\n\r\n")?.split("\r\n");
    let line = lines.next()?.to_owned();
    let headers: Vec<_> = lines
        .map(|line| line.split_once(':').unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim_start().to_owned()))
        .collect();
    let mut received = Received { line, headers, body: String::new() };
    let length = received.header("content-length").map_or(0, |text| text.parse().unwrap());
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await.ok()?;
    received.body = String::from_utf8(body).unwrap();
    Some(received)
}

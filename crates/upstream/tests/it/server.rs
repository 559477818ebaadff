//! An HTTP/1 server that does exactly what a test tells it to.
//! Invariant: it adds no byte of its own to what a test lets it say.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::Origin;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub struct Server {
    pub origin: Origin,
    pub port: u16,
    state: Arc<State>,
    task: JoinHandle<()>,
}

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

pub enum Act {
    Say(Vec<u8>),
    Pause(Duration),
    /// The same bytes again and again, until the other side is gone.
    Flood(Vec<u8>, Duration),
    Close,
}

#[derive(Default)]
struct State {
    seen: Mutex<Vec<Received>>,
    connections: AtomicUsize,
    sent: AtomicUsize,
    busy: AtomicUsize,
    most_busy: AtomicUsize,
}

type Script = dyn Fn(usize, &Received) -> Vec<Act> + Send + Sync;

impl Server {
    /// `script` says what to do about the n-th request, from 0.
    pub async fn start(script: impl Fn(usize, &Received) -> Vec<Act> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let (shared, script) = (Arc::clone(&state), Arc::new(script) as Arc<Script>);
        let task = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                shared.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(socket, Arc::clone(&shared), Arc::clone(&script)));
            }
        });
        Self { origin: Origin::parse(&format!("http://127.0.0.1:{port}")).unwrap(), port, state, task }
    }

    /// Says the same to everybody.
    pub async fn always(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::start(move |_, _| vec![say(&text)]).await
    }

    pub fn seen(&self) -> Vec<Received> {
        self.state.seen.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    pub fn sent(&self) -> usize {
        self.state.sent.load(Ordering::SeqCst)
    }

    /// The most requests that were between their arrival and the first byte of their answer at one time.
    pub fn most_busy(&self) -> usize {
        self.state.most_busy.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub fn say(text: &str) -> Act {
    Act::Say(text.as_bytes().to_vec())
}

pub fn ok(body: &str) -> String {
    with_status("200 OK", "", body)
}

/// `headers`: each line ends with `\r\n`.
pub fn with_status(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

async fn serve(mut socket: TcpStream, state: Arc<State>, script: Arc<Script>) {
    while let Some(received) = receive(&mut socket).await {
        let busy = state.busy.fetch_add(1, Ordering::SeqCst) + 1;
        state.most_busy.fetch_max(busy, Ordering::SeqCst);
        let nth = {
            let mut seen = state.seen.lock().unwrap();
            seen.push(received.clone());
            seen.len() - 1
        };
        let mut answering = false;
        for act in script(nth, &received) {
            if !matches!(act, Act::Pause(_)) && !std::mem::replace(&mut answering, true) {
                state.busy.fetch_sub(1, Ordering::SeqCst);
            }
            if perform(&mut socket, act, &state).await.is_none() {
                return;
            }
        }
    }
}

/// `None` when this connection is over.
async fn perform(socket: &mut TcpStream, act: Act, state: &State) -> Option<()> {
    match act {
        Act::Say(bytes) => socket.write_all(&bytes).await.ok(),
        Act::Pause(time) => {
            tokio::time::sleep(time).await;
            Some(())
        }
        Act::Flood(bytes, gap) => loop {
            socket.write_all(&bytes).await.ok()?;
            state.sent.fetch_add(bytes.len(), Ordering::SeqCst);
            if !gap.is_zero() {
                tokio::time::sleep(gap).await;
            }
        },
        Act::Close => None,
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

//! A served demo API and a client that sees the bytes.
//! One connection per request; an answer is read until the connection ends, however it ends.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub struct Served {
    pub address: SocketAddr,
}

pub struct Reply {
    pub status: u16,
    /// In lower case, without the status line.
    head: Vec<(String, String)>,
    pub body: Vec<u8>,
}

pub const JSON: (&str, &str) = ("Content-Type", "application/json");

impl Served {
    pub async fn start() -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(demo::serve(listener, std::future::pending()));
        Served { address }
    }

    /// The bytes of the answer, and how the connection ended.
    pub async fn raw(&self, request: &str, headers: &[(&str, &str)], body: &[u8]) -> (Vec<u8>, std::io::Result<()>) {
        let mut stream = self.sent(request, headers, body).await;
        let mut bytes = Vec::new();
        let ended = stream.read_to_end(&mut bytes).await;
        (bytes, ended.map(|_| ()))
    }

    /// A connection on which the request has been sent.
    pub async fn sent(&self, request: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let mut head = format!("{request} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
        stream.write_all(body).await.unwrap();
        stream
    }

    /// A request such as `GET /path`.
    pub async fn ask(&self, request: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let (bytes, ended) = self.raw(request, headers, body).await;
        ended.unwrap();
        Reply::read(&bytes)
    }

    pub async fn get(&self, target: &str) -> Value {
        let reply = self.ask(&format!("GET {target}"), &[], b"").await;
        assert_eq!(reply.status, 200, "{target}: {}", reply.text());
        reply.json()
    }

    pub async fn send(&self, request: &str, body: &Value) -> Reply {
        self.ask(request, &[JSON], body.to_string().as_bytes()).await
    }

    pub async fn effects(&self) -> Vec<Value> {
        self.get("/control/effects").await.as_array().unwrap().clone()
    }
}

impl Reply {
    pub fn read(bytes: &[u8]) -> Reply {
        let cut = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(bytes[..cut].to_vec()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let pair = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        Reply { status, head: lines.filter_map(pair).collect(), body: bytes[cut + 4..].to_vec() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The code of a refusal.
    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

pub fn world() -> demo::World {
    demo::World::seeded(demo::SEED)
}

pub fn items(answer: &Value) -> Vec<Value> {
    answer["data"].as_array().unwrap().clone()
}

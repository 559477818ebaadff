//! An HTTP client that shows tests the bytes of an answer, even of a broken one.
//! The client makes a connection for each request, and reads until the connection ends. A client library would repair or refuse the
//! broken answers that such a test checks.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The header of a JSON body.
pub const JSON: (&str, &str) = ("Content-Type", "application/json");

/// A client of one server.
#[derive(Debug, Clone, Copy)]
pub struct RawClient {
    pub address: SocketAddr,
}

/// An answer that has a complete head.
#[derive(Debug)]
pub struct RawReply {
    pub status: u16,
    /// Names in lower case, with their values.
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl RawClient {
    /// Sends a request such as `GET /path` and returns the bytes of the answer, and how the connection ended.
    pub async fn raw(&self, request: &str, headers: &[(&str, &str)], body: &[u8]) -> (Vec<u8>, std::io::Result<()>) {
        let mut stream = self.send_only(request, headers, body).await;
        let mut bytes = Vec::new();
        let ended = stream.read_to_end(&mut bytes).await;
        (bytes, ended.map(|_| ()))
    }

    /// Sends a request and returns the connection before any byte of the answer is read.
    pub async fn send_only(&self, request: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
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

    /// Sends a request and returns the answer. The connection must end without an error.
    pub async fn ask(&self, request: &str, headers: &[(&str, &str)], body: &[u8]) -> RawReply {
        let (bytes, ended) = self.raw(request, headers, body).await;
        ended.unwrap();
        RawReply::parse(&bytes)
    }

    /// Sends a GET and returns the JSON of the answer, which must have the status 200.
    pub async fn get(&self, target: &str) -> Value {
        let reply = self.ask(&format!("GET {target}"), &[], b"").await;
        assert_eq!(reply.status, 200, "{target}: {}", reply.text());
        reply.json()
    }

    /// Sends a request with a JSON body.
    pub async fn send(&self, request: &str, body: &Value) -> RawReply {
        self.ask(request, &[JSON], body.to_string().as_bytes()).await
    }
}

impl RawReply {
    pub fn parse(bytes: &[u8]) -> RawReply {
        let head_end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        RawReply { status, headers: lines.filter_map(header).collect(), body: bytes[head_end + 4..].to_vec() }
    }

    /// Returns the value of a header; `name` is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Returns `error.code` of the JSON, or an empty text.
    pub fn error_code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

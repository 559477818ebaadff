//! An MCP client that uses little processor time: it keeps one connection open, and sends each request in one write.
//! Invariant: an answer is returned only after it was read completely. Nothing is asserted about time.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub struct Wire {
    stream: TcpStream,
    host: String,
    /// The bytes of the current answer. All answers use this buffer.
    read: Vec<u8>,
    /// The name of the session, which is sent in the header `x-mcp-session-id`.
    pub session: Option<String>,
}

impl Wire {
    pub async fn to(host: &str) -> Self {
        let stream = TcpStream::connect(host).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, host: host.to_owned(), read: Vec::with_capacity(64 * 1024), session: None }
    }

    /// Calls a tool by MCP revision 2026-07-28, and returns the text of the result.
    pub async fn call(&mut self, tool: &str, arguments: &Value) -> String {
        let answer = self.post(tool, &message(tool, arguments)).await;
        let start = answer.find("{\"jsonrpc\"").unwrap_or_else(|| panic!("no message in: {answer}"));
        let end = answer[start..].find('\n').map_or(answer.len(), |end| start + end);
        let parsed: Value =
            serde_json::from_str(answer[start..end].trim()).unwrap_or_else(|error| panic!("{error}: {answer}"));
        let result = &parsed["result"];
        assert_ne!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in: {answer}")).to_owned()
    }

    /// Calls a tool, and checks only that the answer contains `mark`. Parsing the JSON would take processor time from the server.
    pub async fn call_for(&mut self, tool: &str, body: &str, mark: &str) {
        let answer = self.post(tool, body).await;
        assert!(answer.contains(mark), "no `{mark}` in: {answer}");
    }

    async fn post(&mut self, tool: &str, body: &str) -> String {
        let session_header =
            self.session.as_ref().map_or(String::new(), |name| format!("x-mcp-session-id: {name}\r\n"));
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n{session_header}content-length: {}\r\n\r\n",
            self.host,
            body.len()
        );
        let mut request = head.into_bytes();
        request.extend_from_slice(body.as_bytes());
        self.stream.write_all(&request).await.unwrap();
        self.read_answer().await
    }

    /// Reads a whole answer and returns its body.
    async fn read_answer(&mut self) -> String {
        self.read.clear();
        let body_at = loop {
            if let Some(at) = find(&self.read, b"\r\n\r\n") {
                break at + 4;
            }
            self.read_more().await;
        };
        let head = String::from_utf8_lossy(&self.read[..body_at]).to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200"), "{head}");
        match head.lines().find_map(|line| line.strip_prefix("content-length: ")) {
            Some(length) => {
                let length: usize = length.trim().parse().unwrap();
                while self.read.len() < body_at + length {
                    self.read_more().await;
                }
            }
            // The body is chunked, and an empty chunk is its end. The bytes of an empty chunk occur in no other part of the answers.
            None => {
                while !self.read.ends_with(b"\r\n0\r\n\r\n") {
                    self.read_more().await;
                }
            }
        }
        String::from_utf8_lossy(&self.read[body_at..]).into_owned()
    }

    async fn read_more(&mut self) {
        assert_ne!(self.stream.read_buf(&mut self.read).await.unwrap(), 0, "the server closed the connection");
    }
}

/// Returns the JSON-RPC message of a tool call.
pub fn message(tool: &str, arguments: &Value) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

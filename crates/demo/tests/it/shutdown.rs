//! Tests of the shutdown: a stopped server ends, even if clients keep connections open.

use std::time::Duration;

use testkit::raw_http::RawClient;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A running server that the test can stop.
struct Server {
    client: RawClient,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<std::io::Result<()>>,
}

impl Server {
    async fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async move { drop(stopped.await) };
        Server { client: RawClient { address }, stop, ended: tokio::spawn(demo::serve(listener, shutdown)) }
    }

    async fn stop_within(self, limit: Duration) {
        self.stop.send(()).unwrap();
        let ended = tokio::time::timeout(limit, self.ended).await;
        ended.unwrap().unwrap().unwrap();
        assert!(TcpStream::connect(self.client.address).await.is_err());
    }
}

/// A stopped server must not wait for clients that keep a connection open without a request on it.
#[tokio::test]
async fn shutdown_returns_at_once_despite_idle_connections() {
    let server = Server::start().await;
    let silent = TcpStream::connect(server.client.address).await.unwrap();
    let mut kept = TcpStream::connect(server.client.address).await.unwrap();
    kept.write_all(b"GET /api/projects HTTP/1.1\r\nHost: demo\r\n\r\n").await.unwrap();
    assert!(kept.read(&mut [0; 64]).await.unwrap() > 0);
    server.stop_within(Duration::from_millis(1500)).await;
    drop((silent, kept));
}

/// A client that sent only half of a request delays the end of the server by `STOP_GRACE` at most.
#[tokio::test]
async fn shutdown_returns_despite_half_a_request() {
    let server = Server::start().await;
    let mut half = TcpStream::connect(server.client.address).await.unwrap();
    half.write_all(b"GET /api/pro").await.unwrap();
    // After an answer on a second connection, the server must have accepted the first connection too.
    server.client.get("/api/projects").await;
    server.stop_within(Duration::from_secs(20)).await;
    drop(half);
}

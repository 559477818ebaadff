//! An S3 server in this process: `s3s-fs` over a folder with checked signatures, and a layer before it that injects faults.
//! Invariant: a request without an injected fault passes through unchanged.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::Secret;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use store::blobs::s3::{Credentials, Location, Options, S3Blobs};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

pub const BUCKET: &str = "heaps";
pub const KEY_ID: &str = "AKIDTEST";
pub const SECRET: &str = "a-secret-that-nobody-prints";

/// A piece of the bytes that `Fault::Oversize` sends.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// A fault of one request.
#[derive(Debug, Clone)]
pub enum Fault {
    /// The server waits for this time before it handles the request.
    Slow(Duration),
    /// The server answers with this status and S3 error code, and does not perform the request.
    Refuse(u16, &'static str),
    /// The server closes the connection instead of answering.
    Reset,
    /// The server sends half of the body and closes the connection.
    Truncate,
    /// The server sends the body with one bit changed.
    Flip,
    /// The server answers an upload with 200 and stores no object.
    Swallow,
    /// The server answers an upload with 200 and stores other bytes of the same length.
    KeepOther,
    /// The server answers with this text, which is computed from the number of the request among those of its kind.
    Scripted(fn(usize) -> String),
    /// The server sends the object, and then as many zeros as it can until this number of bytes was sent.
    Oversize(usize),
    /// The server answers with a web page that is not an answer of S3.
    Foreign,
}

/// The injected faults and the counts of requests, by kind of request (PUT, GET, HEAD, DELETE, LIST).
#[derive(Default)]
struct Control {
    /// The fault for each kind of request, with the number of requests that still get it.
    faults: HashMap<&'static str, (Fault, usize)>,
    request_counts: HashMap<&'static str, usize>,
    /// The number of bytes that `Fault::Oversize` has sent.
    oversize_bytes: Arc<AtomicUsize>,
}

/// The running server. The objects are files below `root`.
pub struct Storage {
    pub root: tempfile::TempDir,
    address: SocketAddr,
    control: Arc<Mutex<Control>>,
    /// The task that accepts connections. `None` while the server is stopped.
    task: Mutex<Option<JoinHandle<()>>>,
    service: S3Service,
}

impl Storage {
    pub async fn start() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join(BUCKET)).unwrap();
        let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(root.path()).unwrap());
        builder.set_auth(SimpleAuth::from_single(KEY_ID, SECRET));
        let service = builder.build();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let storage = Self { root, address, control: Arc::default(), task: Mutex::default(), service };
        storage.serve(listener);
        storage
    }

    fn serve(&self, listener: TcpListener) {
        let service = self.service.clone();
        let control = self.control.clone();
        let root = self.root.path().to_owned();
        let task = tokio::spawn(async move {
            // When the task is dropped, this set is dropped too, which closes every connection.
            let mut connections = JoinSet::new();
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let service = service.clone();
                let control = control.clone();
                let root = root.clone();
                connections.spawn(async move {
                    let answer =
                        service_fn(move |request| answer(service.clone(), control.clone(), root.clone(), request));
                    let _ =
                        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), answer).await;
                });
            }
        });
        *self.task.lock().unwrap() = Some(task);
    }

    /// Stops listening and closes every connection.
    pub async fn stop(&self) {
        let task = self.task.lock().unwrap().take();
        if let Some(task) = task {
            task.abort();
            let _ = task.await;
        }
    }

    /// Listens on the same address again.
    pub async fn restart(&self) {
        self.serve(TcpListener::bind(self.address).await.unwrap());
    }

    /// Injects a fault into the next `times` requests of this kind (PUT, GET, HEAD, DELETE, LIST).
    pub fn inject(&self, kind: &'static str, fault: Fault, times: usize) {
        self.control.lock().unwrap().faults.insert(kind, (fault, times));
    }

    pub fn clear_faults(&self) {
        self.control.lock().unwrap().faults.clear();
    }

    /// Returns the number of requests of this kind since the last call with the same kind.
    pub fn take_request_count(&self, kind: &'static str) -> usize {
        self.control.lock().unwrap().request_counts.remove(kind).unwrap_or(0)
    }

    /// Returns the number of bytes that `Fault::Oversize` has sent so far.
    pub fn oversize_bytes(&self) -> usize {
        self.control.lock().unwrap().oversize_bytes.load(Ordering::SeqCst)
    }

    pub fn options(&self, location: &str) -> Options {
        Options {
            location: Location::parse(location).unwrap(),
            owner: "this database".to_owned(),
            endpoint: Some(format!("http://{}", self.address)),
            region: "us-east-1".to_owned(),
            allow_http: false,
            path_style: None,
            credentials: Credentials::Keys { id: KEY_ID.to_owned(), secret: Secret::new(SECRET), token: None },
            timeout: Duration::from_secs(10),
            retries: 3,
        }
    }

    pub fn blobs(&self, location: &str) -> S3Blobs {
        S3Blobs::new(&self.options(location)).unwrap()
    }

    /// Returns the file of an object.
    pub fn path(&self, key: &str) -> PathBuf {
        self.root.path().join(BUCKET).join(key)
    }
}

async fn answer(
    service: S3Service,
    control: Arc<Mutex<Control>>,
    root: PathBuf,
    request: Request<Incoming>,
) -> Result<Response<Body>, std::io::Error> {
    let is_list = request.uri().query().is_some_and(|query| query.contains("list-type"));
    let kind = match request.method().as_str() {
        "GET" if is_list => "LIST",
        "GET" => "GET",
        "PUT" => "PUT",
        "HEAD" => "HEAD",
        "DELETE" => "DELETE",
        other => panic!("the adapter does not send {other}"),
    };
    let object = root.join(request.uri().path().trim_start_matches('/'));
    match next_fault(&control, kind) {
        None => handle(&service, request).await,
        Some(Fault::Slow(time)) => {
            tokio::time::sleep(time).await;
            handle(&service, request).await
        }
        Some(Fault::Refuse(status, code)) => {
            // The body is read first. A client that is still sending would see a broken connection instead of the answer.
            let _ = request.into_body().collect().await;
            let echo = format!("<Error><Code>{code}</Code><Message>you sent {SECRET}</Message></Error>");
            Ok(Response::builder().status(status).body(full_body(echo.into_bytes())).unwrap())
        }
        Some(Fault::Foreign) => Ok(Response::new(full_body(b"<html><p>welcome to the proxy</html>".to_vec()))),
        Some(Fault::Scripted(script)) => {
            let _ = request.into_body().collect().await;
            let number = control.lock().unwrap().request_counts[kind];
            Ok(Response::new(full_body(script(number).into_bytes())))
        }
        Some(Fault::Oversize(total)) => {
            let (mut parts, bytes) = collect_body(&service, request).await?;
            parts.headers.insert("content-length", (bytes.len() + total).to_string().parse().unwrap());
            parts.headers.entry("last-modified").or_insert("Wed, 21 Oct 2015 07:28:00 GMT".parse().unwrap());
            let sent = Arc::clone(&control.lock().unwrap().oversize_bytes);
            let zeros = stream::iter(0..total.div_ceil(ZEROS.len())).map(move |_| {
                sent.fetch_add(ZEROS.len(), Ordering::SeqCst);
                Ok::<_, std::io::Error>(Frame::data(Bytes::from_static(&ZEROS)))
            });
            let first = stream::iter([Ok(Frame::data(Bytes::from(bytes)))]);
            Ok(Response::from_parts(parts, StreamBody::new(first.chain(zeros)).boxed_unsync()))
        }
        Some(Fault::Reset) => Err(std::io::ErrorKind::ConnectionReset.into()),
        Some(Fault::Swallow) => {
            let _ = request.into_body().collect().await;
            Ok(Response::builder().header("ETag", "\"00\"").body(full_body(Vec::new())).unwrap())
        }
        Some(Fault::KeepOther) => {
            let answer = handle(&service, request).await?;
            let mut bytes = std::fs::read(&object).unwrap();
            bytes[0] ^= 1;
            std::fs::write(&object, bytes).unwrap();
            Ok(answer)
        }
        Some(Fault::Flip) => {
            let (parts, mut bytes) = collect_body(&service, request).await?;
            if let Some(first) = bytes.first_mut() {
                *first ^= 1;
            }
            Ok(Response::from_parts(parts, full_body(bytes)))
        }
        Some(Fault::Truncate) => {
            let (parts, mut bytes) = collect_body(&service, request).await?;
            bytes.truncate(bytes.len() / 2);
            let half: Result<_, std::io::Error> = Ok(Frame::data(Bytes::from(bytes)));
            let cut = stream::iter([half, Err(std::io::ErrorKind::BrokenPipe.into())]).then(async |frame| {
                // The pause lets the client receive the half body before the connection ends.
                tokio::time::sleep(Duration::from_millis(5)).await;
                frame
            });
            Ok(Response::from_parts(parts, StreamBody::new(Box::pin(cut)).boxed_unsync()))
        }
    }
}

/// Counts the request and returns the fault that is injected into it.
fn next_fault(control: &Mutex<Control>, kind: &'static str) -> Option<Fault> {
    let mut control = control.lock().unwrap();
    *control.request_counts.entry(kind).or_default() += 1;
    let (fault, remaining) = control.faults.get_mut(kind)?;
    let fault = fault.clone();
    *remaining -= 1;
    if *remaining == 0 {
        control.faults.remove(kind);
    }
    Some(fault)
}

async fn handle(service: &S3Service, request: Request<Incoming>) -> Result<Response<Body>, std::io::Error> {
    let answer = service.call(request.map(s3s::Body::from)).await.map_err(|_| std::io::ErrorKind::Other)?;
    Ok(answer.map(|body| body.map_err(std::io::Error::other).boxed_unsync()))
}

async fn collect_body(
    service: &S3Service,
    request: Request<Incoming>,
) -> Result<(http::response::Parts, Vec<u8>), std::io::Error> {
    let (parts, body) = handle(service, request).await?.into_parts();
    Ok((parts, body.collect().await?.to_bytes().to_vec()))
}

fn full_body(bytes: Vec<u8>) -> Body {
    Full::new(Bytes::from(bytes)).map_err(|never: Infallible| match never {}).boxed_unsync()
}

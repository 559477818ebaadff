//! The adapter with a clock that does not wait, a list of secrets and a captured log, and short functions for requests.
//! Invariant: a sleep of the clock takes no real time.

use std::error::Error as _;
use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base::{Auth, Method, Origin, Request, Response, Secret, TenantId, Timestamp};
use ports::upstream::{Call, Error, Pace};
use ports::{Clock, Secrets, Upstream, secrets};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::util::SubscriberInitExt;
use upstream::{BuildError, HttpUpstream, NameLookup, Options};

pub const TOKEN: &str = "hunter2-very-secret";

/// The origin to which the secret `BOUND_ELSEWHERE` is bound.
pub const ELSEWHERE: &str = "https://elsewhere.example";

/// A clock whose time changes only by a sleep or by `Fixture::advance`.
pub struct FakeClock {
    /// The current time of the clock in milliseconds since 1970.
    now: Mutex<i64>,
    /// The durations of all sleeps so far.
    slept: Mutex<Vec<Duration>>,
}

#[async_trait]
impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        Timestamp(*self.now.lock().unwrap())
    }

    async fn sleep(&self, duration: Duration) {
        self.slept.lock().unwrap().push(duration);
        *self.now.lock().unwrap() += i64::try_from(duration.as_millis()).unwrap();
    }
}

/// A source of secrets that returns the same secrets for every tenant.
struct FixedSecrets;

#[async_trait]
impl Secrets for FixedSecrets {
    async fn get(&self, tenant: &TenantId, name: &str, origin: &Origin) -> Result<Secret, secrets::Error> {
        self.check_binding(tenant, name, origin).await?;
        match name {
            "BOUND_ELSEWHERE" => Ok(Secret::new(TOKEN)),
            "SHORT" => Ok(Secret::new("five5")),
            "TOKEN" => Ok(Secret::new(TOKEN)),
            "BROKEN" => Ok(Secret::new(format!("{TOKEN}\n"))),
            "DEMO_TOKEN" => Ok(Secret::new("demo-token")),
            "DEMO_KEY" => Ok(Secret::new("demo-key")),
            "DEMO_USER" => Ok(Secret::new("demo")),
            "DEMO_PASSWORD" => Ok(Secret::new("demo-password")),
            "CLIENT_ID" => Ok(Secret::new("demo-client")),
            "CLIENT_SECRET" => Ok(Secret::new("demo-secret")),
            "COLON" => Ok(Secret::new("a:b")),
            _ => Err(secrets::Error::NotSet { name: name.to_owned(), hint: "set it".to_owned() }),
        }
    }

    /// Only the secret `BOUND_ELSEWHERE` is bound, to one origin.
    async fn check_binding(&self, _: &TenantId, name: &str, origin: &Origin) -> Result<(), secrets::Error> {
        if name == "BOUND_ELSEWHERE" && origin.as_str() != ELSEWHERE {
            return Err(secrets::Error::NotBound { name: name.to_owned(), origin: origin.clone() });
        }
        Ok(())
    }
}

/// The log of all tests and all crates at the finest level. The process has one subscriber. A subscriber for each
/// thread would miss events, because `tracing` caches for the whole process whether an event is enabled.
static LOG: LazyLock<Log> = LazyLock::new(|| {
    let log = Log::default();
    let writer = log.clone();
    let fmt = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_ansi(false);
    fmt.with_writer(move || writer.clone()).finish().init();
    log
});

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub fn log_text() -> String {
    String::from_utf8(LOG.0.lock().unwrap().clone()).unwrap()
}

/// An `HttpUpstream` and its clock.
pub struct Fixture {
    pub upstream: Arc<HttpUpstream>,
    clock: Arc<FakeClock>,
}

impl Fixture {
    pub fn new() -> Self {
        Self::with(Options::default())
    }

    pub fn with(options: Options) -> Self {
        LazyLock::force(&LOG);
        let clock = clock();
        Self { upstream: Arc::new(build(options, Arc::clone(&clock)).unwrap()), clock }
    }

    /// Creates a fixture that resolves host names with `lookup`.
    pub fn with_lookup(options: Options, lookup: Arc<dyn NameLookup>) -> Self {
        LazyLock::force(&LOG);
        let clock = clock();
        let upstream = HttpUpstream::with_lookup(options, Arc::new(FixedSecrets), Arc::clone(&clock) as Arc<_>, lookup);
        Self { upstream: Arc::new(upstream.unwrap()), clock }
    }

    pub async fn read_as(&self, tenant: &str, request: Request) -> Result<Response, Error> {
        let tenant = TenantId::parse(tenant).unwrap();
        self.upstream.send(Call { tenant, request, repeatable: true, pace: None }).await
    }

    pub async fn read_at(&self, pace: Pace, request: Request) -> Result<Response, Error> {
        let call = Call { tenant: TenantId::local(), request, repeatable: true, pace: Some(pace) };
        self.upstream.send(call).await
    }

    pub fn advance(&self, time: Duration) {
        *self.clock.now.lock().unwrap() += i64::try_from(time.as_millis()).unwrap();
    }

    pub async fn read(&self, request: Request) -> Result<Response, Error> {
        self.send(request, true).await
    }

    pub async fn write(&self, request: Request) -> Result<Response, Error> {
        self.send(Request { method: Method::Post, ..request }, false).await
    }

    async fn send(&self, request: Request, repeatable: bool) -> Result<Response, Error> {
        self.upstream.send(Call { tenant: TenantId::local(), request, repeatable, pace: None }).await
    }

    pub fn slept(&self) -> Vec<Duration> {
        self.clock.slept.lock().unwrap().clone()
    }
}

pub fn build(options: Options, clock: Arc<FakeClock>) -> Result<HttpUpstream, BuildError> {
    HttpUpstream::new(options, Arc::new(FixedSecrets), clock)
}

/// Returns a clock at Sun, 06 Nov 1994 08:49:37 GMT.
pub fn clock() -> Arc<FakeClock> {
    Arc::new(FakeClock { now: Mutex::new(784_111_777_000), slept: Mutex::default() })
}

/// Returns options for one short try.
pub fn single_try() -> Options {
    Options { retries: 0, request_timeout: Duration::from_millis(300), ..Options::default() }
}

pub fn get(origin: &Origin, path: &str) -> Request {
    Request {
        method: Method::Get,
        origin: origin.clone(),
        path: path.to_owned(),
        query: vec![],
        headers: vec![],
        body: None,
        auth: None,
        anonymous: false,
    }
}

pub fn signed(request: Request) -> Request {
    Request { auth: Some(Auth::Bearer("TOKEN".to_owned())), ..request }
}

/// Returns everything that an error can show: its message, its `Debug`, and the same for each of its causes.
pub fn printed_with_causes(error: &Error) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(" {cause} {cause:?}"));
        source = cause.source();
    }
    text
}

/// Serves the test API with a state of its own.
pub async fn demo() -> Origin {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = Origin::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(testapi::serve(listener));
    origin
}

pub fn json(answer: &Response) -> serde_json::Value {
    serde_json::from_slice(&answer.body).unwrap()
}

/// Returns an origin whose port is closed.
pub async fn closed_port() -> Origin {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    Origin::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap()
}

//! An upstream for tests that answers requests by rules.
//! Invariant: no request leaves the process. A request that no rule matches gets an `Error::Connect` that begins with "not scripted".

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use base::{Method, Payload, Request, Response};
use ports::upstream::{Call, DepartureCheck, Error, Upstream};
use serde_json::Value;
use tokio::sync::{Notify, watch};

use crate::lock;

type Answer = Arc<dyn Fn(&Call) -> Result<Response, Error> + Send + Sync>;

/// A rule with the requests that it matches and its answer. The first rule that matches a request and has uses left answers it.
#[derive(Clone)]
pub struct Rule {
    method: Method,
    path: String,
    /// The parameters that the query of a request must have.
    query: Vec<(String, String)>,
    /// The texts that the body of a request must contain.
    body_parts: Vec<String>,
    /// Headers that are added to the answer.
    headers: Vec<(String, String)>,
    answer: Answer,
    /// The number of requests that the rule may still answer. `None` means any number.
    uses_left: Option<usize>,
    /// The signal that a call waits for before it is answered.
    gate: Option<Arc<Notify>>,
}

impl Rule {
    /// Returns a rule that answers any number of requests with the status 200 and no body. The other methods change the rule.
    pub fn new(method: Method, path: &str) -> Self {
        Self {
            method,
            path: path.to_owned(),
            query: Vec::new(),
            body_parts: Vec::new(),
            headers: Vec::new(),
            answer: Arc::new(|_| Ok(Response { status: 200, headers: Vec::new(), body: Vec::new() })),
            uses_left: None,
            gate: None,
        }
    }

    pub fn get(path: &str) -> Self {
        Self::new(Method::Get, path)
    }

    pub fn post(path: &str) -> Self {
        Self::new(Method::Post, path)
    }

    /// Requires this parameter in the query. The query may have other parameters too.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.query.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Requires this text in the body, which is compared as canonical JSON. GraphQL calls have one path and are told apart by this text.
    pub fn body_contains(mut self, part: &str) -> Self {
        self.body_parts.push(part.to_owned());
        self
    }

    pub fn json(self, status: u16, body: Value) -> Self {
        let bytes = body.to_string().into_bytes();
        self.bytes(status, bytes).header("content-type", "application/json")
    }

    pub fn bytes(self, status: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        self.answers(move |_| Ok(Response { status, headers: Vec::new(), body: body.clone() }))
    }

    /// Adds a header to the answer. The name is stored in lower case, because all header names of a `Response` are in lower case.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.to_owned()));
        self
    }

    /// Answers with an error that is made from the label of the request: `.fails(|label| Error::Timeout { label, ms: 10 })`.
    pub fn fails(self, error: impl Fn(String) -> Error + Send + Sync + 'static) -> Self {
        self.answers(move |call| Err(error(call.request.label())))
    }

    /// Computes the answer from the call.
    pub fn answers(mut self, answer: impl Fn(&Call) -> Result<Response, Error> + Send + Sync + 'static) -> Self {
        self.answer = Arc::new(answer);
        self
    }

    pub fn once(self) -> Self {
        self.times(1)
    }

    pub fn times(mut self, uses: usize) -> Self {
        self.uses_left = Some(uses);
        self
    }

    /// Delays the answer until `gate` is notified. `notify_one` releases the call that has waited longest, and `notify_waiters` all
    /// waiting calls.
    pub fn waits_for(mut self, gate: &Arc<Notify>) -> Self {
        self.gate = Some(Arc::clone(gate));
        self
    }

    fn matches(&self, request: &Request) -> bool {
        self.uses_left != Some(0)
            && self.method == request.method
            && self.path == request.path
            && self.query.iter().all(|wanted| request.query.contains(wanted))
            && self.body_matches(request.body.as_ref())
    }

    fn body_matches(&self, body: Option<&Payload>) -> bool {
        if self.body_parts.is_empty() {
            return true;
        }
        let text = body.map(body_text).unwrap_or_default();
        self.body_parts.iter().all(|part| text.contains(part))
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method.as_str(), self.path)?;
        self.query.iter().try_for_each(|(name, value)| write!(f, " ?{name}={value}"))?;
        self.body_parts.iter().try_for_each(|part| write!(f, " body~{part:?}"))
    }
}

/// An upstream with its rules and a record of all calls.
pub struct ScriptedUpstream {
    state: Mutex<State>,
    /// The number of calls under way.
    in_flight: AtomicUsize,
    /// The number of calls that have arrived, for tests that wait for a number of calls.
    arrived: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    /// Every call so far, in the order of arrival.
    calls: Vec<Call>,
    /// The requests that no rule matched, as text.
    unscripted: Vec<String>,
    max_in_flight: usize,
}

impl Default for ScriptedUpstream {
    fn default() -> Self {
        Self { state: Mutex::default(), in_flight: AtomicUsize::new(0), arrived: watch::Sender::new(0) }
    }
}

impl ScriptedUpstream {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with(self, rule: Rule) -> Self {
        self.add(rule);
        self
    }

    /// Adds a rule after the existing rules, even while calls are under way.
    pub fn add(&self, rule: Rule) {
        lock(&self.state).rules.push(rule);
    }

    /// Returns every call so far in the order of arrival, including calls that no rule matched.
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.state).calls.clone()
    }

    /// Returns the highest number of calls that were under way at one moment.
    pub fn max_in_flight(&self) -> usize {
        lock(&self.state).max_in_flight
    }

    /// Waits until this many calls have arrived since the start.
    pub async fn arrived(&self, calls: usize) {
        // `wait_for` fails only if the sender is dropped, and the sender lives as long as `self`.
        let _ = self.arrived.subscribe().wait_for(|arrived| *arrived >= calls).await;
    }

    /// Panics if a rule with a number of uses has uses left, or if a call matched no rule.
    pub fn assert_followed(&self) {
        let state = lock(&self.state);
        let unused: Vec<String> = state
            .rules
            .iter()
            .filter_map(|rule| {
                rule.uses_left.filter(|left| *left > 0).map(|left| format!("  not asked ({left} left): {rule:?}"))
            })
            .collect();
        let unscripted = state.unscripted.iter().map(|label| format!("  not scripted: {label}"));
        let problems: Vec<String> = unused.into_iter().chain(unscripted).collect();
        assert!(problems.is_empty(), "the script was not followed:\n{}", problems.join("\n"));
    }

    /// Records a call and returns the rule that answers it, after counting this use of the rule.
    fn take(&self, call: &Call) -> Option<Rule> {
        let mut state = lock(&self.state);
        state.calls.push(call.clone());
        let matching = state.rules.iter_mut().find(|rule| rule.matches(&call.request)).map(|rule| {
            rule.uses_left = rule.uses_left.map(|left| left - 1);
            rule.clone()
        });
        if matching.is_none() {
            state.unscripted.push(describe(&call.request));
        }
        matching
    }

    /// Counts a call as under way until the returned value is dropped.
    fn enter(&self) -> InFlight<'_> {
        let now = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        let mut state = lock(&self.state);
        state.max_in_flight = state.max_in_flight.max(now);
        InFlight(&self.in_flight)
    }
}

/// A call under way. Dropping this value reduces the count, even if the caller drops the call before its answer.
struct InFlight<'a>(&'a AtomicUsize);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Upstream for ScriptedUpstream {
    async fn send_checked(&self, call: Call, check: &dyn DepartureCheck) -> Result<Response, Error> {
        if check.may_leave().await.is_err() {
            return Err(Error::Withheld { label: call.request.label() });
        }
        let _in_flight = self.enter();
        let rule = self.take(&call);
        // The call registers at its gate before it counts as arrived. A test that waits for `arrived` and then notifies the gate
        // therefore always releases the call.
        let mut gate = pin!(rule.as_ref().and_then(|rule| rule.gate.as_deref()).map(Notify::notified));
        if let Some(notice) = gate.as_mut().as_pin_mut() {
            notice.enable();
        }
        self.arrived.send_modify(|arrived| *arrived += 1);
        // A scripted answer takes no time. Without the yield, concurrent calls would never be under way at the same moment.
        tokio::task::yield_now().await;
        if let Some(notice) = gate.as_mut().as_pin_mut() {
            notice.await;
        }
        let Some(rule) = &rule else {
            return Err(unscripted(&call.request));
        };
        let mut response = (rule.answer)(&call)?;
        response.headers.extend(rule.headers.iter().cloned());
        Ok(response)
    }
}

fn unscripted(request: &Request) -> Error {
    Error::Connect {
        label: format!("not scripted: {}", describe(request)),
        cause: "no rule of the ScriptedUpstream matches this request".into(),
    }
}

/// Returns the body of a request as text: canonical JSON, the pairs of a form, or the names and texts of multipart parts.
pub fn body_text(body: &Payload) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match body {
        Payload::Json { value, .. } => base::canonical(value),
        Payload::Form(pairs) => {
            pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
        }
        Payload::Multipart(parts) => {
            parts.iter().map(|p| format!("{}: {}", p.name, text(&p.bytes))).collect::<Vec<_>>().join("\n")
        }
        Payload::Bytes { bytes, .. } => text(bytes),
    }
}

fn describe(request: &Request) -> String {
    let query: Vec<String> = request.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let body = request.body.as_ref().map(|body| format!(" {}", body_text(body))).unwrap_or_default();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{}{mark}{}{body}", request.label(), query.join("&"))
}

#[cfg(test)]
mod tests {
    use base::{Origin, TenantId};
    use serde_json::json;

    use super::*;

    fn call(method: Method, path: &str, query: &[(&str, &str)], body: Option<Value>) -> Call {
        let request = Request {
            method,
            origin: Origin::parse("https://api.test").unwrap(),
            path: path.to_owned(),
            query: query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            headers: Vec::new(),
            body: body.map(Payload::json),
            auth: None,
            anonymous: false,
        };
        Call { tenant: TenantId::local(), request, repeatable: true, pace: None }
    }

    #[tokio::test]
    async fn rules_answer_in_order_and_are_used_up() {
        let upstream = ScriptedUpstream::new()
            .with(Rule::get("/a").query("page", "2").json(200, json!([3])))
            .with(Rule::get("/a").once().bytes(503, "busy").header("Retry-After", "1"))
            .with(Rule::get("/a").json(200, json!([1, 2])));
        let first = upstream.send(call(Method::Get, "/a", &[], None)).await.unwrap();
        assert_eq!((first.status, first.header("retry-after"), first.body.clone()), (503, Some("1"), b"busy".to_vec()));
        let second = upstream.send(call(Method::Get, "/a", &[("q", "x")], None)).await.unwrap();
        assert_eq!((second.body, second.headers[0].0.as_str()), (b"[1,2]".to_vec(), "content-type"));
        let third = upstream.send(call(Method::Get, "/a", &[("q", "x"), ("page", "2")], None)).await.unwrap();
        assert_eq!(third.body, b"[3]");
        assert_eq!(upstream.calls().len(), 3);
        upstream.assert_followed();
    }

    #[tokio::test]
    async fn a_rule_can_match_the_text_of_a_body() {
        let upstream = ScriptedUpstream::new()
            .with(Rule::post("/graphql").body_contains("tickets").json(200, json!({"data": 1})))
            .with(Rule::post("/graphql").body_contains("people").json(200, json!({"data": 2})));
        let body = json!({"query": "{ people }"});
        let answer = upstream.send(call(Method::Post, "/graphql", &[], Some(body))).await.unwrap();
        assert_eq!(answer.body, br#"{"data":2}"#);
    }

    #[tokio::test]
    async fn a_call_that_no_rule_matches_fails_with_its_request() {
        let upstream = ScriptedUpstream::new().with(Rule::get("/b").once());
        let error = upstream.send(call(Method::Get, "/a", &[("x", "1")], None)).await.unwrap_err();
        assert_eq!(error.to_string(), "not scripted: GET https://api.test/a?x=1: could not connect");
        let followed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| upstream.assert_followed()));
        let message = *followed.unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("not asked (1 left): GET /b") && message.contains("not scripted: GET"), "{message}");
    }

    #[tokio::test]
    async fn a_rule_can_answer_with_an_error() {
        let upstream = ScriptedUpstream::new().with(Rule::get("/a").fails(|label| Error::Timeout { label, ms: 7 }));
        for _ in 0..2 {
            let error = upstream.send(call(Method::Get, "/a", &[], None)).await.unwrap_err();
            assert!(matches!(error, Error::Timeout { ms: 7, .. }));
        }
    }

    #[tokio::test]
    async fn a_gate_holds_calls_which_count_as_parallel() {
        let gate = Arc::new(Notify::new());
        let upstream = Arc::new(ScriptedUpstream::new().with(Rule::get("/a").waits_for(&gate)));
        let tasks: Vec<_> = (0..3)
            .map(|_| {
                let upstream = Arc::clone(&upstream);
                tokio::spawn(async move { upstream.send(call(Method::Get, "/a", &[], None)).await.unwrap().status })
            })
            .collect();
        upstream.arrived(3).await;
        assert_eq!(upstream.max_in_flight(), 3);
        assert!(tasks.iter().all(|task| !task.is_finished()));
        gate.notify_one();
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        gate.notify_waiters();
        for task in tasks {
            assert_eq!(task.await.unwrap(), 200);
        }
        assert_eq!(upstream.in_flight.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn calls_one_after_another_are_not_parallel() {
        let upstream = ScriptedUpstream::new().with(Rule::get("/a"));
        upstream.send(call(Method::Get, "/a", &[], None)).await.unwrap();
        upstream.send(call(Method::Get, "/a", &[], None)).await.unwrap();
        assert_eq!(upstream.max_in_flight(), 1);
        tokio::join!(
            upstream.send(call(Method::Get, "/a", &[], None)),
            upstream.send(call(Method::Get, "/a", &[], None))
        )
        .0
        .unwrap();
        assert_eq!(upstream.max_in_flight(), 2);
    }
}

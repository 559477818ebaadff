//! Exports calls as spans to an OpenTelemetry collector: OTLP over HTTP, as JSON.
//! The message is written by hand, because it has two dozen lines of JSON, and the SDK would add a second HTTP stack and protobuf.
//! Invariant: no call waits for the collector. Spans that the collector does not accept are dropped, and a log line has their number.

use std::future::Future;
use std::time::Duration;

use base::{Digest, LogicalSessionId};
use serde_json::{Value, json};
use session::{CallRecord, Exporter};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use upstream::Collector;

use crate::failure::Failure;

/// The largest number of spans that wait for the collector. A further span is dropped.
const QUEUE_SPANS: usize = 2_048;
/// The largest number of spans in one request to the collector.
const BATCH_SPANS: usize = 256;
const EXPORT_INTERVAL: Duration = Duration::from_millis(500);
const TIMEOUT: Duration = Duration::from_secs(5);

/// The sending end of the queue of spans.
pub struct Otlp(mpsc::Sender<Value>);

impl Exporter for Otlp {
    fn export(&self, session: LogicalSessionId, call: &CallRecord) {
        if self.0.try_send(call_span(session, call)).is_err() {
            tracing::debug!("dropped a span, because the OpenTelemetry collector is too slow");
        }
    }
}

impl Otlp {
    /// Returns the exporter, and the task that sends its spans. The task ends after `stop` is cancelled and the last spans are sent.
    pub fn new(url: &str, stop: CancellationToken) -> Result<(Self, impl Future<Output = ()> + use<>), Failure> {
        let bad_url = || {
            Failure::Usage(format!(
                "`telemetry.otlp` is `{url}` in the settings; write the URL of the collector, such as http://HOST:4318"
            ))
        };
        if !url.starts_with("http://") {
            return Err(bad_url());
        }
        let endpoint = format!("{}/v1/traces", url.trim_end_matches('/'));
        let collector = Collector::new(&endpoint, TIMEOUT).map_err(|_| bad_url())?;
        let (sender, mut queue) = mpsc::channel(QUEUE_SPANS);
        let export = async move {
            let mut last = false;
            while !last {
                tokio::select! {
                    () = tokio::time::sleep(EXPORT_INTERVAL) => {}
                    // The task that writes traces ends at the same signal, and adds its last spans to the queue after it.
                    () = stop.cancelled() => { tokio::time::sleep(EXPORT_INTERVAL).await; last = true; }
                }
                loop {
                    let mut spans = Vec::new();
                    while spans.len() < BATCH_SPANS
                        && let Ok(span) = queue.try_recv()
                    {
                        spans.push(span);
                    }
                    if spans.is_empty() {
                        break;
                    }
                    send_spans(&collector, spans).await;
                }
            }
        };
        Ok((Self(sender), export))
    }
}

/// Sends one batch of spans. If the request fails, the spans are dropped.
async fn send_spans(collector: &Collector, spans: Vec<Value>) {
    let count = spans.len();
    let body = json!({"resourceSpans": [{
        "resource": {"attributes": [text_attribute("service.name", "tokamak"), text_attribute("service.version", env!("CARGO_PKG_VERSION"))]},
        "scopeSpans": [{"scope": {"name": "tokamak"}, "spans": spans}],
    }]});
    if let Err(error) = collector.post(body.to_string()).await {
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            count,
            "dropped a batch of spans, because the OpenTelemetry collector did not accept it"
        );
    }
}

/// Returns a call as an OTLP span. All calls of one session have the same trace id.
fn call_span(session: LogicalSessionId, call: &CallRecord) -> Value {
    let trace = session.to_string().replace('-', "");
    let id = Digest::of(format!("{session}{}{}{}", call.at, call.tool, call.answer).as_bytes()).to_string();
    let nanos = |ms: i64| (i128::from(ms) * 1_000_000).to_string();
    let mut attributes = vec![text_attribute("tokamak.outcome", &call.outcome)];
    let optional = [("tokamak.program", &call.program), ("tokamak.uri", &call.uri)];
    attributes.extend(optional.into_iter().filter_map(|(name, value)| Some(text_attribute(name, value.as_ref()?))));
    attributes.extend(call.plan.iter().map(|plan| text_attribute("tokamak.plan", &plan.to_string())));
    attributes.push(json!({"key": "tokamak.answer_chars", "value": {"intValue": call.answer_chars.to_string()}}));
    let step = |step: &session::StepRecord| {
        let rows = step.rows.map_or_else(|| "failed".to_owned(), |rows| rows.to_string());
        let took = json!({"key": "us", "value": {"intValue": step.us.to_string()}});
        json!({"timeUnixNano": nanos(call.at), "name": step.name, "attributes": [took, text_attribute("rows", &rows)]})
    };
    let receipt = |receipt: &String| json!({"timeUnixNano": nanos(call.at + call.ms), "name": "receipt", "attributes": [text_attribute("receipt", receipt)]});
    let events: Vec<Value> = call.steps.iter().map(step).chain(call.receipts.iter().map(receipt)).collect();
    let failed = !["ok", "running", "planned"].contains(&call.outcome.as_str());
    json!({
        "traceId": trace,
        "spanId": id.get(..16).unwrap_or_default(),
        "name": call.tool,
        "kind": 2,
        "startTimeUnixNano": nanos(call.at),
        "endTimeUnixNano": nanos(call.at + call.ms),
        "attributes": attributes,
        "events": events,
        "status": {"code": if failed { 2 } else { 1 }},
    })
}

fn text_attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

//! Tests of the schedule of random plans: the limit on concurrent calls holds, each step runs once and after its inputs, and
//! effects run alone and in order.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use base::{Limits, Method, Response};
use ports::upstream::{Call, DepartureCheck, Error};
use proptest::prelude::*;
use serde_json::json;
use testkit::memory::MemoryReceipts;

use crate::support::{Plans, RunOptions, args, of_step, run_with, value, writes_catalog};

/// An upstream that answers every request after yielding some times, and records the number of overlapping calls.
#[derive(Default)]
struct WatchedUpstream {
    /// The number of calls in progress.
    in_flight: AtomicUsize,
    /// The largest number of calls that were in progress at once.
    max_in_flight: AtomicUsize,
    /// The number of writes in progress.
    writes_in_flight: AtomicUsize,
    /// The largest number of writes that were in progress at once.
    max_writes_in_flight: AtomicUsize,
    /// The path and body of each call, in the order in which the calls ended.
    log: Mutex<Vec<String>>,
    /// If set, the upstream refuses each request that contains this text.
    fails: Option<String>,
}

#[async_trait]
impl ports::Upstream for WatchedUpstream {
    async fn send_checked(&self, call: Call, check: &dyn DepartureCheck) -> Result<Response, Error> {
        if check.may_leave().await.is_err() {
            return Err(Error::Withheld { label: call.request.label() });
        }
        let in_flight = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        self.max_in_flight.fetch_max(in_flight, Ordering::SeqCst);
        let is_write = call.request.method != Method::Get;
        if is_write {
            let writing = self.writes_in_flight.fetch_add(1, Ordering::SeqCst) + 1;
            self.max_writes_in_flight.fetch_max(writing, Ordering::SeqCst);
        }
        let body = call.request.body.as_ref().map(testkit::upstream::body_text).unwrap_or_default();
        let request = format!("{} {body}", call.request.path);
        for _ in 0..(request.len() % 4) + 1 {
            tokio::task::yield_now().await;
        }
        self.log.lock().unwrap().push(request.clone());
        if is_write {
            self.writes_in_flight.fetch_sub(1, Ordering::SeqCst);
        }
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
        let id = call.request.path.rsplit('/').next().unwrap_or_default().to_owned();
        let body = json!({"id": id, "name": id, "project": "OPS", "number": 1, "labels": []});
        let status = if self.fails.as_ref().is_some_and(|word| request.contains(word)) { 422 } else { 200 };
        Ok(Response { status, headers: vec![], body: body.to_string().into_bytes() })
    }
}

fn catalog() -> std::sync::Arc<catalog::Catalog> {
    writes_catalog("http://demo.localhost")
}

/// Returns random plans. Each element is one step: whether it is an effect, and the earlier step from which it takes a value.
fn shapes() -> impl Strategy<Value = Vec<(bool, Option<prop::sample::Index>)>> {
    prop::collection::vec((prop::bool::weighted(0.25), prop::option::of(any::<prop::sample::Index>())), 1..20)
}

fn build(shapes: &[(bool, Option<prop::sample::Index>)]) -> Plans {
    let mut plans = Plans::new(&catalog());
    for (index, (is_effect, from)) in shapes.iter().enumerate() {
        let from = from.as_ref().filter(|_| index > 0).map(|choice| choice.index(index));
        // The upstream's answer repeats the requested id, so a read returns the name of its first input.
        let source = match from {
            Some(from) if !shapes[from].0 => of_step(from, "name"),
            Some(from) => of_step(from, "project"),
            None => value(json!(format!("x{index}"))),
        };
        if *is_effect {
            let given = args(&[("project", value(json!("OPS"))), ("title", value(json!(format!("e{index}."))))]);
            let step = plans.effect("Ticket", "ticket_plain", given, None);
            assert_eq!(step, index);
        } else {
            plans.get("Person", "person_get", args(&[("id", source)]));
        }
    }
    plans
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn concurrency_stays_within_its_limits_and_effects_keep_their_order(shapes in shapes(), session in 1usize..5, origin in 1usize..5) {
        let plans = build(&shapes);
        let watched = WatchedUpstream::default();
        let receipts = MemoryReceipts::new();
        let limits = Limits { calls_per_session: session, calls_per_origin: origin, ..Limits::default() };
        let with = RunOptions { limits, receipts: Some(&receipts), ..RunOptions::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let outcome = runtime.block_on(run_with(&watched, &plans.plan(), &plans.catalog, with));
        prop_assert!(!outcome.failed(), "{:?}", outcome.returns);
        prop_assert!(watched.max_in_flight.load(Ordering::SeqCst) <= session.min(origin));
        prop_assert!(watched.max_writes_in_flight.load(Ordering::SeqCst) <= 1);
        prop_assert_eq!(watched.log.lock().unwrap().len(), shapes.len(), "each step calls once");
        let steps: Vec<usize> = outcome.receipts.iter().map(|r| r.intent.id.step).collect();
        let effects: Vec<usize> = (0..shapes.len()).filter(|at| shapes[*at].0).collect();
        prop_assert_eq!(steps, effects, "in their order");
    }

    #[test]
    fn a_failed_effect_stops_the_later_ones_and_no_read(shapes in shapes(), which in any::<prop::sample::Index>()) {
        let plans = build(&shapes);
        let effects: Vec<usize> = (0..shapes.len()).filter(|at| shapes[*at].0).collect();
        prop_assume!(!effects.is_empty());
        let failing = effects[which.index(effects.len())];
        let watched = WatchedUpstream { fails: Some(format!("e{failing}.")), ..WatchedUpstream::default() };
        let receipts = MemoryReceipts::new();
        let with = RunOptions { receipts: Some(&receipts), ..RunOptions::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let outcome = runtime.block_on(run_with(&watched, &plans.plan(), &plans.catalog, with));
        for (step, finished) in outcome.returns.iter().enumerate() {
            let depends_on_failing = |mut step: usize| loop {
                if step == failing || (shapes[step].0 && step > failing) { break true; }
                match shapes[step].1.as_ref().filter(|_| step > 0 && !shapes[step].0) {
                    Some(choice) => step = choice.index(step),
                    None => break false,
                }
            };
            prop_assert_eq!(finished.result.is_err(), depends_on_failing(step), "step {} of {:?}", step, shapes);
        }
        prop_assert_eq!(outcome.receipts.len(), effects.iter().filter(|at| **at <= failing).count());
    }
}

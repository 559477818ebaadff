//! Random plans: the limit on concurrent calls holds, each step runs once and after its inputs, and effects run alone
//! and in order.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use base::{Limits, Method, Response};
use ports::upstream::{Call, Error};
use proptest::prelude::*;
use serde_json::json;
use testkit::memory::MemoryReceipts;

use crate::support::{Plans, With, args, go_with, of_step, value};

/// Answers any request after a few turns, and records which calls overlap.
#[derive(Default)]
struct Watched {
    under_way: AtomicUsize,
    most: AtomicUsize,
    /// The calls that overlapped with a write.
    writes_at_once: AtomicUsize,
    writing: AtomicUsize,
    log: Mutex<Vec<String>>,
    fails: Option<String>,
}

#[async_trait]
impl ports::Upstream for Watched {
    async fn send(&self, call: Call) -> Result<Response, Error> {
        let now = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let write = call.request.method != Method::Get;
        if write {
            let writing = self.writing.fetch_add(1, Ordering::SeqCst) + 1;
            self.writes_at_once.fetch_max(writing, Ordering::SeqCst);
        }
        let body = call.request.body.as_ref().map(testkit::upstream::body_text).unwrap_or_default();
        let said = format!("{} {body}", call.request.path);
        for _ in 0..(said.len() % 4) + 1 {
            tokio::task::yield_now().await;
        }
        self.log.lock().unwrap().push(said.clone());
        if write {
            self.writing.fetch_sub(1, Ordering::SeqCst);
        }
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        let id = call.request.path.rsplit('/').next().unwrap_or_default().to_owned();
        let body = json!({"id": id, "name": id, "project": "OPS", "number": 1, "labels": []});
        let status = if self.fails.as_ref().is_some_and(|word| said.contains(word)) { 422 } else { 200 };
        Ok(Response { status, headers: vec![], body: body.to_string().into_bytes() })
    }
}

fn catalog() -> std::sync::Arc<catalog::Catalog> {
    let text = include_str!("support/writes.yaml").replace("ORIGIN", "http://demo.localhost");
    std::sync::Arc::new(catalog::read("writes.yaml", &text).unwrap())
}

/// For each step: whether it is an effect, and which earlier step it takes a value from.
fn shapes() -> impl Strategy<Value = Vec<(bool, Option<prop::sample::Index>)>> {
    prop::collection::vec((prop::bool::weighted(0.25), prop::option::of(any::<prop::sample::Index>())), 1..20)
}

fn build(shapes: &[(bool, Option<prop::sample::Index>)]) -> Plans {
    let mut plans = Plans::new(&catalog());
    for (at, (effect, from)) in shapes.iter().enumerate() {
        let from = from.as_ref().filter(|_| at > 0).map(|index| index.index(at));
        // The value of an input names the step that gave it.
        let source = match from {
            Some(from) if !shapes[from].0 => of_step(from, "name"),
            Some(from) => of_step(from, "project"),
            None => value(json!(format!("x{at}"))),
        };
        if *effect {
            let given = args(&[("project", value(json!("OPS"))), ("title", value(json!(format!("e{at}."))))]);
            let made = plans.effect("Ticket", "ticket_plain", given, None);
            assert_eq!(made, at);
        } else {
            plans.get("Person", "person_get", args(&[("id", source)]));
        }
    }
    plans
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn bounds_and_order_hold(shapes in shapes(), session in 1usize..5, origin in 1usize..5) {
        let plans = build(&shapes);
        let watched = Watched::default();
        let receipts = MemoryReceipts::new();
        let limits = Limits { calls_per_session: session, calls_per_origin: origin, ..Limits::default() };
        let with = With { limits, receipts: Some(&receipts), ..With::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let outcome = runtime.block_on(go_with(&watched, &plans.plan(), &plans.catalog, with));
        prop_assert!(!outcome.failed(), "{:?}", outcome.returns);
        prop_assert!(watched.most.load(Ordering::SeqCst) <= session.min(origin));
        prop_assert!(watched.writes_at_once.load(Ordering::SeqCst) <= 1);
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
        let watched = Watched { fails: Some(format!("e{failing}.")), ..Watched::default() };
        let receipts = MemoryReceipts::new();
        let with = With { receipts: Some(&receipts), ..With::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let outcome = runtime.block_on(go_with(&watched, &plans.plan(), &plans.catalog, with));
        for (at, finished) in outcome.returns.iter().enumerate() {
            let stands_on = |mut at: usize| loop {
                if at == failing || (shapes[at].0 && at > failing) { break true; }
                match shapes[at].1.as_ref().filter(|_| at > 0 && !shapes[at].0) {
                    Some(index) => at = index.index(at),
                    None => break false,
                }
            };
            prop_assert_eq!(finished.result.is_err(), stands_on(at), "step {} of {:?}", at, shapes);
        }
        prop_assert_eq!(outcome.receipts.len(), effects.iter().filter(|at| **at <= failing).count());
    }
}

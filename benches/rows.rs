//! Compares the time of the executor's steps with the time of hand-written loops over the same rows, and the time of a plan with many reads
//! with the shortest time that its concurrency allows. The results are ratios within one run.
//! Invariant: before a comparison is timed, it is checked that both sides return the same rows.

// why: a benchmark has no caller that could handle an error, so it stops at the line that failed.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::panic)]

use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use base::{Digest, Limits, Response, TenantId};
use catalog::{EffectClass, Row, TextStyle, Type};
use exec::{Ctx, Rowset, pure_step};
use lang::plan::{
    Aggregation, Bounds, CapabilityRef, Column, ComparisonOp, Expr, FilterTest, Function, NamedPath, Plan, PlanResult,
    Shape, Step, StepKind, Verdict,
};
use serde_json::{Value, json};

const ROWS: usize = 100_000;
const ROUNDS: usize = 15;

fn step(kind: StepKind, columns: &[(&str, Type)]) -> Step {
    let columns = columns
        .iter()
        .map(|(name, kind)| Column { name: (*name).into(), kind: kind.clone() })
        .collect::<Vec<_>>()
        .into();
    Step {
        kind,
        of: None,
        columns,
        shape: Shape::List,
        class: EffectClass::Read,
        calls: 1,
        rows: ROWS,
        effects: 0,
        after: None,
        label: None,
        description: None,
    }
}

/// Makes the rows of a list of tickets with a dozen fields each, some of them text.
fn tickets() -> Vec<Row> {
    let states = ["open", "doing", "done"];
    let mut seed = 7u64;
    let mut next = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let one = |number: usize| {
        let row = json!({
            "project": format!("P{}", next(20)), "number": number, "title": format!("Ticket {}", next(1_000_000)),
            "state": states[usize::try_from(next(3)).unwrap()], "priority": next(5), "votes": next(1_000),
            "labels": ["db", "cache"], "owner": format!("person-{}", next(200)), "reporter": format!("person-{}", next(200)),
            "created": format!("2026-{:02}-{:02}T{:02}:{:02}:00Z", 1 + next(12), 1 + next(28), next(24), next(60)),
            "due": Value::Null, "body": "Some text that a ticket may have, of no great length.",
        });
        row.as_object().unwrap().clone()
    };
    (0..ROWS).map(one).collect()
}

/// Runs `work` repeatedly, and returns the median time of a round.
fn median(mut work: impl FnMut() -> usize) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            black_box(work());
            started.elapsed()
        })
        .collect();
    times.sort();
    times[ROUNDS / 2]
}

/// Prints the times of a hand-written loop and of the executor's step, with their ratio.
fn compare(name: &str, by_hand: impl FnMut() -> usize, by_step: impl FnMut() -> usize) {
    let (hand, step) = (median(by_hand), median(by_step));
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    println!("{name:<46} {:>8.2} ms {:>8.2} ms {:>6.2}x", ms(hand), ms(step), ms(step) / ms(hand));
}

fn main() {
    println!("{:<46} {:>11} {:>11} {:>7}", format!("{ROWS} rows"), "by hand", "step", "ratio");
    let rows = tickets();
    let input = Rowset::complete(rows.clone());
    let number = |name: &str| Column { name: name.into(), kind: Type::Integer };
    let text = |name: &str| Column { name: name.into(), kind: Type::String(TextStyle::Short) };
    let mut source = step(StepKind::Rows { items: vec![] }, &[]);
    source.columns = vec![number("priority"), number("votes"), text("state"), text("owner"), text("title")].into();
    Arc::make_mut(&mut source.columns)
        .push(Column { name: "created".into(), kind: Type::Date(catalog::DateFormat::Rfc3339) });
    let catalogs = BTreeMap::new();
    let run = |kind: StepKind| {
        let step = step(kind, &[]);
        let (source, input, catalogs) = (&source, &input, &catalogs);
        move || pure_step(&step, source, input, catalogs).unwrap().unwrap().rows.len()
    };
    filters(&rows, &run);
    sorts(&rows, &run);
    groups(&rows, &run);
    side_by_side();
}

fn filters<F: FnMut() -> usize>(rows: &[Row], run: &impl Fn(StepKind) -> F) {
    let test = |name: &str, op, value: Value, kind| FilterTest {
        path: vec![name.into()],
        op,
        value: Expr::Value(value),
        kind,
    };
    let tests = vec![
        test("state", ComparisonOp::Eq, json!("open"), Type::String(TextStyle::Short)),
        test("priority", ComparisonOp::Ge, json!(3), Type::Integer),
    ];
    let hand = || {
        let fits = |row: &&Row| row["state"].as_str() == Some("open") && row["priority"].as_i64() >= Some(3);
        rows.iter().filter(fits).collect::<Vec<_>>().len()
    };
    let mut filter = run(StepKind::Filter { input: 0, tests });
    assert_eq!(hand(), filter());
    compare("filter state = open, priority >= 3", hand, filter);
    let tests = vec![test("title", ComparisonOp::Like, json!("ticket 77"), Type::String(TextStyle::Short))];
    let hand = || {
        let fits = |row: &&Row| row["title"].as_str().is_some_and(|t| t.to_lowercase().contains("ticket 77"));
        rows.iter().filter(fits).collect::<Vec<_>>().len()
    };
    let mut filter = run(StepKind::Filter { input: 0, tests });
    assert_eq!(hand(), filter());
    compare("filter title ~ \"ticket 77\"", hand, filter);
}

fn sorts<F: FnMut() -> usize>(rows: &[Row], run: &impl Fn(StepKind) -> F) {
    let sort = |by: &str| StepKind::Sort { input: 0, by: vec![by.into()], descending: false };
    let hand = || {
        let mut keyed: Vec<(i64, &Row)> = rows.iter().map(|row| (row["votes"].as_i64().unwrap_or(0), row)).collect();
        keyed.sort_by_key(|(votes, _)| *votes);
        keyed.into_iter().map(|(_, row)| row).collect::<Vec<_>>().len()
    };
    compare("sort by votes", hand, run(sort("votes")));
    let hand = || {
        let mut keyed: Vec<(&str, &Row)> = rows.iter().map(|row| (row["title"].as_str().unwrap_or(""), row)).collect();
        keyed.sort_by_key(|(title, _)| *title);
        keyed.into_iter().map(|(_, row)| row).collect::<Vec<_>>().len()
    };
    compare("sort by title", hand, run(sort("title")));
    let hand = || {
        let created = |row: &Row| row["created"].as_str().and_then(|t| t.parse::<jiff::Timestamp>().ok());
        let mut keyed: Vec<(Option<jiff::Timestamp>, &Row)> = rows.iter().map(|row| (created(row), row)).collect();
        keyed.sort_by_key(|(created, _)| *created);
        keyed.into_iter().map(|(_, row)| row).collect::<Vec<_>>().len()
    };
    compare("sort by created (a moment)", hand, run(sort("created")));
}

fn groups<F: FnMut() -> usize>(rows: &[Row], run: &impl Fn(StepKind) -> F) {
    let specs = || {
        vec![
            Aggregation { name: "n".into(), function: Function::Count, path: None },
            Aggregation { name: "votes".into(), function: Function::Sum, path: Some(vec!["votes".into()]) },
        ]
    };
    let named = |name: &str| NamedPath { name: name.into(), path: vec![name.into()] };
    let hand = || {
        let mut groups: HashMap<&str, (u64, i64)> = HashMap::new();
        for row in rows {
            let group = groups.entry(row["owner"].as_str().unwrap_or("")).or_default();
            group.0 += 1;
            group.1 += row["votes"].as_i64().unwrap_or(0);
        }
        groups.len()
    };
    let mut group = run(StepKind::GroupBy { input: 0, by: vec![named("owner")], specs: specs() });
    assert_eq!(hand(), group());
    compare("group by owner: count, sum(votes)", hand, group);
    let hand = || {
        let mut groups: HashMap<(&str, i64), u64> = HashMap::new();
        for row in rows {
            *groups.entry((row["state"].as_str().unwrap_or(""), row["priority"].as_i64().unwrap_or(0))).or_default() +=
                1;
        }
        groups.len()
    };
    let counts = vec![Aggregation { name: "n".into(), function: Function::Count, path: None }];
    let mut group = run(StepKind::GroupBy { input: 0, by: vec![named("state"), named("priority")], specs: counts });
    assert_eq!(hand(), group());
    compare("group by state, priority: count", hand, group);
    let hand = || {
        let mut sum = 0;
        let mut most = i64::MIN;
        for row in rows {
            let votes = row["votes"].as_i64().unwrap_or(0);
            sum += votes;
            most = most.max(votes);
        }
        usize::try_from(black_box(sum + most)).unwrap_or(0)
    };
    let both = vec![
        Aggregation { name: "sum".into(), function: Function::Sum, path: Some(vec!["votes".into()]) },
        Aggregation { name: "max".into(), function: Function::Max, path: Some(vec!["votes".into()]) },
    ];
    compare("aggregate sum(votes), max(votes)", hand, run(StepKind::Aggregate { input: 0, specs: both }));
}

/// An upstream that answers every call after this delay.
struct DelayedUpstream(Duration);

#[async_trait]
impl ports::Upstream for DelayedUpstream {
    async fn send_checked(
        &self,
        _: ports::upstream::Call,
        _: &dyn ports::upstream::DepartureCheck,
    ) -> Result<Response, ports::upstream::Error> {
        tokio::time::sleep(self.0).await;
        Ok(Response { status: 200, headers: vec![], body: br#"{"id": "x", "name": "Xena"}"#.to_vec() })
    }
}

const READS: usize = 50;
const LATENCY: Duration = Duration::from_millis(50);

/// Compares the time of many independent reads with the shortest time that the limit of concurrent calls allows.
fn side_by_side() {
    let text = "catalog: c\nversion: 1\ntitle: C\norigin: http://c.test\nentities:\n  Person:\n    about: x\n    key: [id]\n    \
                fields: {id: string, name: string}\ncapabilities:\n  person_get: {get: Person, http: \"GET /people/{id}\"}\n";
    let catalog = Arc::new(catalog::read("c.yaml", text).unwrap());
    let get = |at: usize| {
        let call = CapabilityRef { catalog: catalog.id.clone(), capability: "person_get".into() };
        let args = BTreeMap::from([("id".into(), Expr::Value(json!(format!("p{at}"))))]);
        step(StepKind::Get { call, args, fields: None }, &[])
    };
    let plan = Plan {
        steps: (0..READS).map(get).collect(),
        returns: vec![PlanResult { label: "x".into(), step: 0 }],
        catalogs: vec![],
        digest: Digest::of(b""),
        verdict: Verdict::Ok,
        bounds: Bounds::default(),
        warnings: vec![],
    };
    let limits = Limits::default();
    let catalogs = BTreeMap::from([(catalog.id.clone(), catalog.clone())]);
    let tenant = TenantId::local();
    let upstream = DelayedUpstream(LATENCY);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
    let elapsed = runtime.block_on(async {
        let calls = tokio::sync::Semaphore::new(limits.calls_per_session);
        let ctx = Ctx::new(&upstream, &tenant, &catalogs, &limits, &calls);
        let started = Instant::now();
        assert!(!exec::run(&ctx, &plan).await.failed());
        started.elapsed()
    });
    let ideal = LATENCY * u32::try_from(READS.div_ceil(limits.calls_per_origin.min(limits.calls_per_session))).unwrap();
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let name = format!("{READS} reads of {} ms, {} at once", LATENCY.as_millis(), limits.calls_per_origin);
    println!("{name:<46} {:>8.2} ms {:>8.2} ms {:>6.2}x", ms(ideal), ms(elapsed), ms(elapsed) / ms(ideal));
}

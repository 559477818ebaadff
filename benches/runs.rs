//! Measures runs of JavaScript through the whole server: durable runs per second over MCP, ten thousand steps in one session, the
//! time to park a run and continue it in another process, and the memory of sessions.
//! Invariant: the load generator runs on the same machine in this process; every answer is read completely and checked; nothing is
//! asserted about time.

// why: a benchmark has no caller that could handle an error, so it stops at the line that failed.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::panic)]

#[path = "made/parked.rs"]
mod parked;
#[path = "made/tokamak.rs"]
mod tokamak;
#[path = "made/wire.rs"]
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base::TenantId;
use ports::Store;
use ports::store::{Range, Table};
use serde_json::json;
use tokamak::Tokamak;
use wire::{Wire, message};

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SESSIONS: usize = 64;
const SECONDS: u64 = 5;
const STEPS: usize = 10_000;
const IDLE: usize = 10_000;
const COUNT: &str = "globalThis.n = (globalThis.n ?? 0) + 1";

fn main() {
    // `cargo bench -p cli --bench runs -- steps` measures the steps only.
    let asked: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_asked = |part: &str| asked.is_empty() || asked.iter().any(|name| name == part);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    println!("the real binary over MCP 2026-07-28, {} cores", std::thread::available_parallelism().unwrap());
    if is_asked("many") {
        runtime.block_on(many());
    }
    if is_asked("steps") {
        runtime.block_on(steps());
    }
    if is_asked("memory") {
        runtime.block_on(memory());
    }
    drop(runtime);
    if is_asked("parked") {
        parked::measure();
    }
}

async fn opened(wire: &mut Wire, intent: &str) -> String {
    let seeds = json!([{"api": "demo", "entity": "Project"}]);
    let text = wire.call("plasm_context", &json!({"intent": intent, "seeds": seeds})).await;
    text.split('`').nth(1).unwrap().to_owned()
}

/// Runs a counting script in each session, one run after another, each session on a connection of its own.
async fn many() {
    let folder = tempfile::tempdir().unwrap();
    let tokamak = Tokamak::on(folder.path());
    tokamak.settled().await;
    let mut wire = Wire::to(&tokamak.host).await;
    let mut refs = Vec::new();
    for n in 0..SESSIONS {
        let reference = opened(&mut wire, &format!("connection {n}")).await;
        wire.call("run_js", &json!({"logical_session_ref": reference, "code": COUNT})).await;
        refs.push(reference);
    }
    let done = Arc::new(AtomicUsize::new(0));
    let until = Instant::now() + Duration::from_secs(SECONDS);
    let (started, before) = (Instant::now(), tokamak.processor());
    let mut tasks = Vec::new();
    for reference in refs.clone() {
        let body = message("run_js", &json!({"logical_session_ref": reference, "code": COUNT}));
        let (done, host) = (done.clone(), tokamak.host.clone());
        tasks.push(tokio::spawn(async move {
            let (mut wire, mut runs) = (Wire::to(&host).await, 0);
            while Instant::now() < until {
                wire.call_for("run_js", &body, "completed").await;
                done.fetch_add(1, Ordering::Relaxed);
                runs += 1;
            }
            runs
        }));
    }
    let mut counts = Vec::new();
    for task in tasks {
        counts.push(task.await.unwrap());
    }
    let (runs, took) = (done.load(Ordering::Relaxed) as f64, started.elapsed().as_secs_f64());
    let each = (tokamak.processor() - before).as_secs_f64() * 1e3 / runs;
    let name = format!("run_js, {SESSIONS} sessions, durable");
    println!("{name:<70} {:>9.0} /s  (goal 4,000; the server used {each:.3} ms of processor each)", runs / took);
    // Each session has counted all of its runs.
    for (reference, runs) in refs.iter().zip(counts) {
        let last = wire.call("run_js", &json!({"logical_session_ref": reference, "code": "n"})).await;
        assert!(last.contains(&format!("\"result\":{}", runs + 1)), "{last} after {runs} runs");
    }
}

/// Compares the first thousand steps of a session with its tenth.
async fn steps() {
    let folder = tempfile::tempdir().unwrap();
    let mut at = 0;
    for (from, to) in [(0, 1_000), (1_000, STEPS - 1_000), (STEPS - 1_000, STEPS)] {
        let before = stored(folder.path()).await;
        let tokamak = Tokamak::on(folder.path());
        tokamak.settled().await;
        let mut wire = Wire::to(&tokamak.host).await;
        let reference = opened(&mut wire, "ten thousand steps").await;
        let body = message("run_js", &json!({"logical_session_ref": reference, "code": COUNT}));
        // The first step reads the heap from storage.
        wire.call_for("run_js", &body, "completed").await;
        let (started, processor) = (Instant::now(), tokamak.processor());
        for _ in from + 1..to {
            wire.call_for("run_js", &body, "completed").await;
        }
        let (took, used) = (started.elapsed().as_secs_f64() * 1e3, tokamak.processor() - processor);
        at += to - from;
        let last = wire.call("run_js", &json!({"logical_session_ref": reference, "code": "n"})).await;
        // Every step was counted exactly once.
        assert!(
            [",", "}"].iter().any(|end| last.contains(&format!("\"result\":{at}{end}"))),
            "{last} after {at} steps"
        );
        drop(wire);
        tokamak.stop();
        let (steps, after) = ((to - from) as f64, stored(folder.path()).await);
        let heaps = (after.0 - before.0) as f64 / steps;
        let all = (after.1 - before.1) as f64 / steps;
        let name = format!("steps {} to {at} of one session, on one connection", from + 1);
        println!(
            "{name:<70} {:>9.3} ms  ({:.3} of processor), {heaps:.0} bytes of heap and {all:.0} of rows stored, each",
            took / (steps - 1.0),
            used.as_secs_f64() * 1e3 / (steps - 1.0),
        );
    }
}

/// Counts the bytes of heaps and of all other rows, ids and values. No heap of this session is large enough for a blob.
async fn stored(data: &std::path::Path) -> (i64, i64) {
    let store = store::sqlite::SqliteStore::open(&data.join(store::sqlite::FILE_NAME)).unwrap();
    let (mut heaps, mut others) = (0, 0);
    for table in Table::ALL {
        let mut after = None;
        loop {
            let (tenant, prefix) = (TenantId::local(), String::new());
            let rows = store.scan(&Range { tenant, table, prefix, after, limit: 1_000 }).await.unwrap();
            let Some((last, _)) = rows.last() else { break };
            after = Some(last.clone());
            let bytes: usize = rows.iter().map(|(id, row)| id.len() + row.value.len()).sum();
            *(if table == Table::Heap { &mut heaps } else { &mut others }) += bytes as i64;
        }
    }
    (heaps, others)
}

/// Measures the memory of sessions in use, and of sessions that are only stored.
async fn memory() {
    let folder = tempfile::tempdir().unwrap();
    let tokamak = Tokamak::on(folder.path());
    tokamak.settled().await;
    let mut wire = Wire::to(&tokamak.host).await;
    let run = async |wire: &mut Wire, n: usize| {
        wire.session = Some(format!("session {n}"));
        wire.call("run_js", &json!({"code": format!("globalThis.mine = {n}; 'made'")})).await;
    };
    for n in 0..64 {
        run(&mut wire, n).await;
    }
    let before = tokamak.resident_kb();
    for n in 64..128 {
        run(&mut wire, n).await;
    }
    let hot = tokamak.resident_kb().saturating_sub(before) as f64 / 64.0 / 1024.0;
    println!("{:<70} {hot:>9.2} MB  (goal 1)", "resident memory for each session more that was just used");
    for n in 128..IDLE {
        run(&mut wire, n).await;
    }
    let after = tokamak.resident_kb() / 1024;
    println!("{:<70} {after:>9} MB", format!("resident memory after {IDLE} sessions, each used once"));
    drop(wire);
    tokamak.stop();
    let empty = tempfile::tempdir().unwrap();
    started(empty.path()).await;
    let (none, bare) = started(empty.path()).await;
    let (idle, ready) = started(folder.path()).await;
    let name = format!("resident memory of {IDLE} sessions that nobody uses");
    println!("{name:<70} {:>9.1} MB  (goal 0; {none:.1} with none)", idle - none);
    println!("{:<70} {ready:>9.0} ms  ({bare:.0} with none)", format!("start with {IDLE} sessions that have a heap"));
}

/// Returns the megabytes of a server that has answered one run, and the milliseconds until it was ready.
async fn started(data: &std::path::Path) -> (f64, f64) {
    let tokamak = Tokamak::on(data);
    let mut wire = Wire::to(&tokamak.host).await;
    wire.call("run_js", &json!({"code": "1"})).await;
    tokamak.settled().await;
    (tokamak.resident_kb() as f64 / 1024.0, tokamak.ready.as_secs_f64() * 1e3)
}

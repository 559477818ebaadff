//! Measures runs of JavaScript with the whole server: durable runs per second over MCP, the time of ten thousand steps in one session, the
//! time to park a run and continue it in another process, and the memory of sessions.
//! Invariant: this process generates the load on the same machine as the server. Every answer is read completely and checked. The
//! benchmark asserts nothing about time.

// why: a benchmark has no caller that could handle an error, so it stops at the line that failed.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::panic)]

#[path = "support/parked.rs"]
mod parked;
#[path = "support/tokamak.rs"]
mod tokamak;
#[path = "support/wire.rs"]
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

/// The same allocator as in the binary `tokamak`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The number of sessions that run scripts at the same time.
const SESSIONS: usize = 64;
/// The duration of the measurement of runs per second.
const SECONDS: u64 = 5;
/// The number of steps in the measurement of one long session.
const STEPS: usize = 10_000;
/// The number of idle sessions in the measurement of memory.
const IDLE: usize = 10_000;
/// The script that counts its runs in the heap.
const COUNT: &str = "globalThis.n = (globalThis.n ?? 0) + 1";

fn main() {
    // The arguments select measurements: `cargo bench -p cli --bench runs -- steps` measures only the steps.
    let chosen: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_chosen = |part: &str| chosen.is_empty() || chosen.iter().any(|name| name == part);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    println!("the real binary over MCP 2026-07-28, {} cores", std::thread::available_parallelism().unwrap());
    if is_chosen("many") {
        runtime.block_on(many_sessions());
    }
    if is_chosen("steps") {
        runtime.block_on(steps_of_one_session());
    }
    if is_chosen("memory") {
        runtime.block_on(memory_of_sessions());
    }
    drop(runtime);
    if is_chosen("parked") {
        parked::measure();
    }
}

/// Opens a session and returns its slot.
async fn open_session(wire: &mut Wire, intent: &str) -> String {
    let seeds = json!([{"api": "demo", "entity": "Project"}]);
    let text = wire.call("plasm_context", &json!({"intent": intent, "seeds": seeds})).await;
    text.split('`').nth(1).unwrap().to_owned()
}

/// Measures runs per second of many sessions. Each session has its own connection, and runs a counting script again and again.
async fn many_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let tokamak = Tokamak::start(folder.path());
    tokamak.wait_until_idle().await;
    let mut wire = Wire::to(&tokamak.host).await;
    let mut refs = Vec::new();
    for n in 0..SESSIONS {
        let reference = open_session(&mut wire, &format!("connection {n}")).await;
        wire.call("run_js", &json!({"logical_session_ref": reference, "code": COUNT})).await;
        refs.push(reference);
    }
    let done = Arc::new(AtomicUsize::new(0));
    let until = Instant::now() + Duration::from_secs(SECONDS);
    let started = Instant::now();
    let processor_before = tokamak.processor();
    let mut tasks = Vec::new();
    for reference in refs.clone() {
        let body = message("run_js", &json!({"logical_session_ref": reference, "code": COUNT}));
        let (done, host) = (done.clone(), tokamak.host.clone());
        tasks.push(tokio::spawn(async move {
            let mut wire = Wire::to(&host).await;
            let mut runs = 0;
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
    let seconds = started.elapsed().as_secs_f64();
    let runs = done.load(Ordering::Relaxed) as f64;
    let each = (tokamak.processor() - processor_before).as_secs_f64() * 1e3 / runs;
    let name = format!("run_js, {SESSIONS} sessions, durable");
    println!("{name:<70} {:>9.0} /s  (goal 4,000; the server used {each:.3} ms of processor each)", runs / seconds);
    // The counter of each session must equal the number of its runs.
    for (reference, runs) in refs.iter().zip(counts) {
        let last = wire.call("run_js", &json!({"logical_session_ref": reference, "code": "n"})).await;
        assert!(last.contains(&format!("\"result\":{}", runs + 1)), "{last} after {runs} runs");
    }
}

/// Compares the time of the first thousand steps of a session with the time of the tenth thousand.
async fn steps_of_one_session() {
    let folder = tempfile::tempdir().unwrap();
    let mut steps_done = 0;
    for (from, to) in [(0, 1_000), (1_000, STEPS - 1_000), (STEPS - 1_000, STEPS)] {
        let before = StoredBytes::of(folder.path()).await;
        let tokamak = Tokamak::start(folder.path());
        tokamak.wait_until_idle().await;
        let mut wire = Wire::to(&tokamak.host).await;
        let reference = open_session(&mut wire, "ten thousand steps").await;
        let body = message("run_js", &json!({"logical_session_ref": reference, "code": COUNT}));
        // The first step is not measured, because it reads the heap from storage.
        wire.call_for("run_js", &body, "completed").await;
        let started = Instant::now();
        let processor_before = tokamak.processor();
        for _ in from + 1..to {
            wire.call_for("run_js", &body, "completed").await;
        }
        let elapsed_ms = started.elapsed().as_secs_f64() * 1e3;
        let processor_ms = (tokamak.processor() - processor_before).as_secs_f64() * 1e3;
        steps_done += to - from;
        let last = wire.call("run_js", &json!({"logical_session_ref": reference, "code": "n"})).await;
        // Every step was counted exactly once.
        assert!(
            [",", "}"].iter().any(|end| last.contains(&format!("\"result\":{steps_done}{end}"))),
            "{last} after {steps_done} steps"
        );
        drop(wire);
        tokamak.stop();
        let after = StoredBytes::of(folder.path()).await;
        let steps = (to - from) as f64;
        let heaps = (after.heaps - before.heaps) as f64 / steps;
        let rows = (after.rows - before.rows) as f64 / steps;
        let name = format!("steps {} to {steps_done} of one session, on one connection", from + 1);
        println!(
            "{name:<70} {:>9.3} ms  ({:.3} of processor), {heaps:.0} bytes of heap and {rows:.0} of rows stored, each",
            elapsed_ms / (steps - 1.0),
            processor_ms / (steps - 1.0),
        );
    }
}

/// The sizes of the stored rows in bytes, with their ids and values.
struct StoredBytes {
    /// The rows of heaps. No heap of this session is large enough for a blob.
    heaps: i64,
    /// All other rows.
    rows: i64,
}

impl StoredBytes {
    /// Reads the sizes from a data folder. No server may use this folder at the time.
    async fn of(data: &std::path::Path) -> Self {
        let store = store::sqlite::SqliteStore::open(&data.join(store::sqlite::FILE_NAME)).unwrap();
        let mut bytes = Self { heaps: 0, rows: 0 };
        for table in Table::ALL {
            let mut after = None;
            loop {
                let range = Range { tenant: TenantId::local(), table, prefix: String::new(), after, limit: 1_000 };
                let rows = store.scan(&range).await.unwrap();
                let Some((last, _)) = rows.last() else { break };
                after = Some(last.clone());
                let page: usize = rows.iter().map(|(id, row)| id.len() + row.value.len()).sum();
                *(if table == Table::Heap { &mut bytes.heaps } else { &mut bytes.rows }) += page as i64;
            }
        }
        bytes
    }
}

/// Measures the memory of sessions that are in use, and of sessions that are only in storage.
async fn memory_of_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let tokamak = Tokamak::start(folder.path());
    tokamak.wait_until_idle().await;
    let mut wire = Wire::to(&tokamak.host).await;
    let run = async |wire: &mut Wire, n: usize| {
        wire.session = Some(format!("session {n}"));
        wire.call("run_js", &json!({"code": format!("globalThis.mine = {n}; 'done'")})).await;
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
    // The first start is not measured, because it compiles the JavaScript engine.
    StartedServer::measure(empty.path()).await;
    let without = StartedServer::measure(empty.path()).await;
    let with = StartedServer::measure(folder.path()).await;
    let name = format!("resident memory of {IDLE} idle sessions");
    println!("{name:<70} {:>9.1} MB  (goal 0; {:.1} with none)", with.memory_mb - without.memory_mb, without.memory_mb);
    let name = format!("start with {IDLE} sessions that have a heap");
    println!("{name:<70} {:>9.0} ms  ({:.0} with none)", with.ready_ms, without.ready_ms);
}

/// The memory and the start time of a server on a data folder.
struct StartedServer {
    /// The resident memory after one run.
    memory_mb: f64,
    /// The time until the server was ready.
    ready_ms: f64,
}

impl StartedServer {
    async fn measure(data: &std::path::Path) -> Self {
        let tokamak = Tokamak::start(data);
        let mut wire = Wire::to(&tokamak.host).await;
        wire.call("run_js", &json!({"code": "1"})).await;
        tokamak.wait_until_idle().await;
        Self { memory_mb: tokamak.resident_kb() as f64 / 1024.0, ready_ms: tokamak.ready.as_secs_f64() * 1e3 }
    }
}

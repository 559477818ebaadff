//! Measures sessions of the real binary over MCP and HTTP: the time of a call on one connection, calls per second on 64
//! connections, the size of a session on disk, and the time of a start with 100,000 sessions.
//! Invariant: this process generates the load on the same machine as the server. Every answer is read completely. The benchmark asserts
//! nothing about time.

// why: a benchmark has no caller that could handle an error, so it stops at the line that failed.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::panic)]

#[path = "support/tokamak.rs"]
mod tokamak;
#[path = "support/wire.rs"]
mod wire;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base::TenantId;
use ports::Store;
use ports::store::{Batch, Expect, Key, Range, Table};
use serde_json::{Value, json};
use tokamak::Tokamak;
use wire::{Wire, message};

/// The number of connections that make calls at the same time.
const CONNECTIONS: usize = 64;
/// The duration of the measurement of calls per second.
const SECONDS: u64 = 5;
/// The number of stored sessions in the measurement of the start.
const STORED: usize = 100_000;
/// The ten entities that each session is taught, with their catalogs: all entities of the demo, and some of another shipped catalog.
const ENTITIES: [(&str, &str); 10] = [
    ("demo", "Project"),
    ("demo", "Ticket"),
    ("demo", "Comment"),
    ("demo", "Person"),
    ("github", "Issue"),
    ("github", "Repository"),
    ("github", "PullRequest"),
    ("github", "User"),
    ("github", "Comment"),
    ("github", "Label"),
];

fn seeds(entities: &[(&str, &str)]) -> Value {
    entities.iter().map(|(api, entity)| json!({"api": api, "entity": entity})).collect()
}

/// Returns the median of the times in milliseconds.
fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let tokamak = Tokamak::start(folder.path());
    println!("the real binary over MCP 2026-07-28 and HTTP, {} cores", std::thread::available_parallelism().unwrap());
    tokamak.wait_until_idle().await;
    one_connection(&tokamak).await;
    let refs = open_sessions(&tokamak).await;
    call_rate(&tokamak, &refs, "plasm", "plan ok", "5,000").await;
    call_rate(&tokamak, &refs, "plasm_run", "## result (1 row)", "2,500").await;
    drop(tokamak);
    on_disk().await;
    start_up().await;
}

/// Measures the time of `plasm_context` on one connection.
async fn one_connection(tokamak: &Tokamak) {
    let mut wire = Wire::to(&tokamak.host).await;
    let mut first = Vec::new();
    for n in 0..60 {
        let open = json!({"intent": format!("look at tickets and issues, {n}"), "seeds": seeds(&ENTITIES)});
        let started = Instant::now();
        wire.call("plasm_context", &open).await;
        first.push(started.elapsed());
    }
    let open = json!({"intent": "look at tickets and issues, 0", "seeds": seeds(&ENTITIES)});
    let mut unchanged = Vec::new();
    for _ in 0..400 {
        let started = Instant::now();
        let text = wire.call("plasm_context", &open).await;
        unchanged.push(started.elapsed());
        assert!(text.contains("Session unchanged"), "{text}");
    }
    println!("{:<70} {:>9.3} ms  (goal 5)", "plasm_context, first open of ten entities, median", median_ms(first));
    println!("{:<70} {:>9.3} ms  (goal 1)", "plasm_context, unchanged, median", median_ms(unchanged));
}

/// Opens a session on each connection.
async fn open_sessions(tokamak: &Tokamak) -> Vec<String> {
    let mut wire = Wire::to(&tokamak.host).await;
    let mut refs = Vec::new();
    for n in 0..CONNECTIONS {
        let open = json!({"intent": format!("connection {n}"), "seeds": seeds(&ENTITIES[..2])});
        let text = wire.call("plasm_context", &open).await;
        refs.push(text.split('`').nth(1).unwrap().to_owned());
    }
    refs
}

/// Measures the calls per second of a tool. Each session is called on its own connection.
async fn call_rate(tokamak: &Tokamak, refs: &[String], tool: &'static str, mark: &'static str, goal: &str) {
    let done = Arc::new(AtomicUsize::new(0));
    let until = Instant::now() + Duration::from_secs(SECONDS);
    let started = Instant::now();
    let processor_before = tokamak.processor();
    let mut tasks = Vec::new();
    for reference in refs {
        let program = "Ticket(project=\"OPS\", number=42)[title, state]";
        let body = message(tool, &json!({"logical_session_ref": reference, "program": program}));
        let (done, host) = (done.clone(), tokamak.host.clone());
        tasks.push(tokio::spawn(async move {
            let mut wire = Wire::to(&host).await;
            while Instant::now() < until {
                wire.call_for(tool, &body, mark).await;
                done.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let seconds = started.elapsed().as_secs_f64();
    let calls = done.load(Ordering::Relaxed) as f64;
    let each = (tokamak.processor() - processor_before).as_secs_f64() * 1e3 / calls;
    let name = format!("{tool}, {CONNECTIONS} connections, durable");
    println!("{name:<70} {:>9.0} /s  (goal {goal}; the server used {each:.3} ms of processor each)", calls / seconds);
}

/// Measures the bytes that a session of ten entities adds to the data folder, and the memory that the server uses for an idle session.
async fn on_disk() {
    const SESSIONS: usize = 1_500;
    /// The number of sessions before the measurement. The caches of the database and the allocator grow during the first sessions.
    const WARM: usize = 500;
    let empty = tempfile::tempdir().unwrap();
    Tokamak::start(empty.path()).stop();
    let folder = tempfile::tempdir().unwrap();
    let tokamak = Tokamak::start(folder.path());
    let mut wire = Wire::to(&tokamak.host).await;
    let mut resident_before = 0;
    for n in 0..SESSIONS {
        if n == WARM {
            tokio::time::sleep(Duration::from_secs(1)).await;
            resident_before = tokamak.resident_kb();
        }
        let open = json!({"intent": format!("on disk, {n}"), "seeds": seeds(&ENTITIES)});
        wire.call("plasm_context", &open).await;
    }
    // The server writes traces shortly after its answers.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let grown = tokamak.resident_kb().saturating_sub(resident_before) as f64 / (SESSIONS - WARM) as f64;
    drop(wire);
    // When the server stops, it copies the write-ahead log into the database file.
    tokamak.stop();
    let each = (folder_bytes(folder.path()) - folder_bytes(empty.path())) as f64 / SESSIONS as f64 / 1024.0;
    println!("{:<70} {each:>9.1} KB  (goal 30)", "a session of ten entities on disk, before results");
    println!("{:<70} {grown:>9.1} KB  (goal 0)", "resident memory for each further session, while it is idle");
}

/// Counts the bytes of all files in a folder.
fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|e| if e.path().is_dir() { folder_bytes(&e.path()) } else { e.metadata().map_or(0, |m| m.len()) }).sum()
}

/// Measures the start of a server with many stored sessions. They are copies of the rows of one session under other ids.
async fn start_up() {
    let folder = tempfile::tempdir().unwrap();
    {
        let tokamak = Tokamak::start(folder.path());
        let mut wire = Wire::to(&tokamak.host).await;
        wire.call("plasm_context", &json!({"intent": "first", "seeds": seeds(&ENTITIES[..1])})).await;
    }
    let empty = Tokamak::start(folder.path()).ready;
    let store = store::sqlite::SqliteStore::open(&folder.path().join(store::sqlite::FILE_NAME)).unwrap();
    let tenant = TenantId::local();
    let mut rows = Vec::new();
    for table in [Table::Intent, Table::LogicalSession, Table::ExecuteSession] {
        let range = Range { tenant: tenant.clone(), table, prefix: String::new(), after: None, limit: 1 };
        rows.extend(store.scan(&range).await.unwrap().into_iter().map(|(_, row)| (table, row.value)));
    }
    for group in 0..STORED / 1_000 {
        let mut batch = Batch::default();
        for n in 0..1_000 {
            for (table, value) in &rows {
                let key = Key::new(&tenant, *table, format!("{:08x}-{n:04x}", group));
                batch = batch.put(key, value.clone(), Expect::Any);
            }
        }
        store.commit(batch).await.unwrap();
    }
    drop(store);
    let mut times: Vec<Duration> = (0..5).map(|_| Tokamak::start(folder.path()).ready).collect();
    times.sort();
    let name = format!("start with {STORED} stored sessions ({} MB), median of 5", folder_bytes(folder.path()) >> 20);
    println!("{name:<70} {:>9.0} ms  (goal 300; empty {:.0})", times[2].as_secs_f64() * 1e3, empty.as_secs_f64() * 1e3);
}

//! Measures lists from an index of the store with 1,000,000 rows, and the price of index entries for writes.
//! Invariant: the benchmark asserts nothing about time. `store/src/sqlite/index_rows.rs` has the test that counts what a list reads.

// why: a benchmark has no caller that could handle an error, so it stops at the line that failed.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::{Duration, Instant};

use base::{TenantId, Timestamp};
use ports::Store;
use ports::index::{Index, IndexKey, Order, sort_time};
use ports::store::{Batch, Expect, IndexRange, Key, MaintenanceRange, Table};
use store::sqlite::{FILE_NAME, SqliteStore};

const ROWS: i64 = 1_000_000;
/// The number of rows that one batch writes while the store is filled.
const PORTION: i64 = 2_000;
/// The number of times that each line is measured. The line has the median.
const ROUNDS: usize = 41;

fn key(number: i64) -> Key {
    Key::new(&TenantId::local(), Table::LogicalSession, format!("{number:09}"))
}

fn state_keys(number: i64, state: &str) -> Vec<IndexKey> {
    vec![IndexKey::new(Index::State, format!("{state}/{}", sort_time(Timestamp(number))))]
}

/// Returns a value as large as the row of a session.
fn value(number: i64) -> Vec<u8> {
    format!("{{\"intent\":\"look at ticket {number}\",\"rest\":\"{}\"}}", "x".repeat(200)).into_bytes()
}

async fn fill(store: &SqliteStore, rows: i64) {
    for first in (0..rows).step_by(PORTION as usize) {
        let batch = (first..rows.min(first + PORTION)).fold(Batch::default(), |batch, number| {
            // One row in a hundred failed.
            let state = if number % 100 == 0 { "failed" } else { "done" };
            batch.put_indexed(key(number), value(number), Expect::Absent, state_keys(number, state))
        });
        store.commit(batch).await.unwrap();
    }
}

/// Runs `work` and returns the median of its times.
async fn median(mut work: impl AsyncFnMut(usize)) -> Duration {
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let started = Instant::now();
        work(round).await;
        times.push(started.elapsed());
    }
    times.sort();
    times[ROUNDS / 2]
}

#[tokio::main]
async fn main() {
    println!("\nlists from an index, SQLite, median of {ROUNDS} rounds");
    for rows in [1_000, ROWS] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        let started = Instant::now();
        let store = SqliteStore::open(&path).unwrap();
        fill(&store, rows).await;
        drop(store);
        let store = SqliteStore::open(&path).unwrap();
        println!(
            "{rows} rows (filled in {:.1} s, {} MB)",
            started.elapsed().as_secs_f64(),
            path.metadata().unwrap().len() >> 20
        );
        lists(&store, rows).await;
        if rows == ROWS {
            writes(&store).await;
        }
    }
}

async fn lists(store: &SqliteStore, rows: i64) {
    let one = median(async |round| assert!(store.get(&key(round as i64)).await.unwrap().is_some())).await;
    let line = |what: &str, time: Duration| {
        println!("  {what:<44} {:>9.3} ms  {:>6.1}x", time.as_secs_f64() * 1e3, time.as_secs_f64() / one.as_secs_f64());
    };
    line("one row by its key", one);
    let newest = IndexRange::new(&TenantId::local(), Index::State, 10);
    let newest = IndexRange { prefix: "failed/".to_owned(), order: Order::Descending, ..newest };
    line(
        "the 10 newest failed rows",
        median(async |_| assert_eq!(store.scan_index(&newest).await.unwrap().len(), 10)).await,
    );
    let mut half = newest.clone();
    half.before = Some(format!("failed/{}", sort_time(Timestamp(rows / 2))));
    half.limit = 5;
    line(
        "5 failed rows from the middle",
        median(async |_| assert_eq!(store.scan_index(&half).await.unwrap().len(), 5)).await,
    );
    let oldest = MaintenanceRange { index: Index::State, before: None, after: None, limit: 10 };
    let all = median(async |_| assert_eq!(store.scan_index_of_all_tenants(&oldest).await.unwrap().len(), 10)).await;
    line("the 10 first entries of all tenants", all);
}

/// Measures batches of 256 writes, so that the flush to disk is a small part. All of them write the same rows.
async fn writes(store: &SqliteStore) {
    const WRITES: i64 = 256;
    let batch_of = |write: &dyn Fn(Batch, i64) -> Batch| (0..WRITES).fold(Batch::default(), write);
    let without = median(async |_| {
        store.commit(batch_of(&|batch, n| batch.put(key(n * 977), value(n), Expect::Any))).await.unwrap();
    })
    .await;
    let unchanged = median(async |_| {
        let keys = |n: i64| state_keys(n, "unchanged");
        store
            .commit(batch_of(&|batch, n| batch.put_indexed(key(n * 977), value(n), Expect::Any, keys(n))))
            .await
            .unwrap();
    })
    .await;
    let moved = median(async |round| {
        let state = format!("moved{round}");
        let keys = |n: i64| state_keys(n, &state);
        store
            .commit(batch_of(&|batch, n| batch.put_indexed(key(n * 977), value(n), Expect::Any, keys(n))))
            .await
            .unwrap();
    })
    .await;
    for (what, time) in [
        ("256 puts of rows without entries", without),
        ("256 puts that keep their entry", unchanged),
        ("256 puts that move their entry", moved),
    ] {
        println!(
            "  {what:<44} {:>9.3} ms  {:>6.2}x",
            time.as_secs_f64() * 1e3,
            time.as_secs_f64() / without.as_secs_f64()
        );
    }
}

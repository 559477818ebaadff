//! Deletes data after its retention period: expired rows, then unreferenced heaps, then unreferenced blobs.
//! Invariant: a blob is deleted only if every row of every tenant was read, no row refers to it, and it was not put
//! during the grace period. A caller that puts a blob before the row that names it therefore never loses the blob.

mod expire;
mod heaps;
mod js_rows;
mod mark;
mod session_rows;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::{LogicalSessionId, TenantId};
use ports::store::{Batch, Expect, Key, Range, Row, Table, Write};
use serde::Serialize;

use crate::error::Error;
use crate::service::Service;

/// Options of a collection pass.
#[derive(Debug, Clone, Copy, Default)]
pub struct CollectionOptions {
    /// Report what would be deleted, and change nothing.
    pub dry_run: bool,
    /// The pause between two portions, so that calls are not delayed.
    pub pause: Duration,
    /// Collect only data of JavaScript: runs, logs, heaps and engines.
    pub only_js: bool,
}

/// The data that a pass deleted, or would delete in a dry run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CollectionReport {
    /// Deleted rows by the name of their table.
    pub rows: BTreeMap<&'static str, u64>,
    /// The size of the deleted heaps, including objects in blobs.
    pub heap_bytes: u64,
    /// Heaps that this pass condemned. They are deleted after the grace period if nothing refers to them then.
    pub condemned: u64,
    pub blobs: u64,
    pub blob_bytes: u64,
    /// Blobs that were kept.
    pub kept_blobs: u64,
    pub kept_bytes: u64,
    /// Tables that could not be read completely. If there is one, no blob was deleted.
    pub unread: Vec<String>,
}

/// The number of rows or blobs that are read at a time.
const PORTION: usize = 256;

/// A collection pass in progress.
struct Collector<'a> {
    service: &'a Service,
    pass: CollectionOptions,
    /// Rows that a dry run would have deleted by now.
    doomed: BTreeSet<Key>,
    /// The session of the current row, and whether it exists. Rows of one session are adjacent.
    known: Option<(LogicalSessionId, bool)>,
    /// The same for sessions with JavaScript, by their row id.
    js_known: Option<(String, bool)>,
    /// The trace calls of that session so far.
    calls: Vec<(Key, Expect)>,
    collected: CollectionReport,
}

impl Service {
    /// Runs one collection pass over all tenants.
    pub async fn collect_garbage(&self, pass: CollectionOptions) -> Result<CollectionReport, Error> {
        let mut collector = Collector {
            service: self,
            pass,
            doomed: BTreeSet::new(),
            known: None,
            js_known: None,
            calls: Vec::new(),
            collected: CollectionReport::default(),
        };
        let tenants = self.ports.store.tenants().await?;
        for tenant in &tenants {
            collector.expire(tenant).await?;
            collector.collect_heaps(tenant).await?;
        }
        // Tenants that were created since have only young blobs, which the grace period protects.
        let named = collector.named_digests(&tenants).await?;
        if collector.collected.unread.is_empty() {
            collector.sweep(&named).await?;
        }
        Ok(collector.collected)
    }
}

impl Collector<'_> {
    /// Reads a portion of a table, after the pause.
    async fn portion(
        &mut self,
        (tenant, table): (&TenantId, Table),
        after: Option<String>,
    ) -> Result<Vec<(String, Row)>, Error> {
        if !self.pass.pause.is_zero() {
            self.service.ports.clock.sleep(self.pass.pause).await;
        }
        let range = Range { tenant: tenant.clone(), table, prefix: String::new(), after, limit: PORTION };
        Ok(self.service.ports.store.scan(&range).await?)
    }

    /// Deletes rows with the given conditions. A row that changed since it was read is kept for the next pass.
    async fn remove(&mut self, doomed: Vec<(Key, Expect)>) -> Result<(), Error> {
        for portion in doomed.chunks(PORTION) {
            let batch =
                portion.iter().fold(Batch::default(), |batch, (key, expect)| batch.delete(key.clone(), *expect));
            self.apply(batch).await?;
        }
        Ok(())
    }

    /// Applies a batch, or nothing if a row changed since it was read. Counts the rows that were deleted.
    async fn apply(&mut self, batch: Batch) -> Result<(), Error> {
        let mut gone = Vec::new();
        for write in &batch.writes {
            let Write::Delete { key, expect } = write else { continue };
            // A delete without a condition may name a row that does not exist.
            let is_there = *expect != Expect::Any || self.service.ports.store.get(key).await?.is_some();
            if is_there && !self.doomed.contains(key) {
                gone.push(key.clone());
            }
        }
        if !self.pass.dry_run && !batch.writes.is_empty() && self.service.try_commit(batch).await?.is_none() {
            return Ok(());
        }
        for key in gone {
            *self.collected.rows.entry(key.table.name()).or_default() += 1;
            if self.pass.dry_run {
                self.doomed.insert(key);
            }
        }
        Ok(())
    }
}

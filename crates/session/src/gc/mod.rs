//! What nobody needs any more goes: rows whose time is over, heaps that nothing leads to, then blobs that no row names.
//! Invariant: a blob goes only when every row of every tenant was read and none names it, and nobody has put it for the grace
//! period: who puts a blob before the row that names it is never overtaken.

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

/// How a pass is made.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pass {
    /// Say what would go, and change nothing.
    pub dry_run: bool,
    /// Between two portions, so that calls are not kept waiting.
    pub pause: Duration,
    /// Only what JavaScript has left: runs, logs, heaps and their engines.
    pub only_js: bool,
}

/// What went, or would go.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Collected {
    /// Rows by the name of their table.
    pub rows: BTreeMap<&'static str, u64>,
    /// Of the heaps among them, also where these are in blobs.
    pub heap_bytes: u64,
    /// Heaps that nothing leads to, from this pass on; they go if that is so after the grace period.
    pub condemned: u64,
    pub blobs: u64,
    pub blob_bytes: u64,
    /// Blobs that stay.
    pub kept_blobs: u64,
    pub kept_bytes: u64,
    /// Tables that could not be read to their end; no blob was touched where there is one.
    pub unread: Vec<String>,
}

/// Rows and blobs that are looked at in one go.
const PORTION: usize = 256;

/// One pass under way.
struct Collecting<'a> {
    service: &'a Service,
    pass: Pass,
    /// What would be gone by now, in a pass that only says so.
    doomed: BTreeSet<Key>,
    /// The session whose rows are looked at, and whether it lives.
    known: Option<(LogicalSessionId, bool)>,
    js_known: Option<(String, bool)>,
    /// Its calls so far.
    calls: Vec<(Key, Expect)>,
    collected: Collected,
}

impl Service {
    /// One pass over everything.
    pub async fn collect_garbage(&self, pass: Pass) -> Result<Collected, Error> {
        let mut collecting = Collecting {
            service: self,
            pass,
            doomed: BTreeSet::new(),
            known: None,
            js_known: None,
            calls: Vec::new(),
            collected: Collected::default(),
        };
        let tenants = self.ports.store.tenants().await?;
        for tenant in &tenants {
            collecting.expire(tenant).await?;
            collecting.heaps(tenant).await?;
        }
        // Rows of tenants that came since are young, and so are the blobs they name.
        let named = collecting.named(&tenants).await?;
        if collecting.collected.unread.is_empty() {
            collecting.sweep(&named).await?;
        }
        Ok(collecting.collected)
    }
}

impl Collecting<'_> {
    /// A portion of a table, after the pause.
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

    /// Removes rows as they were read; rows that someone has changed since stay for the next pass.
    async fn remove(&mut self, doomed: Vec<(Key, Expect)>) -> Result<(), Error> {
        for portion in doomed.chunks(PORTION) {
            let batch =
                portion.iter().fold(Batch::default(), |batch, (key, expect)| batch.delete(key.clone(), *expect));
            self.apply(batch).await?;
        }
        Ok(())
    }

    /// All of a batch, or nothing where someone was faster.
    async fn apply(&mut self, batch: Batch) -> Result<(), Error> {
        let mut gone = Vec::new();
        for write in &batch.writes {
            let Write::Delete { key, expect } = write else { continue };
            // What goes along with something else need not be there.
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

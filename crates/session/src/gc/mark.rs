//! Finds the blobs that rows refer to, and deletes the others.
//! Invariant: any text in a row that looks like a digest keeps the blob of that name, so a new kind of row cannot
//! lose its blobs.

use std::collections::HashSet;
use std::time::Duration;

use base::{Digest, TenantId};
use ports::store::{Key, Table};

use super::{Collector, PORTION};
use crate::error::Error;

/// Finds the digests in a row. A table that names blobs in another form than text needs its own function here.
type DigestFinder = fn(Table, &str, &[u8], &mut HashSet<Digest>);

const DIGEST_FINDERS: &[DigestFinder] = &[|_, id, value, named| {
    digests_in(id.as_bytes(), named);
    digests_in(value, named);
}];

/// Collects every sequence of exactly 64 hex digits.
fn digests_in(text: &[u8], named: &mut HashSet<Digest>) {
    let runs = text.split(|byte| !matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let digests = runs.filter(|run| run.len() == 64).filter_map(|run| Digest::parse(str::from_utf8(run).ok()?).ok());
    named.extend(digests);
}

impl Collector<'_> {
    /// Returns every digest in any row.
    pub(super) async fn named_digests(&mut self, tenants: &[TenantId]) -> Result<HashSet<Digest>, Error> {
        let mut named = HashSet::new();
        for tenant in tenants {
            for table in Table::ALL {
                self.collect_digests_in(tenant, table, &mut named).await?;
            }
        }
        Ok(named)
    }

    async fn collect_digests_in(
        &mut self,
        tenant: &TenantId,
        table: Table,
        named: &mut HashSet<Digest>,
    ) -> Result<(), Error> {
        let mut after = None;
        loop {
            let rows = match self.portion((tenant, table), after).await {
                Ok(rows) => rows,
                // An unread row may refer to any blob, so no blob is deleted in this pass.
                Err(error) if error.is_damage() => {
                    tracing::error!(%error, %tenant, table = table.name(), "a table cannot be read completely, so no blob is deleted");
                    self.collected.unread.push(format!("{tenant}/{}", table.name()));
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            let Some((last, _)) = rows.last() else { return Ok(()) };
            after = Some(last.clone());
            for (id, row) in &rows {
                if !self.doomed.is_empty() && self.doomed.contains(&Key::new(tenant, table, id)) {
                    continue;
                }
                DIGEST_FINDERS.iter().for_each(|root| root(table, id, &row.value, named));
            }
        }
    }

    /// Deletes unreferenced blobs that are older than the grace period.
    pub(super) async fn sweep(&mut self, named: &HashSet<Digest>) -> Result<(), Error> {
        let grace = Duration::from_secs(u64::from(self.service.retention.grace_hours) * 3_600);
        let blobs = self.service.ports.blobs.clone();
        let mut after = None;
        loop {
            if !self.pass.pause.is_zero() {
                self.service.ports.clock.sleep(self.pass.pause).await;
            }
            let portion = blobs.list(after.as_ref(), PORTION).await?;
            let Some(last) = portion.last() else { return Ok(()) };
            after = Some(last.digest);
            for stored in portion {
                let old = !named.contains(&stored.digest) && stored.idle >= grace;
                if old && (self.pass.dry_run || blobs.delete(&stored.digest, grace).await?) {
                    self.collected.blobs += 1;
                    self.collected.blob_bytes += stored.bytes;
                } else {
                    self.collected.kept_blobs += 1;
                    self.collected.kept_bytes += stored.bytes;
                }
            }
        }
    }
}

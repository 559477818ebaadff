//! Which blobs rows name, and the end of the others.
//! Invariant: whatever looks like a digest in any row keeps the blob of that name, so that a table that is new here loses nothing.

use std::collections::HashSet;
use std::time::Duration;

use base::{Digest, TenantId};
use ports::store::{Key, Table};

use super::{Collecting, PORTION};
use crate::error::Error;

/// What a row keeps. A table whose rows name blobs in another way than as text gets a function of its own here.
type Root = fn(Table, &str, &[u8], &mut HashSet<Digest>);

const ROOTS: &[Root] = &[|_, id, value, named| {
    digests_in(id.as_bytes(), named);
    digests_in(value, named);
}];

/// Every run of exactly 64 hex characters.
fn digests_in(text: &[u8], named: &mut HashSet<Digest>) {
    let runs = text.split(|byte| !matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let digests = runs.filter(|run| run.len() == 64).filter_map(|run| Digest::parse(str::from_utf8(run).ok()?).ok());
    named.extend(digests);
}

impl Collecting<'_> {
    /// Every blob that some row names.
    pub(super) async fn named(&mut self, tenants: &[TenantId]) -> Result<HashSet<Digest>, Error> {
        let mut named = HashSet::new();
        for tenant in tenants {
            for table in Table::ALL {
                self.named_in(tenant, table, &mut named).await?;
            }
        }
        Ok(named)
    }

    async fn named_in(&mut self, tenant: &TenantId, table: Table, named: &mut HashSet<Digest>) -> Result<(), Error> {
        let mut after = None;
        loop {
            let rows = match self.portion((tenant, table), after).await {
                Ok(rows) => rows,
                // What it names cannot be known.
                Err(error) if error.is_damage() => {
                    tracing::error!(%error, %tenant, table = table.name(), "a table cannot be read to its end");
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
                ROOTS.iter().for_each(|root| root(table, id, &row.value, named));
            }
        }
    }

    /// The others, where they are old enough.
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

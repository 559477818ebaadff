//! Checks that the storage takes writes, so that work can be accepted.
//! Invariant: however often the check is asked for, one write at a time is made, and few of them in a second.

use std::time::Duration;

use base::{Digest, TenantId};
use ports::store::{Batch, Expect, Key, Range, Table};
use tokio::time::Instant;

use crate::error::Error;
use crate::service::Service;

/// The size of the row that is written: as large as the largest result that is stored as a row. A full disk may have room for less.
const PROBE_BYTES: usize = 64 * 1024;
/// The time within which the write must be done.
const PROBE_WITHIN: Duration = Duration::from_secs(2);
/// A result is answered again for this time. The check needs no key, so it must not let anyone write as fast as they like.
const PROBE_VALID: Duration = Duration::from_secs(1);
/// The rows of earlier processes that are deleted with the first write.
const MOST_OLD_ROWS: usize = 100;

impl Service {
    /// Checks that the storage takes a row within a short time.
    pub async fn check_writable(&self) -> Result<(), Error> {
        // Held during the write, so that callers that ask meanwhile get its result.
        let mut last = self.last_probe.0.lock().await;
        if let Some((at, result)) = &*last
            && at.elapsed() < PROBE_VALID
        {
            return result.clone().map_err(Error::Shared);
        }
        let is_first = last.is_none();
        let written = tokio::time::timeout(PROBE_WITHIN, self.write_probe(is_first)).await;
        let result =
            written.unwrap_or(Err(Error::TooSlow { seconds: PROBE_WITHIN.as_secs() })).map_err(std::sync::Arc::new);
        *last = Some((Instant::now(), result.clone()));
        result.map_err(Error::Shared)
    }

    async fn write_probe(&self, is_first: bool) -> Result<(), Error> {
        let tenant = TenantId::local();
        let name = self.owners.me().to_string();
        let mut batch = Batch::default();
        if is_first {
            let range = Range {
                tenant: tenant.clone(),
                table: Table::Probe,
                prefix: String::new(),
                after: None,
                limit: MOST_OLD_ROWS,
            };
            // A living process writes its row again with its next check.
            for (id, _) in self.ports.store.scan(&range).await? {
                batch = batch.delete(Key::new(&tenant, Table::Probe, id), Expect::Any);
            }
        }
        // Bytes that no storage makes smaller, different each time.
        let mut value = Vec::with_capacity(PROBE_BYTES);
        let mut digest = Digest::of(&self.ports.entropy.bytes());
        while value.len() < PROBE_BYTES {
            value.extend_from_slice(digest.as_bytes());
            digest = Digest::of(digest.as_bytes());
        }
        Ok(self.ports.store.commit(batch.put(Key::new(&tenant, Table::Probe, name), value, Expect::Any)).await?)
    }
}

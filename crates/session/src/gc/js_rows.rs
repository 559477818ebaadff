//! Deletes expired sessions with JavaScript, their logs, and old script runs.
//! Invariant: a session and its whole log are deleted in one transaction, so a log never has a gap, and a reused name
//! starts again at 0. A run that has not ended is kept, whatever its age.

use ports::store::{Batch, Expect, Key, Range, Row, Table};

use super::{Collector, PORTION};
use crate::engine::rows::{ExecutionRow, JsSessionRow, LogRow, SessionName, log_key};
use crate::error::Error;
use crate::rows;

/// The order matters: rows that are deleted with a session must not be visited before it.
pub(super) const OF_JS: [Table; 4] = [Table::JsSession, Table::SessionLog, Table::Execution, Table::HeapTags];

impl Collector<'_> {
    pub(super) async fn js_row(&mut self, key: &Key, row: &Row) -> Result<(), Error> {
        match key.table {
            Table::JsSession => self.js_session(key, row).await,
            Table::SessionLog => self.log_entry(key, row).await,
            Table::Execution => self.execution(key, row).await,
            _ => self.tags(key, row).await,
        }
    }

    async fn js_session(&mut self, key: &Key, row: &Row) -> Result<(), Error> {
        let Ok(session) = rows::read::<JsSessionRow>(&key.id, &row.value) else { return Ok(()) };
        let over = match &session.name {
            SessionName::Logical(id) => self.logical(&key.tenant, *id).await?.is_none(),
            SessionName::Named(_) => {
                self.is_over(self.last_used(key, &session).await?, self.service.retention.sessions)
            }
        };
        if !over || !session.waiting.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::default().delete(key.clone(), Expect::Version(row.version));
        for (id, version) in self.ids_under((key, Table::SessionLog)).await? {
            batch = batch.delete(Key::new(&key.tenant, Table::SessionLog, id), Expect::Version(version));
        }
        self.apply(batch).await
    }

    /// When the session was last used. Rows from before that field existed take the time of their last log entry.
    async fn last_used(&self, key: &Key, session: &JsSessionRow) -> Result<base::Timestamp, Error> {
        if session.used != rows::never() || session.entries == 0 {
            return Ok(session.used);
        }
        let last = log_key(&key.tenant, &session.name, session.entries - 1);
        Ok(self.service.fetch::<LogRow>(&last).await?.map_or(session.used, |found| found.row.timestamp))
    }

    /// Deletes a log entry that outlived its session because of a crash.
    async fn log_entry(&mut self, key: &Key, row: &Row) -> Result<(), Error> {
        let Some((session, _)) = key.id.rsplit_once('/') else { return Ok(()) };
        if self.js_known.as_ref().is_none_or(|(known, _)| known != session) {
            let of = Key::new(&key.tenant, Table::JsSession, session);
            let lives = !self.doomed.contains(&of) && self.service.ports.store.get(&of).await?.is_some();
            self.js_known = Some((session.to_owned(), lives));
        }
        if self.doomed.contains(key) || self.js_known.as_ref().is_some_and(|(_, lives)| *lives) {
            return Ok(());
        }
        self.remove(vec![(key.clone(), Expect::Version(row.version))]).await
    }

    /// Deletes an ended run with its output and its receipts.
    async fn execution(&mut self, key: &Key, row: &Row) -> Result<(), Error> {
        let Ok(run) = rows::read::<ExecutionRow>(&key.id, &row.value) else { return Ok(()) };
        let over = run.ended.is_some_and(|ended| self.is_over(ended, self.service.retention.executions));
        if !run.state.is_final() || !over {
            return Ok(());
        }
        let mut batch = Batch::default().delete(key.clone(), Expect::Version(row.version));
        for table in [Table::ExecutionOutput, Table::FetchReceipt] {
            for (id, version) in self.ids_under((key, table)).await? {
                batch = batch.delete(Key::new(&key.tenant, table, id), Expect::Version(version));
            }
        }
        self.apply(batch).await
    }

    /// Deletes tags of a heap that does not exist.
    async fn tags(&mut self, key: &Key, row: &Row) -> Result<(), Error> {
        let heap = Key::new(&key.tenant, Table::Heap, key.id.clone());
        if self.service.ports.store.get(&heap).await?.is_some() {
            return Ok(());
        }
        self.remove(vec![(key.clone(), Expect::Version(row.version))]).await
    }

    /// Returns the ids and versions of another table's rows whose ids begin with this row's id.
    async fn ids_under(&self, (key, table): (&Key, Table)) -> Result<Vec<(String, u64)>, Error> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let (tenant, prefix) = (key.tenant.clone(), format!("{}/", key.id));
            let range = Range { tenant, table, prefix, after: after.take(), limit: PORTION };
            let page = self.service.ports.store.scan(&range).await?;
            let Some((last, _)) = page.last() else { return Ok(found) };
            after = Some(last.clone());
            found.extend(page.into_iter().map(|(id, row)| (id, row.version)));
        }
    }
}

//! Deletes rows of one tenant after their retention period.
//! Invariant: an expired execute session is deleted in a transaction that also writes its logical session, so a
//! concurrent use of the session and the deletion cannot both succeed.

use base::{LogicalSessionId, TenantId, Timestamp};
use ports::store::{Batch, Expect, Key, Row, Table};

use super::Collector;
use super::js_rows::OF_JS;
use crate::engine::rows::{JsSessionRow, SessionName, session_key};
use crate::error::Error;
use crate::rows::{self, ConnectionRow, ExecuteRow, LogicalRow, RunAt, run_key};
use crate::transport::split_stored_time;

/// Returns the connection row of an execute address.
fn address_slot(space: &Key) -> Key {
    Key::new(&space.tenant, Table::Connection, format!("x/{}", space.id))
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

impl Collector<'_> {
    pub(super) async fn expire(&mut self, tenant: &TenantId) -> Result<(), Error> {
        let first = [Table::LogicalSession, Table::ExecuteSession];
        let last = [Table::PrincipalRun, Table::Transport];
        let all = !self.pass.only_js;
        let others = first.into_iter().chain(Table::of_sessions()).chain(last).filter(|_| all);
        for table in others.chain(OF_JS) {
            self.table(tenant, table).await?;
        }
        Ok(())
    }

    async fn table(&mut self, tenant: &TenantId, table: Table) -> Result<(), Error> {
        (self.known, self.js_known, self.calls) = (None, None, Vec::new());
        let mut after = None;
        loop {
            let rows = match self.portion((tenant, table), after).await {
                Ok(rows) => rows,
                // The mark phase reads the table again and reports the damage. Rows before it have been handled.
                Err(error) if error.is_damage() => return Ok(()),
                Err(error) => return Err(error),
            };
            let Some((last, _)) = rows.last() else { return Ok(()) };
            after = Some(last.clone());
            for (id, row) in &rows {
                let key = Key::new(tenant, table, id);
                match table {
                    Table::LogicalSession => self.logical_session(&key, row).await?,
                    Table::ExecuteSession => self.execute_session(&key, row).await?,
                    Table::PrincipalRun => self.principal_run(&key, row).await?,
                    Table::Transport => self.transport(&key, row).await?,
                    table if OF_JS.contains(&table) => self.js_row(&key, row).await?,
                    _ => self.session_row(&key, row).await?,
                }
            }
        }
    }

    /// Whether more than `days` have passed since `at`.
    pub(super) fn is_over(&self, at: Timestamp, days: u32) -> bool {
        self.service.now().0.saturating_sub(at.0) > i64::from(days) * DAY_MS
    }

    async fn logical_session(&mut self, key: &Key, row: &Row) -> Result<(), Error> {
        let days = &self.service.retention;
        // An unreadable row is kept for a person to look at.
        let Ok(mut logical) = rows::read::<LogicalRow>(&key.id, &row.value) else { return Ok(()) };
        if self.is_over(logical.used, days.execute_sessions.min(days.sessions)) {
            logical.used = logical.used.max(self.last_script_run(key).await?);
        }
        let other = |table, id: String| Key::new(&key.tenant, table, id);
        let space = logical.execute.as_ref().map(|e| other(Table::ExecuteSession, e.session_id.to_string()));
        if self.is_over(logical.used, days.sessions) {
            let mut batch = Batch::default()
                .delete(key.clone(), Expect::Version(row.version))
                .delete(other(Table::Intent, logical.intent_row_id()), Expect::Any);
            if let Some(space) = space {
                batch = batch.delete(address_slot(&space), Expect::Any).delete(space, Expect::Any);
            }
            return self.apply(batch).await;
        }
        let Some(space) = space.filter(|_| self.is_over(logical.used, days.execute_sessions)) else { return Ok(()) };
        if self.service.ports.store.get(&space).await?.is_none() {
            return Ok(());
        }
        // Written unchanged, so that a concurrent write of the session makes this transaction fail.
        let mine = Batch::default().put(key.clone(), row.value.clone(), Expect::Version(row.version));
        self.apply(mine.delete(address_slot(&space), Expect::Any).delete(space, Expect::Any)).await
    }

    /// When a script last ran in the session. Scripts do not update the session's own row.
    async fn last_script_run(&self, key: &Key) -> Result<Timestamp, Error> {
        let Ok(id) = LogicalSessionId::parse(&key.id) else { return Ok(rows::never()) };
        let found = self.service.fetch::<JsSessionRow>(&session_key(&key.tenant, &SessionName::Logical(id))).await?;
        Ok(found.map_or(rows::never(), |found| found.row.used))
    }

    /// Deletes an execute session that its logical session no longer refers to.
    async fn execute_session(&mut self, key: &Key, row: &Row) -> Result<(), Error> {
        let Ok(space) = rows::read::<ExecuteRow>(&key.id, &row.value) else { return Ok(()) };
        let logical = self.logical(&key.tenant, space.logical_session).await?;
        let bound = logical.and_then(|row| row.execute).is_some_and(|b| b.session_id.to_string() == key.id);
        if bound || !self.is_over(space.opened, self.service.retention.execute_sessions) {
            return Ok(());
        }
        self.remove(vec![(address_slot(key), Expect::Any), (key.clone(), Expect::Version(row.version))]).await
    }

    /// Deletes an entry of a principal's numbering whose run is gone.
    async fn principal_run(&mut self, key: &Key, row: &Row) -> Result<(), Error> {
        let Ok(at) = rows::read::<RunAt>(&key.id, &row.value) else { return Ok(()) };
        let run = run_key(&key.tenant, at.session, at.number);
        if !self.doomed.contains(&run) && self.service.ports.store.get(&run).await?.is_some() {
            return Ok(());
        }
        self.remove(vec![(key.clone(), Expect::Version(row.version))]).await
    }

    pub(super) async fn logical(&self, tenant: &TenantId, id: LogicalSessionId) -> Result<Option<LogicalRow>, Error> {
        let key = Key::new(tenant, Table::LogicalSession, id.to_string());
        if self.doomed.contains(&key) {
            return Ok(None);
        }
        Ok(self.service.fetch(&key).await?.map(|found| found.row))
    }

    /// Deletes a transport that is no longer used, with its slots. A principal's slots stay, since only they lead
    /// back to its sessions.
    async fn transport(&mut self, key: &Key, row: &Row) -> Result<(), Error> {
        let (kept, _) = split_stored_time(row.value.clone());
        let connection = Key::new(&key.tenant, Table::Connection, format!("t/{}", key.id));
        let used = self.service.fetch::<ConnectionRow>(&connection).await?.map(|found| found.row.used);
        let Some(last) = used.into_iter().chain(kept).max() else { return Ok(()) };
        if !self.is_over(last, self.service.retention.connections) {
            return Ok(());
        }
        self.remove(vec![(key.clone(), Expect::Version(row.version)), (connection, Expect::Any)]).await
    }
}

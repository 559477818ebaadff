//! Rows whose time is over, of one tenant.
//! Invariant: the logical session of a symbol space that goes is written in the same transaction, so that whoever uses it at that
//! moment and this pass cannot both succeed.

use base::{LogicalSessionId, TenantId, Timestamp};
use ports::store::{Batch, Expect, Key, Row, Table};

use super::Collecting;
use super::js_rows::OF_JS;
use crate::engine::rows::{JsSessionRow, SessionName, session_key};
use crate::error::Error;
use crate::rows::{self, ConnectionRow, ExecuteRow, LogicalRow, RunAt, run_key};
use crate::transport::dated;

/// The slot that a symbol space has at its own address.
fn door(space: &Key) -> Key {
    Key::new(&space.tenant, Table::Connection, format!("x/{}", space.id))
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

impl Collecting<'_> {
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
                // The pass over what rows name will say so; what is before it was done.
                Err(error) if error.is_damage() => return Ok(()),
                Err(error) => return Err(error),
            };
            let Some((last, _)) = rows.last() else { return Ok(()) };
            after = Some(last.clone());
            for (id, row) in &rows {
                let key = Key::new(tenant, table, id);
                match table {
                    Table::LogicalSession => self.logical_session(&key, row).await?,
                    Table::ExecuteSession => self.space(&key, row).await?,
                    Table::PrincipalRun => self.bare_run(&key, row).await?,
                    Table::Transport => self.transport(&key, row).await?,
                    table if OF_JS.contains(&table) => self.js_row(&key, row).await?,
                    _ => self.session_row(&key, row).await?,
                }
            }
        }
    }

    /// Whether something of that moment is over after so many days.
    pub(super) fn is_over(&self, at: Timestamp, days: u32) -> bool {
        self.service.now().0.saturating_sub(at.0) > i64::from(days) * DAY_MS
    }

    async fn logical_session(&mut self, key: &Key, row: &Row) -> Result<(), Error> {
        let days = &self.service.retention;
        // A row that cannot be read is for people to look at.
        let Ok(mut logical) = rows::read::<LogicalRow>(&key.id, &row.value) else { return Ok(()) };
        if self.is_over(logical.used, days.execute_sessions.min(days.sessions)) {
            logical.used = logical.used.max(self.code_used(key).await?);
        }
        let other = |table, id: String| Key::new(&key.tenant, table, id);
        let space = logical.execute.as_ref().map(|e| other(Table::ExecuteSession, e.session_id.to_string()));
        if self.is_over(logical.used, days.sessions) {
            let mut batch = Batch::default()
                .delete(key.clone(), Expect::Version(row.version))
                .delete(other(Table::Intent, logical.row_name()), Expect::Any);
            if let Some(space) = space {
                batch = batch.delete(door(&space), Expect::Any).delete(space, Expect::Any);
            }
            return self.apply(batch).await;
        }
        let Some(space) = space.filter(|_| self.is_over(logical.used, days.execute_sessions)) else { return Ok(()) };
        if self.service.ports.store.get(&space).await?.is_none() {
            return Ok(());
        }
        // Written as it is, only to be the one that writes it.
        let mine = Batch::default().put(key.clone(), row.value.clone(), Expect::Version(row.version));
        self.apply(mine.delete(door(&space), Expect::Any).delete(space, Expect::Any)).await
    }

    /// When code was last run in a session; that is no reason to write the session's own row.
    async fn code_used(&self, key: &Key) -> Result<Timestamp, Error> {
        let Ok(id) = LogicalSessionId::parse(&key.id) else { return Ok(rows::never()) };
        let found = self.service.fetch::<JsSessionRow>(&session_key(&key.tenant, &SessionName::Logical(id))).await?;
        Ok(found.map_or(rows::never(), |found| found.row.used))
    }

    /// A symbol space that its session has left.
    async fn space(&mut self, key: &Key, row: &Row) -> Result<(), Error> {
        let Ok(space) = rows::read::<ExecuteRow>(&key.id, &row.value) else { return Ok(()) };
        let logical = self.logical(&key.tenant, space.logical_session).await?;
        let bound = logical.and_then(|row| row.execute).is_some_and(|b| b.session_id.to_string() == key.id);
        if bound || !self.is_over(space.opened, self.service.retention.execute_sessions) {
            return Ok(());
        }
        self.remove(vec![(door(key), Expect::Any), (key.clone(), Expect::Version(row.version))]).await
    }

    /// A run of a session without an intent, by the number of its principal.
    async fn bare_run(&mut self, key: &Key, row: &Row) -> Result<(), Error> {
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

    /// A transport that nobody speaks over any more, with its slots. A principal's slots stay: they are all it has to come back with.
    async fn transport(&mut self, key: &Key, row: &Row) -> Result<(), Error> {
        let (kept, _) = dated(row.value.clone());
        let connection = Key::new(&key.tenant, Table::Connection, format!("t/{}", key.id));
        let used = self.service.fetch::<ConnectionRow>(&connection).await?.map(|found| found.row.used);
        let Some(last) = used.into_iter().chain(kept).max() else { return Ok(()) };
        if !self.is_over(last, self.service.retention.connections) {
            return Ok(());
        }
        self.remove(vec![(key.clone(), Expect::Version(row.version)), (connection, Expect::Any)]).await
    }
}

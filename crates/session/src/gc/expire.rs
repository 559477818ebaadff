//! Rows whose time is over, of one tenant.
//! Invariant: the logical session of a symbol space that goes is written in the same transaction, so that whoever uses it at that
//! moment and this pass cannot both succeed.

use base::{LogicalSessionId, TenantId, Timestamp};
use ports::store::{Batch, Expect, Key, Row, Table};

use super::Collecting;
use crate::error::Error;
use crate::rows::{self, ConnectionRow, ExecuteRow, LogicalRow};
use crate::transport::dated;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

impl Collecting<'_> {
    pub(super) async fn expire(&mut self, tenant: &TenantId) -> Result<(), Error> {
        self.logical_sessions(tenant).await?;
        self.spaces(tenant).await?;
        self.session_rows(tenant).await?;
        self.transports(tenant).await
    }

    /// Whether something of that moment is over after so many days.
    pub(super) fn is_over(&self, at: Timestamp, days: u32) -> bool {
        self.service.now().0.saturating_sub(at.0) > i64::from(days) * DAY_MS
    }

    pub(super) async fn each<F>(&mut self, tenant: &TenantId, table: Table, mut doom: F) -> Result<(), Error>
    where
        F: AsyncFnMut(&mut Self, &str, &Row) -> Result<(), Error>,
    {
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
                doom(self, id, row).await?;
            }
        }
    }

    async fn logical_sessions(&mut self, tenant: &TenantId) -> Result<(), Error> {
        let days = self.service.retention.clone();
        self.each(tenant, Table::LogicalSession, async |this, id, row| {
            // A row that cannot be read is for people to look at.
            let Ok(logical) = rows::read::<LogicalRow>(id, &row.value) else { return Ok(()) };
            let key = |table, id: &str| Key::new(tenant, table, id);
            let space = logical.execute.as_ref().map(|e| key(Table::ExecuteSession, &e.session_id.to_string()));
            if this.is_over(logical.used, days.sessions) {
                let mut batch = Batch::default()
                    .delete(key(Table::LogicalSession, id), Expect::Version(row.version))
                    .delete(key(Table::Intent, &logical.row_name()), Expect::Any);
                if let Some(space) = space {
                    batch = batch.delete(space, Expect::Any);
                }
                return this.apply(batch).await;
            }
            let Some(space) = space.filter(|_| this.is_over(logical.used, days.execute_sessions)) else {
                return Ok(());
            };
            if this.service.ports.store.get(&space).await?.is_none() {
                return Ok(());
            }
            // Written as it is, only to be the one that writes it.
            let mine =
                Batch::default().put(key(Table::LogicalSession, id), row.value.clone(), Expect::Version(row.version));
            this.apply(mine.delete(space, Expect::Any)).await
        })
        .await
    }

    /// Symbol spaces that their session has left.
    async fn spaces(&mut self, tenant: &TenantId) -> Result<(), Error> {
        let days = self.service.retention.execute_sessions;
        self.each(tenant, Table::ExecuteSession, async |this, id, row| {
            let Ok(space) = rows::read::<ExecuteRow>(id, &row.value) else { return Ok(()) };
            let logical = this.logical(tenant, space.logical_session).await?;
            let bound = logical.and_then(|row| row.execute).is_some_and(|b| b.session_id.to_string() == id);
            if bound || !this.is_over(space.opened, days) {
                return Ok(());
            }
            let key = Key::new(tenant, Table::ExecuteSession, id);
            this.remove(vec![(key, Expect::Version(row.version))]).await
        })
        .await
    }

    pub(super) async fn logical(&self, tenant: &TenantId, id: LogicalSessionId) -> Result<Option<LogicalRow>, Error> {
        let key = Key::new(tenant, Table::LogicalSession, id.to_string());
        if self.doomed.contains(&key) {
            return Ok(None);
        }
        Ok(self.service.fetch(&key).await?.map(|found| found.row))
    }

    /// Connections of transports that nobody speaks over any more. A principal's slots stay: they are all it has to come back with.
    async fn transports(&mut self, tenant: &TenantId) -> Result<(), Error> {
        let days = self.service.retention.connections;
        self.each(tenant, Table::Transport, async |this, id, row| {
            let (kept, _) = dated(row.value.clone());
            let connection = Key::new(tenant, Table::Connection, format!("t/{id}"));
            let used = this.service.fetch::<ConnectionRow>(&connection).await?.map(|found| found.row.used);
            let Some(last) = used.into_iter().chain(kept).max() else { return Ok(()) };
            if !this.is_over(last, days) {
                return Ok(());
            }
            let transport = (Key::new(tenant, Table::Transport, id), Expect::Version(row.version));
            this.remove(vec![transport, (connection, Expect::Any)]).await
        })
        .await
    }
}

//! Lists, shows and removes sessions.
//! Invariant: listing and showing change nothing, not even a slot. A removed session is gone at once for all callers,
//! and its data is deleted afterwards.

use access::Caller;
use base::{CatalogId, Digest, LogicalSessionId, Slot, Timestamp};
use ports::store::{Batch, Expect, Key, Range, Table};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commit::{TRIES, unchanged};
use crate::engine::rows::SessionName;
use crate::error::Error;
use crate::list_page::NewestFirst;
use crate::load::Versioned;
use crate::rows::{ConnectionRow, ExecuteBinding, LogicalRow};
use crate::service::Service;

/// A session as its owner sees it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SessionView {
    #[schemars(with = "String")]
    pub logical_session_id: LogicalSessionId,
    /// Empty for a session that was opened by its seeds alone.
    pub intent: String,
    /// The slot on the caller's connection, if there is one.
    #[schemars(with = "Option<String>")]
    pub slot: Option<Slot>,
    /// When it was opened, in milliseconds since 1970 (UTC).
    #[schemars(with = "i64")]
    pub created: Timestamp,
    /// When it was last used, in milliseconds since 1970 (UTC).
    #[schemars(with = "i64")]
    pub used: Timestamp,
    pub runs: u64,
    pub plans: u64,
    /// The number of entries in its log of scripts.
    pub js_entries: u64,
    /// `None` after its retention period. The next `plasm_context` opens a new one.
    pub space: Option<SymbolSpace>,
}

/// The execute session that a session is bound to.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SymbolSpace {
    #[serde(flatten)]
    pub execute: ExecuteBinding,
    pub revision: u32,
    /// Entities such as `demo:Ticket`, in the order of their symbols.
    pub entities: Vec<String>,
    /// The pinned catalogs with their digests.
    #[schemars(with = "Vec<(String, String)>")]
    pub catalogs: Vec<(CatalogId, Digest)>,
}

/// The number of rows that one scan reads.
const PAGE: usize = 200;

impl Service {
    /// Returns the caller's sessions, the last used first, and the number of others beyond `limit`.
    pub async fn list_sessions(&self, caller: &Caller, limit: usize) -> Result<(Vec<SessionView>, u64), Error> {
        let connection = self.connection(caller).await?.row;
        let mut newest = NewestFirst::new(limit);
        let mut after = None;
        loop {
            let range = Range {
                tenant: caller.tenant.clone(),
                table: Table::LogicalSession,
                prefix: String::new(),
                after,
                limit: PAGE,
            };
            let rows = self.ports.store.scan(&range).await?;
            after = rows.last().map(|(id, _)| id.clone());
            for (id, row) in &rows {
                // A damaged session does not hide the others. Asking for it reports the damage.
                let Ok(row) = crate::rows::read::<LogicalRow>(id, &row.value) else { continue };
                let Ok(id) = LogicalSessionId::parse(id) else { continue };
                if !self.is_hidden(caller, row.owner.as_ref()) {
                    newest.push(row.used, (id, row));
                }
            }
            if after.is_none() {
                break;
            }
        }
        let (rows, omitted) = newest.finish();
        let mut views = Vec::new();
        for (id, row) in rows {
            views.push(self.view(caller, id, &connection, &row).await?);
        }
        Ok((views, omitted))
    }

    /// Returns one session, by slot, id or intent.
    pub async fn session_view(&self, caller: &Caller, reference: &str) -> Result<SessionView, Error> {
        let connection = self.connection(caller).await?.row;
        let id = self.session_id(caller, reference).await?;
        let found = self.logical(caller, id).await?.ok_or_else(|| Error::NoSession(id.to_string()))?;
        self.view(caller, id, &connection, &found.row).await
    }

    /// Resolves a slot, an intent or an id without assigning a slot.
    pub async fn session_id(&self, caller: &Caller, reference: &str) -> Result<LogicalSessionId, Error> {
        if let Ok(slot) = reference.parse::<Slot>() {
            return self.session_in_slot(caller, slot).await;
        }
        if let Some(row) = self.intent(caller, &self.intent_row_id(caller, reference)).await? {
            return Ok(row.logical_session);
        }
        let id = LogicalSessionId::parse(reference).map_err(|_| Error::BadRef(base::printable(reference, 80)))?;
        if self.logical(caller, id).await?.is_none() {
            return Err(Error::NoSession(id.to_string()));
        }
        Ok(id)
    }

    /// Removes a session with its symbols, results, plans, handles, receipts and trace.
    pub async fn remove_session(&self, caller: &Caller, reference: &str) -> Result<LogicalSessionId, Error> {
        let id = self.session_id(caller, reference).await?;
        let _turn = self.turn(&id.to_string()).await;
        for _ in 0..TRIES {
            let found = self.logical(caller, id).await?.ok_or_else(|| Error::NoSession(id.to_string()))?;
            let key = |table, id: String| Key::new(&caller.tenant, table, id);
            // The version of the logical session alone guards the transaction. A binding to another execute session
            // changes this row, and a wave that was just added to the bound one is to be deleted as well.
            let mut batch = Batch::default()
                .delete(key(Table::Intent, found.row.intent_row_id()), Expect::Any)
                .delete(key(Table::LogicalSession, id.to_string()), unchanged(found.version));
            if let Some(binding) = &found.row.execute {
                batch = batch.delete(key(Table::ExecuteSession, binding.session_id.to_string()), Expect::Any);
            }
            if self.try_commit(batch).await?.is_some() {
                // The rest may be large, so it is deleted in further transactions. No caller can reach it any
                // more, and after a crash the collector deletes it.
                self.delete_session_rows(&caller.tenant, id).await?;
                return Ok(id);
            }
        }
        Err(Error::Busy)
    }

    async fn view(
        &self,
        caller: &Caller,
        id: LogicalSessionId,
        connection: &ConnectionRow,
        row: &LogicalRow,
    ) -> Result<SessionView, Error> {
        let space = match &row.execute {
            Some(binding) => match self.execute(caller, binding).await {
                Ok(found) => found.map(|Versioned { row, .. }| SymbolSpace {
                    execute: binding.clone(),
                    revision: row.revision,
                    entities: row
                        .ledger
                        .seeds()
                        .iter()
                        .map(|seed| format!("{}:{}", seed.catalog, seed.entity))
                        .collect(),
                    catalogs: row.catalogs.into_iter().collect(),
                }),
                Err(error) if error.is_damage() => None,
                Err(error) => return Err(error),
            },
            None => None,
        };
        let scripts = self.js_session(caller, &SessionName::Logical(id)).await?.row;
        Ok(SessionView {
            logical_session_id: id,
            intent: row.intent.clone(),
            slot: self.slot_of(caller, connection, id).await?,
            created: row.created,
            used: row.used,
            runs: row.runs,
            plans: row.plans,
            js_entries: scripts.entries,
            space,
        })
    }
}

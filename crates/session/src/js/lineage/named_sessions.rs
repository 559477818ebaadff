//! Sessions that connections name in a header.
//! Invariant: a session is removed together with its whole log, so a reused name starts again at entry 0.

use access::Caller;
use base::{Digest, Timestamp};
use ports::store::{Batch, Expect, Key, Range, Table};
use serde::Serialize;

use crate::commit::TRIES;
use crate::engine::rows::{JsSessionRow, SessionName, session_key};
use crate::engine::view::SessionTarget;
use crate::error::{Error, JsError};
use crate::list_page::NewestFirst;
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;

/// The number of rows that one scan reads.
const PAGE: usize = 500;

/// A session that has a name instead of an intent.
#[derive(Debug, Clone, Serialize)]
pub struct NamedSession {
    pub name: String,
    /// When a call last changed it.
    pub used: Timestamp,
    /// The number of entries in its log.
    pub js_entries: u64,
    /// The heap that the next script starts from.
    pub head: Option<Digest>,
}

impl Service {
    /// Resolves a reference that a person wrote: a logical session by slot, id or intent, or else a session of that
    /// name.
    pub async fn session_target(&self, caller: &Caller, reference: &str) -> Result<SessionTarget, Error> {
        match self.session_id(caller, reference).await {
            Ok(id) => Ok(SessionTarget::Logical(id.to_string())),
            Err(Error::BadRef(_)) => Ok(SessionTarget::Named(reference.to_owned())),
            // A text that looks like a slot or an id is a name only if a session of that name exists.
            Err(error @ (Error::UnknownSlot { .. } | Error::NoSession(_))) => {
                let key = session_key(&caller.tenant, &self.named_session(caller, reference));
                match self.ports.store.get(&key).await? {
                    Some(_) => Ok(SessionTarget::Named(reference.to_owned())),
                    None => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the named sessions, the last used first, and the number of others that there were no places for.
    pub async fn named_sessions(&self, caller: &Caller) -> Result<(Vec<NamedSession>, u64), Error> {
        let mut newest = NewestFirst::new(self.limits.list_rows);
        self.each_js_session(caller, |row| {
            if matches!(row.name, SessionName::Named(_)) {
                let name = self.shown_name(caller, &row.name);
                let session = NamedSession { name, used: row.used, js_entries: row.entries, head: row.head };
                newest.push(row.used, session);
            }
        })
        .await?;
        Ok(newest.finish())
    }

    /// Calls a function with the row of each session with JavaScript that the caller may see, logical and named ones.
    pub(super) async fn each_js_session(
        &self,
        caller: &Caller,
        mut see: impl FnMut(JsSessionRow),
    ) -> Result<(), Error> {
        let mut after = None;
        loop {
            let range = Range {
                tenant: caller.tenant.clone(),
                table: Table::JsSession,
                prefix: String::new(),
                after: after.take(),
                limit: PAGE,
            };
            let page = self.ports.store.scan(&range).await?;
            for (id, row) in &page {
                let row: JsSessionRow = rows::read(id, &row.value)?;
                if self.may_see_session(caller, &row.name).await? {
                    see(row);
                }
            }
            match page.last() {
                Some((last, _)) if page.len() == PAGE => after = Some(last.clone()),
                _ => return Ok(()),
            }
        }
    }

    /// Removes a named session with its log. Heaps that nothing else refers to are collected later.
    pub async fn remove_named_session(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        let session = self.named_session(caller, name);
        let key = session_key(&caller.tenant, &session);
        for _ in 0..TRIES {
            let found: Option<Versioned<JsSessionRow>> = self.fetch(&key).await?;
            let found = found.ok_or_else(|| Error::NoSession(base::printable(name, 80)))?;
            // Runs that end later would write to a new session of the same name.
            if !found.row.waiting.is_empty() {
                return Err(JsError::UnderWay.into());
            }
            let mut batch = Batch::default().delete(key.clone(), Expect::Version(found.version));
            let mut after = None;
            loop {
                let range = Range {
                    tenant: caller.tenant.clone(),
                    table: Table::SessionLog,
                    prefix: format!("{}/", key.id),
                    after,
                    limit: PAGE,
                };
                let page = self.ports.store.scan(&range).await?;
                let Some((last, _)) = page.last() else { break };
                after = Some(last.clone());
                for (id, row) in page {
                    let entry_key = Key::new(&caller.tenant, Table::SessionLog, id);
                    batch = batch.delete(entry_key, Expect::Version(row.version));
                }
            }
            if self.try_commit(batch).await?.is_some() {
                return Ok(());
            }
        }
        Err(Error::Busy)
    }
}

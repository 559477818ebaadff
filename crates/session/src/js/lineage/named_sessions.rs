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
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;

const PAGE: usize = 500;

/// A session that has a name instead of an intent.
#[derive(Debug, Clone, Serialize)]
pub struct NamedSession {
    pub name: String,
    pub used: Timestamp,
    /// The number of entries in its log.
    pub js_entries: u64,
    pub head: Option<Digest>,
}

impl Service {
    /// Resolves a reference that a person wrote: a logical session by slot, id or intent, or else a session of that
    /// name.
    pub async fn session_target(&self, caller: &Caller, reference: &str) -> Result<SessionTarget, Error> {
        let by_name = || SessionTarget::Named(reference.to_owned());
        match self.session_id(caller, reference).await {
            Ok(id) => Ok(SessionTarget::Logical(id.to_string())),
            Err(Error::BadRef(_)) => Ok(by_name()),
            // A text that looks like a slot or an id is a name only if a session of that name exists.
            Err(error @ (Error::UnknownSlot { .. } | Error::NoSession(_))) => {
                let key = session_key(&caller.tenant, &SessionName::Named(reference.to_owned()));
                if self.ports.store.get(&key).await?.is_some() { Ok(by_name()) } else { Err(error) }
            }
            Err(error) => Err(error),
        }
    }

    /// Returns all named sessions, the last used first.
    pub async fn named_sessions(&self, caller: &Caller) -> Result<Vec<NamedSession>, Error> {
        let shown = |row: JsSessionRow| match row.name {
            SessionName::Named(name) => {
                Some(NamedSession { name, used: row.used, js_entries: row.entries, head: row.head })
            }
            SessionName::Logical(_) => None,
        };
        let mut found: Vec<_> = self.js_session_rows(caller).await?.into_iter().filter_map(shown).collect();
        found.sort_by_key(|session| std::cmp::Reverse(session.used));
        Ok(found)
    }

    pub(super) async fn js_session_rows(&self, caller: &Caller) -> Result<Vec<JsSessionRow>, Error> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let (tenant, prefix) = (caller.tenant.clone(), String::new());
            let range = Range { tenant, table: Table::JsSession, prefix, after: after.take(), limit: PAGE };
            let page = self.ports.store.scan(&range).await?;
            for (id, row) in &page {
                found.push(rows::read(id, &row.value)?);
            }
            match page.last() {
                Some((last, _)) if page.len() == PAGE => after = Some(last.clone()),
                _ => return Ok(found),
            }
        }
    }

    /// Removes a named session with its log. Heaps that nothing else refers to are collected later.
    pub async fn remove_named_session(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        let session = SessionName::Named(name.to_owned());
        let key = session_key(&caller.tenant, &session);
        for _ in 0..TRIES {
            let found: Option<Versioned<JsSessionRow>> = self.fetch(&key).await?;
            let found = found.ok_or_else(|| Error::NoSession(base::printable(name, 80)))?;
            // Runs that end later would write to a new session of the same name.
            if !found.row.waiting.is_empty() {
                return Err(JsError::UnderWay.into());
            }
            let mut batch = Batch::default().delete(key.clone(), Expect::Version(found.version));
            let (mut after, prefix) = (None, format!("{}/", key.id));
            loop {
                let (tenant, table, prefix) = (caller.tenant.clone(), Table::SessionLog, prefix.clone());
                let page = self.ports.store.scan(&Range { tenant, table, prefix, after, limit: PAGE }).await?;
                let Some((last, _)) = page.last() else { break };
                after = Some(last.clone());
                for (id, row) in page {
                    batch = batch.delete(Key::new(&caller.tenant, table, id), Expect::Version(row.version));
                }
            }
            if self.try_commit(batch).await?.is_some() {
                return Ok(());
            }
        }
        Err(Error::Busy)
    }
}

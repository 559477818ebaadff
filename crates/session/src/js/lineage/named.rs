//! Sessions that connections are named by, from outside.
//! Invariant: one that is removed goes with its whole log, so that its name begins again at 0.

use base::{Digest, Timestamp};
use ports::store::{Batch, Expect, Key, Range, Table};
use serde::Serialize;

use crate::commit::TRIES;
use crate::engine::rows::{JsSessionRow, SessionName, session_key};
use crate::engine::view::InSession;
use crate::error::{Error, JsError};
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;
use access::Caller;

const PAGE: usize = 500;

/// A session that has no intent, only a name.
#[derive(Debug, Clone, Serialize)]
pub struct NamedSession {
    pub name: String,
    pub used: Timestamp,
    /// How many entries its log has.
    pub js_entries: u64,
    pub head: Option<Digest>,
}

impl Service {
    /// The session that a person means: a logical one by its slot, id or intent, else the one of this name.
    pub async fn session_meant(&self, caller: &Caller, reference: &str) -> Result<InSession, Error> {
        let named = || InSession::Named(reference.to_owned());
        match self.session_id(caller, reference).await {
            Ok(id) => Ok(InSession::Logical(id.to_string())),
            Err(Error::BadRef(_)) => Ok(named()),
            // What looks like a slot or an id is a name where it was used as one, else a mistake.
            Err(error @ (Error::UnknownSlot { .. } | Error::NoSession(_))) => {
                let key = session_key(&caller.tenant, &SessionName::Named(reference.to_owned()));
                if self.ports.store.get(&key).await?.is_some() { Ok(named()) } else { Err(error) }
            }
            Err(error) => Err(error),
        }
    }

    /// The last used first.
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

    /// Ends a session that connections are named by, with its log; heaps that nothing else leads to go by and by.
    pub async fn remove_named_session(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        let session = SessionName::Named(name.to_owned());
        let key = session_key(&caller.tenant, &session);
        for _ in 0..TRIES {
            let found: Option<Versioned<JsSessionRow>> = self.fetch(&key).await?;
            let found = found.ok_or_else(|| Error::NoSession(base::printable(name, 80)))?;
            // They would come back to a session of the same name that is another one.
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

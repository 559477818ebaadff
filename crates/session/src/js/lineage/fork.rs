//! Forks: a session that begins as all of another one.
//! Invariant: a fork copies rows that name things, never the things; until it is promoted its writes stop at the plan.

use base::{Digest, LogicalSessionId, Slot};
use ports::store::{Batch, Expect, Key, Table};

use crate::commit::{TRIES, unchanged};
use crate::engine::rows::{JsSessionRow, SessionName, session_key};
use crate::error::Error;
use crate::error::JsError;
use crate::reuse::intent_id;
use crate::rows::{self, ExecuteBinding, ExecuteRow, ForkedFrom, IntentRow, LogicalRow};
use crate::service::Service;
use access::Caller;

#[derive(Debug, Clone)]
pub struct Fork {
    /// A slot or a canonical id.
    pub session: String,
    /// Of the fork: what finds it again.
    pub intent: String,
    /// The entry of the log whose heap it starts from; the head where none is given.
    pub at: Option<u64>,
}

#[derive(Debug, Clone)]
pub struct Forked {
    pub slot: Slot,
    pub session: LogicalSessionId,
    pub head: Option<Digest>,
}

impl Service {
    pub async fn fork_session(&self, caller: &Caller, asked: &Fork) -> Result<Forked, Error> {
        if asked.intent.trim().is_empty() {
            return Err(Error::NoIntent);
        }
        if asked.intent.len() > self.limits.intent_bytes {
            return Err(Error::IntentTooLong { max: self.limits.intent_bytes, found: asked.intent.len() });
        }
        for _ in 0..TRIES {
            let (parent, _) = self.resolve(caller, &asked.session).await?;
            if self.intent(caller, &intent_id(&asked.intent)).await?.is_some() {
                return Err(JsError::IntentTaken.into());
            }
            let head = self.head_at(caller, parent, asked.at).await?;
            let id = self.new_logical_id();
            let mut assigned = self.slot_batch(caller, id).await?;
            let (slot, batch) = (assigned.slot, std::mem::take(&mut assigned.batch));
            let batch = self.fork_batch(caller, (parent, id, &asked.intent), batch).await?;
            let batch = self.fork_heap(caller, (parent, id, head), batch).await?;
            if self.try_commit(batch).await?.is_some() {
                return Ok(Forked { slot, session: id, head });
            }
        }
        Err(Error::Busy)
    }

    /// From here on its writes are its own.
    pub async fn promote_session(&self, caller: &Caller, session: &str) -> Result<(), Error> {
        let (id, _) = self.resolve(caller, session).await?;
        for _ in 0..TRIES {
            let found = self.logical(caller, id).await?.ok_or_else(|| Error::NoSession(id.to_string()))?;
            if !found.row.fenced {
                return Err(JsError::NotFenced.into());
            }
            let next = LogicalRow { fenced: false, ..found.row };
            let key = Key::new(&caller.tenant, Table::LogicalSession, id.to_string());
            if self.try_commit(Batch::default().put(key, rows::write(&next), unchanged(found.version))).await?.is_some()
            {
                return Ok(());
            }
        }
        Err(Error::Busy)
    }

    async fn head_at(
        &self,
        caller: &Caller,
        session: LogicalSessionId,
        at: Option<u64>,
    ) -> Result<Option<Digest>, Error> {
        let name = SessionName::Logical(session);
        let row = self.js_session(caller, &name).await?.row;
        let Some(index) = at else { return Ok(row.head) };
        let entry = self.entry(caller, &name, index).await?;
        let heap = entry.ok_or(JsError::NoEntry { index, entries: row.entries })?.output_heap;
        self.save_heap(&caller.tenant, heap).await?.ok_or(JsError::NoHeap(heap))?;
        Ok(Some(heap))
    }

    /// The fork's own rows for its intent, itself and its symbols.
    async fn fork_batch(
        &self,
        caller: &Caller,
        (parent, id, intent): (LogicalSessionId, LogicalSessionId, &str),
        mut batch: Batch,
    ) -> Result<Batch, Error> {
        let key = |table, id: String| Key::new(&caller.tenant, table, id);
        let missing = || Error::NoSession(parent.to_string());
        let from = self.logical(caller, parent).await?.ok_or_else(missing)?.row;
        let mut execute = None;
        if let Some(binding) = &from.execute
            && let Some(symbols) = self.execute(caller, binding).await?
        {
            let own = ExecuteBinding { session_id: self.new_execute_id(), ..binding.clone() };
            let row = ExecuteRow { logical_session: id, ..symbols.row };
            batch =
                batch.put(key(Table::ExecuteSession, own.session_id.to_string()), rows::write(&row), Expect::Absent);
            execute = Some(own);
        }
        let forked = Some(ForkedFrom { session: parent, runs: from.runs, pages: from.pages });
        let (intent_row, created) = (IntentRow { logical_session: id }, self.now());
        let (intent_text, used, name, fenced) = (intent.to_owned(), created, None, true);
        let row = LogicalRow { intent: intent_text, created, used, name, execute, forked, fenced, ..from };
        Ok(batch.put(key(Table::Intent, intent_id(intent)), rows::write(&intent_row), Expect::Absent).put(
            key(Table::LogicalSession, id.to_string()),
            rows::write(&row),
            Expect::Absent,
        ))
    }

    async fn fork_heap(
        &self,
        caller: &Caller,
        (parent, id, head): (LogicalSessionId, LogicalSessionId, Option<Digest>),
        batch: Batch,
    ) -> Result<Batch, Error> {
        let from = SessionName::Logical(parent);
        let entries = self.js_session(caller, &from).await?.row.entries;
        let name = SessionName::Logical(id);
        let key = session_key(&caller.tenant, &name);
        let row = JsSessionRow { head, forked: Some((from, entries)), used: self.now(), ..JsSessionRow::new(name) };
        Ok(batch.put(key, rows::write(&row), Expect::Absent))
    }
}

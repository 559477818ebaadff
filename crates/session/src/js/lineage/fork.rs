//! Forks: a session that starts as a copy of another one.
//! Invariant: a fork copies the rows that refer to data, never the data; until it is promoted its writes stop at the
//! plan.

use access::Caller;
use base::{Digest, LogicalSessionId, Slot};
use ports::store::{Batch, Expect, Key, Table};

use crate::commit::{TRIES, unchanged};
use crate::engine::rows::{JsSessionRow, SessionName, session_key};
use crate::error::Error;
use crate::error::JsError;
use crate::reuse_key::intent_id;
use crate::rows::{self, ExecuteBinding, ExecuteRow, ForkedFrom, IntentRow, LogicalRow};
use crate::service::Service;

/// The session to fork and how.
#[derive(Debug, Clone)]
pub struct ForkRequest {
    /// A slot or a canonical id.
    pub session: String,
    /// The intent of the fork, by which it is found again.
    pub intent: String,
    /// The log entry whose heap the fork starts from. Without one it starts from the head.
    pub at: Option<u64>,
}

/// The new session.
#[derive(Debug, Clone)]
pub struct ForkedSession {
    /// The slot that the caller got for the fork.
    pub slot: Slot,
    pub session: LogicalSessionId,
    /// The heap that the fork's first script starts from.
    pub head: Option<Digest>,
}

impl Service {
    /// Forks a session. The fork shares all heaps, runs and results of its parent up to this moment.
    pub async fn fork_session(&self, caller: &Caller, request: &ForkRequest) -> Result<ForkedSession, Error> {
        if request.intent.trim().is_empty() {
            return Err(Error::NoIntent);
        }
        if request.intent.len() > self.limits.intent_bytes {
            return Err(Error::IntentTooLong { max: self.limits.intent_bytes, found: request.intent.len() });
        }
        for _ in 0..TRIES {
            let (parent, _) = self.resolve(caller, &request.session).await?;
            if self.intent(caller, &self.intent_row_id(caller, &request.intent)).await?.is_some() {
                return Err(JsError::IntentTaken.into());
            }
            let head = self.head_at(caller, parent, request.at).await?;
            let id = self.new_logical_id();
            // The assignment holds the connection's turn, so it lives until the commit.
            let mut assigned = self.slot_batch(caller, id).await?;
            let batch = std::mem::take(&mut assigned.batch);
            let batch = self.add_session_rows(caller, parent, id, &request.intent, batch).await?;
            let batch = self.add_js_session_row(caller, parent, id, head, batch).await?;
            if self.try_commit(batch).await?.is_some() {
                return Ok(ForkedSession { slot: assigned.slot, session: id, head });
            }
        }
        Err(Error::Busy)
    }

    /// Allows the fork to write. Its plans then run like those of any other session.
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

    /// Returns the heap that the fork starts from.
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
        self.retain_heap(&caller.tenant, heap).await?.ok_or(JsError::NoHeap(heap))?;
        Ok(Some(heap))
    }

    /// Adds the fork's rows for its intent, its logical session and its execute session.
    async fn add_session_rows(
        &self,
        caller: &Caller,
        parent: LogicalSessionId,
        id: LogicalSessionId,
        intent: &str,
        mut batch: Batch,
    ) -> Result<Batch, Error> {
        let key = |table, id: String| Key::new(&caller.tenant, table, id);
        let from = self.logical(caller, parent).await?.ok_or_else(|| Error::NoSession(parent.to_string()))?.row;
        let mut execute = None;
        if let Some(binding) = &from.execute
            && let Some(symbols) = self.execute(caller, binding).await?
        {
            // The fork has the same symbols under an address of its own, so that a wave of one does not change the other.
            let binding = ExecuteBinding { session_id: self.new_execute_id(), ..binding.clone() };
            let execute_key = key(Table::ExecuteSession, binding.session_id.to_string());
            let row = ExecuteRow { logical_session: id, ..symbols.row };
            batch = batch.put(execute_key, rows::write(&row), Expect::Absent);
            execute = Some(binding);
        }
        let now = self.now();
        let intent_row_id = self.intent_row_id(caller, intent);
        // The counters go on from those of the parent, so that a number means one run in both sessions.
        let row = LogicalRow {
            intent: intent.to_owned(),
            created: now,
            used: now,
            name: Some(intent_row_id.clone()).filter(|id| *id != intent_id(intent)),
            owner: self.owner(caller),
            execute,
            forked: Some(ForkedFrom { session: parent, runs: from.runs, pages: from.pages }),
            fenced: true,
            ..from
        };
        let intent_row = IntentRow { logical_session: id };
        Ok(batch.put(key(Table::Intent, intent_row_id), rows::write(&intent_row), Expect::Absent).put(
            key(Table::LogicalSession, id.to_string()),
            rows::write(&row),
            Expect::Absent,
        ))
    }

    /// Adds the fork's row for JavaScript.
    async fn add_js_session_row(
        &self,
        caller: &Caller,
        parent: LogicalSessionId,
        id: LogicalSessionId,
        head: Option<Digest>,
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

//! Ends a run: its row, its heap, and its session's head, log entry, queue and tags are written in one transaction.
//! Invariant: a final state is written only over the version that was read, so it never changes; only a completed run
//! moves its session's head and is logged; no caller waits for a session's turn while a blob is put.

use access::{Caller, Identity};
use base::{ExecutionId, TenantId};
use ports::scripts::Heap;
use ports::store::{Batch, Expect, Write};
use tokio::sync::OwnedMutexGuard;

use super::fast_path::SessionAtStart;
use crate::commit::{TRIES, unchanged};
use crate::engine::rows::{self as js_rows, ExecutionRow, JsSessionRow, LogRow};
use crate::engine::view::ExecutionState;
use crate::error::Error;
use crate::js::heaps::CommittedHeap;
use crate::js::output::piece_writes;
use crate::js::tags::tag_write;
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;

/// The end of a run, before it is stored.
pub(super) struct EndRequest<'a> {
    pub tenant: &'a TenantId,
    pub id: ExecutionId,
    pub at: &'a Versioned<ExecutionRow>,
    /// The final row.
    pub next: ExecutionRow,
    /// The heap of a completed run.
    pub heap: Option<&'a Heap>,
    /// The console output pieces that changed.
    pub pieces: Vec<(usize, String)>,
    /// The session, for a run that was never stored.
    pub began: Option<SessionAtStart>,
}

/// Whether an end was stored.
pub(super) enum EndOutcome {
    Done(Versioned<ExecutionRow>),
    /// Another task or process changed the run first.
    Changed(Versioned<ExecutionRow>),
    /// The run was never stored, and its session has changed since it started. It had no effect.
    Moved,
}

impl Service {
    pub(super) async fn end(&self, ending: EndRequest<'_>) -> Result<EndOutcome, Error> {
        let EndRequest { tenant, id, at, next, heap, pieces, began } = ending;
        let caller = tenant_caller(tenant);
        let queue = next.session.as_ref().map(|name| super::accept::queue_name(&caller, name));
        // Done before the turn is taken: storing the heap may be slow, and other runs of the session should start,
        // queue and cancel meanwhile.
        let mut left_first = Some(self.left(tenant, heap, (&at.row, &next), false).await?);
        let (turn, mut session) = self.enter_session(began, queue.as_deref()).await;
        let (key, value) = (js_rows::execution_key(tenant, id), rows::write(&next));
        let others = piece_writes(tenant, id, pieces);
        for _ in 0..TRIES {
            let mut batch = Batch::default().put(key.clone(), value.clone(), unchanged(at.version));
            if at.version > 0 {
                batch = batch.delete(js_rows::open_key(tenant, id), Expect::Any);
            }
            batch.writes.extend(others.iter().cloned());
            let (left, stored) = match left_first.take() {
                Some(left) => left,
                None => self.left(tenant, heap, (&at.row, &next), true).await?,
            };
            batch.writes.extend(left);
            if let Some(name) = &next.session {
                let found = match session.take() {
                    Some(found) => found,
                    None => self.js_session(&caller, name).await?,
                };
                if at.version == 0
                    && next.state != ExecutionState::Cancelled
                    && !session_is_unchanged(&next, &found.row)
                {
                    return Ok(EndOutcome::Moved);
                }
                // A session that was removed while the run was active stays removed.
                if at.version == 0 || found.version > 0 {
                    batch.writes.extend(session_after_run(tenant, id, found, &next));
                }
            }
            let error = match self.try_commit(batch).await {
                Ok(Some(())) => {
                    if let Some(stored) = stored {
                        self.record_stored_heap(tenant, &stored)?;
                    }
                    self.notify_end(turn, queue.as_deref())?;
                    return Ok(EndOutcome::Done(Versioned { row: next, version: at.version + 1 }));
                }
                Ok(None) => None,
                Err(error) => Some(error),
            };
            let found: Option<Versioned<ExecutionRow>> = self.fetch(&key).await?;
            if found.is_none() && at.version > 0 {
                return Err(Error::Damaged(key.id));
            }
            if let Some(found) = found.filter(|found| found.version != at.version) {
                // If the answer of the store was lost, the row shows whether this end was written.
                let mine = found.version == at.version + 1 && rows::write(&found.row) == value;
                self.notify_end(turn, queue.as_deref())?;
                return Ok(if mine { EndOutcome::Done(found) } else { EndOutcome::Changed(found) });
            }
            if let Some(error) = error {
                return Err(error);
            }
        }
        Err(Error::Busy)
    }

    /// Takes the session's turn. Also returns the session if it was read under that turn.
    async fn enter_session(
        &self,
        began: Option<SessionAtStart>,
        queue: Option<&str>,
    ) -> (Option<OwnedMutexGuard<()>>, Option<Versioned<JsSessionRow>>) {
        match (began, queue) {
            (Some(began), _) => (Some(began.turn), Some(began.session)),
            (None, Some(queue)) => (Some(self.turn(queue).await), None),
            (None, None) => (None, None),
        }
    }

    /// Returns the writes that store the run's heap and its tags.
    async fn left(
        &self,
        tenant: &TenantId,
        heap: Option<&Heap>,
        (at, run): (&ExecutionRow, &ExecutionRow),
        look: bool,
    ) -> Result<(Vec<Write>, Option<CommittedHeap>), Error> {
        let Some(heap) = heap else { return Ok((Vec::new(), None)) };
        self.store_engine_for_run(tenant, at).await?;
        let new = self.heap_write(tenant, heap, run.input_heap, look).await?;
        let tags = run.tags.as_ref().map(|tags| tag_write(tenant, heap.key, tags));
        let stored = new.committed(heap.key);
        Ok((new.write.into_iter().chain(tags).collect(), Some(stored)))
    }

    /// Releases the turn and wakes the next run in the queue.
    fn notify_end(&self, turn: Option<OwnedMutexGuard<()>>, queue: Option<&str>) -> Result<(), Error> {
        drop(turn);
        if let Some(queue) = queue {
            self.js()?.notify(queue);
        }
        Ok(())
    }
}

/// Whether a run that started outside of the queue would start from the same heap now.
fn session_is_unchanged(run: &ExecutionRow, session: &JsSessionRow) -> bool {
    session.waiting.is_empty() && super::accept::input(run.from, session.head) == run.input_heap
}

/// Returns the session after the run: its queue without the run, and for a completed run the next head and log entry.
fn session_after_run(
    tenant: &TenantId,
    id: ExecutionId,
    found: Versioned<JsSessionRow>,
    next: &ExecutionRow,
) -> Vec<Write> {
    let Versioned { mut row, version } = found;
    let (name, mut writes) = (row.name.clone(), Vec::new());
    row.waiting.retain(|waiting| *waiting != id);
    row.used = next.ended.unwrap_or(row.used);
    if let (ExecutionState::Completed, Some(output_heap), Some(timestamp)) = (next.state, next.heap, next.ended) {
        let entry = LogRow {
            input_heap: next.input_heap,
            output_heap,
            code: next.code.clone(),
            timestamp,
            execution: Some(id),
            rewound_to: None,
            gone: false,
        };
        let key = js_rows::log_key(tenant, &name, row.entries);
        writes.push(Write::Put { key, value: rows::write(&entry), expect: Expect::Absent });
        row.head = Some(output_heap);
        row.entries += 1;
    }
    let key = js_rows::session_key(tenant, &name);
    writes.push(Write::Put { key, value: rows::write(&row), expect: unchanged(version) });
    writes
}

/// Returns a caller for reading rows, for which only the tenant matters.
pub(super) fn tenant_caller(tenant: &TenantId) -> Caller {
    Identity { tenant: tenant.clone(), principal: base::Principal::local() }.caller(None)
}

//! The end of a run: its row, its heap, its session's head, log entry, queue and tags, in one transaction.
//! Invariant: a final state is written only over the version that was read, so it never changes; only a completed run moves
//! its session's head and is logged; nobody waits for the turn of a session while a blob is put.

use base::{ExecutionId, TenantId};
use ports::scripts::Heap;
use ports::store::{Batch, Expect, Write};
use tokio::sync::OwnedMutexGuard;

use super::brief::Began;
use crate::commit::{TRIES, unchanged};
use crate::engine::rows::{self as js_rows, ExecutionRow, JsSessionRow, LogRow};
use crate::engine::view::State;
use crate::error::Error;
use crate::js::heaps::StoredNow;
use crate::js::output::piece_writes;
use crate::js::tags::tag_write;
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;
use access::{Caller, Identity};

pub(super) struct Ending<'a> {
    pub tenant: &'a TenantId,
    pub id: ExecutionId,
    pub at: &'a Versioned<ExecutionRow>,
    /// Final.
    pub next: ExecutionRow,
    /// What a completed run leaves.
    pub heap: Option<&'a Heap>,
    /// Of its console output.
    pub pieces: Vec<(usize, String)>,
    /// The session of a run that was never stored.
    pub began: Option<Began>,
}

pub(super) enum Ended {
    Done(Versioned<ExecutionRow>),
    /// Someone else changed it first.
    Changed(Versioned<ExecutionRow>),
    /// It was never stored, and its session is not the one it began in: it has done nothing.
    Moved,
}

impl Service {
    pub(super) async fn end(&self, ending: Ending<'_>) -> Result<Ended, Error> {
        let Ending { tenant, id, at, next, heap, pieces, began } = ending;
        let caller = of_tenant(tenant);
        let queue = next.session.as_ref().map(|name| super::accept::queue_name(&caller, name));
        // Before the turn: it may take as long as the storage does, and others of the session begin, queue and cancel meanwhile.
        let mut left_first = Some(self.left(tenant, heap, (&at.row, &next), false).await?);
        let (turn, mut session) = self.entered(began, queue.as_deref()).await;
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
                if at.version == 0 && next.state != State::Cancelled && !began_in(&next, &found.row) {
                    return Ok(Ended::Moved);
                }
                // One that was removed while the run was under way stays removed.
                if at.version == 0 || found.version > 0 {
                    batch.writes.extend(advanced(tenant, id, found, &next));
                }
            }
            let error = match self.try_commit(batch).await {
                Ok(Some(())) => {
                    if let Some(stored) = stored {
                        self.heap_is_stored(tenant, &stored)?;
                    }
                    self.told_of_end(turn, queue.as_deref())?;
                    return Ok(Ended::Done(Versioned { row: next, version: at.version + 1 }));
                }
                Ok(None) => None,
                Err(error) => Some(error),
            };
            let found: Option<Versioned<ExecutionRow>> = self.fetch(&key).await?;
            if found.is_none() && at.version > 0 {
                return Err(Error::Damaged(key.id));
            }
            if let Some(found) = found.filter(|found| found.version != at.version) {
                // Where the answer of the store was lost, the row tells whose end it was.
                let mine = found.version == at.version + 1 && rows::write(&found.row) == value;
                self.told_of_end(turn, queue.as_deref())?;
                return Ok(if mine { Ended::Done(found) } else { Ended::Changed(found) });
            }
            if let Some(error) = error {
                return Err(error);
            }
        }
        Err(Error::Busy)
    }

    /// The turn of a run's session, and the session where it was read under that turn.
    async fn entered(
        &self,
        began: Option<Began>,
        queue: Option<&str>,
    ) -> (Option<OwnedMutexGuard<()>>, Option<Versioned<JsSessionRow>>) {
        match (began, queue) {
            (Some(began), _) => (Some(began.turn), Some(began.session)),
            (None, Some(queue)) => (Some(self.turn(queue).await), None),
            (None, None) => (None, None),
        }
    }

    /// What stores the heap that a run leaves, with its tags; its key, and how many objects its reader will need.
    async fn left(
        &self,
        tenant: &TenantId,
        heap: Option<&Heap>,
        (at, run): (&ExecutionRow, &ExecutionRow),
        look: bool,
    ) -> Result<(Vec<Write>, Option<StoredNow>), Error> {
        let Some(heap) = heap else { return Ok((Vec::new(), None)) };
        self.keep_guest_of(tenant, at).await?;
        let new = self.heap_write(tenant, (heap, run.input_heap), look).await?;
        let tags = run.tags.as_ref().map(|tags| tag_write(tenant, heap.key, tags));
        let stored = new.of(heap.key);
        Ok((new.write.into_iter().chain(tags).collect(), Some(stored)))
    }

    /// The next one in the queue may start.
    fn told_of_end(&self, turn: Option<OwnedMutexGuard<()>>, queue: Option<&str>) -> Result<(), Error> {
        drop(turn);
        if let Some(queue) = queue {
            self.js()?.changed(queue);
        }
        Ok(())
    }
}

/// Whether a run that has begun without a place in the queue began where it would begin now.
fn began_in(run: &ExecutionRow, session: &JsSessionRow) -> bool {
    session.waiting.is_empty() && super::accept::input(run.from, session.head) == run.input_heap
}

/// The session after the run: its queue without it, and for a completed one the next head and entry.
fn advanced(tenant: &TenantId, id: ExecutionId, found: Versioned<JsSessionRow>, next: &ExecutionRow) -> Vec<Write> {
    let Versioned { mut row, version } = found;
    let (name, mut writes) = (row.name.clone(), Vec::new());
    row.waiting.retain(|waiting| *waiting != id);
    row.used = next.ended.unwrap_or(row.used);
    if let (State::Completed, Some(output_heap), Some(timestamp)) = (next.state, next.heap, next.ended) {
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

/// To rows it is enough to be of the tenant.
pub(super) fn of_tenant(tenant: &TenantId) -> Caller {
    Identity { tenant: tenant.clone(), principal: base::Principal::local() }.caller(None)
}

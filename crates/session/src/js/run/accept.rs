//! Accepts a run: checks it, gives it a place in its session's queue, and stores it.
//! Invariant: an invalid request is refused before anything is stored; a run that is first in its queue is started by
//! the same transaction.

use std::collections::BTreeMap;

use access::Caller;
use base::{Digest, ExecutionId, Slot};
use durable::Lease;
use ports::store::{Batch, Expect};
use tokio::sync::OwnedMutexGuard;

use super::ended;
use crate::commit::{TRIES, unchanged};
use crate::engine::JsSettings;
use crate::engine::rows::{self as js_rows, ExecutionRow, JsSessionRow, OutputIndex, SessionName, StartFrom};
use crate::engine::view::{ExecutionState, RunJsRequest, SessionTarget, UncaughtError};
use crate::error::Error;
use crate::error::JsError;
use crate::js::heaps::parse_key;
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;

const NAME_CHARS: usize = 256;

impl Service {
    /// Checks a run. Nothing is stored, except for a run whose code cannot be parsed, which is stored as failed.
    pub(super) async fn check_run(
        &self,
        caller: &Caller,
        asked: &RunJsRequest,
    ) -> Result<(ExecutionId, ExecutionRow), Error> {
        let js = self.js()?;
        check(&js.settings, asked)?;
        if js.lives.count(&caller.tenant) >= js.settings.runs {
            return Err(JsError::Busy { what: "this server has", most: js.settings.runs }.into());
        }
        self.check_heap_room(&caller.tenant).await?;
        let (session, slot) = self.js_session_of(caller, &asked.session).await?.unzip();
        let (from, warning) = self.start_from(caller, asked, session.as_ref()).await?;
        let (code, refused) = match js.scripts.to_javascript(&asked.code) {
            Ok(code) => (code, None),
            Err(thrown) => (asked.code.clone(), Some(UncaughtError::from(thrown))),
        };
        let row = ExecutionRow {
            principal: caller.principal.clone(),
            session,
            slot: slot.flatten(),
            code,
            from,
            input_heap: None,
            warning,
            tags: asked.tags.clone(),
            timeout_ms: asked.timeout_ms.unwrap_or(js.settings.timeout_ms),
            memory_bytes: asked.memory_mb.unwrap_or(js.settings.memory_mb) * 1024 * 1024,
            headers: asked.headers.clone(),
            state: ExecutionState::Queued,
            accepted: self.now(),
            started: None,
            ended: None,
            owner: self.owners.me(),
            parked: None,
            result: None,
            error: None,
            heap: None,
            output: OutputIndex::default(),
        };
        let id = ExecutionId::new_at(row.accepted, self.ports.entropy.bytes());
        if let Some(error) = refused {
            let row = ExecutionRow { error: Some(error), ..ended(&row, ExecutionState::Failed, row.accepted) };
            let key = js_rows::execution_key(&caller.tenant, id);
            self.ports.store.commit(Batch::default().put(key, rows::write(&row), Expect::Absent)).await?;
            return Ok((id, row));
        }
        Ok((id, row))
    }

    /// Stores the run with its place in the queue. A caller that holds the session's turn passes it.
    pub(super) async fn accept(
        &self,
        caller: &Caller,
        id: ExecutionId,
        row: ExecutionRow,
        turn: Option<OwnedMutexGuard<()>>,
    ) -> Result<Versioned<ExecutionRow>, Error> {
        let tenant = &caller.tenant;
        let key = js_rows::execution_key(tenant, id);
        let _turn = match (turn, &row.session) {
            (None, Some(name)) => Some(self.turn(&queue_name(caller, name)).await),
            (turn, _) => turn,
        };
        let most = self.js()?.settings.queue;
        // A run that started on the fast path keeps its start time, unless its input heap changed since.
        let (began, stood_on) = (row.started, row.input_heap);
        for _ in 0..TRIES {
            let (mut batch, mut row) = (Batch::default(), row.clone());
            let mut first = true;
            if let Some(name) = &row.session {
                let mut found = self.js_session_for_new_run(caller, name).await?;
                // The run may already be in the queue, because an earlier attempt was applied although its answer was
                // lost.
                if found.row.waiting.len() >= most && !found.row.waiting.contains(&id) {
                    return Err(JsError::Busy { what: "this session has", most }.into());
                }
                first = found.row.waiting.is_empty();
                row.input_heap = if first { input(row.from, found.row.head) } else { None };
                found.row.waiting.push(id);
                found.row.used = self.now();
                let key = js_rows::session_key(tenant, name);
                batch = batch.put(key, rows::write(&found.row), unchanged(found.version));
            } else {
                row.input_heap = input(row.from, None);
            }
            (row.state, row.started) = if first {
                let began = began.filter(|_| row.input_heap == stood_on);
                (ExecutionState::Running, began.or_else(|| Some(self.now())))
            } else {
                (ExecutionState::Queued, None)
            };
            batch = batch.put(key.clone(), rows::write(&row), Expect::Absent);
            let lease = Lease::first(row.owner);
            batch = batch.put(js_rows::open_key(tenant, id), rows::write(&lease), Expect::Absent);
            match self.try_commit(batch).await {
                Ok(Some(())) => return Ok(Versioned { row, version: 1 }),
                // The answer of the store may have been lost after the transaction was applied.
                Ok(None) => {
                    if let Some(found) = self.fetch(&key).await? {
                        return Ok(found);
                    }
                }
                Err(error) => match self.fetch(&key).await {
                    Ok(Some(found)) => return Ok(found),
                    _ => return Err(error),
                },
            }
        }
        Err(Error::Busy)
    }

    /// Returns the session that a call names, with the caller's slot for a logical one.
    pub(crate) async fn js_session_of(
        &self,
        caller: &Caller,
        session: &SessionTarget,
    ) -> Result<Option<(SessionName, Option<Slot>)>, Error> {
        match session {
            SessionTarget::None => Ok(None),
            SessionTarget::Logical(reference) => {
                let (id, slot) = self.resolve(caller, reference).await?;
                Ok(Some((SessionName::Logical(id), Some(slot))))
            }
            SessionTarget::Named(name) => {
                let long = name.chars().count() > NAME_CHARS;
                if name.is_empty() || long || name.chars().any(char::is_control) {
                    return Err(JsError::BadName(NAME_CHARS).into());
                }
                Ok(Some((self.named_session(caller, name), None)))
            }
        }
    }

    pub(crate) async fn js_session(
        &self,
        caller: &Caller,
        name: &SessionName,
    ) -> Result<Versioned<JsSessionRow>, Error> {
        let found = self.fetch(&js_rows::session_key(&caller.tenant, name)).await?;
        Ok(found.unwrap_or_else(|| Versioned { row: JsSessionRow::new(name.clone()), version: 0 }))
    }

    /// Returns the session for a new run. A logical session must still exist, since it may have been removed
    /// meanwhile.
    pub(super) async fn js_session_for_new_run(
        &self,
        caller: &Caller,
        name: &SessionName,
    ) -> Result<Versioned<JsSessionRow>, Error> {
        let found = self.js_session(caller, name).await?;
        if let (0, SessionName::Logical(id)) = (found.version, name)
            && self.logical(caller, *id).await?.is_none()
        {
            return Err(Error::NoSession(id.to_string()));
        }
        Ok(found)
    }

    async fn start_from(
        &self,
        caller: &Caller,
        asked: &RunJsRequest,
        session: Option<&SessionName>,
    ) -> Result<(StartFrom, Option<String>), Error> {
        let head = match session {
            Some(SessionName::Logical(_)) => true,
            Some(SessionName::Named(_)) => self.js()?.settings.resume_named_sessions,
            None => false,
        };
        match asked.heap.as_deref() {
            None if head => Ok((StartFrom::Head, None)),
            None | Some("") => Ok((StartFrom::Fresh, None)),
            Some(text) => {
                let key = parse_key(text)?;
                if self.retain_heap(&caller.tenant, key).await?.is_some() {
                    return Ok((StartFrom::Heap(key), None));
                }
                if asked.require_heap {
                    return Err(JsError::NoHeap(key).into());
                }
                Ok((StartFrom::Fresh, Some(format!("no heap {key} in storage; the run started fresh"))))
            }
        }
    }
}

/// Returns the heap that a run starts from when its turn has come.
pub(super) fn input(from: StartFrom, head: Option<Digest>) -> Option<Digest> {
    match from {
        StartFrom::Fresh => None,
        StartFrom::Heap(key) => Some(key),
        StartFrom::Head => head,
    }
}

pub(super) fn queue_name(caller: &Caller, name: &SessionName) -> String {
    format!("js/{}/{}", caller.tenant, name.row_id())
}

fn check(settings: &JsSettings, asked: &RunJsRequest) -> Result<(), Error> {
    if asked.code.trim().is_empty() {
        return Err(JsError::NoCode.into());
    }
    if asked.code.len() > settings.code_bytes {
        return Err(JsError::CodeTooLong { max: settings.code_bytes, found: asked.code.len() }.into());
    }
    let limits = [
        ("timeout_ms", asked.timeout_ms, settings.most_timeout_ms),
        ("memory_mb", asked.memory_mb, settings.most_memory_mb),
    ];
    for (name, given, most) in limits {
        if let Some(found) = given.filter(|given| *given == 0 || *given > most) {
            return Err(JsError::BadLimit { name, least: 1, most, found }.into());
        }
    }
    let none = BTreeMap::new();
    Ok(crate::js::tags::check_tags(asked.tags.as_ref().unwrap_or(&none))?)
}

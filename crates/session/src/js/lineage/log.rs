//! The log of a session.
//! Invariant: indexes are contiguous from 0, because an entry and the count of entries are written together.

use std::collections::BTreeSet;

use access::Caller;
use base::Digest;
use ports::store::{Batch, Expect, Range, Row, Table};

use crate::commit::{TRIES, unchanged};
use crate::engine::rows::{JsSessionRow, LogRow, SessionName, log_key, session_key};
use crate::engine::view::{LogEntry, SessionTarget};
use crate::error::Error;
use crate::error::JsError;
use crate::list_page::{ListPage, ListRequest, PageBuilder, json_length};
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;

/// The number of rows that one scan reads. Each may have as much code as a run may have.
const PAGE: usize = 100;
/// The bytes of an entry in an answer beside its code: two keys of heaps, the time, the index and the names of the fields.
const ENTRY_BYTES: usize = 320;

/// The history of a session, for drawing it.
#[derive(Debug, Clone)]
pub struct Lineage {
    /// The name of the session.
    pub session: String,
    /// All entries of its log, the oldest first.
    pub nodes: Vec<LineageNode>,
    /// The heap that the next script starts from.
    pub head: Option<Digest>,
    /// The session it was forked from, and the number of entries that session had.
    pub forked: Option<(String, u64)>,
}

/// One entry in the history.
#[derive(Debug, Clone)]
pub struct LineageNode {
    pub entry: LogEntry,
    /// The entry of this session that produced the heap this one started from.
    pub previous: Option<u64>,
}

impl Service {
    /// Returns the sorted names of the sessions that have a log entry.
    pub async fn js_sessions(&self, caller: &Caller, request: &ListRequest) -> Result<ListPage<String>, Error> {
        self.js()?;
        // The rows are not in the order of the names, so all are read, and only the names of this page are kept: one more than
        // it can have, which shows that there is another page.
        let most = request.limit.unwrap_or(self.limits.list_rows).clamp(1, self.limits.list_rows) + 1;
        let mut names = BTreeSet::new();
        let mut total = 0;
        self.each_js_session(caller, |row| {
            if row.entries > 0 {
                total += 1;
                let name = self.shown_name(caller, &row.name);
                if request.after.as_ref().is_none_or(|after| name > *after) {
                    names.insert(name);
                    if names.len() > most {
                        names.pop_last();
                    }
                }
            }
        })
        .await?;
        let mut page = PageBuilder::new(&self.limits, request);
        for name in names {
            page.push(&name.clone(), json_length(&name) + 1, name);
        }
        Ok(page.finish(total))
    }

    /// Returns a page of a session's log, the oldest entry first. `with_code` tells whether the answer has the code of the entries,
    /// which counts for its size.
    pub async fn session_log_page(
        &self,
        caller: &Caller,
        session: &SessionTarget,
        request: &ListRequest,
        with_code: bool,
    ) -> Result<ListPage<LogEntry>, Error> {
        let (name, found) = self.find_js_session(caller, session).await?;
        let mut after = match request.after.as_deref() {
            Some(index) => {
                let index: u64 = index.parse().map_err(|_| JsError::BadAfter)?;
                Some(log_key(&caller.tenant, &name, index).id)
            }
            None => None,
        };
        let mut entries = PageBuilder::new(&self.limits, request);
        loop {
            let page = self.log_rows(caller, &name, after.take()).await?;
            for (id, row) in &page {
                let entry = read_entry(id, &row.value)?;
                let code_bytes = if with_code { json_length(&entry.code) } else { 0 };
                entries.push(&entry.index.to_string(), ENTRY_BYTES + code_bytes, entry);
            }
            match page.last() {
                Some((last, _)) if page.len() == PAGE && !entries.is_full() => after = Some(last.clone()),
                _ => return Ok(entries.finish(found.row.entries)),
            }
        }
    }

    /// Returns all entries of a session's log, however many there are. Answers to clients have pages instead.
    pub async fn session_log(&self, caller: &Caller, session: &SessionTarget) -> Result<Vec<LogEntry>, Error> {
        let (name, _) = self.find_js_session(caller, session).await?;
        self.entries_of(caller, &name).await
    }

    /// Returns the history of a session.
    pub async fn session_lineage(&self, caller: &Caller, session: &SessionTarget) -> Result<Lineage, Error> {
        let (name, found) = self.find_js_session(caller, session).await?;
        let entries = self.entries_of(caller, &name).await?;
        // Several entries may have produced the same heap. The latest one before the entry is its predecessor.
        let previous = |entry: &LogEntry| {
            let earlier = entries.iter().take_while(|other| other.index < entry.index);
            let input_heap = entry.input_heap?;
            earlier.filter(|other| other.output_heap == input_heap).last().map(|other| other.index)
        };
        let nodes =
            entries.iter().map(|entry| LineageNode { entry: entry.clone(), previous: previous(entry) }).collect();
        let forked = found.row.forked.map(|(from, entries)| (self.shown_name(caller, &from), entries));
        Ok(Lineage { session: self.shown_name(caller, &name), nodes, head: found.row.head, forked })
    }

    /// Moves the head of a session back to the heap of an earlier entry. The rewind is an entry of its own.
    pub async fn rewind_session(&self, caller: &Caller, session: &str, index: u64) -> Result<LogEntry, Error> {
        let target = SessionTarget::Logical(session.to_owned());
        for _ in 0..TRIES {
            let (name, Versioned { row, version }) = self.find_js_session(caller, &target).await?;
            // A run that has not ended would move the head away again.
            if !row.waiting.is_empty() {
                return Err(JsError::UnderWay.into());
            }
            let target_entry = self.entry(caller, &name, index).await?;
            let heap = target_entry.ok_or(JsError::NoEntry { index, entries: row.entries })?.output_heap;
            // The heap may be condemned, since only young entries keep theirs.
            self.retain_heap(&caller.tenant, heap).await?.ok_or(JsError::NoHeap(heap))?;
            let entry = LogRow {
                input_heap: row.head,
                output_heap: heap,
                code: String::new(),
                timestamp: self.now(),
                execution: None,
                rewound_to: Some(index),
                gone: false,
            };
            let new_index = row.entries;
            let next = JsSessionRow { head: Some(heap), entries: new_index + 1, used: self.now(), ..row };
            let batch = Batch::default()
                .put(session_key(&caller.tenant, &name), rows::write(&next), unchanged(version))
                .put(log_key(&caller.tenant, &name, new_index), rows::write(&entry), Expect::Absent);
            if self.try_commit(batch).await?.is_some() {
                return Ok(log_entry(new_index, entry));
            }
        }
        Err(Error::Busy)
    }

    /// Returns the session that a caller means, with an empty row if no script ran in it yet.
    pub(super) async fn find_js_session(
        &self,
        caller: &Caller,
        session: &SessionTarget,
    ) -> Result<(SessionName, Versioned<JsSessionRow>), Error> {
        self.js()?;
        let (name, _) = self.js_session_of(caller, session).await?.ok_or(JsError::NoName)?;
        let found = self.js_session(caller, &name).await?;
        Ok((name, found))
    }

    /// Returns one entry of a log.
    pub(super) async fn entry(
        &self,
        caller: &Caller,
        name: &SessionName,
        index: u64,
    ) -> Result<Option<LogEntry>, Error> {
        let found: Option<Versioned<LogRow>> = self.fetch(&log_key(&caller.tenant, name, index)).await?;
        Ok(found.map(|found| log_entry(index, found.row)))
    }

    /// Returns all entries of a log, the oldest first.
    async fn entries_of(&self, caller: &Caller, name: &SessionName) -> Result<Vec<LogEntry>, Error> {
        let mut entries = Vec::new();
        let mut after = None;
        loop {
            let page = self.log_rows(caller, name, after.take()).await?;
            for (id, row) in &page {
                entries.push(read_entry(id, &row.value)?);
            }
            match page.last() {
                Some((last, _)) if page.len() == PAGE => after = Some(last.clone()),
                _ => return Ok(entries),
            }
        }
    }

    /// Reads some rows of a log, after the one with this id.
    async fn log_rows(
        &self,
        caller: &Caller,
        name: &SessionName,
        after: Option<String>,
    ) -> Result<Vec<(String, Row)>, Error> {
        let range = Range {
            tenant: caller.tenant.clone(),
            table: Table::SessionLog,
            prefix: format!("{}/", name.row_id()),
            after,
            limit: PAGE,
        };
        Ok(self.ports.store.scan(&range).await?)
    }
}

/// Parses a row of a log. Its id ends with the index of the entry.
fn read_entry(id: &str, value: &[u8]) -> Result<LogEntry, Error> {
    let index = id.rsplit_once('/').and_then(|(_, index)| index.parse().ok());
    Ok(log_entry(index.ok_or_else(|| Error::Damaged(id.to_owned()))?, rows::read(id, value)?))
}

fn log_entry(index: u64, row: LogRow) -> LogEntry {
    let LogRow { input_heap, output_heap, code, timestamp, rewound_to, gone, execution: _ } = row;
    LogEntry { index, input_heap, output_heap, code, timestamp, rewound_to, gone }
}

//! The log of a session.
//! Invariant: indexes are contiguous from 0, because an entry and the count of entries are written together.

use access::Caller;
use base::Digest;
use ports::store::{Batch, Expect, Range, Table};

use crate::commit::{TRIES, unchanged};
use crate::engine::rows::{JsSessionRow, LogRow, SessionName, log_key, session_key};
use crate::engine::view::{LogEntry, SessionTarget};
use crate::error::Error;
use crate::error::JsError;
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;

/// The number of rows that one scan reads.
const PAGE: usize = 500;

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
    pub async fn js_sessions(&self, caller: &Caller) -> Result<Vec<String>, Error> {
        self.js()?;
        let rows = self.js_session_rows(caller).await?;
        let mut names: Vec<String> = rows.iter().filter(|row| row.entries > 0).map(|row| row.name.shown()).collect();
        names.sort();
        Ok(names)
    }

    /// Returns all entries of a session's log.
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
        let forked = found.row.forked.map(|(from, entries)| (from.shown(), entries));
        Ok(Lineage { session: name.shown(), nodes, head: found.row.head, forked })
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
            let range = Range {
                tenant: caller.tenant.clone(),
                table: Table::SessionLog,
                prefix: format!("{}/", name.row_id()),
                after: after.take(),
                limit: PAGE,
            };
            let page = self.ports.store.scan(&range).await?;
            for (id, row) in &page {
                let index = id.rsplit_once('/').and_then(|(_, index)| index.parse().ok());
                let index = index.ok_or_else(|| Error::Damaged(id.clone()))?;
                entries.push(log_entry(index, rows::read(id, &row.value)?));
            }
            match page.last() {
                Some((last, _)) if page.len() == PAGE => after = Some(last.clone()),
                _ => return Ok(entries),
            }
        }
    }
}

fn log_entry(index: u64, row: LogRow) -> LogEntry {
    let LogRow { input_heap, output_heap, code, timestamp, rewound_to, gone, execution: _ } = row;
    LogEntry { index, input_heap, output_heap, code, timestamp, rewound_to, gone }
}

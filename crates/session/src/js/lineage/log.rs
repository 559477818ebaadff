//! The log of a session.
//! Invariant: indexes are contiguous from 0, because an entry and the count of entries are written together.

use base::Digest;
use ports::store::{Batch, Expect, Range, Table};

use crate::commit::{TRIES, unchanged};
use crate::engine::rows::{JsSessionRow, LogRow, SessionName, log_key, session_key};
use crate::engine::view::{Entry, InSession};
use crate::error::Error;
use crate::error::JsError;
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;
use access::Caller;

const PAGE: usize = 500;

/// A session's way, for a picture.
#[derive(Debug, Clone)]
pub struct Lineage {
    pub session: String,
    pub nodes: Vec<Node>,
    pub head: Option<Digest>,
    /// The session it was forked from, and how many entries that one had.
    pub forked: Option<(String, u64)>,
}

#[derive(Debug, Clone)]
pub struct Node {
    pub entry: Entry,
    /// The entry that left what this one stood on, where it is one of this session.
    pub after: Option<u64>,
}

impl Service {
    /// The names of the sessions that have an entry, in order.
    pub async fn js_sessions(&self, caller: &Caller) -> Result<Vec<String>, Error> {
        self.js()?;
        let rows = self.js_session_rows(caller).await?;
        let mut names: Vec<String> = rows.iter().filter(|row| row.entries > 0).map(|row| row.name.shown()).collect();
        names.sort();
        Ok(names)
    }

    pub async fn session_log(&self, caller: &Caller, session: &InSession) -> Result<Vec<Entry>, Error> {
        let (name, _) = self.named(caller, session).await?;
        self.entries_of(caller, &name).await
    }

    pub async fn session_lineage(&self, caller: &Caller, session: &InSession) -> Result<Lineage, Error> {
        let (name, found) = self.named(caller, session).await?;
        let entries = self.entries_of(caller, &name).await?;
        let after = |entry: &Entry| {
            let before = entries.iter().take_while(|other| other.index < entry.index);
            let stood_on = entry.input_heap?;
            before.filter(|other| other.output_heap == stood_on).last().map(|other| other.index)
        };
        let nodes = entries.iter().map(|entry| Node { entry: entry.clone(), after: after(entry) }).collect();
        let forked = found.row.forked.map(|(from, entries)| (from.shown(), entries));
        Ok(Lineage { session: name.shown(), nodes, head: found.row.head, forked })
    }

    /// Moves the head of a session back to what one of its entries left.
    pub async fn rewind_session(&self, caller: &Caller, session: &str, index: u64) -> Result<Entry, Error> {
        let asked = InSession::Logical(session.to_owned());
        for _ in 0..TRIES {
            let (name, found) = self.named(caller, &asked).await?;
            let Versioned { row, version } = found;
            if !row.waiting.is_empty() {
                return Err(JsError::UnderWay.into());
            }
            let back = self.entry(caller, &name, index).await?;
            let back = back.ok_or(JsError::NoEntry { index, entries: row.entries })?;
            self.save_heap(&caller.tenant, back.output_heap).await?.ok_or(JsError::NoHeap(back.output_heap))?;
            let entry = LogRow {
                input_heap: row.head,
                output_heap: back.output_heap,
                code: String::new(),
                timestamp: self.now(),
                execution: None,
                rewound_to: Some(index),
                gone: false,
            };
            let at = row.entries;
            let next = JsSessionRow { head: Some(back.output_heap), entries: at + 1, used: self.now(), ..row };
            let batch = Batch::default()
                .put(session_key(&caller.tenant, &name), rows::write(&next), unchanged(version))
                .put(log_key(&caller.tenant, &name, at), rows::write(&entry), Expect::Absent);
            if self.try_commit(batch).await?.is_some() {
                return Ok(shown(at, entry));
            }
        }
        Err(Error::Busy)
    }

    /// The session that is meant; one that has never run anything is an empty one.
    pub(super) async fn named(
        &self,
        caller: &Caller,
        session: &InSession,
    ) -> Result<(SessionName, Versioned<JsSessionRow>), Error> {
        self.js()?;
        let (name, _) = self.js_session_of(caller, session).await?.ok_or(JsError::NoName)?;
        let found = self.js_session(caller, &name).await?;
        Ok((name, found))
    }

    pub(super) async fn entry(&self, caller: &Caller, name: &SessionName, index: u64) -> Result<Option<Entry>, Error> {
        let found: Option<Versioned<LogRow>> = self.fetch(&log_key(&caller.tenant, name, index)).await?;
        Ok(found.map(|found| shown(index, found.row)))
    }

    async fn entries_of(&self, caller: &Caller, name: &SessionName) -> Result<Vec<Entry>, Error> {
        let (mut entries, mut after) = (Vec::new(), None);
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
                entries.push(shown(index, rows::read(id, &row.value)?));
            }
            match page.last() {
                Some((last, _)) if page.len() == PAGE => after = Some(last.clone()),
                _ => return Ok(entries),
            }
        }
    }
}

fn shown(index: u64, row: LogRow) -> Entry {
    let LogRow { input_heap, output_heap, code, timestamp, rewound_to, gone, execution: _ } = row;
    Entry { index, input_heap, output_heap, code, timestamp, rewound_to, gone }
}

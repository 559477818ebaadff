//! The port of rows: the durable and only mutable data of the server.
//!
//! A row is a byte string with a version, stored under `(tenant, table, id)`. All writes go through one [`Batch`],
//! which is applied whole or not at all; each write may require the version that the caller read. The trait is this
//! small so that every implementation passes the same conformance suite and tests can inject faults in one place. The
//! crate `session` defines the content of rows.
//!
//! Invariants:
//! - Every key contains its tenant, and a read returns rows of one tenant only, except the read of an index for
//!   maintenance.
//! - When `commit` returns `Ok`, the batch survives a power cut.
//! - If another writer was faster, `commit` returns `Conflict` and overwrites nothing.

use async_trait::async_trait;
use base::TenantId;
use serde::{Deserialize, Serialize};

use crate::index::{Index, IndexKey, Order, prefix_end};

/// Storage of rows for all tenants.
#[async_trait]
pub trait Store: Send + Sync {
    /// Returns the row of a key, or `None` if the key has no row.
    async fn get(&self, key: &Key) -> Result<Option<Row>, Error>;

    /// Returns the rows of a range with their ids, in the order of the ids.
    async fn scan(&self, range: &Range) -> Result<Vec<(String, Row)>, Error>;

    /// Returns the ids that `scan` would return, each with the row that the table `other` has under the same id. A
    /// store that can do this in one read overrides this method.
    async fn scan_with(&self, range: &Range, other: Table) -> Result<Vec<(String, Option<Row>)>, Error> {
        let mut pairs = Vec::new();
        for (id, _) in self.scan(range).await? {
            let row = self.get(&Key::new(&range.tenant, other, id.as_str())).await?;
            pairs.push((id, row));
        }
        Ok(pairs)
    }

    /// Returns the entries of a range of an index with their rows, in the direction of the range. The store reads no
    /// more rows than it returns.
    async fn scan_index(&self, range: &IndexRange) -> Result<Vec<IndexEntry>, Error>;

    /// Returns the entries of all tenants: first in the order of the tenants, then in that of the index. Maintenance of
    /// the whole store uses this, never a caller's request.
    async fn scan_index_of_all_tenants(&self, range: &MaintenanceRange) -> Result<Vec<IndexEntry>, Error>;

    /// Applies a batch. When this returns `Ok`, the batch is durable.
    async fn commit(&self, batch: Batch) -> Result<(), Error>;

    /// Returns all tenants that have a row, in the order of their ids. Maintenance of the whole store uses this list.
    async fn tenants(&self) -> Result<Vec<TenantId>, Error>;

    /// Reads from the storage to check that it works.
    async fn ping(&self) -> Result<(), Error>;
}

/// The tables of the store. The comment of each table has the form `id -> content of the row`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// Digest of the intent -> logical session id.
    Intent,
    /// Logical session id -> the session's intent, counters and execute session.
    LogicalSession,
    /// A connection -> its slots, each naming a logical session.
    Connection,
    /// Execute session id -> the session's catalogs, ledger and revision.
    ExecuteSession,
    /// `{logical session}/{number}` -> one run: plan, artifact and coverage.
    Run,
    /// `{logical session}/{number}` -> the result of the run with this number, if the result is small. One batch
    /// writes the run and its small result, so one flush makes both durable.
    Artifact,
    /// Run id -> the run's session and number in that session.
    RunId,
    /// `{principal}/{number}` -> a run of that principal in a session without an intent.
    PrincipalRun,
    /// `{logical session}/{number}` -> a plan in the form in which it was shown to the caller.
    Plan,
    /// `{logical session}/{number}` -> a reviewed plan that may run once.
    PlanCommit,
    /// `{logical session}/{digest of a client's id}` -> the run that was started with that request id.
    Request,
    /// `{logical session}/{run}/{step}/{row}` -> the receipt of one effect.
    Receipt,
    /// `{logical session}/{number}` -> the continuation of an unfinished list.
    Page,
    /// `{logical session}/{number}` -> a run that continues after the call that started it.
    Operation,
    /// `{logical session}/{moment}-{number}` -> one call of a client: request and outcome.
    Trace,
    /// Digest of an API key -> the identity of the key's owner. The key itself is not stored.
    ApiKey,
    /// Id of a session of the older MCP transport -> the parameters of `initialize`. With this row the session
    /// survives a restart.
    Transport,
    /// Heap key -> the heap's properties, and its object or the digest of the blob with the object.
    Heap,
    /// Heap key -> the tags that callers gave the heap.
    HeapTags,
    /// Execution id, the newest first -> one script run: code, state and result.
    Execution,
    /// Execution id -> the lease of a script run, which exists until the run ends. Rows of older versions are empty.
    OpenExecution,
    /// `{execution}/{number}` -> a piece of the script run's console output.
    ExecutionOutput,
    /// Session id -> the head of the session, and the script runs that wait for their turn.
    JsSession,
    /// `{session}/{index}` -> one entry of the session's log.
    SessionLog,
    /// Digest of a JavaScript engine -> the digest of the blob with the engine's WebAssembly code.
    Guest,
    /// A fixed id -> the number of bytes that the tenant's heaps use. Each tenant has one row.
    HeapUse,
    /// `{logical session}/{run}` -> the lease of a program run, which exists until the run ends.
    OpenRun,
    /// `{execution}/{call}` -> the receipt of one request with an effect that a script sent by `fetch`.
    FetchReceipt,
    /// Id of a process -> the number of its renewals. A process writes it while it owns runs.
    Owner,
    /// Digest of a blob -> its size and the time of its last touch (`blob_rows.rs`).
    Blob,
    /// The name of a server process -> bytes without a meaning, which the route `/readyz` writes to see that it can.
    Probe,
    /// `{logical session}/{run}/{step}/{row}` -> what a later look needs at an effect whose outcome is not known.
    Settlement,
}

impl Table {
    /// Every table. Collection reads all of them before it deletes a blob.
    pub const ALL: [Table; 32] = [
        Table::Intent,
        Table::LogicalSession,
        Table::Connection,
        Table::ExecuteSession,
        Table::Run,
        Table::Artifact,
        Table::RunId,
        Table::PrincipalRun,
        Table::Plan,
        Table::PlanCommit,
        Table::Request,
        Table::Receipt,
        Table::Page,
        Table::Operation,
        Table::Trace,
        Table::ApiKey,
        Table::Transport,
        Table::Heap,
        Table::HeapTags,
        Table::Execution,
        Table::OpenExecution,
        Table::ExecutionOutput,
        Table::JsSession,
        Table::SessionLog,
        Table::Guest,
        Table::HeapUse,
        Table::OpenRun,
        Table::FetchReceipt,
        Table::Owner,
        Table::Blob,
        Table::Probe,
        Table::Settlement,
    ];

    /// Returns the tables whose ids begin with a logical session's id. Their rows are deleted with that session.
    pub fn of_sessions() -> impl Iterator<Item = Table> {
        Self::ALL.into_iter().filter(|table| table.is_of_session())
    }

    /// Returns whether the table's rows belong to a session. The match names every table, so the compiler asks the
    /// author of a new table to decide.
    fn is_of_session(self) -> bool {
        match self {
            Table::Run
            | Table::Artifact
            | Table::Plan
            | Table::PlanCommit
            | Table::Request
            | Table::Receipt
            | Table::Settlement
            | Table::Page
            | Table::Operation
            | Table::OpenRun
            | Table::Trace => true,
            Table::Intent
            | Table::LogicalSession
            | Table::Connection
            | Table::ExecuteSession
            | Table::RunId
            | Table::PrincipalRun
            | Table::ApiKey
            | Table::Transport
            | Table::Heap
            | Table::HeapTags
            | Table::Execution
            | Table::OpenExecution
            | Table::ExecutionOutput
            | Table::JsSession
            | Table::SessionLog
            | Table::Guest
            | Table::HeapUse
            | Table::FetchReceipt
            | Table::Owner
            | Table::Blob
            | Table::Probe => false,
        }
    }

    /// Returns the table's name in storage. A name never changes, because stored rows are found by it.
    pub fn name(self) -> &'static str {
        match self {
            Table::Intent => "intent",
            Table::LogicalSession => "logical_session",
            Table::Connection => "connection",
            Table::ExecuteSession => "execute_session",
            Table::Run => "run",
            Table::Artifact => "artifact",
            Table::RunId => "run_id",
            Table::PrincipalRun => "principal_run",
            Table::Plan => "plan",
            Table::PlanCommit => "plan_commit",
            Table::Request => "request",
            Table::Receipt => "receipt",
            Table::Settlement => "settlement",
            Table::Page => "page",
            Table::Operation => "operation",
            Table::Trace => "trace",
            Table::ApiKey => "api_key",
            Table::Transport => "transport",
            Table::Heap => "heap",
            Table::HeapTags => "heap_tags",
            Table::Execution => "execution",
            Table::OpenExecution => "open_execution",
            Table::ExecutionOutput => "execution_output",
            Table::JsSession => "js_session",
            Table::SessionLog => "session_log",
            Table::Guest => "guest",
            Table::HeapUse => "heap_use",
            Table::OpenRun => "open_run",
            Table::FetchReceipt => "fetch_receipt",
            Table::Owner => "owner",
            Table::Blob => "blob",
            Table::Probe => "probe",
        }
    }
}

/// The full name of a row: tenant, table and id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The tenant that owns the row.
    pub tenant: TenantId,
    pub table: Table,
    /// The name of the row within the table: any text without NUL, at most 1 KiB.
    pub id: String,
}

impl Key {
    pub fn new(tenant: &TenantId, table: Table, id: impl Into<String>) -> Self {
        Self { tenant: tenant.clone(), table, id: id.into() }
    }
}

/// A stored value with the version that a later write can require.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The number of writes of this key since the key was created. The first write has version 1, and deletion resets
    /// the count.
    pub version: u64,
    /// The content, which the store never interprets.
    pub value: Vec<u8>,
}

/// The request for a page of a table: the ids with a prefix that follow an id, at most `limit` rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    pub tenant: TenantId,
    pub table: Table,
    /// The text with which every returned id begins. The empty text selects all ids.
    pub prefix: String,
    /// The last id of the previous page. The scan returns ids after this one; `None` starts with the first id.
    pub after: Option<String>,
    /// The largest number of rows to return.
    pub limit: usize,
}

/// The request for a page of one tenant's entries in an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexRange {
    pub tenant: TenantId,
    pub index: Index,
    /// The text with which every returned sort text begins. The empty text selects all entries.
    pub prefix: String,
    /// Every returned sort text is smaller than this text. `None` means no bound.
    pub before: Option<String>,
    /// The last entry of the previous page. The scan returns the entries that follow it in the scan's direction.
    pub after: Option<IndexPosition>,
    pub order: Order,
    /// The largest number of entries to return.
    pub limit: usize,
}

impl IndexRange {
    /// Returns the range of the first `limit` entries of a tenant.
    pub fn new(tenant: &TenantId, index: Index, limit: usize) -> Self {
        Self {
            tenant: tenant.clone(),
            index,
            prefix: String::new(),
            before: None,
            after: None,
            order: Order::Ascending,
            limit,
        }
    }

    /// Returns the smallest text that is greater than every sort text of the range, or `None` if there is no such text.
    pub fn end(&self) -> Option<String> {
        let end_of_prefix = prefix_end(&self.prefix);
        match (&self.before, end_of_prefix) {
            (Some(before), Some(end)) => Some(before.clone().min(end)),
            (Some(before), None) => Some(before.clone()),
            (None, end) => end,
        }
    }
}

/// The request for a page of an index that goes over all tenants. Only maintenance of the whole store asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaintenanceRange {
    pub index: Index,
    /// Every returned sort text is smaller than this text. `None` means no bound.
    pub before: Option<String>,
    /// The last entry of the previous page. The scan returns the entries that follow it.
    pub after: Option<IndexPosition>,
    /// The largest number of entries to return.
    pub limit: usize,
}

/// The place of an entry within its index, from which the next page continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexPosition {
    pub sort: String,
    pub key: Key,
}

/// An entry of an index with its row. The row has the entry's sort text in the same moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    pub sort: String,
    pub key: Key,
    pub row: Row,
}

impl IndexEntry {
    pub fn position(&self) -> IndexPosition {
        IndexPosition { sort: self.sort.clone(), key: self.key.clone() }
    }
}

/// The state that a write requires of the stored row before the write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// The write happens whatever is stored.
    Any,
    /// The key must have no row.
    Absent,
    /// The row must still have this version, which the caller read earlier.
    Version(u64),
}

/// One write of a batch, with the state that the stored row must have. A write of a row replaces its index entries:
/// after `Put` and `Delete` the row has none, after `PutIndexed` it has those of `keys`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    Put {
        key: Key,
        value: Vec<u8>,
        expect: Expect,
    },
    PutIndexed {
        key: Key,
        value: Vec<u8>,
        expect: Expect,
        /// The entries that the row has from now on. Equal keys are one entry.
        keys: Vec<IndexKey>,
    },
    Delete {
        key: Key,
        expect: Expect,
    },
    /// Changes nothing, but the batch is applied only if the row is as expected. The check is part of the batch's
    /// transaction, so no other writer can change the row between the check and the writes of the batch.
    Check {
        key: Key,
        expect: Expect,
    },
}

impl Write {
    /// Returns the key of the written, deleted or checked row.
    pub fn key(&self) -> &Key {
        match self {
            Write::Put { key, .. }
            | Write::PutIndexed { key, .. }
            | Write::Delete { key, .. }
            | Write::Check { key, .. } => key,
        }
    }

    /// Returns the state that the stored row must have.
    pub fn expect(&self) -> Expect {
        match self {
            Write::Put { expect, .. }
            | Write::PutIndexed { expect, .. }
            | Write::Delete { expect, .. }
            | Write::Check { expect, .. } => *expect,
        }
    }
}

/// A set of writes and checks that is applied whole or not at all. Two writes of one key are applied in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The writes, in the order in which they are applied.
    pub writes: Vec<Write>,
}

impl Batch {
    /// Adds a write of a row that has no index entries afterwards.
    pub fn put(mut self, key: Key, value: Vec<u8>, expect: Expect) -> Self {
        self.writes.push(Write::Put { key, value, expect });
        self
    }

    /// Adds a write of a row with the index entries that it has afterwards. The owner of the table bounds their number.
    pub fn put_indexed(mut self, key: Key, value: Vec<u8>, expect: Expect, keys: Vec<IndexKey>) -> Self {
        self.writes.push(Write::PutIndexed { key, value, expect, keys });
        self
    }

    /// Adds the deletion of a row. Deleting a missing row succeeds, unless `expect` names a version.
    pub fn delete(mut self, key: Key, expect: Expect) -> Self {
        self.writes.push(Write::Delete { key, expect });
        self
    }

    /// Adds a condition on a row that the batch does not change, such as the lease of the run that it writes for.
    /// Earlier writes of the batch count: the check sees the row as they left it.
    pub fn check(mut self, key: Key, expect: Expect) -> Self {
        self.writes.push(Write::Check { key, expect });
        self
    }
}

/// Why a read or a commit failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another writer was faster: the caller reads the row again and retries.
    #[error("row {table}/{id} was changed by another writer; read it again and retry", table = .0.table.name(), id = .0.id)]
    Conflict(Key),
    /// The stored bytes differ from the bytes that were written. Only a backup can restore the damaged row; other
    /// rows stay usable.
    #[error("{what} in storage is damaged")]
    Damaged {
        what: String,
        #[source]
        cause: crate::Cause,
    },
    /// The disk or the quota of the storage is full. The operator must free space.
    #[error("the storage of rows is full; free space on its disk")]
    Full(#[source] crate::Cause),
    /// A fault of the storage. The cause is logged, and the caller sees only this message. After a failed `commit`
    /// the batch may still have been applied, so the caller reads before it retries.
    #[error("the storage of rows failed; check its disk or database")]
    Unavailable(#[source] crate::Cause),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_at_the_nearer_of_its_two_bounds() {
        let end = |prefix: &str, before: Option<&str>| {
            let range = IndexRange::new(&TenantId::local(), Index::State, 1);
            IndexRange { prefix: prefix.to_owned(), before: before.map(str::to_owned), ..range }.end()
        };
        assert_eq!(end("", None), None);
        assert_eq!(end("a", None).as_deref(), Some("b"));
        assert_eq!(end("", Some("x")).as_deref(), Some("x"));
        assert_eq!(end("a", Some("x")).as_deref(), Some("b"));
        assert_eq!(end("a", Some("a5")).as_deref(), Some("a5"));
    }
}

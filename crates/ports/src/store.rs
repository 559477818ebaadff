//! The port of rows: the durable and only mutable data of the server.
//!
//! A row is a byte string with a version, stored under `(tenant, table, id)`. All writes go through one [`Batch`],
//! which is applied whole or not at all; each write may require the version that the caller read. The trait is this
//! small so that every implementation passes the same conformance suite and tests can inject faults in one place. The
//! crate `session` defines the content of rows.
//!
//! Invariants:
//! - Every key contains its tenant, and a read returns rows of one tenant only.
//! - When `commit` returns `Ok`, the batch survives a power cut.
//! - If another writer was faster, `commit` returns `Conflict` and overwrites nothing.

use async_trait::async_trait;
use base::TenantId;
use serde::{Deserialize, Serialize};

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
    /// Execution id -> an empty row, which exists until the script run ends.
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
    /// The name of a server process -> bytes without a meaning, which the route `/readyz` writes to see that it can.
    Probe,
}

impl Table {
    /// Every table. Collection reads all of them before it deletes a blob.
    pub const ALL: [Table; 27] = [
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
        Table::Probe,
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
            | Table::Page
            | Table::Operation
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

/// One write of a batch, with the state that the stored row must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    Put { key: Key, value: Vec<u8>, expect: Expect },
    Delete { key: Key, expect: Expect },
}

impl Write {
    /// Returns the key of the written or deleted row.
    pub fn key(&self) -> &Key {
        match self {
            Write::Put { key, .. } | Write::Delete { key, .. } => key,
        }
    }

    /// Returns the state that the stored row must have.
    pub fn expect(&self) -> Expect {
        match self {
            Write::Put { expect, .. } | Write::Delete { expect, .. } => *expect,
        }
    }
}

/// A set of writes that is applied whole or not at all. Two writes of one key are applied in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The writes, in the order in which they are applied.
    pub writes: Vec<Write>,
}

impl Batch {
    /// Adds a write of a row.
    pub fn put(mut self, key: Key, value: Vec<u8>, expect: Expect) -> Self {
        self.writes.push(Write::Put { key, value, expect });
        self
    }

    /// Adds the deletion of a row. Deleting a missing row succeeds, unless `expect` names a version.
    pub fn delete(mut self, key: Key, expect: Expect) -> Self {
        self.writes.push(Write::Delete { key, expect });
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

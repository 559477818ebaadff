//! The port of rows: the durable and only mutable data of the server.
//!
//! A row is bytes under `(tenant, table, id)` with a version. Writing is one [`Batch`], which is applied whole or not
//! at all; each write may require the version that was read. The trait has nothing else, so that memory, SQLite and
//! PostgreSQL share one conformance suite and faults can be injected in one place. The meaning of rows is
//! `session`'s.
//!
//! Invariants:
//! - Every key carries its tenant; no read crosses tenants.
//! - When `commit` returns `Ok`, the batch survives a power cut.
//! - A lost race is `Conflict`, never a silent overwrite.

use async_trait::async_trait;
use base::TenantId;
use serde::{Deserialize, Serialize};

/// Storage of rows.
#[async_trait]
pub trait Store: Send + Sync {
    /// Returns the row of a key, if there is one.
    async fn get(&self, key: &Key) -> Result<Option<Row>, Error>;

    /// Returns the rows of a range with their ids, in the order of the ids.
    async fn scan(&self, range: &Range) -> Result<Vec<(String, Row)>, Error>;

    /// Returns the ids that a scan finds, each with the row of the table `other` under the same id. Stores that can do
    /// this in one read override it.
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

    /// Returns all tenants that have a row, in the order of their ids. Used for maintenance over the whole store.
    async fn tenants(&self) -> Result<Vec<TenantId>, Error>;

    /// Checks that the storage answers. `/readyz` calls this.
    async fn ping(&self) -> Result<(), Error>;
}

/// The tables, each with its key and its rows: `key -> row`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// Digest of the intent -> logical session id.
    Intent,
    /// Logical session id -> its intent, counters and execute session.
    LogicalSession,
    /// A connection -> its slots, each naming a logical session.
    Connection,
    /// Execute session id -> its catalogs, ledger and revision.
    ExecuteSession,
    /// `{logical session}/{number}` -> one run: its plan, artifact and coverage.
    Run,
    /// `{logical session}/{number}` -> the result of that run, if it is small. It is durable with the run, in one
    /// flush.
    Artifact,
    /// Run id -> its session and number.
    RunId,
    /// `{principal}/{number}` -> a run of that principal in a session without an intent.
    PrincipalRun,
    /// `{logical session}/{number}` -> a plan as it was shown.
    Plan,
    /// `{logical session}/{number}` -> a reviewed plan that may run once.
    PlanCommit,
    /// `{logical session}/{digest of a client's id}` -> the run that was started with that request id.
    Request,
    /// `{logical session}/{run}/{step}/{row}` -> the receipt of one effect.
    Receipt,
    /// `{logical session}/{number}` -> where an unfinished list goes on.
    Page,
    /// `{logical session}/{number}` -> a run that outlives its call.
    Operation,
    /// `{logical session}/{moment}-{number}` -> one call: its request and its outcome.
    Trace,
    /// Digest of an API key -> its identity. The key itself is not stored.
    ApiKey,
    /// Legacy transport session id -> its `initialize` parameters, so that a restart does not lose the session.
    Transport,
    /// Heap key -> its properties, and its object or the digest of the blob that holds the object.
    Heap,
    /// Heap key -> its tags.
    HeapTags,
    /// Execution id, the newest first -> one script run: its code, state and result.
    Execution,
    /// Execution id -> nothing. The row exists while the run has not ended.
    OpenExecution,
    /// `{execution}/{number}` -> a piece of its console output.
    ExecutionOutput,
    /// A session with JavaScript -> its head, and the runs that wait for their turn.
    JsSession,
    /// `{session}/{index}` -> one entry of its log.
    SessionLog,
    /// Digest of a JavaScript engine -> the blob that holds its program.
    Guest,
    /// One row per tenant -> the storage that its heaps use.
    HeapUse,
}

impl Table {
    /// Every table. Collection reads all of them before it deletes a blob.
    pub const ALL: [Table; 26] = [
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
    ];

    /// Returns the tables whose ids begin with a logical session's id. Their rows are deleted with that session.
    pub fn of_sessions() -> impl Iterator<Item = Table> {
        Self::ALL.into_iter().filter(|table| table.is_of_session())
    }

    /// Returns whether the table's rows belong to a session. The match has no wildcard, so the author of a new table must
    /// decide.
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
            | Table::HeapUse => false,
        }
    }

    /// Returns the name in storage. It never changes, because stored rows are found by it.
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
        }
    }
}

/// The name of a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The tenant that owns the row.
    pub tenant: TenantId,
    pub table: Table,
    /// The name within the table: any text without NUL, at most 1 KiB.
    pub id: String,
}

impl Key {
    pub fn new(tenant: &TenantId, table: Table, id: impl Into<String>) -> Self {
        Self { tenant: tenant.clone(), table, id: id.into() }
    }
}

/// A stored value with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// 1 when first written, and one more with each write of this key. A deleted key starts at 1 again.
    pub version: u64,
    /// The content. Its meaning is the caller's.
    pub value: Vec<u8>,
}

/// A page of a table: ids with a prefix, after an id, at most `limit` rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    pub tenant: TenantId,
    pub table: Table,
    /// The beginning of every id of the page.
    pub prefix: String,
    /// The last id of the page before (exclusive). `None` starts with the first id.
    pub after: Option<String>,
    /// The largest number of rows to return.
    pub limit: usize,
}

/// The state that a write requires of the row it replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing is required.
    Any,
    /// The row does not exist.
    Absent,
    /// The row has this version, as the caller read it.
    Version(u64),
}

/// One write of a batch, with the state it requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    Put { key: Key, value: Vec<u8>, expect: Expect },
    Delete { key: Key, expect: Expect },
}

impl Write {
    /// Returns the key that is written.
    pub fn key(&self) -> &Key {
        match self {
            Write::Put { key, .. } | Write::Delete { key, .. } => key,
        }
    }

    /// Returns the state that the write requires.
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

    /// Adds the deletion of a row. Deleting a row that does not exist is allowed, if the write does not expect it.
    pub fn delete(mut self, key: Key, expect: Expect) -> Self {
        self.writes.push(Write::Delete { key, expect });
        self
    }
}

/// Why a read or a commit failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A lost race: the caller reads again and retries.
    #[error("row {table}/{id} was changed by someone else", table = .0.table.name(), id = .0.id)]
    Conflict(Key),
    /// The stored bytes are not the ones that were written. Other rows stay usable; only a backup can restore this
    /// one.
    #[error("{what} in storage is damaged")]
    Damaged {
        what: String,
        #[source]
        cause: crate::Cause,
    },
    /// The operator can act by freeing space.
    #[error("storage is full")]
    Full(#[source] crate::Cause),
    /// A fault of ours: logged in full, shown as this line. After a `commit` the batch may have been applied, so read
    /// before retrying.
    #[error("storage is unavailable")]
    Unavailable(#[source] crate::Cause),
}

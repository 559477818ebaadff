//! Durable rows: the only mutable things in the house.
//!
//! A row is bytes under `(tenant, table, id)` with a version. Writing is one [`Batch`]: it lands whole or not at all, and each
//! write may demand the version it read. That is the whole trait, so that memory, SQLite and PostgreSQL can be held to one
//! conformance suite and faults can be injected in one place; the meaning of rows is `session`'s.
//!
//! Invariants:
//! - Every key carries its tenant; no read crosses tenants.
//! - When `commit` returns `Ok`, the batch survives a power cut.
//! - A lost race is `Conflict`, never a silent overwrite.

use async_trait::async_trait;
use base::TenantId;
use serde::{Deserialize, Serialize};

#[async_trait]
pub trait Store: Send + Sync {
    async fn get(&self, key: &Key) -> Result<Option<Row>, Error>;

    /// Rows of one table of one tenant whose id starts with `prefix`, in the order of their ids, after `after` (exclusive).
    async fn scan(&self, range: &Range) -> Result<Vec<(String, Row)>, Error>;

    /// What a scan finds, each with the row of another table under the same id: one read where the store can do that.
    async fn scan_with(&self, range: &Range, other: Table) -> Result<Vec<(String, Option<Row>)>, Error> {
        let mut found = Vec::new();
        for (id, _) in self.scan(range).await? {
            let row = self.get(&Key::new(&range.tenant, other, id.as_str())).await?;
            found.push((id, row));
        }
        Ok(found)
    }

    async fn commit(&self, batch: Batch) -> Result<(), Error>;

    /// Everyone who has a row, in the order of their ids: for what the operator does to all of them.
    async fn tenants(&self) -> Result<Vec<TenantId>, Error>;

    /// Reaches the storage and comes back: what `/readyz` asks.
    async fn ping(&self) -> Result<(), Error>;
}

/// Every table there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// Digest of the intent -> logical session id.
    Intent,
    /// Logical session id -> what it is bound to.
    LogicalSession,
    /// A connection -> its slots, each naming a logical session.
    Connection,
    /// Execute session id -> its catalogs, ledger and revision.
    ExecuteSession,
    /// `{logical session}/{number}` -> one run: its plan, artifact and coverage.
    Run,
    /// `{logical session}/{number}` -> the result of that run, where it is small: it is durable with the run, in one flush.
    Artifact,
    /// Id of a run -> its session and number.
    RunId,
    /// `{principal}/{number}` -> a run of theirs in a session without an intent.
    PrincipalRun,
    /// `{logical session}/{number}` -> a plan as it was shown.
    Plan,
    /// `{logical session}/{number}` -> a plan that was shown and may run once.
    PlanCommit,
    /// `{logical session}/{digest of a client's id}` -> a run that was asked for under that id.
    Request,
    /// `{logical session}/{run}/{step}/{row}` -> the evidence of one effect.
    Receipt,
    /// `{logical session}/{number}` -> where a list that was not read to its end goes on.
    Page,
    /// `{logical session}/{number}` -> a run that outlives its call.
    Operation,
    /// `{logical session}/{moment}-{number}` -> one call: what was asked and what came of it.
    Trace,
    /// Digest of an API key -> whom it names. The key itself is nowhere.
    ApiKey,
    /// Legacy transport session id -> its `initialize` parameters, so that a restart does not lose it.
    Transport,
    /// Key of a heap -> what it is, and its object or the digest of the blob that holds it.
    Heap,
    /// Key of a heap -> its tags.
    HeapTags,
    /// An execution, the newest first -> one run of JavaScript: its code, state and result.
    Execution,
    /// An execution -> nothing: it has not come to its end.
    OpenExecution,
    /// `{execution}/{number}` -> a piece of its console output.
    ExecutionOutput,
    /// A session with JavaScript -> its head, and the executions that wait for their turn.
    JsSession,
    /// `{session}/{index}` -> one entry of its log.
    SessionLog,
    /// Digest of a JavaScript engine -> the blob that holds its program.
    Guest,
    /// One row of a tenant -> what its heaps take.
    HeapUse,
}

impl Table {
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

    /// Those whose ids begin with that of their logical session: they go with it.
    pub fn of_sessions() -> impl Iterator<Item = Table> {
        Self::ALL.into_iter().filter(|table| table.is_of_session())
    }

    /// A table that is added here is asked whether its rows go with a session.
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

    /// The name in storage; stable for ever.
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

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub tenant: TenantId,
    pub table: Table,
    /// Any text without NUL, at most 1 KiB.
    pub id: String,
}

impl Key {
    pub fn new(tenant: &TenantId, table: Table, id: impl Into<String>) -> Self {
        Self { tenant: tenant.clone(), table, id: id.into() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// 1 when first written, one more with each write of this key; a key that was deleted starts at 1 again.
    pub version: u64,
    pub value: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    pub tenant: TenantId,
    pub table: Table,
    pub prefix: String,
    pub after: Option<String>,
    pub limit: usize,
}

/// What a write demands of the row it replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    Any,
    Absent,
    Version(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    Put { key: Key, value: Vec<u8>, expect: Expect },
    Delete { key: Key, expect: Expect },
}

impl Write {
    pub fn key(&self) -> &Key {
        match self {
            Write::Put { key, .. } | Write::Delete { key, .. } => key,
        }
    }

    pub fn expect(&self) -> Expect {
        match self {
            Write::Put { expect, .. } | Write::Delete { expect, .. } => *expect,
        }
    }
}

/// All or nothing. Two writes of one key in a batch are applied in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    pub writes: Vec<Write>,
}

impl Batch {
    pub fn put(mut self, key: Key, value: Vec<u8>, expect: Expect) -> Self {
        self.writes.push(Write::Put { key, value, expect });
        self
    }

    pub fn delete(mut self, key: Key, expect: Expect) -> Self {
        self.writes.push(Write::Delete { key, expect });
        self
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A race: the caller reads again and retries.
    #[error("row {table}/{id} was changed by someone else", table = .0.table.name(), id = .0.id)]
    Conflict(Key),
    /// What is stored is not what was written. The rest can be used; a backup has the row, or nobody has.
    #[error("{what} in storage is damaged")]
    Damaged {
        what: String,
        #[source]
        cause: crate::Cause,
    },
    /// The operator can act: free some space.
    #[error("storage is full")]
    Full(#[source] crate::Cause),
    /// Ours: logged in full, shown as this line. After a `commit` it means "may have happened": read again before retrying.
    #[error("storage is unavailable")]
    Unavailable(#[source] crate::Cause),
}

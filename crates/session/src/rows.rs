//! The rows of a session, as stored.
//! Invariant: a row is JSON that this version reads back; a field that is added later has a default.

use std::collections::{BTreeMap, BTreeSet};

use base::{CatalogId, Digest, ExecuteSessionId, InstanceId, LogicalSessionId, RunId, TenantId, Timestamp};
use lang::plan::{Plan, Verdict};
use ports::store::{Key, Table};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use teach::Ledger;

use crate::error::Error;
use crate::reuse::{SessionReuseKey, intent_id};

/// How many waves a session has had.
pub type Revision = u32;

/// Under the digest of the intent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IntentRow {
    pub logical_session: LogicalSessionId,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LogicalRow {
    pub intent: String,
    pub created: Timestamp,
    pub execute: Option<ExecuteBinding>,
    /// The number of the last run.
    pub runs: u64,
    /// The number of the next plan commit.
    #[serde(default)]
    pub commits: u64,
    /// The number of the last page handle.
    #[serde(default)]
    pub pages: u64,
    /// The number of the last operation.
    #[serde(default)]
    pub operations: u64,
    /// The number of the last plan that was shown.
    #[serde(default)]
    pub plans: u64,
    /// When it was last worked in, to within `TOUCH_MS`.
    #[serde(default = "never")]
    pub used: Timestamp,
    /// The id of the row that leads here; the digest of the intent where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The session it began as a copy of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<ForkedFrom>,
    /// Its writes stop at the plan until it is promoted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fenced: bool,
}

/// Runs and pages up to these numbers are the other session's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkedFrom {
    pub session: LogicalSessionId,
    pub runs: u64,
    pub pages: u64,
}

/// A session that is only looked at is written no more often than this.
pub const TOUCH_MS: i64 = 60 * 60 * 1000;

pub(crate) fn never() -> Timestamp {
    Timestamp(0)
}

impl LogicalRow {
    pub fn new(intent: &str, created: Timestamp) -> Self {
        let (intent, used) = (intent.to_owned(), created);
        let (runs, commits, pages, operations, plans) = (0, 0, 0, 0, 0);
        let (execute, name, forked, fenced) = (None, None, None, false);
        Self { intent, created, execute, runs, commits, pages, operations, plans, used, name, forked, fenced }
    }

    /// Without an intent it was opened by its seeds alone.
    pub fn is_unnamed(&self) -> bool {
        self.intent.is_empty()
    }

    pub fn row_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| intent_id(&self.intent))
    }
}

/// Which symbol space a logical session is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecuteBinding {
    pub prompt_hash: Digest,
    pub session_id: ExecuteSessionId,
}

/// A connection's slots, by number.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConnectionRow {
    pub slots: Vec<LogicalSessionId>,
    /// When it was last used, to within a day.
    #[serde(default = "never")]
    pub used: Timestamp,
    /// The number of the principal's last run in a session that has no intent.
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub runs: u64,
}

impl Default for ConnectionRow {
    fn default() -> Self {
        Self { slots: Vec::new(), used: never(), runs: 0 }
    }
}

fn is_none_yet(runs: &u64) -> bool {
    *runs == 0
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExecuteRow {
    pub prompt_hash: Digest,
    pub logical_session: LogicalSessionId,
    /// Pinned: the blobs of these digests are their canonical forms.
    pub catalogs: BTreeMap<CatalogId, Digest>,
    pub ledger: Ledger,
    pub revision: Revision,
    /// The fenced table of each wave.
    pub waves: Vec<String>,
    pub opened: Timestamp,
    /// What an open must have in common with this one to be given it.
    #[serde(default)]
    pub key: Option<SessionReuseKey>,
    /// Newer catalogs that its caller has been told of.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub told: BTreeSet<Digest>,
}

impl ExecuteRow {
    /// Wave 1, then each later one under its heading.
    pub fn cumulative(&self) -> String {
        self.waves.join("\n\n## Expanded capabilities\n\n")
    }
}

/// A plan that was shown.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlanRow {
    pub digest: Digest,
    pub program: String,
    /// The moment that `now` means in it.
    pub planned: Timestamp,
    pub verdict: Verdict,
    /// The number of its commit, where it needs a review.
    #[serde(default)]
    pub commit: Option<u64>,
    pub body: PlanBody,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanBody {
    Here(Box<Plan>),
    Blob(Digest),
}

/// Which run of which session: what a run's id and a bare number lead to.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RunAt {
    pub session: LogicalSessionId,
    pub number: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunRow {
    pub run: RunId,
    /// The symbol space it ran in.
    #[serde(default)]
    pub execute: Option<ExecuteBinding>,
    #[serde(default)]
    pub program: String,
    #[serde(default)]
    pub started: Option<Timestamp>,
    /// Kept for as long as its session, whatever the retention of artifacts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    pub plan: Digest,
    pub artifact: Digest,
    /// The artifact is a row beside this one, not a blob.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inline: bool,
    pub finished: Timestamp,
    /// Labels of results that were not read to their end, and the numbers of their page handles.
    #[serde(default)]
    pub pages: Vec<(String, u64)>,
    /// By the number of a page handle, the steps that its rows have not been through.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub before: BTreeMap<u64, String>,
}

/// A plan that may run once: what was shown, and what became of it. Under a commit's number, or a client's request id.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClaimRow {
    pub plan: Digest,
    pub program: String,
    /// The moment that `now` means in it.
    pub planned: Timestamp,
    pub state: Claim,
    /// The number of the operation that speaks for the run.
    #[serde(default)]
    pub operation: Option<u64>,
    /// The process that claimed it, where processes know each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<InstanceId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    Unused,
    /// By this run, which may be going on, or have died with its process.
    Claimed(RunId),
    /// Its result is this run's number.
    Done(u64),
}

/// Runs of a session, in the order of their numbers.
pub fn run_key(tenant: &TenantId, session: LogicalSessionId, number: u64) -> Key {
    Key::new(tenant, Table::Run, format!("{session}/{number:010}"))
}

/// The number of a commit, from how it is shown: `pc3`.
pub fn commit_number(shown: &str) -> Option<u64> {
    shown.strip_prefix("pc")?.parse().ok()
}

/// Commits of a session, by their numbers.
pub fn commit_key(tenant: &TenantId, session: LogicalSessionId, number: u64) -> Key {
    Key::new(tenant, Table::PlanCommit, format!("{session}/{number:010}"))
}

/// The result of a run, where it is small enough for a row.
pub fn artifact_key(tenant: &TenantId, session: LogicalSessionId, number: u64) -> Key {
    Key::new(tenant, Table::Artifact, format!("{session}/{number:010}"))
}

/// By the run's own id.
pub fn run_id_key(tenant: &TenantId, run: RunId) -> Key {
    Key::new(tenant, Table::RunId, run.to_string())
}

pub fn write<T: Serialize>(row: &T) -> Vec<u8> {
    // Rows are plain data with string keys; serde_json has no way to fail on them.
    serde_json::to_vec(row).unwrap_or_default()
}

pub fn read<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|error| {
        tracing::error!(row = name, %error, "a stored row does not read back");
        Error::Damaged(name.to_owned())
    })
}

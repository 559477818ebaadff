//! The stored rows of sessions.
//! Invariant: a row is JSON that every later version can read; a field that is added later has a default.

use std::collections::{BTreeMap, BTreeSet};

use base::{CatalogId, Digest, ExecuteSessionId, InstanceId, LogicalSessionId, Principal, RunId, TenantId, Timestamp};
use lang::plan::{Plan, Verdict};
use ports::store::{Key, Table};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use teach::Ledger;

use crate::error::Error;
use crate::reuse_key::{SessionReuseKey, intent_id};

/// How many waves a session has had.
pub type Revision = u32;

/// The session of an intent, stored under the digest of the intent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IntentRow {
    /// The session that the intent finds.
    pub logical_session: LogicalSessionId,
}

/// A logical session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LogicalRow {
    /// The sentence that says what the session is for. Empty if it was opened by its seeds alone.
    pub intent: String,
    /// When the session was opened first.
    pub created: Timestamp,
    /// The live execute session. `None` before the first open ends and after the retention period.
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
    /// When the session was last used, with a precision of `TOUCH_MS`.
    #[serde(default = "never")]
    pub used: Timestamp,
    /// The id of the intent's row. Left out if it is the digest of the intent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The session that this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<ForkedFrom>,
    /// The session is a fork that was not promoted, so its writes stop at the plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fenced: bool,
    /// The principal that opened the session, if principals are separate (`visibility.rs`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Principal>,
}

/// The origin of a fork. Runs and pages up to these numbers belong to that session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkedFrom {
    /// The parent session.
    pub session: LogicalSessionId,
    /// The number of the parent's last run at the time of the fork.
    pub runs: u64,
    /// The number of the parent's last page handle at the time of the fork.
    pub pages: u64,
}

/// The `used` time of a session is written no more often than this.
pub const TOUCH_MS: i64 = 60 * 60 * 1000;

/// Returns the time of rows that were written before the field existed.
pub(crate) fn never() -> Timestamp {
    Timestamp(0)
}

impl LogicalRow {
    pub fn new(intent: &str, created: Timestamp) -> Self {
        Self {
            intent: intent.to_owned(),
            created,
            execute: None,
            runs: 0,
            commits: 0,
            pages: 0,
            operations: 0,
            plans: 0,
            used: created,
            name: None,
            forked: None,
            fenced: false,
            owner: None,
        }
    }

    /// Returns whether the session has no intent, because it was opened by its seeds alone.
    pub fn is_unnamed(&self) -> bool {
        self.intent.is_empty()
    }

    /// Returns the id of the row in the table of intents that leads to this session.
    pub fn intent_row_id(&self) -> String {
        self.name.clone().unwrap_or_else(|| intent_id(&self.intent))
    }
}

/// The execute session that a logical session is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecuteBinding {
    #[schemars(with = "String")]
    pub prompt_hash: Digest,
    #[schemars(with = "String")]
    pub session_id: ExecuteSessionId,
}

/// The slots of a connection, by number.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConnectionRow {
    /// The sessions in the newest slots, the oldest of them first. Slots are only ever added, so a number keeps its meaning.
    pub slots: Vec<LogicalSessionId>,
    /// The number of older slots, which `slots.rs` moved to rows of their own. The first session of `slots` has this number.
    #[serde(default, skip_serializing_if = "is_zero_slots")]
    pub moved: u32,
    /// When the connection was last used, with a precision of a day.
    #[serde(default = "never")]
    pub used: Timestamp,
    /// The number of the principal's last run in a session without an intent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub runs: u64,
}

impl Default for ConnectionRow {
    fn default() -> Self {
        Self { slots: Vec::new(), moved: 0, used: never(), runs: 0 }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_zero_slots(number: &u32) -> bool {
    *number == 0
}

/// An execute session: pinned catalogs and the symbols taught from them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExecuteRow {
    /// The digest of the first wave's table. The execute address contains it, so it never changes.
    pub prompt_hash: Digest,
    /// The session that is bound to this execute session, unless it has another by now.
    pub logical_session: LogicalSessionId,
    /// The pinned catalogs. The blobs of these digests hold their canonical forms.
    pub catalogs: BTreeMap<CatalogId, Digest>,
    /// The meanings of all symbols that were taught.
    pub ledger: Ledger,
    /// The number of waves.
    pub revision: Revision,
    /// The fenced table of each wave.
    pub waves: Vec<String>,
    /// When the first wave was taught.
    pub opened: Timestamp,
    /// The key under which another open may share this execute session.
    #[serde(default)]
    pub key: Option<SessionReuseKey>,
    /// Newer catalogs that were announced to its caller.
    #[serde(rename = "told", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub announced_catalogs: BTreeSet<Digest>,
}

impl ExecuteRow {
    /// Returns the first table, then each later one under a heading.
    pub fn cumulative(&self) -> String {
        self.waves.join("\n\n## Expanded capabilities\n\n")
    }
}

/// A plan that was shown.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlanRow {
    /// The digest of the plan.
    pub digest: Digest,
    /// The program's text, as its author wrote it.
    pub program: String,
    /// The time that `now` means in the program.
    pub planned: Timestamp,
    pub verdict: Verdict,
    /// The number of its plan commit, if it needs a review.
    #[serde(default)]
    pub commit: Option<u64>,
    /// The plan itself.
    pub body: PlanBody,
}

/// The plan, in its row or in a blob.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanBody {
    /// The plan is small enough for the row.
    #[serde(rename = "here")]
    Inline(Box<Plan>),
    /// The plan is in the blob of this digest.
    Blob(Digest),
}

/// A run's session, and its number in that session. Run ids and the numbers of a principal lead to it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RunAt {
    /// The session under which the run is stored.
    pub session: LogicalSessionId,
    /// The run's number in that session.
    pub number: u64,
}

/// A run that ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunRow {
    /// The id of the run, which its receipts carry.
    pub run: RunId,
    /// The execute session in which it ran.
    #[serde(default)]
    pub execute: Option<ExecuteBinding>,
    #[serde(default)]
    pub program: String,
    /// `None` in rows that were written before the field existed.
    #[serde(default)]
    pub started: Option<Timestamp>,
    /// The result is kept as long as the session, whatever its retention period.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// The digest of the plan that ran.
    pub plan: Digest,
    /// The digest of the result, by which a reader verifies its bytes.
    pub artifact: Digest,
    /// The artifact is stored in a row, not in a blob.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inline: bool,
    pub finished: Timestamp,
    /// The labels of unfinished results, and the numbers of their page handles.
    #[serde(default)]
    pub pages: Vec<(String, u64)>,
    /// By the number of a page handle: the steps of the program that were not applied to the rest of the list.
    #[serde(rename = "before", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unapplied_steps: BTreeMap<u64, String>,
}

/// A plan that may run once, with its state. Stored under a plan commit's number or under a client's request id.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClaimRow {
    /// The digest of the only plan that the claim allows to run.
    pub plan: Digest,
    pub program: String,
    /// The time that `now` means in the program.
    pub planned: Timestamp,
    /// Whether the plan has run.
    pub state: Claim,
    /// The number of the operation through which callers ask for the run.
    #[serde(default)]
    pub operation: Option<u64>,
    /// The process that claimed it, if processes have ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<InstanceId>,
}

/// The state of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// No run has started.
    Unused,
    /// Claimed by this run, which may be active, or have died with its process.
    Claimed(RunId),
    /// The run with this number has the result.
    Done(u64),
}

/// Returns the key of a run, by its number in the session.
pub fn run_key(tenant: &TenantId, session: LogicalSessionId, number: u64) -> Key {
    Key::new(tenant, Table::Run, format!("{session}/{number:010}"))
}

/// Returns the number of a plan commit written as `pc3`.
pub fn commit_number(shown: &str) -> Option<u64> {
    shown.strip_prefix("pc")?.parse().ok()
}

/// Returns the key of a plan commit, by its number in the session.
pub fn commit_key(tenant: &TenantId, session: LogicalSessionId, number: u64) -> Key {
    Key::new(tenant, Table::PlanCommit, format!("{session}/{number:010}"))
}

/// Returns the key of a run's result, if it is small enough for a row.
pub fn artifact_key(tenant: &TenantId, session: LogicalSessionId, number: u64) -> Key {
    Key::new(tenant, Table::Artifact, format!("{session}/{number:010}"))
}

/// Returns the key of the row that leads from a run's id to its session and number.
pub fn run_id_key(tenant: &TenantId, run: RunId) -> Key {
    Key::new(tenant, Table::RunId, run.to_string())
}

pub fn write<T: Serialize>(row: &T) -> Vec<u8> {
    // Rows are plain data with string keys, on which serde_json cannot fail.
    serde_json::to_vec(row).unwrap_or_default()
}

/// Parses a row. `name` names the row in the error. The failure is logged here, with the parser's message.
pub fn read<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|error| {
        tracing::error!(row = name, %error, "a stored row cannot be parsed");
        Error::Damaged(name.to_owned())
    })
}

//! The stored result of a run: all returns, all rows, all fields, uncut, with coverage.
//! Invariant: an artifact is readable only through a row of the caller's tenant, and its bytes are verified on every
//! read.

use std::collections::BTreeMap;

use access::Caller;
use base::{Digest, LogicalSessionId, RunId, Slot, Timestamp};
use catalog::Row;
use exec::{Coverage, Outcome};
use ports::receipts::Receipt;
use ports::store::{Batch, Key, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::commit::{TRIES, unchanged};
use crate::error::Error;
use crate::load::Versioned;
use crate::plans::StoredPlan;
use crate::rows::{ExecuteBinding, RunAt, RunRow, artifact_key, run_id_key, run_key};
use crate::service::Service;
use crate::uri::ResourceUri;

/// The result of one run, as stored and as clients read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    #[schemars(with = "String")]
    pub run: RunId,
    /// The digest of the plan that ran.
    #[schemars(with = "String")]
    pub plan: Digest,
    /// When the run ended, in milliseconds since 1970 (UTC).
    #[schemars(with = "i64")]
    pub finished: Timestamp,
    pub returns: Vec<ArtifactReturn>,
    /// The receipts of the run's effects, in starting order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<BTreeMap<String, Value>>")]
    pub receipts: Vec<Receipt>,
    /// The run was cancelled before its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
}

/// One return of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArtifactReturn {
    pub label: String,
    pub entity: String,
    pub columns: Vec<String>,
    /// Columns that are shown only here when space is short.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub long_columns: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub effect: bool,
    /// How much of the requested data the rows hold, or null if the return failed.
    #[schemars(with = "Option<Value>")]
    pub coverage: Option<Coverage>,
    #[schemars(with = "Vec<BTreeMap<String, Value>>")]
    pub rows: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Artifact {
    pub(crate) fn of(run: RunId, plan: Digest, finished: Timestamp, outcome: &Outcome) -> Self {
        let returns = outcome.returns.iter().map(|r| ArtifactReturn {
            label: r.label.clone(),
            entity: r.entity.clone(),
            columns: r.columns.clone(),
            long_columns: r.long_columns.clone(),
            effect: r.effect,
            coverage: r.result.as_ref().ok().map(|rowset| rowset.coverage.clone()),
            rows: r.result.as_ref().map(|set| set.rows.iter().map(|row| Row::clone(row)).collect()).unwrap_or_default(),
            error: r.result.as_ref().err().map(|error| error.to_string()),
        });
        let (receipts, cancelled) = (outcome.receipts.clone(), outcome.cancelled);
        Self { run, plan, finished, returns: returns.collect(), receipts, cancelled }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        // Serialisation cannot fail, because the rows were parsed from JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// The content behind a URI.
#[derive(Debug, Clone)]
pub enum Resource {
    Artifact(Box<Artifact>),
    Plan(Box<StoredPlan>),
}

/// A run in a list of resources.
#[derive(Debug, Clone)]
pub struct RunListItem {
    pub uri: String,
    pub program: String,
    pub finished: Timestamp,
}

/// How many sessions a list of resources covers, and how many runs of each.
const LISTED_SESSIONS: usize = 20;
const LISTED_RUNS: u64 = 10;

impl Service {
    /// Reads the resource at a URI of the caller's tenant.
    pub async fn resource(&self, caller: &Caller, uri: &str) -> Result<Resource, Error> {
        if let ResourceUri::Plan { session, number } = ResourceUri::parse(uri)? {
            return self.stored_plan(caller, uri, &session, number).await.map(Box::new).map(Resource::Plan);
        }
        self.artifact(caller, uri).await.map(Box::new).map(Resource::Artifact)
    }

    /// Returns the artifact of a run, or one return of it if the URI has a label.
    pub async fn artifact(&self, caller: &Caller, uri: &str) -> Result<Artifact, Error> {
        let (at, found, label) = self.find_run(caller, uri).await?;
        let bytes = self.artifact_bytes(caller, at, &found.row).await?;
        let mut artifact: Artifact = crate::rows::read("artifact", &bytes)?;
        if let Some(label) = label {
            artifact.returns.retain(|r| r.label == label);
            if artifact.returns.is_empty() {
                return Err(self.missing_resource_error(uri, false));
            }
        }
        Ok(artifact)
    }

    /// Returns the row and the artifact of one run of a session.
    pub(crate) async fn artifact_at(
        &self,
        caller: &Caller,
        session: LogicalSessionId,
        number: u64,
    ) -> Result<Option<(RunRow, Artifact)>, Error> {
        let Some((at, found)) = self.run_at(caller, RunAt { session, number }).await? else { return Ok(None) };
        let bytes = self.artifact_bytes(caller, at, &found.row).await?;
        Ok(Some((found.row, crate::rows::read("artifact", &bytes)?)))
    }

    /// Returns a run by its number, with the place where it is stored. The first runs of a fork are stored under the
    /// session it was forked from.
    async fn run_at(&self, caller: &Caller, mut at: RunAt) -> Result<Option<(RunAt, Versioned<RunRow>)>, Error> {
        loop {
            if let Some(row) = self.fetch(&run_key(&caller.tenant, at.session, at.number)).await? {
                return Ok(Some((at, row)));
            }
            let forked = self.logical(caller, at.session).await?.and_then(|found| found.row.forked);
            match forked.filter(|from| at.number <= from.runs) {
                Some(from) => at.session = from.session,
                None => return Ok(None),
            }
        }
    }

    /// Pins a result, so that it is kept as long as its session, or unpins it.
    pub async fn pin_artifact(&self, caller: &Caller, uri: &str, pinned: bool) -> Result<(), Error> {
        for _ in 0..TRIES {
            let (at, found, _) = self.find_run(caller, uri).await?;
            let row = RunRow { pinned, ..found.row };
            let key = run_key(&caller.tenant, at.session, at.number);
            let batch = Batch::default().put(key, crate::rows::write(&row), unchanged(found.version));
            if self.try_commit(batch).await?.is_some() {
                return Ok(());
            }
        }
        Err(Error::Busy)
    }

    /// Returns the newest results of the sessions in the caller's slots.
    pub async fn list_runs(&self, caller: &Caller) -> Result<Vec<RunListItem>, Error> {
        let slots = self.connection(caller).await?.row.slots;
        let mut runs = Vec::new();
        for (at, id) in slots.iter().enumerate().rev().take(LISTED_SESSIONS) {
            let newest = self.logical(caller, *id).await?.map_or(0, |row| row.row.runs);
            for number in (newest.saturating_sub(LISTED_RUNS) + 1..=newest).rev() {
                let found: Option<Versioned<RunRow>> = self.fetch(&run_key(&caller.tenant, *id, number)).await?;
                let Some(RunRow { program, finished, .. }) = found.map(|found| found.row) else { continue };
                runs.push(RunListItem { uri: ResourceUri::run(Slot(at as u32), number), program, finished });
            }
        }
        Ok(runs)
    }

    /// Returns the run that a URI names, and the label in the URI.
    async fn find_run(&self, caller: &Caller, uri: &str) -> Result<(RunAt, Versioned<RunRow>, Option<String>), Error> {
        let missing = || self.missing_resource_error(uri, false);
        let (at, label, binding) = match ResourceUri::parse(uri)? {
            ResourceUri::Run { session, number, label } => {
                let (session, _) = self.resolve(caller, &session).await?;
                (RunAt { session, number }, label, None)
            }
            ResourceUri::Canonical { prompt_hash, execute, run, label } => {
                let found: Option<Versioned<RunAt>> = self.fetch(&run_id_key(&caller.tenant, run)).await?;
                let binding = ExecuteBinding { prompt_hash, session_id: execute };
                (found.ok_or_else(missing)?.row, label, Some(binding))
            }
            ResourceUri::Bare { number, label } => {
                let found: Option<Versioned<RunAt>> = self.fetch(&principal_run_key(caller, number)).await?;
                (found.ok_or_else(missing)?.row, label, None)
            }
            ResourceUri::Plan { .. } => return Err(missing()),
        };
        let Some((at, found)) = self.run_at(caller, at).await? else {
            let runs = self.logical(caller, at.session).await?.map_or(0, |row| row.row.runs);
            return Err(self.missing_resource_error(uri, (1..=runs).contains(&at.number)));
        };
        // The run id alone would find the run. A URI with a wrong session must still be refused, since its caller may
        // be mistaken about what it reads.
        if binding.is_some() && found.row.execute != binding {
            return Err(missing());
        }
        Ok((at, found, label))
    }

    /// Returns the bytes of an artifact, which are in a row or in a blob.
    async fn artifact_bytes(&self, caller: &Caller, at: RunAt, run: &RunRow) -> Result<Vec<u8>, Error> {
        if !run.inline {
            return self.read_blob(run.artifact).await;
        }
        let found = self.ports.store.get(&artifact_key(&caller.tenant, at.session, at.number)).await?;
        let verified = found.map(|row| row.value).filter(|bytes| Digest::of(bytes) == run.artifact);
        verified.ok_or(Error::LostArtifact(run.artifact))
    }

    pub(crate) async fn read_blob(&self, digest: Digest) -> Result<Vec<u8>, Error> {
        self.ports.blobs.get(&digest).await.map_err(|error| match error {
            ports::blobs::Error::Missing(_) | ports::blobs::Error::Damaged(_) => Error::LostArtifact(digest),
            other => Error::Blobs(other),
        })
    }

    /// Returns the error for a missing resource. `expired` tells that it existed once.
    pub(crate) fn missing_resource_error(&self, uri: &str, expired: bool) -> Error {
        if expired { self.expired_error(uri) } else { Error::NoArtifact(base::printable(uri, 120)) }
    }

    /// Returns the error for a handle or URI whose retention period is over.
    pub(crate) fn expired_error(&self, what: &str) -> Error {
        Error::Gone { what: base::printable(what, 120), days: self.retention.artifacts }
    }
}

/// Returns the key of a run in the caller's numbering of runs without an intent.
pub(crate) fn principal_run_key(caller: &Caller, number: u64) -> Key {
    Key::new(&caller.tenant, Table::PrincipalRun, format!("{}/{number:010}", caller.principal))
}

//! The stored result of a run: all returns, all rows, all fields, uncut, with coverage.
//! Invariant: an artifact is readable only through a row of the caller's tenant, and its bytes are verified on every
//! read.

use std::collections::BTreeMap;

use access::Caller;
use base::{Digest, LogicalSessionId, RunId, Timestamp};
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
        let returns = outcome.returns.iter().map(ArtifactReturn::of).collect();
        Self { run, plan, finished, returns, receipts: outcome.receipts.clone(), cancelled: outcome.cancelled }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        // Serialisation cannot fail, because the rows were parsed from JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl ArtifactReturn {
    fn of(returned: &exec::ReturnResult) -> Self {
        let rowset = returned.result.as_ref();
        Self {
            label: returned.label.clone(),
            entity: returned.entity.clone(),
            columns: returned.columns.clone(),
            long_columns: returned.long_columns.clone(),
            effect: returned.effect,
            coverage: rowset.ok().map(|rowset| rowset.coverage.clone()),
            rows: rowset.map(|rowset| rowset.rows.iter().map(|row| Row::clone(row)).collect()).unwrap_or_default(),
            error: rowset.err().map(|error| error.to_string()),
        }
    }
}

/// The content behind a URI.
#[derive(Debug, Clone)]
pub enum Resource {
    /// The result of a run.
    Artifact(Box<Artifact>),
    /// A plan that was shown.
    Plan(Box<StoredPlan>),
}

/// A run in a list of resources.
#[derive(Debug, Clone)]
pub struct RunListItem {
    /// The URI of the result, such as `plasm://session/s0/r/3`.
    pub uri: String,
    pub program: String,
    pub finished: Timestamp,
}

/// The number of sessions that a list of resources covers.
const LISTED_SESSIONS: usize = 20;
/// The number of runs of each session that a list of resources covers.
const LISTED_RUNS: u64 = 10;

/// A run that a URI names.
struct LocatedRun {
    /// The key under which the run is stored. For the first runs of a fork this is a key of the parent session.
    stored_at: RunAt,
    run: Versioned<RunRow>,
    /// The label in the URI, which names one return of the run.
    label: Option<String>,
}

impl Service {
    /// Reads the resource at a URI of the caller's tenant.
    pub async fn resource(&self, caller: &Caller, uri: &str) -> Result<Resource, Error> {
        if let ResourceUri::Plan { session, number } = ResourceUri::parse(uri)? {
            return self.stored_plan(caller, uri, &session, number).await.map(Box::new).map(Resource::Plan);
        }
        self.artifact(caller, uri).await.map(Box::new).map(Resource::Artifact)
    }

    /// Returns the artifact of a run, or one return of it if the URI has a label. Its receipts are as they have settled by now.
    pub async fn artifact(&self, caller: &Caller, uri: &str) -> Result<Artifact, Error> {
        let located = self.find_run(caller, uri).await?;
        let bytes = self.artifact_bytes(caller, located.stored_at, &located.run.row).await?;
        let mut artifact: Artifact = crate::rows::read("artifact", &bytes)?;
        self.show_settled(caller, located.stored_at.session, &mut artifact).await?;
        if let Some(label) = located.label {
            artifact.returns.retain(|returned| returned.label == label);
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
        let Some((stored_at, run)) = self.run_at(caller, RunAt { session, number }).await? else { return Ok(None) };
        let bytes = self.artifact_bytes(caller, stored_at, &run.row).await?;
        let mut artifact = crate::rows::read("artifact", &bytes)?;
        self.show_settled(caller, stored_at.session, &mut artifact).await?;
        Ok(Some((run.row, artifact)))
    }

    /// Returns a run by its number, with the session and number under which it is stored. The first runs of a fork are
    /// stored under the session it was forked from.
    async fn run_at(&self, caller: &Caller, mut at: RunAt) -> Result<Option<(RunAt, Versioned<RunRow>)>, Error> {
        loop {
            if let Some(row) = self.fetch(&run_key(&caller.tenant, at.session, at.number)).await? {
                return Ok(Some((at, row)));
            }
            let forked = self.logical(caller, at.session).await?.and_then(|logical| logical.row.forked);
            // The parent may be a fork itself. A fork is younger than its parent, so the walk ends.
            match forked.filter(|parent| at.number <= parent.runs) {
                Some(parent) => at.session = parent.session,
                None => return Ok(None),
            }
        }
    }

    /// Pins a result, so that it is kept as long as its session, or unpins it.
    pub async fn pin_artifact(&self, caller: &Caller, uri: &str, pinned: bool) -> Result<(), Error> {
        for _ in 0..TRIES {
            let LocatedRun { stored_at, run, .. } = self.find_run(caller, uri).await?;
            let row = RunRow { pinned, ..run.row };
            let key = run_key(&caller.tenant, stored_at.session, stored_at.number);
            let batch = Batch::default().put(key, crate::rows::write(&row), unchanged(run.version));
            if self.try_commit(batch).await?.is_some() {
                return Ok(());
            }
        }
        Err(Error::Busy)
    }

    /// Returns the newest results of the sessions in the caller's slots.
    pub async fn list_runs(&self, caller: &Caller) -> Result<Vec<RunListItem>, Error> {
        let connection = self.connection(caller).await?.row;
        let mut runs = Vec::new();
        // The newest sessions have the highest slots.
        for (slot, id) in connection.newest_slots().take(LISTED_SESSIONS) {
            let newest = self.logical(caller, id).await?.map_or(0, |logical| logical.row.runs);
            for number in (newest.saturating_sub(LISTED_RUNS) + 1..=newest).rev() {
                let run: Option<Versioned<RunRow>> = self.fetch(&run_key(&caller.tenant, id, number)).await?;
                // An expired run, or a run that a fork shares with its parent, whose list shows it.
                let Some(RunRow { program, finished, .. }) = run.map(|run| run.row) else { continue };
                runs.push(RunListItem { uri: ResourceUri::run(slot, number), program, finished });
            }
        }
        Ok(runs)
    }

    /// Returns the run that a URI names, and the label in the URI.
    async fn find_run(&self, caller: &Caller, uri: &str) -> Result<LocatedRun, Error> {
        let missing = || self.missing_resource_error(uri, false);
        let (named, label, binding) = match ResourceUri::parse(uri)? {
            ResourceUri::Run { session, number, label } => {
                let (session, _) = self.resolve(caller, &session).await?;
                (RunAt { session, number }, label, None)
            }
            ResourceUri::Canonical { prompt_hash, execute, run, label } => {
                let named: Option<Versioned<RunAt>> = self.fetch(&run_id_key(&caller.tenant, run)).await?;
                let binding = ExecuteBinding { prompt_hash, session_id: execute };
                (named.ok_or_else(missing)?.row, label, Some(binding))
            }
            ResourceUri::Bare { number, label } => {
                let named: Option<Versioned<RunAt>> = self.fetch(&principal_run_key(caller, number)).await?;
                (named.ok_or_else(missing)?.row, label, None)
            }
            ResourceUri::Plan { .. } => return Err(missing()),
        };
        // An id finds runs of any session of the tenant.
        if self.logical(caller, named.session).await?.is_none() && self.is_hidden(caller, None) {
            return Err(missing());
        }
        let Some((stored_at, run)) = self.run_at(caller, named).await? else {
            let runs = self.logical(caller, named.session).await?.map_or(0, |logical| logical.row.runs);
            return Err(self.missing_resource_error(uri, (1..=runs).contains(&named.number)));
        };
        // The run id alone would find the run. A URI with a wrong session must still be refused, since its caller may
        // be mistaken about what it reads.
        if binding.is_some() && run.row.execute != binding {
            return Err(missing());
        }
        Ok(LocatedRun { stored_at, run, label })
    }

    /// Returns the bytes of an artifact, which are in a row or in a blob.
    async fn artifact_bytes(&self, caller: &Caller, stored_at: RunAt, run: &RunRow) -> Result<Vec<u8>, Error> {
        if !run.inline {
            return self.read_blob(run.artifact).await;
        }
        let key = artifact_key(&caller.tenant, stored_at.session, stored_at.number);
        // A blob store verifies each read; for a result in a row this is done here.
        let stored = self.ports.store.get(&key).await?.map(|row| row.value);
        let verified = stored.filter(|bytes| Digest::of(bytes) == run.artifact);
        verified.ok_or(Error::LostArtifact(run.artifact))
    }

    /// Reads the blob of a result or of a plan. A blob that is missing or damaged is an error of its own, because
    /// running the program again helps.
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
    pub(crate) fn expired_error(&self, handle: &str) -> Error {
        Error::Gone { what: base::printable(handle, 120), days: self.retention.artifacts }
    }
}

/// Returns the key of a run in the caller's numbering of runs without an intent.
pub(crate) fn principal_run_key(caller: &Caller, number: u64) -> Key {
    Key::new(&caller.tenant, Table::PrincipalRun, format!("{}/{number:010}", caller.principal))
}

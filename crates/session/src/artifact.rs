//! The stored result of a run: all returns, all rows, all fields, uncut, with coverage.
//! Invariant: it is readable only through a row of the caller's tenant, and its bytes are verified on every read.

use base::{Digest, LogicalSessionId, RunId, Slot, Timestamp};
use catalog::Row;
use exec::{Coverage, Outcome};
use ports::receipts::Receipt;
use ports::store::{Batch, Key, Table};
use serde::{Deserialize, Serialize};

use crate::commit::{TRIES, unchanged};
use crate::error::Error;
use crate::load::Versioned;
use crate::plans::ShownPlan;
use crate::rows::{ExecuteBinding, RunAt, RunRow, artifact_key, run_id_key, run_key};
use crate::service::Service;
use crate::uri::ResourceUri;
use access::Caller;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Artifact {
    pub run: RunId,
    pub plan: Digest,
    pub finished: Timestamp,
    pub returns: Vec<ArtifactReturn>,
    /// Of its effects, in the order they were begun.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receipts: Vec<Receipt>,
    /// It was told to stop and did, before its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArtifactReturn {
    pub label: String,
    pub entity: String,
    pub columns: Vec<String>,
    /// Columns that are shown only here when space is short.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub long_columns: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub effect: bool,
    pub coverage: Option<Coverage>,
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
        // Rows came out of JSON and go back into it.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// What a URI leads to.
#[derive(Debug, Clone)]
pub enum Resource {
    Artifact(Box<Artifact>),
    Plan(Box<ShownPlan>),
}

/// One result that can be read.
#[derive(Debug, Clone)]
pub struct ListedRun {
    pub uri: String,
    pub program: String,
    pub finished: Timestamp,
}

/// Sessions and runs of each that a list of resources names.
const LISTED_SESSIONS: usize = 20;
const LISTED_RUNS: u64 = 10;

impl Service {
    /// Whatever a URI names, of the caller's tenant.
    pub async fn resource(&self, caller: &Caller, uri: &str) -> Result<Resource, Error> {
        if let ResourceUri::Plan { session, number } = ResourceUri::parse(uri)? {
            return self.shown_plan(caller, uri, (&session, number)).await.map(Box::new).map(Resource::Plan);
        }
        self.artifact(caller, uri).await.map(Box::new).map(Resource::Artifact)
    }

    pub async fn artifact(&self, caller: &Caller, uri: &str) -> Result<Artifact, Error> {
        let (at, found, label) = self.run_named(caller, uri).await?;
        let bytes = self.artifact_bytes(caller, at, &found.row).await?;
        let mut artifact: Artifact = crate::rows::read("artifact", &bytes)?;
        if let Some(label) = label {
            artifact.returns.retain(|r| r.label == label);
            if artifact.returns.is_empty() {
                return Err(self.no_resource(uri, false));
            }
        }
        Ok(artifact)
    }

    /// Of one run of a session.
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

    /// A run by its number, and where it is: the first ones of a fork are those of the session it was made from.
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

    /// Keeps a result for as long as its session, or no longer than others.
    pub async fn pin_artifact(&self, caller: &Caller, uri: &str, pinned: bool) -> Result<(), Error> {
        for _ in 0..TRIES {
            let (at, found, _) = self.run_named(caller, uri).await?;
            let row = RunRow { pinned, ..found.row };
            let key = run_key(&caller.tenant, at.session, at.number);
            let batch = Batch::default().put(key, crate::rows::write(&row), unchanged(found.version));
            if self.try_commit(batch).await?.is_some() {
                return Ok(());
            }
        }
        Err(Error::Busy)
    }

    /// The newest results of the sessions that the caller's connection has slots for.
    pub async fn list_runs(&self, caller: &Caller) -> Result<Vec<ListedRun>, Error> {
        let slots = self.connection(caller).await?.row.slots;
        let mut listed = Vec::new();
        for (at, id) in slots.iter().enumerate().rev().take(LISTED_SESSIONS) {
            let newest = self.logical(caller, *id).await?.map_or(0, |row| row.row.runs);
            for number in (newest.saturating_sub(LISTED_RUNS) + 1..=newest).rev() {
                let found: Option<Versioned<RunRow>> = self.fetch(&run_key(&caller.tenant, *id, number)).await?;
                let Some(RunRow { program, finished, .. }) = found.map(|found| found.row) else { continue };
                listed.push(ListedRun { uri: ResourceUri::run(Slot(at as u32), number), program, finished });
            }
        }
        Ok(listed)
    }

    async fn run_named(&self, caller: &Caller, uri: &str) -> Result<(RunAt, Versioned<RunRow>, Option<String>), Error> {
        let missing = || self.no_resource(uri, false);
        let (at, label, through) = match ResourceUri::parse(uri)? {
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
                let found: Option<Versioned<RunAt>> = self.fetch(&bare_key(caller, number)).await?;
                (found.ok_or_else(missing)?.row, label, None)
            }
            ResourceUri::Plan { .. } => return Err(missing()),
        };
        let Some((at, found)) = self.run_at(caller, at).await? else {
            let runs = self.logical(caller, at.session).await?.map_or(0, |row| row.row.runs);
            return Err(self.no_resource(uri, (1..=runs).contains(&at.number)));
        };
        // A run's id is enough to find it; the rest of its name must be right all the same.
        if through.is_some() && found.row.execute != through {
            return Err(missing());
        }
        Ok((at, found, label))
    }

    async fn artifact_bytes(&self, caller: &Caller, at: RunAt, run: &RunRow) -> Result<Vec<u8>, Error> {
        if !run.inline {
            return self.kept_blob(run.artifact).await;
        }
        let found = self.ports.store.get(&artifact_key(&caller.tenant, at.session, at.number)).await?;
        let sound = found.map(|row| row.value).filter(|bytes| Digest::of(bytes) == run.artifact);
        sound.ok_or(Error::LostArtifact(run.artifact))
    }

    pub(crate) async fn kept_blob(&self, digest: Digest) -> Result<Vec<u8>, Error> {
        self.ports.blobs.get(&digest).await.map_err(|error| match error {
            ports::blobs::Error::Missing(_) | ports::blobs::Error::Damaged(_) => Error::LostArtifact(digest),
            other => Error::Blobs(other),
        })
    }

    /// `expired`: it was there once.
    pub(crate) fn no_resource(&self, uri: &str, expired: bool) -> Error {
        if expired { self.gone(uri) } else { Error::NoArtifact(base::printable(uri, 120)) }
    }

    /// A handle or a URI whose time is over.
    pub(crate) fn gone(&self, what: &str) -> Error {
        Error::Gone { what: base::printable(what, 120), days: self.retention.artifacts }
    }
}

/// Where run `number` of the caller's runs without an intent is found.
pub(crate) fn bare_key(caller: &Caller, number: u64) -> Key {
    Key::new(&caller.tenant, Table::PrincipalRun, format!("{}/{number:010}", caller.principal))
}

//! The stored result of a run: all returns, all rows, all fields, uncut, with coverage.
//! Invariant: it is readable only through a row of the caller's tenant, and its bytes are verified on every read.

use base::{Digest, LogicalSessionId, RunId, Slot, Timestamp};
use catalog::Row;
use exec::{Coverage, Outcome};
use ports::receipts::Receipt;
use serde::{Deserialize, Serialize};

use crate::caller::Caller;
use crate::error::Error;
use crate::load::Versioned;
use crate::rows::{RunRow, run_key};
use crate::service::Service;

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

/// `plasm://session/s0/r/3`, with the canonical session id accepted for the slot; `#label` picks a return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactUri {
    pub session: String,
    pub number: u64,
    pub label: Option<String>,
}

impl ArtifactUri {
    pub fn parse(uri: &str) -> Result<Self, Error> {
        let refuse = || Error::NoArtifact(uri.chars().take(120).collect());
        let rest = uri.strip_prefix("plasm://session/").ok_or_else(refuse)?;
        let (rest, label) = rest.split_once('#').map_or((rest, None), |(rest, label)| (rest, Some(label.to_owned())));
        let (session, number) = rest.split_once("/r/").ok_or_else(refuse)?;
        let number = number.parse().map_err(|_| refuse())?;
        Ok(Self { session: session.to_owned(), number, label })
    }

    pub fn short(slot: Slot, number: u64) -> String {
        format!("plasm://session/{slot}/r/{number}")
    }
}

impl Service {
    pub async fn artifact(&self, caller: &Caller, uri: &str) -> Result<Artifact, Error> {
        let parsed = ArtifactUri::parse(uri)?;
        let (session, _) = self.resolve(caller, &parsed.session).await?;
        let missing = || Error::NoArtifact(uri.chars().take(120).collect());
        let mut artifact = self.artifact_at(caller, session, parsed.number).await?.ok_or_else(missing)?;
        if let Some(label) = parsed.label {
            artifact.returns.retain(|r| r.label == label);
            if artifact.returns.is_empty() {
                return Err(missing());
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
    ) -> Result<Option<Artifact>, Error> {
        let Some(row) = self.run_row(caller, session, number).await? else { return Ok(None) };
        let digest = row.row.artifact;
        let bytes = self.ports.blobs.get(&digest).await.map_err(|error| match error {
            ports::blobs::Error::Missing(_) | ports::blobs::Error::Damaged(_) => Error::LostArtifact(digest),
            other => Error::Blobs(other),
        })?;
        Ok(Some(crate::rows::read("artifact", &bytes)?))
    }

    /// A run by its number; the first ones of a fork are those of the session it was made from.
    pub(crate) async fn run_row(
        &self,
        caller: &Caller,
        session: LogicalSessionId,
        number: u64,
    ) -> Result<Option<Versioned<RunRow>>, Error> {
        let mut session = session;
        loop {
            if let Some(row) = self.fetch(&run_key(&caller.tenant, session, number)).await? {
                return Ok(Some(row));
            }
            let forked = self.logical(caller, session).await?.and_then(|found| found.row.forked);
            match forked.filter(|from| number <= from.runs) {
                Some(from) => session = from.session,
                None => return Ok(None),
            }
        }
    }
}

//! The address of an execute session, `(prompt_hash, session)`, for callers that hold it instead of a connection's slot.
//! Invariant: an address of another tenant reads as none; at its own door a session is `s0`, whoever asks.

use std::collections::BTreeMap;

use base::{CatalogId, Digest, ExecuteSessionId, LogicalSessionId, Timestamp, shown};

use crate::artifact::Artifact;
use crate::caller::{Caller, Connection};
use crate::error::Error;
use crate::open::{OpenRequest, Opened, SeedRequest, Taught};
use crate::rows::{ExecuteBinding, ExecuteRow, Revision};
use crate::service::Service;

#[derive(Debug, Clone, Default)]
pub struct ExecuteRequest {
    pub seeds: Vec<SeedRequest>,
    /// What the session is for; the same intent is the same session.
    pub intent: Option<String>,
    /// A session that is there, instead of an intent.
    pub logical_session: Option<String>,
}

/// A caller at a session's own door.
#[derive(Debug)]
pub struct Door {
    /// On a connection that has this session as `s0` and no other.
    pub caller: Caller,
    pub session: LogicalSessionId,
    pub binding: ExecuteBinding,
    /// Empty where it was opened without one.
    pub intent: String,
    pub catalogs: BTreeMap<CatalogId, Digest>,
    pub revision: Revision,
    pub opened: Timestamp,
    execute: ExecuteRow,
}

#[derive(Debug)]
pub struct Executed {
    pub opened: Opened,
    pub binding: ExecuteBinding,
    /// The session was there, with all that was asked for.
    pub reused: bool,
}

impl Service {
    pub async fn open_execute(&self, caller: &Caller, request: ExecuteRequest) -> Result<Executed, Error> {
        let intent = match (&request.logical_session, request.intent) {
            (None, intent) => intent,
            (Some(reference), given) => {
                let missing = || Error::NoSession(shown(reference, 80));
                let id = LogicalSessionId::parse(reference).map_err(|_| missing())?;
                let row = self.logical(caller, id).await?.ok_or_else(missing)?.row;
                // An intent beside it must be its own: two sessions at once are none.
                if given.is_some_and(|given| given != row.intent) {
                    return Err(Error::OtherIntent);
                }
                Some(row.intent)
            }
        };
        let opened = match &intent {
            Some(intent) => {
                // A connection of this session's own, so that opening many adds nothing to what the caller calls s0.
                let caller =
                    Caller { connection: Connection::Transport(format!("execute {intent}")), ..caller.clone() };
                self.open(&caller, &OpenRequest::new(intent, request.seeds)).await?
            }
            None => self.open_without_intent(caller, request.seeds).await?,
        };
        let row = self.logical(caller, opened.session).await?.ok_or(Error::Lost)?.row;
        let reused = matches!(opened.taught, Taught::Unchanged { .. });
        Ok(Executed { binding: row.execute.ok_or(Error::Lost)?, opened, reused })
    }

    async fn open_without_intent(&self, caller: &Caller, seeds: Vec<SeedRequest>) -> Result<Opened, Error> {
        let mut named: Vec<String> = seeds.iter().map(|seed| format!("{}:{}", seed.api, seed.entity)).collect();
        named.sort();
        let seeds = seeds.into_iter().map(|seed| SeedRequest::all(&seed.api, &seed.entity)).collect();
        self.open(caller, &OpenRequest::new(&named.join(" "), seeds)).await
    }

    /// The session at an address, as its tenant's caller.
    pub async fn door(&self, caller: Caller, prompt_hash: &str, session: &str) -> Result<Door, Error> {
        let missing = || Error::NoExecute(shown(session, 80));
        let binding = ExecuteBinding {
            prompt_hash: Digest::parse(prompt_hash).map_err(|_| missing())?,
            session_id: ExecuteSessionId::parse(session).map_err(|_| missing())?,
        };
        let execute = self.execute(&caller, &binding).await?.ok_or_else(missing)?.row;
        if execute.prompt_hash != binding.prompt_hash {
            return Err(missing());
        }
        let session = execute.logical_session;
        let logical = self.logical(&caller, session).await?.ok_or_else(missing)?.row;
        if logical.execute.as_ref() != Some(&binding) {
            return Err(Error::Replaced);
        }
        let (caller, intent) = (caller.at(binding.session_id), logical.intent);
        let (catalogs, revision, opened) = (execute.catalogs.clone(), execute.revision, execute.opened);
        Ok(Door { caller, session, binding, intent, catalogs, revision, opened, execute })
    }

    /// All that the session was taught, as far as its tenant may still use it.
    pub async fn table(&self, door: &Door) -> Result<String, Error> {
        let session = self.session(&door.caller, &door.session.to_string()).await?;
        Ok(self.again(&door.caller, &door.execute, &session.catalogs))
    }

    /// By the number of a run in its session, or by its id.
    pub async fn artifact_of(&self, door: &Door, run: &str) -> Result<Artifact, Error> {
        let uri = match run.parse::<u64>() {
            Ok(number) => format!("plasm://session/{}/r/{number}", door.session),
            Err(_) => {
                let ExecuteBinding { prompt_hash, session_id } = &door.binding;
                format!("plasm://execute/{prompt_hash}/{session_id}/run/{run}")
            }
        };
        self.artifact(&door.caller, &uri).await
    }

    /// More seeds for the session.
    pub async fn expand(&self, door: &Door, request: OpenRequest) -> Result<Opened, Error> {
        self.open(&door.caller, &OpenRequest { intent: door.intent.clone(), ..request }).await
    }
}

//! The address of an execute session, `(prompt_hash, session)`, for callers that hold it instead of a connection's slot.
//! Invariant: an address of another tenant reads as none; at its own door a session is `s0`, whoever asks.

use std::collections::BTreeMap;

use base::{CatalogId, Digest, ExecuteSessionId, LogicalSessionId, Timestamp, printable};

use super::{OpenRequest, Opened, SeedRequest, Taught};
use crate::error::Error;
use crate::reuse::SessionReuseKey;
use crate::rows::{ExecuteBinding, ExecuteRow, LogicalRow, Revision};
use crate::service::Service;
use access::{Caller, Connection};

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
        let ExecuteRequest { seeds, intent, logical_session } = request;
        let opened = match (&logical_session, &intent) {
            (Some(reference), given) => {
                let missing = || Error::NoSession(printable(reference, 80));
                let id = LogicalSessionId::parse(reference).map_err(|_| missing())?;
                let row = self.logical(caller, id).await?.ok_or_else(missing)?.row;
                // An intent beside it must be its own: two sessions at once are none.
                if given.as_ref().is_some_and(|given| *given != row.intent) {
                    return Err(Error::OtherIntent);
                }
                self.open_known(&opening(caller, reference), row, OpenRequest::new("", seeds)).await?
            }
            (None, Some(intent)) => self.open(&opening(caller, intent), &OpenRequest::new(intent, seeds)).await?,
            (None, None) => {
                let mut named: Vec<String> = seeds.iter().map(|s| format!("{}:{}", s.api, s.entity)).collect();
                named.sort();
                self.open_unnamed(&opening(caller, &named.join(" ")), seeds).await?
            }
        };
        let reused = opened.reused && matches!(opened.taught, Taught::Unchanged { .. });
        Ok(Executed { binding: opened.execute.clone(), opened, reused })
    }

    /// A session that is there, found by what it was opened with.
    async fn open_known(&self, caller: &Caller, row: LogicalRow, request: OpenRequest) -> Result<Opened, Error> {
        let request = OpenRequest { intent: row.intent, ..request };
        if !request.intent.is_empty() {
            return self.open(caller, &request).await;
        }
        let binding = row.execute.ok_or(Error::Replaced)?;
        let key = self.execute(caller, &binding).await?.and_then(|found| found.row.key).ok_or(Error::Replaced)?;
        let key = SessionReuseKey { logical_session_id: None, ..key };
        self.open_as(caller, &request, key.row_id()).await
    }

    /// The session at an address, as its tenant's caller.
    pub async fn door(&self, caller: Caller, prompt_hash: &str, session: &str) -> Result<Door, Error> {
        let missing = || Error::NoExecute(printable(session, 80));
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
        let catalogs = self.pinned(&door.caller.tenant, &door.execute).await?;
        Ok(self.again(&door.caller, &door.execute, &catalogs))
    }

    /// The table of each wave; in one piece, as far as it may still be used, for a tenant that may not use everything.
    pub async fn waves(&self, caller: &Caller, session: LogicalSessionId) -> Result<Vec<String>, Error> {
        let Some(binding) = self.logical(caller, session).await?.and_then(|found| found.row.execute) else {
            return Ok(Vec::new());
        };
        let Some(execute) = self.execute(caller, &binding).await? else { return Ok(Vec::new()) };
        if !self.tenants.is_restricted(&caller.tenant) {
            return Ok(execute.row.waves);
        }
        let catalogs = self.pinned(&caller.tenant, &execute.row).await?;
        Ok(vec![self.again(caller, &execute.row, &catalogs)])
    }

    /// More seeds for the session.
    pub async fn expand(&self, door: &Door, request: OpenRequest) -> Result<Opened, Error> {
        let missing = || Error::NoExecute(door.binding.session_id.to_string());
        let row = self.logical(&door.caller, door.session).await?.ok_or_else(missing)?.row;
        self.open_known(&door.caller, row, request).await
    }
}

/// A connection for each thing that is opened so: opening many adds nothing to what the caller calls `s0`, `s1` elsewhere.
fn opening(caller: &Caller, what: &str) -> Caller {
    Caller { connection: Connection::Transport(format!("execute {what}")), ..caller.clone() }
}

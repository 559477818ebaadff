//! The address of an execute session, `(prompt_hash, session)`, for callers that use it instead of a connection's
//! slot.
//! Invariant: an address of another tenant appears not to exist; at its own address a session is `s0` for every
//! caller.

use std::collections::BTreeMap;

use access::{Caller, Connection};
use base::{CatalogId, Digest, ExecuteSessionId, LogicalSessionId, Timestamp, printable};

use super::{OpenRequest, OpenedSession, SeedRequest, TaughtTable};
use crate::error::Error;
use crate::reuse_key::SessionReuseKey;
use crate::rows::{ExecuteBinding, ExecuteRow, LogicalRow, Revision};
use crate::service::Service;

/// A request to open a session by `POST /execute`.
#[derive(Debug, Clone, Default)]
pub struct ExecuteRequest {
    /// The entities to teach.
    pub seeds: Vec<SeedRequest>,
    /// The intent of the session. The same intent finds the same session.
    pub intent: Option<String>,
    /// An existing session, instead of an intent.
    pub logical_session: Option<String>,
}

/// An execute session, with a caller that is connected to it by its address.
#[derive(Debug)]
pub struct ExecuteAddress {
    /// The caller on a connection that has this session as `s0` and no other.
    pub caller: Caller,
    /// The logical session that is bound to the execute session.
    pub session: LogicalSessionId,
    /// The address itself.
    pub binding: ExecuteBinding,
    /// Empty if the session was opened without an intent.
    pub intent: String,
    /// The pinned catalogs with their digests.
    pub catalogs: BTreeMap<CatalogId, Digest>,
    /// The number of waves.
    pub revision: Revision,
    /// When the execute session was opened.
    pub opened: Timestamp,
    /// The row, for rendering its table.
    execute: ExecuteRow,
}

/// The answer to an [`ExecuteRequest`].
#[derive(Debug)]
pub struct OpenedExecute {
    pub opened: OpenedSession,
    /// The address of the execute session.
    pub binding: ExecuteBinding,
    /// The session existed and already had everything that was requested.
    pub reused: bool,
}

impl Service {
    /// Opens a session by an id, by an intent, or by its seeds alone.
    pub async fn open_execute(&self, caller: &Caller, request: ExecuteRequest) -> Result<OpenedExecute, Error> {
        let ExecuteRequest { seeds, intent, logical_session } = request;
        let opened = match (&logical_session, &intent) {
            (Some(reference), intent) => {
                let missing = || Error::NoSession(printable(reference, 80));
                let id = LogicalSessionId::parse(reference).map_err(|_| missing())?;
                let row = self.logical(caller, id).await?.ok_or_else(missing)?.row;
                // An additional intent must be the session's own, or the request would name two sessions.
                if intent.as_ref().is_some_and(|intent| *intent != row.intent) {
                    return Err(Error::OtherIntent);
                }
                self.open_existing(&self.opening_caller(caller, reference), row, OpenRequest::new("", seeds)).await?
            }
            (None, Some(intent)) => {
                self.open(&self.opening_caller(caller, intent), &OpenRequest::new(intent, seeds)).await?
            }
            (None, None) => {
                let mut seed_names: Vec<String> =
                    seeds.iter().map(|seed| format!("{}:{}", seed.api, seed.entity)).collect();
                seed_names.sort();
                self.open_unnamed(&self.opening_caller(caller, &seed_names.join(" ")), seeds).await?
            }
        };
        let reused = opened.reused && matches!(opened.taught, TaughtTable::Unchanged { .. });
        Ok(OpenedExecute { binding: opened.execute.clone(), opened, reused })
    }

    /// Opens an existing session again, under the intent or the reuse key with which it was opened.
    async fn open_existing(
        &self,
        caller: &Caller,
        row: LogicalRow,
        request: OpenRequest,
    ) -> Result<OpenedSession, Error> {
        let request = OpenRequest { intent: row.intent, ..request };
        if !request.intent.is_empty() {
            return self.open(caller, &request).await;
        }
        let binding = row.execute.ok_or(Error::Replaced)?;
        let key = self.execute(caller, &binding).await?.and_then(|found| found.row.key).ok_or(Error::Replaced)?;
        // A session without an intent is found by the key without a session id.
        let key = SessionReuseKey { logical_session_id: None, ..key };
        self.open_as(caller, &request, key.row_id()).await
    }

    /// Resolves an address for a caller of its tenant.
    pub async fn execute_address(
        &self,
        caller: Caller,
        prompt_hash: &str,
        session: &str,
    ) -> Result<ExecuteAddress, Error> {
        let missing = || Error::NoExecute(printable(session, 80));
        let binding = ExecuteBinding {
            prompt_hash: Digest::parse(prompt_hash).map_err(|_| missing())?,
            session_id: ExecuteSessionId::parse(session).map_err(|_| missing())?,
        };
        let execute = self.execute(&caller, &binding).await?.ok_or_else(missing)?.row;
        // The id alone finds the row. An address is a pair, and a wrong hash must not be answered with a session.
        if execute.prompt_hash != binding.prompt_hash {
            return Err(missing());
        }
        let session = execute.logical_session;
        let logical = self.logical(&caller, session).await?.ok_or_else(missing)?.row;
        // The row of a replaced execute session exists until its retention period is over.
        if logical.execute.as_ref() != Some(&binding) {
            return Err(Error::Replaced);
        }
        Ok(ExecuteAddress {
            caller: caller.at(binding.session_id),
            session,
            binding,
            intent: logical.intent,
            catalogs: execute.catalogs.clone(),
            revision: execute.revision,
            opened: execute.opened,
            execute,
        })
    }

    /// Returns everything that the session was taught, as far as its tenant may still use it.
    pub async fn cumulative_table(&self, address: &ExecuteAddress) -> Result<String, Error> {
        let catalogs = self.pinned_catalogs(&address.caller.tenant, &address.execute).await?;
        Ok(self.cumulative_text(&address.caller, &address.execute, &catalogs))
    }

    /// Returns the table of each wave. A restricted tenant gets a single table of what it may still use.
    pub async fn wave_tables(&self, caller: &Caller, session: LogicalSessionId) -> Result<Vec<String>, Error> {
        let Some(binding) = self.logical(caller, session).await?.and_then(|found| found.row.execute) else {
            return Ok(Vec::new());
        };
        let Some(execute) = self.execute(caller, &binding).await? else { return Ok(Vec::new()) };
        if !self.tenants.is_restricted(&caller.tenant) {
            return Ok(execute.row.waves);
        }
        let catalogs = self.pinned_catalogs(&caller.tenant, &execute.row).await?;
        Ok(vec![self.cumulative_text(caller, &execute.row, &catalogs)])
    }

    /// Adds seeds to the session.
    pub async fn expand_session(&self, address: &ExecuteAddress, request: OpenRequest) -> Result<OpenedSession, Error> {
        let missing = || Error::NoExecute(address.binding.session_id.to_string());
        let row = self.logical(&address.caller, address.session).await?.ok_or_else(missing)?.row;
        self.open_existing(&address.caller, row, request).await
    }

    /// Returns the caller on a connection of its own, so that an open by an address takes no slot on the caller's
    /// connection. The same session always gets the same connection.
    fn opening_caller(&self, caller: &Caller, session_name: &str) -> Caller {
        let connection = match self.owner(caller) {
            // The same name is another session for another principal.
            Some(owner) => format!("execute {owner} {session_name}"),
            None => format!("execute {session_name}"),
        };
        Caller { connection: Connection::Transport(connection), ..caller.clone() }
    }
}

//! The rows that an open starts from.
//! Invariant: an execute session that is lost or unreadable is never reconstructed. The session gets a new one, and
//! its caller is told.

use access::Caller;
use base::LogicalSessionId;
use teach::{Catalogs, Seed};

use super::OpenCall;
use crate::error::Error;
use crate::load::Versioned;
use crate::rows::{ExecuteBinding, ExecuteRow, LogicalRow};
use crate::service::Service;

/// A session as an open found it, or a new one.
pub(super) struct SessionSnapshot {
    /// The id of the logical session.
    pub id: LogicalSessionId,
    /// The session's row, with the version that the open expects when it writes.
    pub logical: Versioned<LogicalRow>,
    /// The session does not exist yet.
    pub is_new: bool,
    /// The live execute session. `None` if the open makes a new symbol space.
    pub execute: Option<(ExecuteBinding, Versioned<ExecuteRow>)>,
    /// The former execute session, if it is lost or damaged.
    pub lost: Option<ExecuteBinding>,
    /// The caller asked for the newest catalogs, so a former symbol space was dropped.
    pub refreshed: bool,
    /// The pinned catalogs as the caller sees them.
    pub pinned: Catalogs,
    /// The seeds that a refresh teaches again in the new symbol space.
    pub carried: Vec<Seed>,
}

impl Service {
    /// Reads the rows of the session that an open names, or prepares those of a new session.
    pub(super) async fn snapshot(&self, call: &OpenCall<'_>) -> Result<SessionSnapshot, Error> {
        let caller = call.caller;
        let intent = self.intent(caller, &call.intent_row_id).await?;
        let stored = match &intent {
            Some(row) => self.logical(caller, row.logical_session).await?,
            None => None,
        };
        let is_new = intent.is_none();
        let id = intent.map_or_else(|| self.new_logical_id(), |row| row.logical_session);
        let logical = stored.unwrap_or_else(|| {
            let row = LogicalRow::new(&call.request.intent, self.ports.clock.now());
            // Stored only if it does not follow from the intent.
            let name = Some(call.intent_row_id.clone()).filter(|name| *name != row.intent_row_id());
            Versioned { row: LogicalRow { name, owner: self.owner(caller), ..row }, version: 0 }
        });
        let binding = logical.row.execute.clone();
        let mut snapshot = SessionSnapshot {
            id,
            logical,
            is_new,
            execute: None,
            lost: None,
            refreshed: false,
            pinned: Catalogs::new(),
            carried: Vec::new(),
        };
        if let Some(binding) = binding {
            match self.read_symbol_space(caller, &binding).await? {
                Some((row, pinned)) => {
                    snapshot.execute = Some((binding, row));
                    snapshot.pinned = pinned;
                }
                None => snapshot.lost = Some(binding),
            }
        }
        Ok(if call.request.refresh { snapshot.refresh_catalogs(call.registry) } else { snapshot })
    }

    /// Returns an execute session with its catalogs. `None` if a part of it is lost or damaged.
    async fn read_symbol_space(
        &self,
        caller: &Caller,
        binding: &ExecuteBinding,
    ) -> Result<Option<(Versioned<ExecuteRow>, Catalogs)>, Error> {
        let row = match self.execute(caller, binding).await {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(None),
            Err(error) if error.is_damage() => return Ok(None),
            Err(error) => return Err(error),
        };
        match self.pinned_catalogs(&caller.tenant, &row.row).await {
            Ok(pinned) => Ok(Some((row, pinned))),
            Err(error) if error.is_damage() => {
                tracing::error!(%error, session = %binding.session_id, "an execute session cannot be read and is replaced");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

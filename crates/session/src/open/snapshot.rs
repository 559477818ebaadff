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
    pub id: LogicalSessionId,
    pub logical: Versioned<LogicalRow>,
    /// The session does not exist yet.
    pub is_new: bool,
    pub execute: Option<(ExecuteBinding, Versioned<ExecuteRow>)>,
    /// The former execute session, if it is lost or damaged.
    pub lost: Option<ExecuteBinding>,
    pub refreshed: bool,
    /// The pinned catalogs as the caller sees them.
    pub pinned: Catalogs,
    /// The seeds that a refresh teaches again in the new symbol space.
    pub carried: Vec<Seed>,
}

impl Service {
    pub(super) async fn snapshot(&self, call: &OpenCall<'_>) -> Result<SessionSnapshot, Error> {
        let caller = call.caller;
        let known = self.intent(caller, &call.name).await?;
        let logical = match &known {
            Some(row) => self.logical(caller, row.logical_session).await?,
            None => None,
        };
        let is_new = known.is_none();
        let id = known.map_or_else(|| self.new_logical_id(), |row| row.logical_session);
        let fresh = || {
            let row = LogicalRow::new(&call.request.intent, self.ports.clock.now());
            let name = row.is_unnamed().then(|| call.name.clone());
            LogicalRow { name, ..row }
        };
        let logical = logical.unwrap_or_else(|| Versioned { row: fresh(), version: 0 });
        let nothing = (None, None, Catalogs::new());
        let (execute, lost, pinned) = match logical.row.execute.clone() {
            None => nothing,
            Some(binding) => match self.read_symbol_space(caller, &binding).await? {
                Some((row, pinned)) => (Some((binding, row)), None, pinned),
                None => (None, Some(binding), Catalogs::new()),
            },
        };
        let snapshot =
            SessionSnapshot { id, logical, is_new, execute, lost, refreshed: false, pinned, carried: Vec::new() };
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
        match self.pinned(&caller.tenant, &row.row).await {
            Ok(pinned) => Ok(Some((row, pinned))),
            Err(error) if error.is_damage() => {
                tracing::error!(%error, session = %binding.session_id, "an execute session cannot be read and is replaced");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

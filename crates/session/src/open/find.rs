//! The rows that an open starts from.
//! Invariant: a symbol space that is gone or cannot be read is never guessed at: the session gets a new one, and its caller is told.

use base::LogicalSessionId;
use teach::{Catalogs, Seed};

use super::Asked;
use crate::error::Error;
use crate::load::Versioned;
use crate::rows::{ExecuteBinding, ExecuteRow, LogicalRow};
use crate::service::Service;
use access::Caller;

pub(super) struct Found {
    pub id: LogicalSessionId,
    pub logical: Versioned<LogicalRow>,
    pub is_new: bool,
    pub execute: Option<(ExecuteBinding, Versioned<ExecuteRow>)>,
    /// What it was bound to, where that is gone or damaged.
    pub lost: Option<ExecuteBinding>,
    pub refreshed: bool,
    /// As the caller sees them.
    pub pinned: Catalogs,
    /// What a refresh takes over into the new symbol space.
    pub carried: Vec<Seed>,
}

impl Service {
    pub(super) async fn find(&self, asked: &Asked<'_>) -> Result<Found, Error> {
        let caller = asked.caller;
        let known = self.intent(caller, &asked.name).await?;
        let logical = match &known {
            Some(row) => self.logical(caller, row.logical_session).await?,
            None => None,
        };
        let is_new = known.is_none();
        let id = known.map_or_else(|| self.new_logical_id(), |row| row.logical_session);
        let fresh = || {
            let row = LogicalRow::new(&asked.request.intent, self.ports.clock.now());
            let name = row.is_unnamed().then(|| asked.name.clone());
            LogicalRow { name, ..row }
        };
        let logical = logical.unwrap_or_else(|| Versioned { row: fresh(), version: 0 });
        let nothing = (None, None, Catalogs::new());
        let (execute, lost, pinned) = match logical.row.execute.clone() {
            None => nothing,
            Some(binding) => match self.whole(caller, &binding).await? {
                Some((row, pinned)) => (Some((binding, row)), None, pinned),
                None => (None, Some(binding), Catalogs::new()),
            },
        };
        let found = Found { id, logical, is_new, execute, lost, refreshed: false, pinned, carried: Vec::new() };
        Ok(if asked.request.refresh { found.on_newest(asked.registry) } else { found })
    }

    /// A symbol space with all that it stands on; `None` where a part of it is gone or damaged.
    async fn whole(
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
                tracing::error!(%error, session = %binding.session_id, "a symbol space cannot be read and is replaced");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

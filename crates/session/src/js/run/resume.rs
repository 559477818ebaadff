//! Runs whose process died go on here.
//! Invariant: a run has one owner; who takes one over from a dead owner does so by compare-and-set (`found.rs`), and the old
//! one's commits fail from then on. Nothing is run for a tenant that this process does not know.

use std::sync::Arc;

use base::{ExecutionId, TenantId};
use ports::store::{self, Key, Range, Row, Table};

use super::drive::{Run, Start};
use super::end::{Ended, Ending};
use super::ended;
use crate::engine::rows::{ExecutionRow, execution_key};
use crate::engine::view::{State, Uncaught};
use crate::engine::{Listed, Live};
use crate::error::Error;
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;

/// So many are read at once, each of which may be large.
const FEW: usize = 16;

impl Service {
    /// Takes up every run of these tenants that has no living owner, and ends those of any other tenant when their time is up.
    /// How many there were; another process may be faster.
    pub async fn resume_js(self: &Arc<Self>, tenants: &[TenantId]) -> Result<usize, Error> {
        let mut taken = 0;
        for tenant in &self.ports.store.tenants().await? {
            let known = tenants.contains(tenant);
            let mut after = None;
            loop {
                let range = Range {
                    tenant: tenant.clone(),
                    table: Table::OpenExecution,
                    prefix: String::new(),
                    after: after.take(),
                    limit: FEW,
                };
                let page = self.open_runs(&range).await?;
                for (key, found) in &page {
                    // One that cannot be read is not in the way of the others.
                    match self.look_after_open((tenant, known), key, found.as_ref()).await {
                        Ok(is_taken) => taken += usize::from(is_taken),
                        Err(error) => {
                            tracing::error!(tenant = tenant.as_str(), run = key, %error, "an open run cannot be taken up")
                        }
                    }
                }
                match page.last() {
                    Some((last, _)) if page.len() == FEW => after = Some(last.clone()),
                    _ => break,
                }
            }
        }
        Ok(taken)
    }

    async fn look_after_open(
        self: &Arc<Self>,
        (tenant, known): (&TenantId, bool),
        key: &str,
        found: Option<&Row>,
    ) -> Result<bool, Error> {
        let Some(found) = found else { return Ok(false) };
        let (id, found) = run_of(key, found)?;
        if known { self.take_up(tenant, id, found).await } else { self.end_nobodys(tenant, id, found).await }
    }

    /// Runs that have not ended, each with its row; together, or one by one where one of them is damaged.
    async fn open_runs(&self, range: &Range) -> Result<Vec<(String, Option<Row>)>, Error> {
        let store = &self.ports.store;
        match store.scan_with(range, Table::Execution).await {
            Err(store::Error::Damaged { .. }) => {}
            found => return Ok(found?),
        }
        let mut page = Vec::new();
        for (key, _) in store.scan(range).await? {
            let found = match store.get(&Key::new(&range.tenant, Table::Execution, key.as_str())).await {
                Err(error @ store::Error::Damaged { .. }) => {
                    tracing::error!(tenant = range.tenant.as_str(), run = key, %error, "an open run cannot be read");
                    None
                }
                found => found?,
            };
            page.push((key, found));
        }
        Ok(page)
    }

    /// Begins with a run whose owner is dead, or that is ours and that nobody drives; it is made ours on the way (`found.rs`).
    pub(super) async fn take_up(
        self: &Arc<Self>,
        tenant: &TenantId,
        id: ExecutionId,
        found: Versioned<ExecutionRow>,
    ) -> Result<bool, Error> {
        let js = self.js()?;
        let me = js.presence.me();
        let found = match found.row.owner == me {
            // One of ours may have ended since it was read.
            true => match self.fetch(&execution_key(tenant, id)).await? {
                Some(found) => found,
                None => return Ok(false),
            },
            false => found,
        };
        let owner = found.row.owner;
        if found.row.state.is_final() || js.lives.get(id).is_some() || (owner != me && js.presence.is_alive(owner)) {
            return Ok(false);
        }
        let at = Versioned { row: ExecutionRow { owner: me, ..found.row }, version: found.version };
        Ok(self.begin(tenant, id, at, Start::Found)?.is_some())
    }

    /// A run of a tenant that is not in the settings: whoever is not named there may use everything, so it does not go on. A
    /// process with other settings may know the tenant, and has until the run's time is up.
    async fn end_nobodys(
        &self,
        tenant: &TenantId,
        id: ExecutionId,
        found: Versioned<ExecutionRow>,
    ) -> Result<bool, Error> {
        let (js, now, row) = (self.js()?, self.now(), &found.row);
        let most = i64::try_from(row.timeout_ms).unwrap_or(i64::MAX);
        let over = row.started.unwrap_or(row.accepted).plus_ms(most) <= now;
        if row.state.is_final() || !over || js.lives.get(id).is_some() || js.presence.is_alive(row.owner) {
            return Ok(false);
        }
        let message = "its process died, and its tenant is not in the settings any more".to_owned();
        let error = Some(Uncaught { name: "AbortError".to_owned(), message, stack: String::new() });
        let next = ExecutionRow { error, ..ended(row, State::Cancelled, now) };
        let ending = Ending { tenant, id, at: &found, next, heap: None, pieces: Vec::new(), began: None };
        Ok(matches!(self.end(ending).await?, Ended::Done(_)))
    }

    /// Drives a run in a task of its own. `None` where one does already.
    pub(super) fn begin(
        self: &Arc<Self>,
        tenant: &TenantId,
        id: ExecutionId,
        at: Versioned<ExecutionRow>,
        start: Start,
    ) -> Result<Option<Live>, Error> {
        let (run, live) = Run::new(self.clone(), tenant.clone(), id, at);
        if !self.js()?.lives.add(live.clone()) {
            return Ok(None);
        }
        let service = self.clone();
        let task = async move {
            let Some(js) = service.js.as_ref() else { return };
            let _listed = Listed(&js.lives, id);
            // Whoever waits is woken after it is known what to tell.
            let _voice = run.voice();
            let driven = run.drive(start).await;
            js.hold(id, driven.as_ref().err().map(|error| format!("{}: {error}", error.code())));
            if let Err(error) = driven {
                // It is taken up again by the next look for runs that nobody drives.
                tracing::error!(execution = %id, error = &error as &dyn std::error::Error, "a run was left as it is");
            }
        };
        tokio::spawn(tracing::Instrument::in_current_span(task));
        Ok(Some(live))
    }
}

fn run_of(key: &str, found: &Row) -> Result<(ExecutionId, Versioned<ExecutionRow>), Error> {
    let id = ExecutionId::from_newest_first_key(key).map_err(|_| Error::Damaged(key.to_owned()))?;
    Ok((id, Versioned { row: rows::read(key, &found.value)?, version: found.version }))
}

//! Resumes runs whose process died.
//! Invariant: a run has one owner. A takeover from a dead owner is a compare-and-set (`takeover.rs`), after which the
//! old owner's commits fail. No run is continued for a tenant that this process does not know.

use std::sync::Arc;

use base::{ExecutionId, InstanceId, TenantId};
use durable::{Lease, Standing};
use ports::store::{self, Key, Range, Row, Table};

use super::drive::Start;
use super::end::{EndOutcome, EndRequest};
use super::ended;
use crate::engine::rows::{ExecutionRow, execution_key};
use crate::engine::view::{ExecutionState, UncaughtError};
use crate::error::Error;
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;

/// How many runs are read at a time, since each may be large.
const FEW: usize = 16;

impl Service {
    /// Takes over every run of these tenants that has no living owner, and cancels those of other tenants when their
    /// time is over. Returns how many were taken; another process may be faster.
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
                    // A damaged run must not keep the others from being resumed.
                    match self.resume_or_cancel((tenant, known), key, found.as_ref()).await {
                        Ok(is_taken) => taken += usize::from(is_taken),
                        Err(error) => {
                            tracing::error!(tenant = tenant.as_str(), run = key, %error, "an unended run cannot be taken over")
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

    async fn resume_or_cancel(
        self: &Arc<Self>,
        (tenant, known): (&TenantId, bool),
        key: &str,
        found: Option<&Row>,
    ) -> Result<bool, Error> {
        let Some(found) = found else { return Ok(false) };
        let (id, found) = run_of(key, found)?;
        if known { self.take_over_run(tenant, id, found).await } else { self.cancel_orphan(tenant, id, found).await }
    }

    /// Returns a page of unended runs with their rows. If one of them is damaged, the rows are read one by one.
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
                    tracing::error!(tenant = range.tenant.as_str(), run = key, %error, "an unended run cannot be read");
                    None
                }
                found => found?,
            };
            page.push((key, found));
        }
        Ok(page)
    }

    /// Drives a run whose owner is dead, or which this process owns but does not drive. The stored owner is changed
    /// later (`takeover.rs`).
    pub(super) async fn take_over_run(
        self: &Arc<Self>,
        tenant: &TenantId,
        id: ExecutionId,
        found: Versioned<ExecutionRow>,
    ) -> Result<bool, Error> {
        let js = self.js()?;
        let me = self.owners.me();
        let found = match found.row.owner == me {
            // An own run may have ended since it was read.
            true => match self.fetch(&execution_key(tenant, id)).await? {
                Some(found) => found,
                None => return Ok(false),
            },
            false => found,
        };
        let owner = found.row.owner;
        if found.row.state.is_final()
            || js.lives.get(id).is_some()
            || !self.may_take_script_over(tenant, id, owner).await?
        {
            return Ok(false);
        }
        let at = Versioned { row: ExecutionRow { owner: me, ..found.row }, version: found.version };
        Ok(self.spawn_driver(tenant, id, at, Start::TakenOver)?.is_some())
    }

    /// Whether the owner of a script run is this process, dead, or frozen for a whole lease.
    async fn may_take_script_over(&self, tenant: &TenantId, id: ExecutionId, owner: InstanceId) -> Result<bool, Error> {
        let standing = self.owners.standing(&format!("{tenant}/{id}"), Lease::first(owner)).await?;
        Ok(matches!(standing, Standing::Mine | Standing::Free))
    }

    /// Cancels a run of a tenant that is not in the settings. It must not continue, because an unknown tenant would
    /// have unlimited rights. Another process may know the tenant, so the run's time limit is awaited.
    async fn cancel_orphan(
        &self,
        tenant: &TenantId,
        id: ExecutionId,
        found: Versioned<ExecutionRow>,
    ) -> Result<bool, Error> {
        let (js, now, row) = (self.js()?, self.now(), &found.row);
        let most = i64::try_from(row.timeout_ms).unwrap_or(i64::MAX);
        let over = row.started.unwrap_or(row.accepted).plus_ms(most) <= now;
        if row.state.is_final()
            || !over
            || js.lives.get(id).is_some()
            || !self.may_take_script_over(tenant, id, row.owner).await?
        {
            return Ok(false);
        }
        let message = "its process died, and its tenant is not in the settings any more".to_owned();
        let error = Some(UncaughtError { name: "AbortError".to_owned(), message, stack: String::new() });
        let next = ExecutionRow { error, ..ended(row, ExecutionState::Cancelled, now) };
        let ending = EndRequest { tenant, id, at: &found, next, heap: None, pieces: Vec::new(), began: None };
        Ok(matches!(self.end(ending).await?, EndOutcome::Done(_)))
    }
}

fn run_of(key: &str, found: &Row) -> Result<(ExecutionId, Versioned<ExecutionRow>), Error> {
    let id = ExecutionId::from_newest_first_key(key).map_err(|_| Error::Damaged(key.to_owned()))?;
    Ok((id, Versioned { row: rows::read(key, &found.value)?, version: found.version }))
}

//! Continues program runs whose process died or froze, whether or not a caller asks for them.
//! Invariant: of several processes that try, one raises the epoch of the lease; only that one continues the run, under the same run
//! id, so that effects with a receipt are not repeated. A run is not taken over because its process could not be looked at.

use std::sync::Arc;

use access::{Caller, Identity};
use base::{Digest, InstanceId, LogicalSessionId, RunId, TenantId, Timestamp};
use durable::{Lease, Standing};
use lang::plan::{Bounds, Plan, Verdict};
use ports::store::{Batch, Expect, Key, Range, Row, Table};

use super::gate::Ticket;
use super::operation::{OperationRow, operation_key};
use super::start::{RunWork, WorkKind};
use crate::error::Error;
use crate::live_runs::LiveRun;
use crate::load::{Session, Versioned};
use crate::open_run::{AfterCrash, ClaimPlace, HeldLease, OpenRunRow, open_run_key, parse_open_run_id};
use crate::program::PlannedProgram;
use crate::rows::{self, ClaimRow};
use crate::service::Service;

/// How many rows are read at a time.
const PAGE: usize = 100;

/// The outcome of an attempt to continue a run.
pub(crate) enum Recovered {
    /// This process executes the run.
    Live(LiveRun),
    /// The run belongs to a process that is not known to be dead.
    Held(Versioned<OpenRunRow>),
    /// The run has ended or changed since its row was read. The caller reads again.
    Changed,
}

impl Service {
    /// Continues every program run of these tenants that has no living owner. Returns how many were continued. Runs of tenants
    /// that are not in the settings are left alone, because an unknown tenant would have unlimited rights.
    pub async fn recover_programs(self: &Arc<Self>, tenants: &[TenantId]) -> Result<usize, Error> {
        let mut continued = 0;
        for tenant in tenants {
            let mut after = None;
            loop {
                let range = Range {
                    tenant: tenant.clone(),
                    table: Table::OpenRun,
                    prefix: String::new(),
                    after: after.take(),
                    limit: PAGE,
                };
                let page = self.ports.store.scan(&range).await?;
                for (id, row) in &page {
                    match self.recover_row(tenant, id, row).await {
                        Ok(is_continued) => continued += usize::from(is_continued),
                        // A damaged run must not keep the others from being continued.
                        Err(error) => {
                            tracing::error!(tenant = tenant.as_str(), run = id, %error, "an open run cannot be continued");
                        }
                    }
                }
                match page.last() {
                    Some((last, _)) if page.len() == PAGE => after = Some(last.clone()),
                    _ => break,
                }
            }
        }
        Ok(continued)
    }

    async fn recover_row(self: &Arc<Self>, tenant: &TenantId, id: &str, row: &Row) -> Result<bool, Error> {
        let (session, run) = parse_open_run_id(id).ok_or_else(|| Error::Damaged(id.to_owned()))?;
        if self.live_runs.get(run).is_some() {
            return Ok(false);
        }
        let found = Versioned { row: rows::read(id, &row.value)?, version: row.version };
        Ok(matches!(self.recover_run(tenant, session, run, found).await?, Recovered::Live(_)))
    }

    /// Continues one run, if its owner is dead or frozen, or if this process owns it and does not execute it.
    pub(crate) async fn recover_run(
        self: &Arc<Self>,
        tenant: &TenantId,
        session_id: LogicalSessionId,
        run: RunId,
        found: Versioned<OpenRunRow>,
    ) -> Result<Recovered, Error> {
        if let Some(live) = self.live_runs.get(run) {
            return Ok(Recovered::Live(live));
        }
        let Some(starting) = self.live_runs.begin(run) else { return Ok(Recovered::Held(found)) };
        let key = open_run_key(tenant, session_id, run);
        match self.owners.standing(&format!("{tenant}/{}", key.id), found.row.lease).await? {
            Standing::Held => return Ok(Recovered::Held(found)),
            // A run of this process that is neither listed nor starting could not store its result.
            Standing::Mine | Standing::Free => {}
        }
        let caller = Identity { tenant: tenant.clone(), principal: found.row.principal.clone() }.caller(None);
        let session = match self.session_in(&caller, session_id, found.row.slot).await {
            Ok(session) => session,
            Err(error) if error.is_fault() => return Err(error),
            Err(error) => {
                // The session was removed or has expired, and with it the place where the run's result would be stored.
                tracing::warn!(%run, session = %session_id, %error, "a run whose process died cannot be continued");
                self.try_commit(Batch::default().delete(key, Expect::Version(found.version))).await?;
                return Ok(Recovered::Changed);
            }
        };
        // Everything that can fail comes before the takeover, since this process must execute what it owns.
        let plan = self.plan_of_open_run(&caller, &session, &found.row).await?;
        let kind = match (&plan, found.row.after_crash) {
            (Some(_), AfterCrash::Continue) => WorkKind::Continued,
            _ => WorkKind::Interrupted,
        };
        let plan = plan.unwrap_or_else(|| empty_plan(&found.row));
        let pages = match kind {
            WorkKind::Continued => self.pages_of(&caller, &session, &plan).await?,
            WorkKind::First | WorkKind::Interrupted => Default::default(),
        };
        let row = OpenRunRow { lease: found.row.lease.taken_over_by(self.owners.me()), ..found.row };
        let batch = Batch::default().put(key.clone(), rows::write(&row), Expect::Version(found.version));
        if self.try_commit(batch).await?.is_none() {
            return Ok(Recovered::Changed);
        }
        let epoch = row.lease.epoch;
        tracing::info!(%run, session = %session_id, tenant = tenant.as_str(), epoch, ?kind, "took over a run whose process died");
        let (program, cancelled) = (row.program.clone(), row.cancelled);
        let planned = PlannedProgram { now: row.planned, ..PlannedProgram::resumed(session.slot, plan) };
        let lease = HeldLease { key, row, version: found.version + 1 };
        let ticket = Ticket { planned, run, program, pages, lease, starting };
        let live = self.start(&caller, &Arc::new(session), RunWork { ticket, kind });
        if cancelled {
            live.cancel.cancel();
        }
        Ok(Recovered::Live(live))
    }

    /// Continues a claimed run if its process is known to be dead.
    pub(crate) async fn recover_claimed(
        self: &Arc<Self>,
        caller: &Caller,
        session: &Session,
        run: RunId,
    ) -> Result<(), Error> {
        let key = open_run_key(&caller.tenant, session.id, run);
        if let Some(found) = self.fetch(&key).await? {
            self.recover_run(&caller.tenant, session.id, run, found).await?;
        }
        Ok(())
    }

    /// Writes the lease of a run that an older version of this server started and did not end, so that it can be continued. That
    /// version is not running any more, because it and this one refuse to share a store.
    pub(super) async fn adopt_run(&self, caller: &Caller, session: &Session, older: OlderRun<'_>) -> Result<(), Error> {
        let row = OpenRunRow {
            // No process has this id, so its lease is free.
            lease: Lease::first(InstanceId::from_random([0; 16])),
            principal: caller.principal.clone(),
            slot: session.slot,
            program: older.program.to_owned(),
            plan: older.plan,
            planned: older.planned,
            started: older.started,
            after_crash: AfterCrash::Continue,
            cancelled: older.cancelled,
            claim: older.claim,
            operation: older.operation,
            parent: None,
        };
        let key = open_run_key(&caller.tenant, session.id, older.run);
        tracing::info!(run = %older.run, "a run of an older version gets a lease");
        // A lost race means that another caller has adopted the run.
        self.try_commit(Batch::default().put(key, rows::write(&row), Expect::Absent)).await?;
        Ok(())
    }

    /// Returns the plan with which an open run goes on. `None` if the program does not have its plan any more.
    async fn plan_of_open_run(
        &self,
        caller: &Caller,
        session: &Session,
        row: &OpenRunRow,
    ) -> Result<Option<Plan>, Error> {
        if let Some(number) = row.operation {
            let found: Option<Versioned<OperationRow>> = self.fetch(&operation_key(caller, session, number)).await?;
            if let Some(found) = found {
                return Ok(Some(found.row.plan));
            }
        }
        let planned = self.plan_in(session, &row.program, row.planned).ok();
        Ok(planned.map(|planned| planned.plan).filter(|plan| plan.digest == row.plan))
    }
}

/// A run that an older version of this server left open, which stored no leases.
pub(super) struct OlderRun<'a> {
    run: RunId,
    program: &'a str,
    plan: Digest,
    planned: Timestamp,
    started: Timestamp,
    cancelled: bool,
    claim: Option<ClaimPlace>,
    operation: Option<u64>,
}

impl<'a> OlderRun<'a> {
    pub fn of_operation(number: u64, row: &'a OperationRow) -> Self {
        let started = row.started.unwrap_or(Timestamp(0));
        Self {
            run: row.run,
            program: &row.program,
            plan: row.plan.digest,
            planned: started,
            started,
            cancelled: row.cancel,
            claim: row.claim.clone(),
            operation: Some(number),
        }
    }

    pub fn of_claim(run: RunId, claim: &'a ClaimRow, key: &Key) -> Self {
        Self {
            run,
            program: &claim.program,
            plan: claim.plan,
            planned: claim.planned,
            started: claim.planned,
            cancelled: false,
            claim: Some(ClaimPlace::of(key)),
            operation: claim.operation,
        }
    }
}

/// Returns a plan without steps, for a run that ends as interrupted although its program cannot be planned any more.
fn empty_plan(row: &OpenRunRow) -> Plan {
    Plan {
        steps: Vec::new(),
        returns: Vec::new(),
        catalogs: Vec::new(),
        digest: row.plan,
        verdict: Verdict::Review,
        bounds: Bounds::default(),
        warnings: Vec::new(),
    }
}

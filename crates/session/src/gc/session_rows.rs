//! Deletes expired data of sessions: results, plans, claims, handles, receipts, calls.
//! Invariant: the record that an effect was done outlives the result of its run, and rows of a deleted session are
//! deleted.

use base::{LogicalSessionId, TenantId, Timestamp};
use ports::store::{Expect, Key, Range, Row, Table};

use super::{Collector, PORTION};
use crate::error::Error;
use crate::rows::{self, Claim, ClaimRow, PlanRow, RunRow, run_id_key, run_key};
use crate::run::{OperationRow, OperationState};
use crate::service::Service;

/// An unused commit is valid for ten minutes. Its row is kept longer only to explain why it is refused.
const UNUSED_COMMIT_DAYS: u32 = 1;

/// How far a trace may exceed its limit before its oldest calls are deleted together.
const AT_ONCE: usize = 64;

impl Collector<'_> {
    pub(super) async fn session_row(&mut self, key: &Key, row: &Row) -> Result<(), Error> {
        let id = key.id.split_once('/').map(|(id, _)| id);
        let Some(session) = id.and_then(|id| LogicalSessionId::parse(id).ok()) else { return Ok(()) };
        // Rows of one session are adjacent, so the session is looked up once.
        let lives = match self.known {
            Some((same, lives)) if same == session => lives,
            _ => {
                self.calls.clear();
                self.logical(&key.tenant, session).await?.is_some()
            }
        };
        self.known = Some((session, lives));
        let expect = Expect::Version(row.version);
        if !lives {
            return self.remove(self.with_run_id(key, &row.value, expect)).await;
        }
        if key.table == Table::Trace {
            return self.call(key, expect).await;
        }
        let doomed = self.expired_rows(session, key, &row.value, expect).await?;
        self.remove(doomed).await
    }

    /// Returns the rows to delete because of one row of an existing session.
    async fn expired_rows(
        &mut self,
        session: LogicalSessionId,
        key: &Key,
        value: &[u8],
        expect: Expect,
    ) -> Result<Vec<(Key, Expect)>, Error> {
        let days = &self.service.retention;
        let over = match key.table {
            Table::Run => {
                let Ok(run) = rows::read::<RunRow>(&key.id, value) else { return Ok(Vec::new()) };
                if run.pinned || !self.is_over(run.finished, days.artifacts) {
                    return Ok(Vec::new());
                }
                return self.with_run(session, (key, &run), expect).await;
            }
            Table::Plan => {
                rows::read::<PlanRow>(&key.id, value).is_ok_and(|plan| self.is_over(plan.planned, days.artifacts))
            }
            Table::PlanCommit | Table::Request => rows::read::<ClaimRow>(&key.id, value).is_ok_and(|claim| {
                let days = if claim.state == Claim::Unused { UNUSED_COMMIT_DAYS } else { days.claims };
                self.is_over(claim.planned, days)
            }),
            Table::Operation => match rows::read::<OperationRow>(&key.id, value).map(|row| row.state) {
                Ok(OperationState::Running { beat }) => self.is_over(beat, days.artifacts),
                Ok(OperationState::Ended { number }) => {
                    let run = run_key(&key.tenant, session, number);
                    self.doomed.contains(&run) || self.service.ports.store.get(&run).await?.is_none()
                }
                Err(_) => false,
            },
            _ => false,
        };
        Ok(if over { vec![(key.clone(), expect)] } else { Vec::new() })
    }

    /// Returns a run with its id, its page handles and its receipts.
    async fn with_run(
        &self,
        session: LogicalSessionId,
        (key, run): (&Key, &RunRow),
        expect: Expect,
    ) -> Result<Vec<(Key, Expect)>, Error> {
        let tenant = &key.tenant;
        let mut doomed = vec![(key.clone(), expect), (run_id_key(tenant, run.run), Expect::Any)];
        doomed.extend(run.inline.then(|| (Key::new(tenant, Table::Artifact, key.id.clone()), Expect::Any)));
        let page = |number: u64| Key::new(tenant, Table::Page, format!("{session}/{number:010}"));
        doomed.extend(run.pages.iter().map(|(_, number)| (page(*number), Expect::Any)));
        for table in [Table::Receipt, Table::Settlement] {
            let prefix = format!("{session}/{}/", run.run);
            let range = Range { tenant: tenant.clone(), table, prefix, after: None, limit: 10_000 };
            let rows = self.service.ports.store.scan(&range).await?;
            doomed.extend(rows.into_iter().map(|(id, _)| (Key::new(tenant, table, id), Expect::Any)));
        }
        Ok(doomed)
    }

    fn with_run_id(&self, key: &Key, value: &[u8], expect: Expect) -> Vec<(Key, Expect)> {
        let run = (key.table == Table::Run).then(|| rows::read::<RunRow>(&key.id, value).ok()).flatten();
        let id = run.map(|run| (run_id_key(&key.tenant, run.run), Expect::Any));
        std::iter::once((key.clone(), expect)).chain(id).collect()
    }

    /// Keeps the newest calls of a session. Rows come in the order of their time.
    async fn call(&mut self, key: &Key, expect: Expect) -> Result<(), Error> {
        if self.is_over(moment_of(&key.id), self.service.retention.execute_sessions) {
            return self.remove(vec![(key.clone(), expect)]).await;
        }
        self.calls.push((key.clone(), expect));
        // Deletes several at a time, because each deletion costs a flush.
        if self.calls.len() < self.service.retention.trace_calls as usize + AT_ONCE {
            return Ok(());
        }
        let oldest = self.calls.drain(..AT_ONCE).collect();
        self.remove(oldest).await
    }
}

/// Returns the time of a call, which is part of its row id.
fn moment_of(id: &str) -> Timestamp {
    let moment = id.split_once('/').and_then(|(_, rest)| rest.split_once('-')).and_then(|(at, _)| at.parse().ok());
    moment.map_or(Timestamp(i64::MAX), Timestamp)
}

impl Service {
    /// Deletes all rows of a deleted session. After a crash the next pass deletes the rest.
    pub(crate) async fn delete_session_rows(&self, tenant: &TenantId, session: LogicalSessionId) -> Result<(), Error> {
        for table in Table::of_sessions() {
            loop {
                let prefix = format!("{session}/");
                let range = Range { tenant: tenant.clone(), table, prefix, after: None, limit: PORTION };
                let rows = self.ports.store.scan(&range).await?;
                if rows.is_empty() {
                    break;
                }
                let mut batch = ports::store::Batch::default();
                for (id, row) in rows {
                    if table == Table::Run
                        && let Ok(run) = rows::read::<RunRow>(&id, &row.value)
                    {
                        batch = batch.delete(run_id_key(tenant, run.run), Expect::Any);
                    }
                    batch = batch.delete(Key::new(tenant, table, id), Expect::Any);
                }
                self.ports.store.commit(batch).await?;
            }
        }
        // The session's log is deleted by the next pass, since no caller can reach it.
        let name = crate::engine::rows::SessionName::Logical(session);
        let code = ports::store::Batch::default().delete(crate::engine::rows::session_key(tenant, &name), Expect::Any);
        Ok(self.ports.store.commit(code).await?)
    }
}

//! One capability at its origin: bind, send, decode, over the first pages.
//! Invariant: only a read is sent; each call counts against the budget of all, and each has an end.

use std::cell::Cell;
use std::time::{Duration, Instant};

use base::TenantId;
use catalog::{
    Args, BindInput, Capability, Catalog, DecodeInput, NextPage, PagePosition, PageRequest, RequestedPage, Row,
    RowWindow, bind, decode,
};
use exec::StepError;
use ports::Upstream;
use ports::upstream::{Call, Error};

use super::fields::Fields;

/// Of one list: enough to see that the second page follows the first.
const PAGES: usize = 3;

pub struct Driver<'a> {
    pub upstream: &'a dyn Upstream,
    pub catalog: &'a Catalog,
    /// For one answer; its tries and its token may take a few of these.
    pub timeout: Duration,
    pub nesting: usize,
    pub calls_left: Cell<u32>,
}

pub struct Driven {
    pub rows: Vec<Row>,
    /// Of all ways that were tried, as is the time.
    pub calls: u32,
    pub elapsed: Duration,
    pub fields: Fields,
    /// The API said that there is more, and then gave the same again or nothing.
    pub lost: bool,
    /// Set when a call failed; what came before it is kept.
    pub error: Option<StepError>,
}

impl Driver<'_> {
    /// Tries the ways in turn until one gives rows or fails. `None` when the budget was spent before the first call.
    pub async fn drive(&self, capability: &Capability, ways: &[Args]) -> Option<(Driven, Args)> {
        let mut last: Option<(Driven, Args)> = None;
        for args in ways {
            if self.calls_left.get() == 0 {
                break;
            }
            let mut driven = self.pages(capability, args).await;
            if let Some((before, _)) = &last {
                driven.calls += before.calls;
                driven.elapsed += before.elapsed;
            }
            let enough = driven.error.is_some() || !driven.rows.is_empty();
            last = Some((driven, args.clone()));
            if enough {
                break;
            }
        }
        last
    }

    async fn pages(&self, capability: &Capability, args: &Args) -> Driven {
        let started = Instant::now();
        let mut driven = Driven {
            rows: Vec::new(),
            calls: 0,
            elapsed: Duration::ZERO,
            fields: Fields::new(self.catalog, capability),
            lost: false,
            error: None,
        };
        let size = capability.paging.as_ref().and_then(|p| p.size.as_ref()).map_or(0, |size| size.max);
        let mut page = PageRequest { at: PagePosition::First, size };
        for _ in 0..PAGES {
            if self.calls_left.get() == 0 {
                break;
            }
            driven.calls += 1;
            let asked =
                capability.paging.is_some().then_some(RequestedPage { page: &page, rows_before: driven.rows.len() });
            match self.call(capability, args, asked).await {
                Err(error) => {
                    driven.error = Some(error);
                    break;
                }
                Ok((rows, after)) => {
                    driven.fields.count(self.catalog, capability, &rows);
                    driven.rows.extend(rows);
                    match after {
                        NextPage::At(at) => page = PageRequest { at, size },
                        NextPage::End => break,
                        NextPage::Lost => {
                            driven.lost = true;
                            break;
                        }
                    }
                }
            }
        }
        driven.elapsed = started.elapsed();
        driven
    }

    async fn call(
        &self,
        capability: &Capability,
        args: &Args,
        asked: Option<RequestedPage<'_>>,
    ) -> Result<(Vec<Row>, NextPage), StepError> {
        let request =
            bind(self.catalog, capability, &BindInput { page: asked.map(|a| a.page), ..BindInput::new(args) })?;
        let label = request.label();
        self.calls_left.set(self.calls_left.get().saturating_sub(1));
        let call = Call { tenant: TenantId::local(), request, repeatable: true, pace: self.catalog.pace };
        let most = self.timeout * 4;
        let late = |_| Error::Timeout { label: label.clone(), ms: u64::try_from(most.as_millis()).unwrap_or(u64::MAX) };
        let response = tokio::time::timeout(most, self.upstream.send(call)).await.map_err(late)??;
        if !response.is_success() {
            return Err(StepError::from_status(label, &response));
        }
        let answer =
            DecodeInput { response: &response, args, page: asked, max_depth: self.nesting, window: RowWindow::ALL };
        let decoded = decode(self.catalog, capability, &answer)
            .map_err(|source| StepError::Decode { label, source: Box::new(source) })?;
        Ok((decoded.rows, decoded.next))
    }
}

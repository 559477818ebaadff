//! Calls one capability at its API: builds the requests, and reads and decodes the first pages of the answer.
//! Invariant: only reads are sent. Each call has a timeout and counts against the budget `--calls`.

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

use super::fields::FieldCoverage;

/// The largest number of pages that are read of one list. Three pages show whether paging works.
const MAX_PAGES: usize = 3;

/// The means to call the capabilities of one catalog.
pub struct CapabilityCaller<'a> {
    pub upstream: &'a dyn Upstream,
    pub catalog: &'a Catalog,
    /// The longest time for the answer to one request. A call may take longer, because it may include retries and a request for a token.
    pub timeout: Duration,
    /// The largest nesting depth of JSON in an answer.
    pub nesting: usize,
    /// The number of calls that the budget `--calls` still allows.
    pub calls_left: Cell<u32>,
}

/// The result of calling one capability.
pub struct CallOutcome {
    pub rows: Vec<Row>,
    /// The number of calls, with all sets of arguments that were tried.
    pub calls: u32,
    /// The total time of these calls.
    pub elapsed: Duration,
    pub fields: FieldCoverage,
    /// Whether the API announced another page, but then returned an earlier page again or no page.
    pub lost_page: bool,
    /// The error of the last call. `rows` still has the rows of the pages before.
    pub error: Option<StepError>,
}

impl CapabilityCaller<'_> {
    /// Calls a capability with each set of arguments, until a call returns rows or an error. Returns the last outcome with its arguments,
    /// or `None` if the budget was spent before the first call.
    pub async fn call(&self, capability: &Capability, argument_sets: &[Args]) -> Option<(CallOutcome, Args)> {
        let mut last: Option<(CallOutcome, Args)> = None;
        for args in argument_sets {
            if self.calls_left.get() == 0 {
                break;
            }
            let mut outcome = self.read_pages(capability, args).await;
            if let Some((before, _)) = &last {
                outcome.calls += before.calls;
                outcome.elapsed += before.elapsed;
            }
            let conclusive = outcome.error.is_some() || !outcome.rows.is_empty();
            last = Some((outcome, args.clone()));
            if conclusive {
                break;
            }
        }
        last
    }

    async fn read_pages(&self, capability: &Capability, args: &Args) -> CallOutcome {
        let started = Instant::now();
        let mut outcome = CallOutcome {
            rows: Vec::new(),
            calls: 0,
            elapsed: Duration::ZERO,
            fields: FieldCoverage::new(self.catalog, capability),
            lost_page: false,
            error: None,
        };
        let size = capability.paging.as_ref().and_then(|p| p.size.as_ref()).map_or(0, |size| size.max);
        let mut page = PageRequest { at: PagePosition::First, size };
        for _ in 0..MAX_PAGES {
            if self.calls_left.get() == 0 {
                break;
            }
            outcome.calls += 1;
            let paged = capability.paging.is_some();
            let requested = paged.then_some(RequestedPage { page: &page, rows_before: outcome.rows.len() });
            match self.read_page(capability, args, requested).await {
                Err(error) => {
                    outcome.error = Some(error);
                    break;
                }
                Ok((rows, next)) => {
                    outcome.fields.count(self.catalog, capability, &rows);
                    outcome.rows.extend(rows);
                    match next {
                        NextPage::At(at) => page = PageRequest { at, size },
                        NextPage::End => break,
                        NextPage::Lost => {
                            outcome.lost_page = true;
                            break;
                        }
                    }
                }
            }
        }
        outcome.elapsed = started.elapsed();
        outcome
    }

    async fn read_page(
        &self,
        capability: &Capability,
        args: &Args,
        page: Option<RequestedPage<'_>>,
    ) -> Result<(Vec<Row>, NextPage), StepError> {
        let input = BindInput { page: page.map(|requested| requested.page), ..BindInput::new(args) };
        let request = bind(self.catalog, capability, &input)?;
        let label = request.label();
        self.calls_left.set(self.calls_left.get().saturating_sub(1));
        let call = Call { tenant: TenantId::local(), request, repeatable: true, pace: self.catalog.pace };
        let longest = self.timeout * 4;
        let timed_out =
            |_| Error::Timeout { label: label.clone(), ms: u64::try_from(longest.as_millis()).unwrap_or(u64::MAX) };
        let response = tokio::time::timeout(longest, self.upstream.send(call)).await.map_err(timed_out)??;
        if !response.is_success() {
            return Err(StepError::from_status(label, &response));
        }
        let input = DecodeInput { response: &response, args, page, max_depth: self.nesting, window: RowWindow::ALL };
        let decoded = decode(self.catalog, capability, &input)
            .map_err(|source| StepError::Decode { label, source: Box::new(source) })?;
        Ok((decoded.rows, decoded.next))
    }
}

//! The state of the process: readiness, and metrics for the operator.

use access::Caller;
use base::TenantId;

use crate::call::{App, Call};
use crate::error::Error;

/// Whether the storage takes writes, so that work can be accepted.
#[derive(Debug, Clone)]
pub struct Ready;

impl Call for Ready {
    const NAME: &'static str = "ready";
    type Answer = ();

    async fn run(&self, app: &App, _caller: &Caller) -> Result<(), Error> {
        Ok(app.service().check_writable().await?)
    }
}

/// All metrics in the text format of Prometheus. They count all tenants together, so only the operator may read them.
#[derive(Debug, Clone)]
pub struct Metrics;

impl Call for Metrics {
    const NAME: &'static str = "metrics";
    type Answer = String;

    async fn run(&self, app: &App, caller: &Caller) -> Result<String, Error> {
        if caller.tenant != TenantId::local() {
            return Err(Error::NotOperator);
        }
        Ok(app.service().metrics())
    }
}

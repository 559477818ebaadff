//! `tokamak context|plan|run|session|artifact|gc`: what a host does with a session, by hand, on the data folder.
//! Invariant: the same functions as every door; what is printed is what a model would read, or all of it as JSON.

mod artifact;
mod gc;
mod lineage;
mod open;
mod run;
mod show;

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use ::session::{CallRecord, Service};
use access::Caller;
use tokio_util::sync::CancellationToken;

use crate::args::{Settings, Work};
use crate::config::Config;
use crate::failure::Failure;
use crate::{log, wiring};

pub use artifact::artifact;
pub use gc::{gc, pass as collect};
pub use open::context;
pub use run::{plan, run};
pub use show::session;

/// Opens the data folder for one piece of work, and writes its trace when that is done.
async fn with_service<T, F: Future<Output = Result<T, Failure>>>(
    (file, work): (Option<&Path>, &Work),
    task: impl FnOnce(Arc<Service>) -> F,
) -> Result<T, Failure> {
    log::init("error");
    let settings = Settings {
        data: work.data.clone(),
        keep: work.keep.clone(),
        catalogs: work.catalogs.clone(),
        no_demo: work.no_demo,
        ..Settings::default()
    };
    let config = Config::read(file, &settings)?;
    let stop = CancellationToken::new();
    let service = wiring::app(&config, &stop).await?.app.service().clone();
    let done = task(service.clone()).await;
    let written = service.write_traces().await;
    stop.cancel();
    let done = done?;
    written?;
    Ok(done)
}

/// Adds a call that a person made to its session's trace.
fn traced(
    service: &Service,
    session: &str,
    (call, started, tool): (CallRecord, base::Timestamp, &str),
    (outcome, text): (&str, &str),
) {
    let ms = service.now().0 - started.0;
    let call = CallRecord { at: started.0, ms, tool: tool.to_owned(), outcome: outcome.to_owned(), ..call };
    service.record(&Caller::local(), session, call.with_answer(text));
}

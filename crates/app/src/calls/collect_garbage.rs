//! One pass of the collector, which deletes data after its retention period.

use access::Caller;
use session::{CollectionOptions, CollectionReport};

use crate::call::{App, Call};
use crate::error::Error;

/// Deletes expired and unreferenced data of all tenants. A command asks for it; the background task of a server calls
/// the service directly.
#[derive(Debug, Clone)]
pub struct CollectGarbage(pub CollectionOptions);

impl Call for CollectGarbage {
    const NAME: &'static str = "collect_garbage";
    type Answer = CollectionReport;

    async fn run(&self, app: &App, _caller: &Caller) -> Result<CollectionReport, Error> {
        Ok(app.service().collect_garbage(self.0).await?)
    }
}

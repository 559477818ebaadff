//! One pass of the collector, which deletes data after its retention period.

use access::Caller;
use session::{CollectionOptions, CollectionReport};

use crate::call::{App, Call};
use crate::error::Error;

#[derive(Debug, Clone)]
pub struct CollectGarbage(pub CollectionOptions);

impl Call for CollectGarbage {
    const NAME: &'static str = "collect_garbage";
    type Answer = CollectionReport;

    async fn run(&self, app: &App, _caller: &Caller) -> Result<CollectionReport, Error> {
        Ok(app.service().collect_garbage(self.0).await?)
    }
}

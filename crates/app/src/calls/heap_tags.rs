//! Tags of heaps: `get_heap_tags`, `set_heap_tags`, `delete_heap_tags`, `query_heaps_by_tags`.

use access::Caller;
use base::Digest;
use schemars::JsonSchema;
use serde::Deserialize;
use session::Tags;

use crate::call::{App, Call};
use crate::error::Error;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetHeapTags {
    pub heap: String,
}

impl Call for GetHeapTags {
    const NAME: &'static str = "get_heap_tags";
    type Answer = Tags;

    async fn run(&self, app: &App, caller: &Caller) -> Result<Tags, Error> {
        Ok(app.service().heap_tags(caller, &self.heap).await?)
    }
}

/// Replaces all tags of a heap.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetHeapTags {
    pub heap: String,
    pub tags: Tags,
}

impl Call for SetHeapTags {
    const NAME: &'static str = "set_heap_tags";
    type Answer = ();

    async fn run(&self, app: &App, caller: &Caller) -> Result<(), Error> {
        Ok(app.service().set_heap_tags(caller, &self.heap, self.tags.clone()).await?)
    }
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteHeapTags {
    pub heap: String,
    /// Comma-separated; else all.
    #[serde(default)]
    pub keys: Option<String>,
}

impl Call for DeleteHeapTags {
    const NAME: &'static str = "delete_heap_tags";
    type Answer = ();

    async fn run(&self, app: &App, caller: &Caller) -> Result<(), Error> {
        let keys: Option<Vec<String>> =
            self.keys.as_ref().map(|keys| keys.split(',').map(|key| key.trim().to_owned()).collect());
        Ok(app.service().delete_heap_tags(caller, &self.heap, keys.as_deref()).await?)
    }
}

/// The heaps that have all these tags.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryHeapsByTags {
    pub tags: Tags,
}

impl Call for QueryHeapsByTags {
    const NAME: &'static str = "query_heaps_by_tags";
    type Answer = Vec<(Digest, Tags)>;

    async fn run(&self, app: &App, caller: &Caller) -> Result<Vec<(Digest, Tags)>, Error> {
        Ok(app.service().heaps_by_tags(caller, &self.tags).await?)
    }
}

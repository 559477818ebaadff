//! Tags of heaps: `get_heap_tags`, `set_heap_tags`, `delete_heap_tags`, `query_heaps_by_tags`.

use access::Caller;
use base::Digest;
use schemars::JsonSchema;
use serde::Deserialize;
use session::{ListPage, ListRequest, Tags};

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
    // Not in the schema, since models rarely need a second page and would pay for the words: docs/heaps.md has both.
    #[serde(default)]
    #[schemars(skip)]
    pub after: Option<String>,
    #[serde(default)]
    #[schemars(skip)]
    pub limit: Option<usize>,
}

impl Call for QueryHeapsByTags {
    const NAME: &'static str = "query_heaps_by_tags";
    type Answer = ListPage<(Digest, Tags)>;

    async fn run(&self, app: &App, caller: &Caller) -> Result<ListPage<(Digest, Tags)>, Error> {
        let request = ListRequest { after: self.after.clone(), limit: self.limit };
        Ok(app.service().heaps_by_tags(caller, &self.tags, &request).await?)
    }
}

//! `list_registry`, and one API by its id: the APIs that the caller may use, and whether their credentials are set.

use access::Caller;
use schemars::JsonSchema;
use serde::Deserialize;
use session::ApiListing;

use crate::call::{App, Call};
use crate::error::Error;

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListRegistry {
    /// Words of an id, a title or an entity.
    #[serde(default)]
    pub query: Option<String>,
}

impl Call for ListRegistry {
    const NAME: &'static str = "list_registry";
    type Answer = Vec<ApiListing>;

    async fn run(&self, app: &App, caller: &Caller) -> Result<Vec<ApiListing>, Error> {
        Ok(app.service().list_registry(caller, self.query.as_deref()).await)
    }
}

/// One API, by its id or an alias.
#[derive(Debug, Clone)]
pub struct ShowApi {
    pub id: String,
}

impl Call for ShowApi {
    const NAME: &'static str = "show_api";
    type Answer = ApiListing;

    async fn run(&self, app: &App, caller: &Caller) -> Result<ApiListing, Error> {
        let listing = app.service().find_api(caller, &self.id).await;
        listing.ok_or_else(|| Error::NoCatalog(base::printable(&self.id, 80)))
    }
}

//! `POST /v1/discover`, `GET /v1/registry`, `GET /v1/registry/{id}`.
//! Invariant: the same answers as the tools, as JSON; nothing is changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use session::{DiscoverRequest, Service};

use super::auth::AsCaller;
use super::body::{Given, Queried};
use super::problem::Problem;
use crate::{arguments, found};

/// What is looked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Discover")]
pub struct Asked {
    /// The whole goal, in one sentence.
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    intent: String,
    /// Only these; all unless given.
    #[serde(default)]
    apis: Vec<String>,
    /// Rows, 8 unless given, at most 32.
    #[serde(default, deserialize_with = "arguments::rows")]
    #[schemars(range(min = 1))]
    limit: Option<usize>,
    /// Answer a decision with options.
    #[serde(default)]
    typed: bool,
}

/// APIs, in the order of their ids.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Catalogs {
    #[schemars(with = "Vec<BTreeMap<String, Value>>")]
    catalogs: Vec<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// Words of an id, a title or an entity.
    #[serde(default)]
    query: Option<String>,
}

pub async fn discover(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    Given(asked): Given<Asked>,
) -> Result<Json<Value>, Problem> {
    let request = DiscoverRequest { intent: asked.intent, apis: asked.apis, limit: asked.limit };
    let discovered = service.discover(&caller, &request).map_err(|error| Problem::from(&error))?;
    if asked.typed {
        return Ok(Json(found::decision(&discovered.found.decide(), &discovered)));
    }
    Ok(Json(found::rows(&discovered)))
}

pub async fn list(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    Queried(listing): Queried<Listing>,
) -> Result<Json<Catalogs>, Problem> {
    let listed = service.list_registry(&caller, listing.query.as_deref()).await;
    Ok(Json(Catalogs { catalogs: listed.iter().map(found::listed).collect() }))
}

pub async fn one(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    match service.find_api(&caller, &id).await {
        Some(listed) => Ok(Json(found::registered(&listed))),
        None => {
            let detail = format!("no API `{}` here; GET /v1/registry lists them", base::printable(&id, 80));
            Err(Problem::new(StatusCode::NOT_FOUND, "no_catalog", detail))
        }
    }
}

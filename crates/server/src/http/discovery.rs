//! `POST /v1/discover`, `GET /v1/registry`, `GET /v1/registry/{id}`.
//! Invariant: the same answers as the tools, as JSON; nothing is changed.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use session::{DiscoverRequest, Service};

use super::auth::AsCaller;
use super::problem::Problem;
use crate::found;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    intent: String,
    #[serde(default)]
    apis: Vec<String>,
    #[serde(default)]
    limit: Option<usize>,
    #[serde(default)]
    typed: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    #[serde(default)]
    query: Option<String>,
}

pub async fn discover(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    asked: Result<Json<Asked>, JsonRejection>,
) -> Result<Json<Value>, Problem> {
    let Json(asked) = asked.map_err(|bad| Problem::bad_arguments(bad.body_text()))?;
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
    listing: Result<Query<Listing>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let Query(listing) = listing.map_err(|bad| Problem::bad_arguments(bad.body_text()))?;
    let listed = service.list_registry(&caller, listing.query.as_deref()).await;
    Ok(Json(json!({"catalogs": listed.iter().map(found::listed).collect::<Vec<_>>()})))
}

pub async fn one(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    match service.registered(&caller, &id).await {
        Some(listed) => Ok(Json(found::registered(&listed))),
        None => {
            let detail = format!("no API `{}` here; GET /v1/registry lists them", base::shown(&id, 80));
            Err(Problem::new(StatusCode::NOT_FOUND, "no_catalog", detail))
        }
    }
}

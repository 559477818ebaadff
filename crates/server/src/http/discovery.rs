//! `POST /v1/discover`, `GET /v1/registry`, `GET /v1/registry/{id}`.

use app::calls::{DiscoverCapabilities, ListRegistry, ShowApi};
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use super::HttpState;
use super::auth::HttpCall;
use super::body::{JsonBody, QueryOf};
use super::problem::Problem;
use crate::view::{ApiDescription, ApiSummary, DiscoveredRows, DiscoveryDecision};

/// APIs in the order of their ids.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Catalogs {
    catalogs: Vec<ApiSummary>,
}

pub async fn discover(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    JsonBody(request): JsonBody<DiscoverCapabilities>,
) -> Result<Response, Problem> {
    let typed = request.typed;
    let answer = state.app.call(&context, request).await?;
    if typed {
        return Ok(Json(DiscoveryDecision::new(&answer.result.decide(), &answer)).into_response());
    }
    Ok(Json(DiscoveredRows::new(&answer)).into_response())
}

pub async fn list(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    QueryOf(request): QueryOf<ListRegistry>,
) -> Result<Json<Catalogs>, Problem> {
    let listings = state.app.call(&context, request).await?;
    Ok(Json(Catalogs { catalogs: listings.iter().map(ApiSummary::new).collect() }))
}

pub async fn show(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    Path(id): Path<String>,
) -> Result<Json<ApiDescription>, Problem> {
    let listing = state.app.call(&context, ShowApi { id }).await?;
    Ok(Json(ApiDescription::new(&listing)))
}

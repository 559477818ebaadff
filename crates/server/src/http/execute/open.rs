//! `POST /execute`, `GET /execute/{ph}/{s}`, `POST /execute/{ph}/{s}/context`.
//! Invariant: opening is idempotent. The same intent, or the same entities of the same catalog, answer the same address.

use std::collections::BTreeMap;

use app::calls::{AddSeeds, OpenExecute, SeedArgument, ShowExecute};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use session::ExecuteRequest;

use super::{Address, Seed};
use crate::http::HttpState;
use crate::http::auth::HttpCall;
use crate::http::body::JsonBody;
use crate::http::problem::Problem;
use crate::text;
use crate::view::ContextMeta;

/// A session to open.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// The id or an alias of a catalog.
    entry_id: String,
    /// Entities of that catalog.
    #[schemars(length(min = 1, max = 256))]
    entities: Vec<String>,
    /// The task in one stable phrase. The same intent finds the same session again.
    #[serde(default)]
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    intent: Option<String>,
    /// The id of a session that exists, instead of an intent.
    #[serde(default)]
    logical_session_id: Option<String>,
}

/// A session that is open.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Opened {
    #[serde(flatten)]
    address: Address,
    logical_session_id: String,
    entry_id: String,
    entities: Vec<String>,
    /// The text for a model: the table, its new part, or a line that it has not changed.
    prompt: String,
    /// Whether the session existed with all of these entities.
    reused: bool,
    /// The same as `_meta.plasm` of `plasm_context`.
    plasm: ContextMeta,
}

/// Entities to add to a session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "More")]
pub struct AddSeedsBody {
    #[schemars(length(min = 1, max = 256))]
    seeds: Vec<Seed>,
    /// Writes to teach even if the intent's words do not name them.
    #[serde(default)]
    ranked_capabilities: Vec<String>,
    /// Send the whole table again.
    #[serde(default)]
    replay: bool,
}

/// The entities that were added to a session.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Expanded {
    /// The text for a model.
    prompt: String,
    /// The number of waves that the session has had.
    revision: u32,
    /// The same as `_meta.plasm` of `plasm_context`.
    plasm: ContextMeta,
}

/// A session with everything it was taught.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Session")]
pub struct SessionShown {
    #[serde(flatten)]
    address: Address,
    logical_session_id: String,
    /// Empty for a session that was opened by its seeds alone.
    intent: String,
    /// The number of waves that the session has had.
    revision: u32,
    /// The digests of the pinned catalogs, by id.
    catalogs: BTreeMap<String, String>,
    /// The cumulative table.
    prompt: String,
    /// The time of opening, in RFC 3339.
    opened: String,
}

pub async fn open(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    JsonBody(body): JsonBody<Open>,
) -> Result<Response, Problem> {
    let Open { entry_id, entities, intent, logical_session_id } = body;
    let mut seeds = Vec::new();
    for entity in &entities {
        let capabilities = Vec::new();
        seeds.push(session::SeedRequest { api: entry_id.clone(), entity: entity.clone(), capabilities });
    }
    let request = ExecuteRequest { seeds, intent, logical_session: logical_session_id };
    let answer = state.app.call(&context, OpenExecute(request)).await?;
    let address = Address::new(&answer.binding);
    let location = address.path();
    let body = Opened {
        address,
        logical_session_id: answer.opened.session.to_string(),
        entry_id,
        entities,
        prompt: text::opened(&answer.opened),
        reused: answer.reused,
        plasm: ContextMeta::new(&context.caller, &answer.opened),
    };
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, location)], Json(body)).into_response())
}

pub async fn show(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    Path((prompt_hash, session)): Path<(String, String)>,
) -> Result<Json<SessionShown>, Problem> {
    let shown = state.app.call(&context, ShowExecute { prompt_hash, session }).await?;
    let address = shown.address;
    Ok(Json(SessionShown {
        address: Address::new(&address.binding),
        logical_session_id: address.session.to_string(),
        intent: address.intent,
        revision: address.revision,
        catalogs: address.catalogs.iter().map(|(id, digest)| (id.to_string(), digest.to_string())).collect(),
        prompt: shown.table,
        opened: address.opened.to_string(),
    }))
}

pub async fn add_seeds(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    Path((prompt_hash, session)): Path<(String, String)>,
    JsonBody(body): JsonBody<AddSeedsBody>,
) -> Result<Json<Expanded>, Problem> {
    let request = AddSeeds {
        prompt_hash,
        session,
        seeds: body.seeds.into_iter().map(SeedArgument::from).collect(),
        ranked_capabilities: body.ranked_capabilities,
        replay: body.replay,
    };
    let expanded = state.app.call(&context, request).await?;
    Ok(Json(Expanded {
        prompt: text::opened(&expanded.opened),
        revision: expanded.opened.revision,
        plasm: ContextMeta::new(&expanded.address.caller, &expanded.opened),
    }))
}

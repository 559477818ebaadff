//! `POST /execute`, `GET /execute/{ph}/{s}`, `POST /execute/{ph}/{s}/context`.
//! Invariant: opening is idempotent: the same intent, or the same entities of the same catalog, answer the same address.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use session::{ExecuteRequest, OpenRequest, SeedRequest, Service};

use super::{Address, Seed};
use crate::http::auth::AsCaller;
use crate::http::body::Given;
use crate::http::problem::Problem;
use crate::{plasm, text};

/// What to open.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// Catalog id or alias.
    entry_id: String,
    /// Of that catalog.
    #[schemars(length(min = 1, max = 256))]
    entities: Vec<String>,
    /// What the task is, in one stable phrase; the same intent finds the same session again.
    #[serde(default)]
    #[schemars(length(min = 1), regex(pattern = r"\S"))]
    intent: Option<String>,
    /// A session that is there, instead of an intent.
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
    /// What to give a model: the table, what is new in it, or that it has not changed.
    prompt: String,
    /// It was there, with all of these entities.
    reused: bool,
    /// As `_meta.plasm` of `plasm_context`.
    #[schemars(with = "BTreeMap<String, Value>")]
    plasm: Value,
}

/// What to teach a session beside what it knows.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct More {
    #[schemars(length(min = 1, max = 256))]
    seeds: Vec<Seed>,
    /// Writes to teach even if the intent does not speak of them.
    #[serde(default)]
    ranked_capabilities: Vec<String>,
    /// Send the whole table again.
    #[serde(default)]
    replay: bool,
}

/// What a session was taught.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Session {
    #[serde(flatten)]
    address: Address,
    logical_session_id: String,
    /// Empty where it was opened without one.
    intent: String,
    /// How many waves it has had.
    revision: u32,
    /// Pinned catalogs by id, with their digests.
    catalogs: BTreeMap<String, String>,
    /// The cumulative table.
    prompt: String,
    /// When, in RFC 3339.
    opened: String,
}

pub async fn open(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    Given(asked): Given<Open>,
) -> Result<Response, Problem> {
    let Open { entry_id, entities, intent, logical_session_id } = asked;
    let seed =
        |entity: &String| SeedRequest { api: entry_id.clone(), entity: entity.clone(), capabilities: Vec::new() };
    let seeds = entities.iter().map(seed).collect();
    let request = ExecuteRequest { seeds, intent, logical_session: logical_session_id };
    let executed = service.open_execute(&caller, request).await.map_err(|error| Problem::from(&error))?;
    let address = Address::of(&executed.binding);
    let location = address.path();
    let body = Opened {
        address,
        logical_session_id: executed.opened.session.to_string(),
        entry_id,
        entities,
        prompt: text::opened(&executed.opened),
        reused: executed.reused,
        plasm: plasm::opened(&caller, &executed.opened),
    };
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, location)], Json(body)).into_response())
}

pub async fn show(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    Path((prompt_hash, session)): Path<(String, String)>,
) -> Result<Json<Session>, Problem> {
    let address =
        service.execute_address(caller, &prompt_hash, &session).await.map_err(|error| Problem::from(&error))?;
    let prompt = service.cumulative_table(&address).await.map_err(|error| Problem::from(&error))?;
    Ok(Json(Session {
        address: Address::of(&address.binding),
        logical_session_id: address.session.to_string(),
        revision: address.revision,
        catalogs: address.catalogs.iter().map(|(id, digest)| (id.to_string(), digest.to_string())).collect(),
        opened: address.opened.to_string(),
        intent: address.intent,
        prompt,
    }))
}

pub async fn expand(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    Path((prompt_hash, session)): Path<(String, String)>,
    Given(asked): Given<More>,
) -> Result<Json<Value>, Problem> {
    let address =
        service.execute_address(caller, &prompt_hash, &session).await.map_err(|error| Problem::from(&error))?;
    let More { seeds, ranked_capabilities, replay } = asked;
    let seeds = seeds.into_iter().map(SeedRequest::from).collect();
    let request = OpenRequest { ranked: ranked_capabilities, replay, ..OpenRequest::new("", seeds) };
    let opened = service.expand_session(&address, request).await.map_err(|error| Problem::from(&error))?;
    let plasm = plasm::opened(&address.caller, &opened);
    Ok(Json(serde_json::json!({"prompt": text::opened(&opened), "revision": opened.revision, "plasm": plasm})))
}

//! Projects: the list and one by key.
//! Invariant: keys are matched exactly; `ops` is not `OPS`.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;

use super::{Answer, Shared};
use crate::error::ApiError;
use crate::path::Segments;
use crate::query::Asked;
use crate::world::{Project, World};

pub async fn list(State(world): Shared, asked: Asked) -> Answer {
    let (_, window) = asked.list(&[])?;
    Ok(window.answer(world.projects.iter()))
}

pub async fn one(State(world): Shared, Segments(key): Segments<String>, asked: Asked) -> Answer {
    asked.none()?;
    Ok(Json(find(&world, &key)?).into_response())
}

pub fn find<'w>(world: &'w World, key: &str) -> Result<&'w Project, ApiError> {
    world.project(key).ok_or_else(|| ApiError::NoProject { key: key.to_owned() })
}

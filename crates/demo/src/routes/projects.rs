//! Projects: the list and one by key.
//! Invariant: keys are matched exactly; `ops` is not `OPS`.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;

use crate::error::Answer;
use crate::find;
use crate::path::Segments;
use crate::query::Asked;
use crate::state::Shared;

pub async fn list(State(app): Shared, asked: Asked) -> Answer {
    let (_, window) = asked.list(&[])?;
    Ok(window.answer(app.read().world.projects.iter()))
}

pub async fn one(State(app): Shared, Segments(key): Segments<String>, asked: Asked) -> Answer {
    asked.none()?;
    Ok(Json(find::project(&app.read().world, &key)?).into_response())
}

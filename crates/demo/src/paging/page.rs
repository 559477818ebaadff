//! By page number: `page` and `per_page`, with the total in the body.
//! Invariant: the same shape as the lists under `/api`.

use axum::extract::State;

use crate::error::Answer;
use crate::query::Asked;
use crate::state::Shared;

pub async fn list(State(app): Shared, asked: Asked) -> Answer {
    let (_, window) = asked.list(&[])?;
    Ok(window.answer(app.read().world.tickets.iter()))
}

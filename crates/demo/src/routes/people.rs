//! People: the list, one by id, and the tickets one owns.
//! Invariant: an id that does not exist is a 404, also for the tickets below it; nobody's tickets are an empty list.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;

use super::tickets::Filter;
use crate::error::Answer;
use crate::find;
use crate::path::Segments;
use crate::query::Asked;
use crate::state::Shared;
use crate::world::Team;

pub async fn list(State(app): Shared, asked: Asked) -> Answer {
    let (params, window) = asked.list(&["team"])?;
    let team: Option<Team> = params.choice("team")?;
    Ok(window.answer(app.read().world.people.iter().filter(|person| team.is_none_or(|team| person.team == team))))
}

pub async fn one(State(app): Shared, Segments(id): Segments<String>, asked: Asked) -> Answer {
    asked.none()?;
    Ok(Json(find::person(&app.read().world, &id)?).into_response())
}

pub async fn tickets(State(app): Shared, Segments(id): Segments<String>, asked: Asked) -> Answer {
    let (params, window) = asked.list(&["state"])?;
    let filter = Filter::read(&params)?;
    let world = &app.read().world;
    let person = find::person(world, &id)?;
    Ok(window.answer(world.tickets.iter().filter(|ticket| ticket.is_owned_by(&person.id) && filter.admits(ticket))))
}

//! People: the list, one by id, and the tickets one owns.
//! Invariant: an id that does not exist is a 404, also for the tickets below it; nobody's tickets are an empty list.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;

use super::tickets::Filter;
use super::{Answer, Shared};
use crate::error::ApiError;
use crate::path::Segments;
use crate::query::Asked;
use crate::world::{Person, Team, World};

pub async fn list(State(world): Shared, asked: Asked) -> Answer {
    let (params, window) = asked.list(&["team"])?;
    let team: Option<Team> = params.choice("team")?;
    Ok(window.answer(world.people.iter().filter(|person| team.is_none_or(|team| person.team == team))))
}

pub async fn one(State(world): Shared, Segments(id): Segments<String>, asked: Asked) -> Answer {
    asked.none()?;
    Ok(Json(find(&world, &id)?).into_response())
}

pub async fn tickets(State(world): Shared, Segments(id): Segments<String>, asked: Asked) -> Answer {
    let (params, window) = asked.list(&["state"])?;
    let filter = Filter::read(&params)?;
    let person = find(&world, &id)?;
    Ok(window.answer(world.tickets.iter().filter(|ticket| ticket.is_owned_by(&person.id) && filter.admits(ticket))))
}

fn find<'w>(world: &'w World, id: &str) -> Result<&'w Person, ApiError> {
    world.person(id).ok_or_else(|| ApiError::NoPerson { id: id.to_owned() })
}

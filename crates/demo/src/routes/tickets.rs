//! Tickets: all of them, those of a project, one by project and number, and its comments.
//! Invariant: an unknown project or person in a filter matches nothing; an unknown project or number in a path is a 404.

use axum::Json;
use axum::extract::State as Given;
use axum::response::IntoResponse;

use super::{Answer, Shared, projects};
use crate::error::ApiError;
use crate::path::Segments;
use crate::query::{Asked, Params, positive};
use crate::world::{State, Ticket, World};

pub async fn list(Given(world): Shared, asked: Asked) -> Answer {
    let (params, window) = asked.list(&["project", "state", "priority", "owner", "label"])?;
    let filter = Filter::read(&params)?;
    Ok(window.answer(world.tickets.iter().filter(|ticket| filter.admits(ticket))))
}

pub async fn list_in_project(Given(world): Shared, Segments(key): Segments<String>, asked: Asked) -> Answer {
    let (params, window) = asked.list(&["state", "priority", "owner", "label"])?;
    let filter = Filter::read(&params)?;
    let project = projects::find(&world, &key)?;
    Ok(window.answer(world.tickets.iter().filter(|ticket| ticket.project == project.key && filter.admits(ticket))))
}

pub async fn one(Given(world): Shared, Segments(at): Segments<(String, String)>, asked: Asked) -> Answer {
    asked.none()?;
    Ok(Json(find(&world, &at)?).into_response())
}

pub async fn comments(Given(world): Shared, Segments(at): Segments<(String, String)>, asked: Asked) -> Answer {
    let (_, window) = asked.list(&[])?;
    let ticket = find(&world, &at)?;
    Ok(window.answer(world.comments.iter().filter(|comment| comment.ticket.names(ticket))))
}

/// The filters of every ticket list. A list that does not allow one of them never sees it given: `Asked::list` refuses it.
pub struct Filter<'p> {
    project: Option<&'p str>,
    state: Option<State>,
    priority: Option<u64>,
    owner: Option<&'p str>,
    label: Option<&'p str>,
}

impl<'p> Filter<'p> {
    pub fn read(params: &'p Params) -> Result<Filter<'p>, ApiError> {
        Ok(Filter {
            project: params.text("project"),
            state: params.choice("state")?,
            priority: params.text("priority").map(priority).transpose()?,
            owner: params.text("owner"),
            label: params.text("label"),
        })
    }

    pub fn admits(&self, ticket: &Ticket) -> bool {
        self.project.is_none_or(|project| ticket.project == project)
            && self.state.is_none_or(|state| ticket.state == state)
            && self.priority.is_none_or(|priority| ticket.priority == priority)
            && self.owner.is_none_or(|owner| ticket.is_owned_by(owner))
            && self.label.is_none_or(|label| ticket.labels.iter().any(|one| one == label))
    }
}

fn priority(value: &str) -> Result<u64, ApiError> {
    match positive("priority", value) {
        Ok(number) if number <= 5 => Ok(number),
        _ => Err(ApiError::NotInRange { name: "priority", value: value.to_owned(), range: "an integer from 1 to 5" }),
    }
}

fn find<'w>(world: &'w World, (key, number): &(String, String)) -> Result<&'w Ticket, ApiError> {
    let number = positive("number", number)?;
    let project = projects::find(world, key)?;
    world.ticket(&project.key, number).ok_or_else(|| ApiError::NoTicket { project: project.key.clone(), number })
}

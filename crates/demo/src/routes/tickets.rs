//! Tickets: all of them, those of a project, one by project and number, and its comments.
//! Invariants: an unknown project or person in a filter matches nothing; an unknown project or number in a path is a 404;
//! a single ticket carries its ETag.

use axum::extract::State as Given;
use axum::http::HeaderMap;

use crate::error::{Answer, ApiError};
use crate::etag;
use crate::find;
use crate::path::Segments;
use crate::query::{Asked, Params, positive};
use crate::state::Shared;
use crate::world::{State, Ticket};

pub async fn list(Given(app): Shared, asked: Asked) -> Answer {
    let (params, window) = asked.list(&["project", "state", "priority", "owner", "label"])?;
    let filter = Filter::read(&params)?;
    Ok(window.answer(app.read().world.tickets.iter().filter(|ticket| filter.admits(ticket))))
}

pub async fn list_in_project(Given(app): Shared, Segments(key): Segments<String>, asked: Asked) -> Answer {
    let (params, window) = asked.list(&["state", "priority", "owner", "label"])?;
    let filter = Filter::read(&params)?;
    let world = &app.read().world;
    let project = find::project(world, &key)?;
    Ok(window.answer(world.tickets.iter().filter(|ticket| ticket.project == project.key && filter.admits(ticket))))
}

pub async fn one(
    Given(app): Shared,
    Segments(at): Segments<(String, String)>,
    asked: Asked,
    headers: HeaderMap,
) -> Answer {
    asked.none()?;
    let world = &app.read().world;
    Ok(etag::answer(&headers, find::ticket(world, &at)?))
}

pub async fn comments(Given(app): Shared, Segments(at): Segments<(String, String)>, asked: Asked) -> Answer {
    let (_, window) = asked.list(&[])?;
    let world = &app.read().world;
    let ticket = find::ticket(world, &at)?;
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

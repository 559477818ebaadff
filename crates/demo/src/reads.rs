//! The routes that read: projects, people, tickets, comments, and the search in tickets.
//! Invariants: a handler checks its whole query first, so a wrong query is a 400 even if the item of the path does not exist. A missing
//! item in a path is a 404; a missing item in a filter matches no ticket. Lists, including the result of a search, are in the order of
//! `World`, so that paging is stable.

use std::sync::Arc;

use axum::extract::State as FromState;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};

use crate::error::{ApiError, HandlerResult};
use crate::etag;
use crate::request::{PathSegments, QueryParams, UncheckedQuery, parse_positive};
use crate::tracker::{Tracker, TrackerState};
use crate::world::{Person, Project, State, Team, Ticket, World};

/// The key of a project and the number of a ticket, which identify a ticket in a path.
pub type TicketPath = (String, String);

pub fn routes() -> Router<Arc<Tracker>> {
    Router::new()
        .route("/api/projects", get(list_projects))
        .route("/api/projects/{key}", get(get_project))
        .route("/api/projects/{project}/tickets", get(list_project_tickets))
        .route("/api/projects/{project}/tickets/{number}", get(get_ticket))
        .route("/api/projects/{project}/tickets/{number}/comments", get(list_comments))
        .route("/api/people", get(list_people))
        .route("/api/people/{id}", get(get_person))
        .route("/api/people/{id}/tickets", get(list_person_tickets))
        .route("/api/tickets", get(list_tickets))
        .route("/api/search/tickets", get(search_tickets))
}

async fn list_projects(FromState(tracker): TrackerState, query: UncheckedQuery) -> HandlerResult {
    let (_, window) = query.list(&[])?;
    Ok(window.answer(tracker.read().world.projects.iter()))
}

async fn get_project(
    FromState(tracker): TrackerState,
    PathSegments(key): PathSegments<String>,
    query: UncheckedQuery,
) -> HandlerResult {
    query.none()?;
    Ok(Json(find_project(&tracker.read().world, &key)?).into_response())
}

async fn list_people(FromState(tracker): TrackerState, query: UncheckedQuery) -> HandlerResult {
    let (params, window) = query.list(&["team"])?;
    let team: Option<Team> = params.choice("team")?;
    Ok(window.answer(tracker.read().world.people.iter().filter(|person| team.is_none_or(|team| person.team == team))))
}

async fn get_person(
    FromState(tracker): TrackerState,
    PathSegments(id): PathSegments<String>,
    query: UncheckedQuery,
) -> HandlerResult {
    query.none()?;
    Ok(Json(find_person(&tracker.read().world, &id)?).into_response())
}

async fn list_person_tickets(
    FromState(tracker): TrackerState,
    PathSegments(id): PathSegments<String>,
    query: UncheckedQuery,
) -> HandlerResult {
    let (params, window) = query.list(&["state"])?;
    let filter = TicketFilter::read(&params)?;
    let world = &tracker.read().world;
    let person = find_person(world, &id)?;
    Ok(window.answer(world.tickets.iter().filter(|ticket| ticket.is_owned_by(&person.id) && filter.admits(ticket))))
}

async fn list_tickets(FromState(tracker): TrackerState, query: UncheckedQuery) -> HandlerResult {
    let (params, window) = query.list(&["project", "state", "priority", "owner", "label"])?;
    let filter = TicketFilter::read(&params)?;
    Ok(window.answer(tracker.read().world.tickets.iter().filter(|ticket| filter.admits(ticket))))
}

async fn list_project_tickets(
    FromState(tracker): TrackerState,
    PathSegments(key): PathSegments<String>,
    query: UncheckedQuery,
) -> HandlerResult {
    let (params, window) = query.list(&["state", "priority", "owner", "label"])?;
    let filter = TicketFilter::read(&params)?;
    let world = &tracker.read().world;
    let project = find_project(world, &key)?;
    Ok(window.answer(world.tickets.iter().filter(|ticket| ticket.project == project.key && filter.admits(ticket))))
}

async fn get_ticket(
    FromState(tracker): TrackerState,
    PathSegments(path): PathSegments<TicketPath>,
    query: UncheckedQuery,
    headers: HeaderMap,
) -> HandlerResult {
    query.none()?;
    let world = &tracker.read().world;
    Ok(etag::answer(&headers, find_ticket(world, &path)?))
}

async fn list_comments(
    FromState(tracker): TrackerState,
    PathSegments(path): PathSegments<TicketPath>,
    query: UncheckedQuery,
) -> HandlerResult {
    let (_, window) = query.list(&[])?;
    let world = &tracker.read().world;
    let ticket = find_ticket(world, &path)?;
    Ok(window.answer(world.comments.iter().filter(|comment| comment.ticket.names(ticket))))
}

/// Returns the tickets whose title or body contains every word of `q`. Upper and lower case are equal.
async fn search_tickets(FromState(tracker): TrackerState, query: UncheckedQuery) -> HandlerResult {
    let (params, window) = query.list(&["q"])?;
    let words: Vec<String> = params.text("q").unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
    if words.is_empty() {
        return Err(ApiError::EmptyParameter { name: "q" });
    }
    Ok(window.answer(tracker.read().world.tickets.iter().filter(|ticket| has_all_words(ticket, &words))))
}

fn has_all_words(ticket: &Ticket, words: &[String]) -> bool {
    let title = ticket.title.to_lowercase();
    let body = ticket.body.to_lowercase();
    words.iter().all(|word| title.contains(word.as_str()) || body.contains(word.as_str()))
}

/// The filters of ticket lists. `UncheckedQuery::list` refuses a filter that the route does not allow.
struct TicketFilter<'p> {
    project: Option<&'p str>,
    state: Option<State>,
    priority: Option<u64>,
    owner: Option<&'p str>,
    label: Option<&'p str>,
}

impl<'p> TicketFilter<'p> {
    fn read(params: &'p QueryParams) -> Result<TicketFilter<'p>, ApiError> {
        Ok(TicketFilter {
            project: params.text("project"),
            state: params.choice("state")?,
            priority: params.text("priority").map(parse_priority).transpose()?,
            owner: params.text("owner"),
            label: params.text("label"),
        })
    }

    fn admits(&self, ticket: &Ticket) -> bool {
        self.project.is_none_or(|project| ticket.project == project)
            && self.state.is_none_or(|state| ticket.state == state)
            && self.priority.is_none_or(|priority| ticket.priority == priority)
            && self.owner.is_none_or(|owner| ticket.is_owned_by(owner))
            && self.label.is_none_or(|wanted| ticket.labels.iter().any(|label| label == wanted))
    }
}

fn parse_priority(value: &str) -> Result<u64, ApiError> {
    match parse_positive("priority", value) {
        Ok(number) if number <= 5 => Ok(number),
        _ => Err(ApiError::NotInRange { name: "priority", value: value.to_owned(), range: "an integer from 1 to 5" }),
    }
}

pub fn find_project<'w>(world: &'w World, key: &str) -> Result<&'w Project, ApiError> {
    world.project(key).ok_or_else(|| ApiError::NoProject { key: key.to_owned() })
}

fn find_person<'w>(world: &'w World, id: &str) -> Result<&'w Person, ApiError> {
    world.person(id).ok_or_else(|| ApiError::NoPerson { id: id.to_owned() })
}

/// Finds the ticket of a path. If the project does not exist, the 404 names the project instead of the ticket.
pub fn find_ticket<'w>(world: &'w World, (key, number): &TicketPath) -> Result<&'w Ticket, ApiError> {
    let number = parse_positive("number", number)?;
    let project = find_project(world, key)?;
    world.ticket(&project.key, number).ok_or_else(|| ApiError::NoTicket { project: project.key.clone(), number })
}

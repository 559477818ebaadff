//! The routes that write: a ticket is opened, updated, closed with a note or deleted, and a comment is added.
//! Invariants: a write is checked completely before it changes data. The list of tickets stays sorted by project and number. A ticket
//! number or comment id is used only once, even after a deletion. Every person that a ticket or a comment names exists.

use std::sync::Arc;

use axum::Router;
use axum::extract::State as FromState;
use axum::http::StatusCode;
use axum::routing::{patch, post};

use crate::error::{ApiError, HandlerResult};
use crate::etag;
use crate::fields::Fields;
use crate::idempotency::WriteRequest;
use crate::reads::{TicketPath, find_project, find_ticket};
use crate::replays::WriteAnswer;
use crate::request::{PathSegments, UncheckedQuery};
use crate::tracker::{DeletedTicket, Tracker, TrackerData, TrackerState};
use crate::world::{Comment, PersonRef, State, Ticket, TicketRef, World};

const MAX_TITLE: usize = 200;
const MAX_BODY_TEXT: usize = 100_000;
const MAX_COMMENT: usize = 20_000;

pub fn routes() -> Router<Arc<Tracker>> {
    Router::new()
        .route("/api/projects/{project}/tickets", post(create_ticket))
        .route("/api/projects/{project}/tickets/{number}", patch(update_ticket).delete(delete_ticket))
        .route("/api/projects/{project}/tickets/{number}/close", post(close_ticket))
        .route("/api/projects/{project}/tickets/{number}/comments", post(create_comment))
}

async fn create_ticket(
    FromState(tracker): TrackerState,
    PathSegments(project): PathSegments<String>,
    query: UncheckedQuery,
    request: WriteRequest,
) -> HandlerResult {
    query.none()?;
    let fields = Fields::from_json(&request.headers, &request.body)?;
    request.apply_once(&tracker, |data| open_ticket(data, &project, fields))
}

async fn update_ticket(
    FromState(tracker): TrackerState,
    PathSegments(path): PathSegments<TicketPath>,
    query: UncheckedQuery,
    request: WriteRequest,
) -> HandlerResult {
    query.none()?;
    let fields = Fields::from_json(&request.headers, &request.body)?;
    request.apply_once(&tracker, |data| {
        let ticket = find_ticket(&data.world, &path)?;
        etag::check_if_match(&request.headers, ticket)?;
        let changed = change_ticket(&data.world, ticket.clone(), fields)?;
        Ok(replace_ticket(data, changed))
    })
}

async fn close_ticket(
    FromState(tracker): TrackerState,
    PathSegments(path): PathSegments<TicketPath>,
    query: UncheckedQuery,
    request: WriteRequest,
) -> HandlerResult {
    query.none()?;
    let mut fields = Fields::from_json(&request.headers, &request.body)?;
    let note = fields.required_text("note", MAX_BODY_TEXT);
    fields.finish()?;
    request.apply_once(&tracker, |data| {
        let mut ticket = find_ticket(&data.world, &path)?.clone();
        etag::check_if_match(&request.headers, &ticket)?;
        if ticket.state == State::Done {
            return Err(ApiError::AlreadyDone { project: ticket.project, number: ticket.number });
        }
        ticket.state = State::Done;
        let author = ticket.owner.clone().unwrap_or_else(|| ticket.reporter.clone());
        add_comment(data, &ticket, author, note.unwrap_or_default());
        Ok(replace_ticket(data, ticket))
    })
}

async fn delete_ticket(
    FromState(tracker): TrackerState,
    PathSegments(path): PathSegments<TicketPath>,
    query: UncheckedQuery,
    request: WriteRequest,
) -> HandlerResult {
    query.none()?;
    request.apply_once(&tracker, |data| {
        let ticket = find_ticket(&data.world, &path)?.clone();
        etag::check_if_match(&request.headers, &ticket)?;
        let last_comment = data.next_comment_id() - 1;
        data.deleted.push(DeletedTicket { project: ticket.project.clone(), number: ticket.number, last_comment });
        data.world.comments.retain(|comment| !comment.ticket.names(&ticket));
        data.world.tickets.retain(|kept| (&kept.project, kept.number) != (&ticket.project, ticket.number));
        Ok(WriteAnswer::empty())
    })
}

async fn create_comment(
    FromState(tracker): TrackerState,
    PathSegments(path): PathSegments<TicketPath>,
    query: UncheckedQuery,
    request: WriteRequest,
) -> HandlerResult {
    query.none()?;
    let mut fields = Fields::from_json(&request.headers, &request.body)?;
    request.apply_once(&tracker, |data| {
        let ticket = find_ticket(&data.world, &path)?.clone();
        let text = fields.required_text("text", MAX_COMMENT);
        let author = read_person(&data.world, &mut fields, "author");
        fields.finish()?;
        let comment = add_comment(data, &ticket, author.unwrap_or(ticket.reporter.clone()), text.unwrap_or_default());
        Ok(WriteAnswer::json(StatusCode::CREATED, &comment))
    })
}

/// Opens a ticket in the project with this key, and returns the answer for the client.
pub fn open_ticket(data: &mut TrackerData, project: &str, mut fields: Fields) -> Result<WriteAnswer, ApiError> {
    let project = find_project(&data.world, project)?;
    let title = fields.required_text("title", MAX_TITLE);
    let reporter = read_person(&data.world, &mut fields, "reporter");
    let lead = data.world.person(&project.lead).map(PersonRef::from);
    let ticket = Ticket {
        project: project.key.clone(),
        number: data.next_ticket_number(&project.key),
        title: title.unwrap_or_default(),
        state: State::Open,
        priority: 3,
        votes: 0,
        labels: Vec::new(),
        owner: None,
        reporter: reporter.or(lead).unwrap_or_else(|| PersonRef { id: project.lead.clone(), name: String::new() }),
        created_at: data.instant(),
        due: None,
        body: String::new(),
    };
    let ticket = set_common_fields(&data.world, ticket, fields)?;
    let tickets = &mut data.world.tickets;
    let index = tickets.partition_point(|other| (&other.project, other.number) < (&ticket.project, ticket.number));
    let location = format!("/api/projects/{}/tickets/{}", ticket.project, ticket.number);
    let answer =
        WriteAnswer::json(StatusCode::CREATED, &ticket).with_location(&location).with_etag(&etag::tag(&ticket));
    tickets.insert(index, ticket);
    Ok(answer)
}

fn change_ticket(world: &World, mut ticket: Ticket, mut fields: Fields) -> Result<Ticket, ApiError> {
    if fields.is_empty() {
        fields.refuse::<()>("title", "or another field must be given");
    }
    if let Some(title) = fields.text("title", MAX_TITLE) {
        if title.trim().is_empty() {
            fields.refuse::<()>("title", "must not be empty");
        }
        ticket.title = title;
    }
    set_common_fields(world, ticket, fields)
}

/// Sets the fields that a client may set in a new ticket and in an existing one, and refuses all other fields.
fn set_common_fields(world: &World, mut ticket: Ticket, mut fields: Fields) -> Result<Ticket, ApiError> {
    if let Some(body) = fields.text("body", MAX_BODY_TEXT) {
        ticket.body = body;
    }
    if let Some(state) = fields.choice("state") {
        ticket.state = state;
    }
    if let Some(priority) = fields.integer("priority", 1..=5) {
        ticket.priority = priority;
    }
    if let Some(labels) = fields.texts("labels") {
        ticket.labels = labels;
    }
    match fields.removable_text("owner") {
        Some(None) => ticket.owner = None,
        Some(Some(id)) => ticket.owner = known_person(world, &mut fields, "owner", &id),
        None => {}
    }
    match fields.removable_text("due") {
        Some(None) => ticket.due = None,
        Some(Some(due)) if is_date(&due) => ticket.due = Some(due),
        Some(Some(_)) => drop(fields.refuse::<()>("due", "must be a date such as 2026-03-31")),
        None => {}
    }
    fields.finish()?;
    Ok(ticket)
}

fn replace_ticket(data: &mut TrackerData, changed: Ticket) -> WriteAnswer {
    let answer = WriteAnswer::json(StatusCode::OK, &changed).with_etag(&etag::tag(&changed));
    let key = (&changed.project, changed.number);
    if let Some(ticket) = data.world.tickets.iter_mut().find(|ticket| (&ticket.project, ticket.number) == key) {
        *ticket = changed;
    }
    answer
}

fn add_comment(data: &mut TrackerData, ticket: &Ticket, author: PersonRef, text: String) -> Comment {
    let ticket = TicketRef { project: ticket.project.clone(), number: ticket.number };
    let comment = Comment { id: data.next_comment_id(), ticket, author, text, created_at: data.instant() };
    data.world.comments.push(comment.clone());
    comment
}

/// Reads a field with the id of a person, and returns this person. Returns `None` if the body does not have the field.
fn read_person(world: &World, fields: &mut Fields, name: &str) -> Option<PersonRef> {
    let id = fields.text(name, usize::MAX)?;
    known_person(world, fields, name, &id)
}

fn known_person(world: &World, fields: &mut Fields, name: &str, id: &str) -> Option<PersonRef> {
    world.person(id).map(PersonRef::from).or_else(|| fields.refuse(name, "must be the id of a person"))
}

fn is_date(text: &str) -> bool {
    let has_digits = |part: &str, length| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
    let in_range = |part: &str, max| part.parse().is_ok_and(|number: u64| (1..=max).contains(&number));
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    has_digits(year, 4) && has_digits(month, 2) && has_digits(day, 2) && in_range(month, 12) && in_range(day, 31)
}

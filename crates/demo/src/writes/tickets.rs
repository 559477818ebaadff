//! Tickets: create, update, close with a note, delete.
//! Invariants: the list stays sorted by project and number; a number is never given twice, also after a deletion; a person
//! who is named exists.

use axum::extract::State as Given;
use axum::http::StatusCode;

use super::comments;
use super::once::{Done, Write};
use crate::body::fields::Fields;
use crate::error::{Answer, ApiError};
use crate::etag;
use crate::find;
use crate::path::Segments;
use crate::query::Asked;
use crate::state::{Data, Retired, Shared};
use crate::world::{PersonRef, State, Ticket, World};

const LONGEST_TITLE: usize = 200;
const LONGEST_BODY: usize = 100_000;

pub async fn create(Given(app): Shared, Segments(key): Segments<String>, asked: Asked, write: Write) -> Answer {
    asked.none()?;
    let fields = Fields::from_json(&write.headers, &write.body)?;
    write.once(&app, |data| open(data, &key, fields))
}

pub async fn update(
    Given(app): Shared,
    Segments(at): Segments<(String, String)>,
    asked: Asked,
    write: Write,
) -> Answer {
    asked.none()?;
    let fields = Fields::from_json(&write.headers, &write.body)?;
    write.once(&app, |data| {
        let ticket = find::ticket(&data.world, &at)?;
        etag::guard(&write.headers, ticket)?;
        let changed = change(&data.world, ticket.clone(), fields)?;
        replace(data, changed)
    })
}

pub async fn close(Given(app): Shared, Segments(at): Segments<(String, String)>, asked: Asked, write: Write) -> Answer {
    asked.none()?;
    let mut fields = Fields::from_json(&write.headers, &write.body)?;
    let note = fields.required_text("note", LONGEST_BODY);
    fields.finish()?;
    write.once(&app, |data| {
        let mut ticket = find::ticket(&data.world, &at)?.clone();
        etag::guard(&write.headers, &ticket)?;
        if ticket.state == State::Done {
            return Err(ApiError::AlreadyDone { project: ticket.project, number: ticket.number });
        }
        ticket.state = State::Done;
        let author = ticket.owner.clone().unwrap_or_else(|| ticket.reporter.clone());
        comments::add(data, &ticket, author, note.unwrap_or_default());
        replace(data, ticket)
    })
}

pub async fn delete(
    Given(app): Shared,
    Segments(at): Segments<(String, String)>,
    asked: Asked,
    write: Write,
) -> Answer {
    asked.none()?;
    write.once(&app, |data| {
        let ticket = find::ticket(&data.world, &at)?.clone();
        etag::guard(&write.headers, &ticket)?;
        let last_comment = data.next_comment() - 1;
        data.retired.push(Retired { project: ticket.project.clone(), number: ticket.number, last_comment });
        data.world.comments.retain(|comment| !comment.ticket.names(&ticket));
        data.world.tickets.retain(|one| (&one.project, one.number) != (&ticket.project, ticket.number));
        Ok(Done::empty())
    })
}

/// Opens a ticket in a project, from JSON or a form.
pub fn open(data: &mut Data, key: &str, mut fields: Fields) -> Result<Done, ApiError> {
    let project = find::project(&data.world, key)?;
    let title = fields.required_text("title", LONGEST_TITLE);
    let reporter = person(&data.world, &mut fields, "reporter");
    let lead = data.world.person(&project.lead).map(PersonRef::from);
    let ticket = Ticket {
        project: project.key.clone(),
        number: data.next_number(key),
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
    let ticket = fill(&data.world, ticket, fields)?;
    let at = data.world.tickets.partition_point(|one| (&one.project, one.number) < (&ticket.project, ticket.number));
    let location = format!("/api/projects/{}/tickets/{}", ticket.project, ticket.number);
    let done = Done::new(StatusCode::CREATED, &ticket).at(&location).tagged(&etag::of(&ticket));
    data.world.tickets.insert(at, ticket);
    Ok(done)
}

fn change(world: &World, mut ticket: Ticket, mut fields: Fields) -> Result<Ticket, ApiError> {
    if fields.is_empty() {
        fields.refuse::<()>("title", "or another field must be given");
    }
    if let Some(title) = fields.text("title", LONGEST_TITLE) {
        if title.trim().is_empty() {
            fields.refuse::<()>("title", "must not be empty");
        }
        ticket.title = title;
    }
    fill(world, ticket, fields)
}

/// The fields that a new ticket and a changed one have in common; refuses what is left over.
fn fill(world: &World, mut ticket: Ticket, mut fields: Fields) -> Result<Ticket, ApiError> {
    if let Some(body) = fields.text("body", LONGEST_BODY) {
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
    match fields.clearable("owner", usize::MAX) {
        Some(None) => ticket.owner = None,
        Some(Some(id)) => ticket.owner = known(world, &mut fields, ("owner", &id)),
        None => {}
    }
    match fields.clearable("due", usize::MAX) {
        Some(None) => ticket.due = None,
        Some(Some(due)) if is_date(&due) => ticket.due = Some(due),
        Some(Some(_)) => drop(fields.refuse::<()>("due", "must be a date such as 2026-03-31")),
        None => {}
    }
    fields.finish()?;
    Ok(ticket)
}

fn replace(data: &mut Data, ticket: Ticket) -> Result<Done, ApiError> {
    let done = Done::new(StatusCode::OK, &ticket).tagged(&etag::of(&ticket));
    let place =
        data.world.tickets.iter_mut().find(|one| (&one.project, one.number) == (&ticket.project, ticket.number));
    if let Some(place) = place {
        *place = ticket;
    }
    Ok(done)
}

/// Someone named by a field, if it is given.
pub fn person(world: &World, fields: &mut Fields, name: &str) -> Option<PersonRef> {
    let id = fields.text(name, usize::MAX)?;
    known(world, fields, (name, &id))
}

fn known(world: &World, fields: &mut Fields, (name, id): (&str, &str)) -> Option<PersonRef> {
    let found = world.person(id).map(PersonRef::from);
    found.or_else(|| fields.refuse(name, "must be the id of a person"))
}

fn is_date(text: &str) -> bool {
    let digits = |part: &str, length| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let within = |part: &str, most| part.parse().is_ok_and(|number: u64| (1..=most).contains(&number));
    digits(year, 4) && digits(month, 2) && digits(day, 2) && within(month, 12) && within(day, 31)
}

//! Comments: one more on a ticket.
//! Invariant: ids rise with every comment and are never given twice.

use axum::extract::State;
use axum::http::StatusCode;

use super::once::{Done, Write};
use super::tickets::person;
use crate::body::fields::Fields;
use crate::error::Answer;
use crate::find;
use crate::path::Segments;
use crate::query::Asked;
use crate::state::{Data, Shared};
use crate::world::{Comment, PersonRef, Ticket, TicketRef};

const LONGEST_TEXT: usize = 20_000;

pub async fn create(
    State(app): Shared,
    Segments(at): Segments<(String, String)>,
    asked: Asked,
    write: Write,
) -> Answer {
    asked.none()?;
    let mut fields = Fields::from_json(&write.headers, &write.body)?;
    write.once(&app, |data| {
        let ticket = find::ticket(&data.world, &at)?.clone();
        let text = fields.required_text("text", LONGEST_TEXT);
        let author = person(&data.world, &mut fields, "author");
        fields.finish()?;
        let comment = add(data, &ticket, author.unwrap_or(ticket.reporter.clone()), text.unwrap_or_default());
        Ok(Done::new(StatusCode::CREATED, &comment))
    })
}

pub fn add(data: &mut Data, ticket: &Ticket, author: PersonRef, text: String) -> Comment {
    let of = TicketRef { project: ticket.project.clone(), number: ticket.number };
    let comment = Comment { id: data.next_comment(), ticket: of, author, text, created_at: data.instant() };
    data.world.comments.push(comment.clone());
    comment
}

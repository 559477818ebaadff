//! Search in tickets: every word of `q` must occur in the title or the body, whatever its case.
//! Invariant: the order is that of the ticket list, not of relevance, so that paging is stable.

use axum::extract::State;

use crate::error::{Answer, ApiError};
use crate::query::Asked;
use crate::state::Shared;
use crate::world::Ticket;

pub async fn tickets(State(app): Shared, asked: Asked) -> Answer {
    let (params, window) = asked.list(&["q"])?;
    let words: Vec<String> = params.text("q").unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
    if words.is_empty() {
        return Err(ApiError::EmptyParameter { name: "q" });
    }
    Ok(window.answer(app.read().world.tickets.iter().filter(|ticket| has_all(ticket, &words))))
}

fn has_all(ticket: &Ticket, words: &[String]) -> bool {
    let (title, body) = (ticket.title.to_lowercase(), ticket.body.to_lowercase());
    words.iter().all(|word| title.contains(word.as_str()) || body.contains(word.as_str()))
}

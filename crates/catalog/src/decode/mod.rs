//! An answer to rows: the fields of the capability's entity, by their paths, checked against their types.
//! Invariant: a row that comes out has every field of its entity, in order, `null` where the answer had none, and a whole key.

mod direct;
mod item;
mod look;
mod refusal;
mod row;
mod shape;
#[cfg(test)]
mod tests;
mod tree;

use base::Response;
use serde_json::Value;

use crate::bind::Args;
use crate::model::{Capability, Catalog, Row, Rows, Transport};
use crate::paging::{After, Page, PageRequest, PagingError, PagingForm};
use crate::types::TypeError;
use direct::Way;
use row::Reader;
use shape::Shape;

pub use refusal::Refusal;

#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// Those in the window.
    pub rows: Vec<Row>,
    /// How many of the answer's rows come before these, and how many it has in all.
    pub skipped: usize,
    pub came: usize,
    /// Where the page leads; the end, where the capability has no pages.
    pub after: After,
}

/// Which page an answer is, and how many rows came before it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub page: &'a PageRequest,
    pub seen: usize,
}

/// Which rows of an answer are wanted: the others are counted, and neither kept nor checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub skip: usize,
    pub take: usize,
}

impl Window {
    pub const ALL: Window = Window { skip: 0, take: usize::MAX };

    fn holds(self, at: usize) -> bool {
        at >= self.skip && at - self.skip < self.take
    }
}

/// An answer, and what it answers.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    pub response: &'a Response,
    /// What was asked: parts of the key that the answer leaves out are taken from here.
    pub args: &'a Args,
    pub asked: Option<Asked<'a>>,
    pub nesting: usize,
    pub window: Window,
}

#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("the answer is not JSON")]
    NotJson(#[source] serde_json::Error),
    #[error("the answer is nested deeper than {0}")]
    TooDeep(usize),
    #[error("the answer has no rows at `{0}`")]
    NoRows(String),
    #[error("row {row}: {entity}.{field}: {cause}")]
    Field { row: usize, entity: String, field: String, cause: TypeError },
    #[error("row {row}: {entity} has no `{field}`, which is part of its key")]
    NoKey { row: usize, entity: String, field: String },
    #[error(transparent)]
    Paging(#[from] PagingError),
    #[error("the catalog has no entity `{0}`")]
    NoEntity(String),
    /// The API answered, and says that it did not do it.
    #[error(transparent)]
    Refused(Refusal),
}

pub fn decode(catalog: &Catalog, capability: &Capability, answer: &Answer<'_>) -> Result<Decoded, DecodeError> {
    let Answer { response, asked, nesting, .. } = *answer;
    let nothing = !capability.gives_rows();
    let silent = catalog.failure.is_none() && matches!(capability.transport, Transport::Http(_));
    let none = Decoded { rows: Vec::new(), skipped: 0, came: 0, after: After::End };
    if nothing && (silent || response.body.is_empty()) {
        return Ok(none);
    }
    if base::depth_exceeds(&response.body, nesting) {
        return Err(DecodeError::TooDeep(nesting));
    }
    if nothing {
        let body: Value = serde_json::from_slice(&response.body).map_err(DecodeError::NotJson)?;
        return refusal::find(catalog, capability, &body)
            .map_or(Ok(none), |refusal| Err(DecodeError::Refused(refusal)));
    }
    let last = capability.paging.as_ref().is_some_and(|p| matches!(p.form, PagingForm::Last { .. }));
    // The next page may start after the last row, also of an answer that has become shorter than what is skipped.
    let window = if last {
        Window { skip: 0, take: answer.window.skip.saturating_add(answer.window.take) }
    } else {
        answer.window
    };
    let answer = &Answer { window, ..*answer };
    let Raw { rows, came, body } = raw(catalog, capability, answer)?;
    let after = match (&capability.paging, asked) {
        (Some(paging), Some(asked)) => {
            let page = Page { response, body: &body, rows: came, last: rows.last() };
            paging.after(&catalog.origin, asked.page, &page, asked.seen + came)?
        }
        _ => After::End,
    };
    Ok(Decoded { rows, skipped: window.skip.min(came), came, after })
}

/// Rows, how many there were, and what of the answer paging reads.
struct Raw {
    rows: Vec<Row>,
    came: usize,
    body: Value,
}

fn raw(catalog: &Catalog, capability: &Capability, answer: &Answer<'_>) -> Result<Raw, DecodeError> {
    let Some(entity) = catalog.entity(&capability.returns) else {
        return Err(DecodeError::NoEntity(capability.returns.clone()));
    };
    let shape = Shape::of(catalog, entity);
    let reader = Reader::new(&shape, answer, capability.kind.is_list());
    match Way::of(catalog, capability) {
        Some(way) => direct::read(&way, catalog, capability, &reader),
        None => tree::read(catalog, capability, &reader),
    }
}

fn lacking(rows: &Rows) -> DecodeError {
    DecodeError::NoRows(rows.at.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | "))
}

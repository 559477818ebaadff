//! Decoding: an answer to rows of an entity, with each value found by its path and checked against its type.
//! Invariant: a decoded row has every field of its entity in the entity's order, with `null` for values that the answer
//! lacks, and a complete key.

mod item;
mod row;
mod row_layout;
mod stream;
#[cfg(test)]
mod tests;
mod tree;
mod visitor;

use base::Response;
use serde_json::Value;

use crate::bind::Args;
use crate::model::{Capability, Catalog, Row, Rows, Transport};
use crate::paging::{NextPage, Page, PageRequest, PagingError, PagingForm};
use crate::types::TypeError;
use row::RowReader;
use row_layout::RowLayout;
use stream::StreamPlan;

/// The rows of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The rows in the window.
    pub rows: Vec<Row>,
    /// The number of rows of the answer before the window.
    pub skipped: usize,
    /// The number of rows of the whole answer, in the window or not.
    pub row_count: usize,
    /// The next page, or the end of the list. It is the end if the capability has no pages.
    pub next: NextPage,
}

/// The page that an answer is.
#[derive(Debug, Clone, Copy)]
pub struct RequestedPage<'a> {
    pub page: &'a PageRequest,
    /// The number of rows of all pages before this one.
    pub rows_before: usize,
}

/// The rows of an answer that the caller needs. The others are counted, but neither stored nor checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowWindow {
    pub skip: usize,
    pub take: usize,
}

impl RowWindow {
    /// Every row of the answer.
    pub const ALL: RowWindow = RowWindow { skip: 0, take: usize::MAX };

    fn contains(self, index: usize) -> bool {
        index >= self.skip && index - self.skip < self.take
    }
}

/// An answer, and the call that it answers.
#[derive(Debug, Clone, Copy)]
pub struct DecodeInput<'a> {
    pub response: &'a Response,
    /// The arguments of the call. Parts of the key that the answer leaves out are taken from here.
    pub args: &'a Args,
    /// The requested page, if the capability has pages.
    pub page: Option<RequestedPage<'a>>,
    /// The deepest nesting of JSON that is accepted.
    pub max_depth: usize,
    pub window: RowWindow,
}

/// Why an answer has no rows. Most variants mean that the API does not answer as its catalog says.
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
    /// The API answered with status 200, and the answer says that the call failed.
    #[error(transparent)]
    Refused(ApiRefusal),
}

/// A failure that the API reports in an answer with status 200.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the API refused: {message}")]
pub struct ApiRefusal {
    /// The API's own words, on one line and shortened.
    pub message: String,
    /// The API's own word for the kind of failure, such as `NOT_FOUND`.
    pub code: Option<String>,
}

/// Decodes the answer to a call of `capability`.
pub fn decode(catalog: &Catalog, capability: &Capability, input: &DecodeInput<'_>) -> Result<Decoded, DecodeError> {
    let DecodeInput { response, page, max_depth, .. } = *input;
    let gives_no_rows = !capability.gives_rows();
    let no_rows = Decoded { rows: Vec::new(), skipped: 0, row_count: 0, next: NextPage::End };
    // Without rows the body is only read to find a refusal. If the API reports none in a body, it need not be JSON.
    let can_refuse = catalog.failure.is_some() || matches!(capability.transport, Transport::Graphql(_));
    if gives_no_rows && (!can_refuse || response.body.is_empty()) {
        return Ok(no_rows);
    }
    if base::depth_exceeds(&response.body, max_depth) {
        return Err(DecodeError::TooDeep(max_depth));
    }
    if gives_no_rows {
        let body: Value = serde_json::from_slice(&response.body).map_err(DecodeError::NotJson)?;
        return match find_refusal(catalog, capability, &body) {
            Some(refusal) => Err(DecodeError::Refused(refusal)),
            None => Ok(no_rows),
        };
    }
    // The next page may start after the last row, so that row is decoded even if every row of the answer is skipped.
    let needs_last_row = capability.paging.as_ref().is_some_and(|p| matches!(p.form, PagingForm::Last { .. }));
    let window = if needs_last_row {
        RowWindow { skip: 0, take: input.window.skip.saturating_add(input.window.take) }
    } else {
        input.window
    };
    let RowsAndBody { rows, row_count, body } = read_rows(catalog, capability, &DecodeInput { window, ..*input })?;
    let next = match (&capability.paging, page) {
        (Some(paging), Some(requested)) => {
            let page = Page { response, body: &body, rows: row_count, last: rows.last() };
            paging.next_page(&catalog.origin, requested.page, &page, requested.rows_before + row_count)?
        }
        _ => NextPage::End,
    };
    Ok(Decoded { rows, skipped: window.skip.min(row_count), row_count, next })
}

/// The rows of an answer, and the rest of it for paging.
struct RowsAndBody {
    /// The rows in the window.
    rows: Vec<Row>,
    /// The number of rows of the whole answer.
    row_count: usize,
    /// The body, with at least the members that paging reads.
    body: Value,
}

fn read_rows(catalog: &Catalog, capability: &Capability, input: &DecodeInput<'_>) -> Result<RowsAndBody, DecodeError> {
    let Some(entity) = catalog.entity(&capability.returns) else {
        return Err(DecodeError::NoEntity(capability.returns.clone()));
    };
    let layout = RowLayout::new(catalog, entity);
    let reader = RowReader::new(&layout, input, capability.kind.is_list());
    match StreamPlan::new(catalog, capability) {
        Some(plan) => stream::read(&plan, catalog, capability, &reader),
        None => tree::read(catalog, capability, &reader),
    }
}

/// Returns the failure that a body reports: the first of GraphQL's `errors`, or the catalog's `failure` flag such as Slack's
/// `ok: false`.
fn find_refusal(catalog: &Catalog, capability: &Capability, body: &Value) -> Option<ApiRefusal> {
    if let Transport::Graphql(_) = capability.transport
        && let Some(first) = body.get("errors").and_then(Value::as_array).and_then(|errors| errors.first())
    {
        let message = first.get("message").and_then(Value::as_str).unwrap_or("no message");
        let code_paths = ["/extensions/code", "/extensions/type", "/type"];
        let code = code_paths.iter().find_map(|path| first.pointer(path)?.as_str());
        return Some(ApiRefusal { message: one_line(message), code: code.map(one_line) });
    }
    let failure = catalog.failure.as_ref()?;
    let has_failed = failure.flag.find(body).is_some_and(|flag| *flag == Value::Bool(false));
    has_failed.then(|| {
        let message_value = failure.message.find(body);
        let message = message_value.as_deref().and_then(Value::as_str).unwrap_or("no message");
        // Such an API has one text for both, for example `channel_not_found`.
        ApiRefusal { message: one_line(message), code: Some(one_line(message)) }
    })
}

/// Returns an API's text on one line and shortened, because it is shown in messages and logs.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect()
}

fn no_rows_error(rows: &Rows) -> DecodeError {
    DecodeError::NoRows(rows.at.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | "))
}

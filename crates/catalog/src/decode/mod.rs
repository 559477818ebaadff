//! Decoding: makes the rows of an entity from an answer. Each field's value is found by its path and checked against
//! its type.
//! Invariant: a decoded row has every field of its entity, in the entity's order, and a complete key. A field that
//! the answer lacks is `null`.

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

use crate::bind::{Args, BindInput, bind};
use crate::model::{Capability, Catalog, Row, Rows, Transport};
use crate::paging::{NextPage, Page, PageAddress, PageRequest, PagingError, PagingForm};
use crate::types::TypeError;
use row::RowReader;
use row_layout::RowLayout;
use stream::StreamPlan;

/// The decoded part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The rows inside the window that the caller requested.
    pub rows: Vec<Row>,
    /// The number of rows in the answer before the first row of `rows`.
    pub skipped: usize,
    /// The number of all rows in the answer, inside and outside of the window.
    pub row_count: usize,
    /// The next page, or the end of the list. A capability without pages always has the end here.
    pub next: NextPage,
}

/// The page that was requested, and its position in the list.
#[derive(Debug, Clone, Copy)]
pub struct RequestedPage<'a> {
    pub page: &'a PageRequest,
    /// The number of rows of all pages before this one.
    pub rows_before: usize,
}

/// The rows of an answer that the caller needs. The other rows are counted, but neither stored nor checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowWindow {
    /// The number of rows before the window.
    pub skip: usize,
    /// The maximum number of rows in the window.
    pub take: usize,
}

impl RowWindow {
    /// Every row of the answer.
    pub const ALL: RowWindow = RowWindow { skip: 0, take: usize::MAX };

    fn contains(self, index: usize) -> bool {
        index >= self.skip && index - self.skip < self.take
    }
}

/// An answer, and the facts about its call that decoding needs.
#[derive(Debug, Clone, Copy)]
pub struct DecodeInput<'a> {
    pub response: &'a Response,
    /// The arguments of the call. If the answer leaves out a part of the key, the part is taken from these arguments.
    pub args: &'a Args,
    /// The requested page, if the capability has pages.
    pub page: Option<RequestedPage<'a>>,
    /// The maximum nesting depth of arrays and objects in the answer.
    pub max_depth: usize,
    pub window: RowWindow,
}

/// Why an answer cannot be decoded. Most variants mean that the answer differs from the description in the catalog.
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
    /// The API answered with status 200, but the body reports that the call failed.
    #[error(transparent)]
    Refused(ApiRefusal),
}

/// A failure that the API reports in an answer with status 200.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the API refused: {message}")]
pub struct ApiRefusal {
    /// The API's message, on one line and shortened.
    pub message: String,
    /// The API's code for the kind of failure, such as `NOT_FOUND`.
    pub code: Option<String>,
}

/// Decodes the answer to a call of `capability`.
pub fn decode(catalog: &Catalog, capability: &Capability, input: &DecodeInput<'_>) -> Result<Decoded, DecodeError> {
    let DecodeInput { response, page, max_depth, .. } = *input;
    let gives_no_rows = !capability.gives_rows();
    let no_rows = Decoded { rows: Vec::new(), skipped: 0, row_count: 0, next: NextPage::End };
    // If the answer has no rows, the body is parsed only to find a reported failure. If the API never reports a
    // failure in a body, the body may be anything, so it is not parsed.
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
    // The parameter for the next page is a field of the last row, so the last row is decoded even if the window skips
    // all rows.
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
            let address = || page_address(catalog, capability, input.args, requested.page);
            paging.next_page(address, requested.page, &page, requested.rows_before + row_count)?
        }
        _ => NextPage::End,
    };
    Ok(Decoded { rows, skipped: window.skip.min(row_count), row_count, next })
}

/// Returns the address of a page. It is bound again from the arguments of the call, because an answer does not contain
/// the address of its request.
fn page_address<'a>(
    catalog: &'a Catalog,
    capability: &Capability,
    args: &Args,
    requested: &PageRequest,
) -> PageAddress<'a> {
    let input = BindInput { page: Some(requested), ..BindInput::new(args) };
    // Without a request there was no answer either, so the fallback only keeps this function free of errors.
    let (path, query) = bind(catalog, capability, &input)
        .map_or_else(|_| (format!("{}/", catalog.base_path), Vec::new()), |request| (request.path, request.query));
    PageAddress { origin: &catalog.origin, path, query }
}

/// The rows of an answer, and the part of its body that paging reads.
struct RowsAndBody {
    /// The rows inside the requested window.
    rows: Vec<Row>,
    /// The number of rows of the whole answer.
    row_count: usize,
    /// The parsed body, with at least the members that paging reads.
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

/// Returns the failure that a body reports: the first error in GraphQL's `errors`, or a failure by the flag that the
/// catalog names, such as Slack's `ok: false`.
fn find_refusal(catalog: &Catalog, capability: &Capability, body: &Value) -> Option<ApiRefusal> {
    if let Transport::Graphql(_) = capability.transport
        && let Some(first) = body.get("errors").and_then(Value::as_array).and_then(|errors| errors.first())
    {
        let message = first.get("message").and_then(Value::as_str).unwrap_or("no message");
        let code_paths = ["/extensions/code", "/extensions/type", "/type"];
        let code = code_paths.iter().find_map(|path| first.pointer(path)?.as_str());
        return Some(ApiRefusal { message: shorten_to_one_line(message), code: code.map(shorten_to_one_line) });
    }
    let failure = catalog.failure.as_ref()?;
    let has_failed = failure.flag.find(body).is_some_and(|flag| *flag == Value::Bool(false));
    has_failed.then(|| {
        let message_value = failure.message.find(body);
        let message = message_value.as_deref().and_then(Value::as_str).unwrap_or("no message");
        // An API with a failure flag has one text that is both the message and the code, for example
        // `channel_not_found`.
        ApiRefusal { message: shorten_to_one_line(message), code: Some(shorten_to_one_line(message)) }
    })
}

/// Returns a text of an API on one line and shortened, so that it fits into a message or a log line.
fn shorten_to_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect()
}

fn no_rows_error(rows: &Rows) -> DecodeError {
    DecodeError::NoRows(rows.at.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | "))
}

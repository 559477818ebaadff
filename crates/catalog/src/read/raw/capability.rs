//! The shape of a capability in the YAML: its kind, its entity and its mapping to a request.
//! Invariant: these types accept any combination of known keys. `resolve` checks which keys go together.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::declaration::{Declaration, SlotShape};

/// An operation of the API. Exactly one of the eight kinds names its entity, and exactly one of `http` and `graphql` says how
/// the request is made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capability {
    /// Lists rows.
    pub query: Option<String>,
    /// Finds rows by words.
    pub search: Option<String>,
    /// Reads one row by its key.
    pub get: Option<String>,
    /// Reads the only row that there is, such as the caller's own account.
    pub singleton: Option<String>,
    pub create: Option<String>,
    pub update: Option<String>,
    pub delete: Option<String>,
    /// Does something else to a row, or to the API as a whole.
    pub action: Option<String>,
    #[serde(default)]
    pub about: String,
    /// Synonyms for the operation, for exposure and discovery.
    #[serde(default)]
    pub words: Vec<String>,
    /// Of a search: the parameter that takes the words.
    pub text: Option<String>,
    #[serde(default)]
    #[schemars(with = "IndexMap<String, SlotShape>")]
    pub params: IndexMap<String, Declaration>,
    /// `GET /tickets/{number}?state={state}`
    pub http: Option<String>,
    /// Headers of this request, with holes.
    #[serde(default)]
    pub headers: IndexMap<String, String>,
    /// JSON, with holes: `{title: "{title}"}`.
    pub body: Option<Value>,
    /// A form instead of JSON.
    pub form: Option<Value>,
    /// The parts of a multipart body, by name.
    pub multipart: Option<IndexMap<String, PartShape>>,
    /// One value that is sent as its text or its bytes.
    pub raw: Option<String>,
    /// The content type of `body` or `raw`.
    pub content_type: Option<String>,
    /// A GraphQL document. At `...Entity` the needed fields are selected.
    pub graphql: Option<String>,
    /// The variables of the document that are not filled by a parameter of the same name.
    #[serde(default)]
    pub variables: IndexMap<String, Value>,
    /// Where the rows of a list are in the answer.
    pub rows: Option<Paths>,
    /// An answer without the list is an empty list.
    #[serde(default)]
    pub sparse: bool,
    /// Where the one row is in the answer.
    pub row: Option<Paths>,
    /// Where the row is inside each item.
    pub item: Option<String>,
    /// The items are scalars. Each is this field of a row.
    pub wrap: Option<String>,
    /// The items are the values of an object. Its keys are this field.
    pub entries: Option<String>,
    /// The answer is an object of arrays. Each array is a column.
    #[serde(default)]
    pub columns: bool,
    /// `none`: the answer holds no row.
    pub answer: Option<Answer>,
    /// Of an action: the entity of the row in its answer.
    pub returns: Option<String>,
    /// The fields that the answer carries, if it does not carry all of them.
    pub gives: Option<Vec<String>>,
    pub paging: Option<Paging>,
    pub idempotency: Option<IdempotencyShape>,
    pub probe: Option<Probe>,
    /// The capability that undoes this write.
    pub undo: Option<String>,
    /// One sentence about what changes, for the plan.
    pub effect: Option<String>,
    /// Several calls may be open at the same time.
    #[serde(default)]
    pub concurrent: bool,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    None,
}

/// One path, or alternative paths of which the first one that leads to a value counts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "write a path, or several: `[a, b]`")]
pub enum Paths {
    One(String),
    Several(Vec<String>),
}

/// A value, or a file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "write a value (`\"{note}\"`), or a file: `{value: \"{content}\", file: NAME, content_type: text/plain}`"
)]
pub enum PartShape {
    Value(String),
    File(FileShape),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileShape {
    /// The content of the file, with holes.
    pub value: String,
    /// The name of the file, with holes.
    pub file: Option<String>,
    pub content_type: Option<String>,
}

/// Where the request carries the key by which the API recognises a repeated write, or `natural` if repeating the write changes
/// nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum IdempotencyShape {
    Header(String),
    Query(String),
    Body(String),
    Natural,
}

/// A read that finds out whether a write with a lost answer happened.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    pub query: Option<String>,
    pub get: Option<String>,
    /// The fields of the row that must equal the parameters of the same names.
    #[serde(default, rename = "match")]
    pub fields: Vec<String>,
}

/// How a list is read page by page. Exactly one of the first seven keys says which form it has.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paging {
    /// The parameter that takes the number of a page.
    pub page: Option<String>,
    /// The parameter that takes the number of rows to skip.
    pub offset: Option<String>,
    /// The path of the next page's cursor.
    pub cursor: Option<String>,
    /// `next`: the `Link` header has the address of the next page.
    pub link: Option<LinkRel>,
    /// The path of the next page's URL.
    pub next: Option<String>,
    /// The field of the last row after which the next page starts.
    pub last: Option<String>,
    /// The path of a GraphQL connection.
    pub connection: Option<String>,
    /// The parameter that takes the cursor, or the field of the last row.
    pub send: Option<String>,
    /// The number of the first page.
    pub from: Option<u64>,
    pub size: Option<Size>,
    /// The path of the number of rows of the whole list.
    pub total: Option<String>,
    /// The path of a flag that says whether there is a next page.
    pub more: Option<String>,
    /// The part of the request that carries these parameters. The default is the query.
    #[serde(rename = "in")]
    pub place: Option<PagingPlace>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PagingPlace {
    Query,
    Body,
}

/// The only value of `link`, so that the line reads `link: next`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LinkRel {
    Next,
}

/// The parameter for the number of rows of a page.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// The name of the parameter.
    pub send: String,
    /// The largest number that the API accepts.
    pub max: usize,
}

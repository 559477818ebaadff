//! A capability as written: what it does, to what, and how it travels.
//! Invariant: shapes only; which keys go together is for `resolve` to say.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::slot::{Slot, SlotShape};

/// Exactly one of the eight kinds names the entity; exactly one of `http` and `graphql` says how it travels.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capability {
    /// Lists rows.
    pub query: Option<String>,
    /// Finds rows by words.
    pub search: Option<String>,
    /// Reads one row by its key.
    pub get: Option<String>,
    /// Reads the one row there is, such as the caller's own account.
    pub singleton: Option<String>,
    pub create: Option<String>,
    pub update: Option<String>,
    pub delete: Option<String>,
    /// Does something else to a row, or to the API as a whole.
    pub action: Option<String>,
    #[serde(default)]
    pub about: String,
    /// Other words for what it does, for exposure and discovery.
    #[serde(default)]
    pub words: Vec<String>,
    /// Of a search: the parameter that takes the words.
    pub text: Option<String>,
    #[serde(default)]
    #[schemars(with = "IndexMap<String, SlotShape>")]
    pub params: IndexMap<String, Slot>,
    /// `GET /tickets/{number}?state={state}`
    pub http: Option<String>,
    /// Headers of this request, with holes.
    #[serde(default)]
    pub headers: IndexMap<String, String>,
    /// JSON, with holes: `{title: "{title}"}`.
    pub body: Option<Value>,
    /// A form instead of JSON.
    pub form: Option<Value>,
    pub multipart: Option<IndexMap<String, PartShape>>,
    /// One value as it is.
    pub raw: Option<String>,
    pub content_type: Option<String>,
    /// A GraphQL document; `...Entity` is where the needed fields are selected.
    pub graphql: Option<String>,
    /// Variables of the document that are not simply a parameter of the same name.
    #[serde(default)]
    pub variables: IndexMap<String, Value>,
    /// Where the rows of a list are in the answer.
    pub rows: Option<Paths>,
    /// A list that the answer leaves out is empty.
    #[serde(default)]
    pub sparse: bool,
    /// Where the one row is in the answer.
    pub row: Option<Paths>,
    /// Where the row is inside each item.
    pub item: Option<String>,
    /// The items are scalars: each is this field of a row.
    pub wrap: Option<String>,
    /// The items are an object's values: its keys are this field.
    pub entries: Option<String>,
    /// The answer is an object of arrays, each a column.
    #[serde(default)]
    pub columns: bool,
    /// `none`: nothing is read from the answer.
    pub answer: Option<Answer>,
    /// Of an action: the entity that its answer's row is of.
    pub returns: Option<String>,
    /// The fields that the answer carries, where it is not all of them.
    pub gives: Option<Vec<String>>,
    pub paging: Option<Paging>,
    pub idempotency: Option<IdempotencyShape>,
    pub probe: Option<Probe>,
    /// The capability that takes this back.
    pub undo: Option<String>,
    /// What changes, in words, for the plan.
    pub effect: Option<String>,
    /// Several may be under way at once.
    #[serde(default)]
    pub concurrent: bool,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    None,
}

/// One path, or several of which the first that leads to something counts.
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
    pub value: String,
    pub file: Option<String>,
    pub content_type: Option<String>,
}

/// Where the key goes by which the API recognises a repeated write; or `natural`, when doing it twice changes nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum IdempotencyShape {
    Header(String),
    Query(String),
    Body(String),
    Natural,
}

/// A read that tells whether a lost write happened.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    pub query: Option<String>,
    pub get: Option<String>,
    /// Fields of the row that must equal the parameters of the same name.
    #[serde(default, rename = "match")]
    pub fields: Vec<String>,
}

/// Exactly one of the first seven says which form it is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paging {
    /// The parameter that takes a page's number.
    pub page: Option<String>,
    /// The parameter that takes how many rows to skip.
    pub offset: Option<String>,
    /// The path of the next page's cursor.
    pub cursor: Option<String>,
    /// `next`: the `Link` header.
    pub link: Option<LinkRel>,
    /// The path of the next page's URL.
    pub next: Option<String>,
    /// The field of the last row that the next page starts after.
    pub last: Option<String>,
    /// The path of a GraphQL connection.
    pub connection: Option<String>,
    /// The parameter that carries a cursor back.
    pub send: Option<String>,
    /// The first page's number.
    pub from: Option<u64>,
    pub size: Option<Size>,
    /// The path of how many rows there are in all.
    pub total: Option<String>,
    /// The path of a flag that says whether there is a next page.
    pub more: Option<String>,
    /// What carries the request for a page; the query unless said otherwise.
    #[serde(rename = "in")]
    pub place: Option<PagingPlace>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PagingPlace {
    Query,
    Body,
}

/// `link: next`, so that the line reads by itself.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LinkRel {
    Next,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Size {
    pub send: String,
    pub max: usize,
}

//! A capability as written: what it does, to what, and how it travels.
//! Invariant: shapes only; which keys go together is for `resolve` to say.

use std::ops::Not;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::declaration::{Declaration, SlotShape};
use crate::model::Kind;

/// Exactly one of the eight kinds names the entity; exactly one of `http` and `graphql` says how it travels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capability {
    /// Lists rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Finds rows by words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// Reads one row by its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub get: Option<String>,
    /// Reads the one row there is, such as the caller's own account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub singleton: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete: Option<String>,
    /// Does something else to a row, or to the API as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Other words for what it does, for exposure and discovery.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// Of a search: the parameter that takes the words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    #[schemars(with = "IndexMap<String, SlotShape>")]
    pub params: IndexMap<String, Declaration>,
    /// `GET /tickets/{number}?state={state}`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// Headers of this request, with holes.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub headers: IndexMap<String, String>,
    /// JSON, with holes: `{title: "{title}"}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// A form instead of JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multipart: Option<IndexMap<String, PartShape>>,
    /// One value as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// A GraphQL document; `...Entity` is where the needed fields are selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graphql: Option<String>,
    /// Variables of the document that are not simply a parameter of the same name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub variables: IndexMap<String, Value>,
    /// Where the rows of a list are in the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<Paths>,
    /// A list that the answer leaves out is empty.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub sparse: bool,
    /// Where the one row is in the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<Paths>,
    /// Where the row is inside each item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The items are scalars: each is this field of a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrap: Option<String>,
    /// The items are an object's values: its keys are this field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<String>,
    /// The answer is an object of arrays, each a column.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub columns: bool,
    /// `none`: nothing is read from the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Of an action: the entity that its answer's row is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returns: Option<String>,
    /// The fields that the answer carries, where it is not all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gives: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paging: Option<Paging>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<IdempotencyShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
    /// The capability that takes this back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// What changes, in words, for the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// Several may be under way at once.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub concurrent: bool,
}

impl Capability {
    /// Returns a capability of this kind on this entity that says nothing else yet.
    pub fn new(kind: Kind, entity: String) -> Self {
        let mut capability = Self::default();
        let key = match kind {
            Kind::Query => &mut capability.query,
            Kind::Search => &mut capability.search,
            Kind::Get => &mut capability.get,
            Kind::Singleton => &mut capability.singleton,
            Kind::Create => &mut capability.create,
            Kind::Update => &mut capability.update,
            Kind::Delete => &mut capability.delete,
            Kind::Action => &mut capability.action,
        };
        *key = Some(entity);
        capability
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    None,
}

/// One path, or several of which the first that leads to something counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "write a path, or several: `[a, b]`")]
pub enum Paths {
    One(String),
    Several(Vec<String>),
}

/// A value, or a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "write a value (`\"{note}\"`), or a file: `{value: \"{content}\", file: NAME, content_type: text/plain}`"
)]
pub enum PartShape {
    Value(String),
    File(FileShape),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileShape {
    pub value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
}

/// Where the key goes by which the API recognises a repeated write; or `natural`, when doing it twice changes nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum IdempotencyShape {
    Header(String),
    Query(String),
    Body(String),
    Natural,
}

/// A read that tells whether a lost write happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub get: Option<String>,
    /// Fields of the row that must equal the parameters of the same name.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "match")]
    pub fields: Vec<String>,
}

/// Exactly one of the first seven says which form it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paging {
    /// The parameter that takes a page's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// The parameter that takes how many rows to skip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<String>,
    /// The path of the next page's cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// `next`: the `Link` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkRel>,
    /// The path of the next page's URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The field of the last row that the next page starts after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// The path of a GraphQL connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    /// The parameter that carries a cursor back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send: Option<String>,
    /// The first page's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// The path of how many rows there are in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<String>,
    /// The path of a flag that says whether there is a next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<String>,
    /// What carries the request for a page; the query unless said otherwise.
    #[serde(skip_serializing_if = "Option::is_none", rename = "in")]
    pub place: Option<PagingPlace>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PagingPlace {
    Query,
    Body,
}

/// `link: next`, so that the line reads by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LinkRel {
    Next,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Size {
    pub send: String,
    pub max: usize,
}

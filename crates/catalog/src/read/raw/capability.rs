//! The shape of a capability in the YAML: the kind, the entity, and the mapping of a call to a request.
//! Invariant: these types accept any combination of known keys. The module `resolve` refuses keys that do not belong
//! together.

use std::ops::Not;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::declaration::{Declaration, SlotShape};
use crate::model::Kind;

/// An operation of the API. Exactly one of the eight kinds names its entity, and exactly one of `http` and `graphql` says how
/// the request is made.
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
    /// Reads the only row that there is, such as the caller's own account.
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
    /// Synonyms for the operation, for exposure and discovery.
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
    /// The parts of a multipart body, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multipart: Option<IndexMap<String, PartShape>>,
    /// One value that is sent as its text or its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// The content type of `body` or `raw`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// A GraphQL document. At `...Entity` the needed fields are selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graphql: Option<String>,
    /// The variables of the document that are not filled by a parameter of the same name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub variables: IndexMap<String, Value>,
    /// Where the rows of a list are in the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<Paths>,
    /// An answer without the list is an empty list.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub sparse: bool,
    /// Where the one row is in the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<Paths>,
    /// Where the row is inside each item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// The items are scalars. Each is this field of a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrap: Option<String>,
    /// The items are the values of an object. Its keys are this field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<String>,
    /// The answer is an object of arrays. Each array is a column.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub columns: bool,
    /// `none`: the answer holds no row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Of an action: the entity of the row in its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returns: Option<String>,
    /// The fields that the answer carries, if it does not carry all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gives: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paging: Option<Paging>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<IdempotencyShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
    /// The seconds after a lost answer after which the API has done the write, or never does it: 1 to 86400. Without it twice
    /// the time limit of a request. The probe looks again after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settles: Option<u32>,
    /// The capability that undoes this write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// One sentence about what changes, for the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// Several calls may be open at the same time.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub concurrent: bool,
}

impl Capability {
    /// Returns a capability that has only the key for this kind, with this entity as its value.
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

/// One path, or alternative paths of which the first one that leads to a value counts.
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
    /// The content of the file, with holes.
    pub value: String,
    /// The name of the file, with holes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
}

/// Where the request carries the key by which the API recognises a repeated write, or `natural` if repeating the write changes
/// nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum IdempotencyShape {
    Header(String),
    Query(String),
    Body(String),
    Natural,
}

/// A read that finds out whether a write with a lost answer happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub get: Option<String>,
    /// The fields of the row that must equal the parameters of the same names.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "match")]
    pub fields: Vec<String>,
}

/// How a list is read page by page. Exactly one of the first seven keys says which form it has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paging {
    /// The parameter that takes the number of a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// The parameter that takes the number of rows to skip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<String>,
    /// The path of the next page's cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// `next`: the `Link` header has the address of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkRel>,
    /// The path of the next page's URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The field of the last row after which the next page starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// The path of a GraphQL connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    /// The parameter that takes the cursor, or the field of the last row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send: Option<String>,
    /// The number of the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// The path of the number of rows of the whole list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<String>,
    /// The path of a flag that says whether there is a next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<String>,
    /// The part of the request that carries these parameters. The default is the query.
    #[serde(skip_serializing_if = "Option::is_none", rename = "in")]
    pub place: Option<PagingPlace>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PagingPlace {
    Query,
    Body,
}

/// The only value of `link`, so that the line reads `link: next`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LinkRel {
    Next,
}

/// The parameter for the number of rows of a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// The name of the parameter.
    pub send: String,
    /// The largest number that the API accepts.
    pub max: usize,
}

//! Capabilities: the operations of an API, each with its mapping, which describes how a call becomes a request.
//! Invariant: every hole (place for a value) of a mapping is filled by a parameter or by a part of the key
//! (`anchor`). Only writes and actions have an `effect`.

use base::Method;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::body::{Body, Document, ValueTemplate};
use crate::paging::Paging;
use crate::path::DataPath;
use crate::template::Template;
use crate::types::{Type, Wire};

/// One operation of an API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capability {
    pub name: String,
    pub kind: Kind,
    /// The name of the entity to which the capability belongs.
    pub entity: String,
    pub about: String,
    /// Synonyms of the operation's name, by which exposure and discovery find the capability.
    pub words: Vec<String>,
    /// The parameters by name. They do not include the parts of the key in `anchor`. A get has the parts of the key
    /// as parameters.
    pub params: IndexMap<String, Param>,
    /// The parts of the entity's key that the call takes from the instance before `.method(…)`. The list is empty if
    /// a program calls the operation on the entity itself.
    pub anchor: Vec<String>,
    /// The name of the parameter that takes the words of a search. Only a search has this parameter.
    pub text: Option<String>,
    pub transport: Transport,
    pub rows: Rows,
    /// The name of the entity of the answer's rows. Only a write can have a name here that differs from `entity`.
    pub returns: String,
    /// The names of the fields that the answer contains, or `None` for all fields. The executor reads missing fields
    /// with a get.
    pub gives: Option<Vec<String>>,
    pub paging: Option<Paging>,
    pub effect: Option<EffectProperties>,
}

/// The kind of an operation. The kind determines the form of a call in a program and the effect class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Lists rows.
    Query,
    /// Lists rows that match a text.
    Search,
    /// Reads one row by its key.
    Get,
    /// Reads a row that needs no key, because there is only one, such as the caller's own account.
    Singleton,
    Create,
    Update,
    Delete,
    /// Performs any other operation.
    Action,
}

/// The class of a call's effect on the API: none, a write to rows, or any other effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    Read,
    Write,
    SideEffect,
}

/// A parameter of a capability.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Param {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: Type,
    pub required: bool,
    pub role: Role,
    pub about: String,
    /// How several values are written in a query.
    pub list: ListStyle,
    pub wire: Wire,
}

/// The purpose of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Narrows the rows of a read, or is an input of a write.
    #[default]
    Filter,
    /// Names the parent that a list belongs to.
    Scope,
    /// Orders the rows at the API.
    Sort,
    /// Sets the number of rows of a page.
    PageSize,
    /// Changes how the API answers, not which rows it gives.
    Control,
}

/// How several values of one parameter are written in a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ListStyle {
    /// `a=1,2`
    #[default]
    Comma,
    /// `a=1&a=2`
    Repeat,
    /// `a[]=1&a[]=2`
    Brackets,
    /// `a=1 2`
    Space,
}

/// The mapping of a call to a request, by protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    Http(Http),
    Graphql(Graphql),
}

impl Transport {
    /// Returns the templates outside the path that combine text with holes.
    pub fn text_templates(&self) -> Vec<&Template> {
        match self {
            Transport::Http(http) => {
                let pairs = http.query.iter().chain(&http.headers).map(|(_, template)| template);
                pairs.chain(http.body.iter().flat_map(Body::text_templates)).collect()
            }
            Transport::Graphql(graphql) => graphql.variables.values().flat_map(ValueTemplate::text_templates).collect(),
        }
    }
}

/// The mapping of a call to an HTTP request: templates whose holes are filled with the arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Http {
    pub method: Method,
    pub path: Template,
    /// The names and value templates of the query. A pair is left out if a hole has no value.
    pub query: Vec<(String, Template)>,
    /// The names and value templates of the headers. A header is left out if a hole has no value.
    pub headers: Vec<(String, Template)>,
    pub body: Option<Body>,
}

/// The mapping of a call to a GraphQL request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Graphql {
    /// The path of the endpoint, after the catalog's base path.
    pub path: String,
    pub document: Document,
    /// The value templates of the document's variables. A variable is left out if its holes have no value.
    pub variables: IndexMap<String, ValueTemplate>,
}

/// The place and the form of the rows in an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rows {
    /// Alternative paths of the rows. The first path with a value is used. The empty path means the whole body.
    pub at: Vec<DataPath>,
    /// The path of the row inside each item of the list, if the item is not the row itself.
    pub item: Option<DataPath>,
    pub form: RowForm,
    /// Whether an answer without the list is decoded as an empty list. Otherwise such an answer is an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sparse: bool,
}

/// The JSON structure of the rows in an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowForm {
    /// An array of rows.
    List,
    /// An object, which is the only row.
    One,
    /// An array of scalars. Each scalar becomes a row with only this field.
    Wrap(String),
    /// An object whose values are the rows. The key of each value becomes this field of the row.
    Entries(String),
    /// An object of arrays with the same length. Each array has the values of one field.
    Columns,
    /// The answer has no rows.
    Nothing,
}

/// The properties of a write: how the executor can retry it, verify it after a lost answer, and undo it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EffectProperties {
    /// The author's sentence about the change in the API. A plan shows this sentence.
    #[serde(rename = "says")]
    pub summary: String,
    pub idempotency: Option<Idempotency>,
    pub probe: Option<Probe>,
    /// The name of the capability that undoes the write. If it is `None`, the plan warns that the write cannot be
    /// undone.
    pub undo: Option<String>,
    /// Whether several calls of this write may be sent at the same time.
    pub concurrent: bool,
    /// The seconds after the end of a request after which the API has done what it will do. If it is `None`, twice the time limit
    /// of a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settles: Option<u32>,
}

/// The part of the request that has the idempotency key, by which an API recognises a repeated write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Idempotency {
    Header(String),
    Query(String),
    /// A path inside a JSON or form body, or a GraphQL variable.
    Body(String),
    /// The request has no key, because the write sets a state and repeating it changes nothing.
    Natural,
}

/// The read that shows whether a write with a lost answer happened. The executor compares the rows of this read with
/// the write's arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    pub capability: String,
    /// The fields of the row that must equal the parameters of the same names.
    pub fields: Vec<String>,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 8] =
        [Kind::Query, Kind::Search, Kind::Get, Kind::Singleton, Kind::Create, Kind::Update, Kind::Delete, Kind::Action];

    /// Returns the keyword of the kind in the YAML format.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Query => "query",
            Kind::Search => "search",
            Kind::Get => "get",
            Kind::Singleton => "singleton",
            Kind::Create => "create",
            Kind::Update => "update",
            Kind::Delete => "delete",
            Kind::Action => "action",
        }
    }

    /// Returns the effect class of calls of this kind.
    pub fn class(self) -> EffectClass {
        match self {
            Kind::Query | Kind::Search | Kind::Get | Kind::Singleton => EffectClass::Read,
            Kind::Create | Kind::Update | Kind::Delete => EffectClass::Write,
            Kind::Action => EffectClass::SideEffect,
        }
    }

    /// Returns whether calls of this kind change nothing.
    pub fn is_read(self) -> bool {
        self.class() == EffectClass::Read
    }

    /// Returns whether calls of this kind return a list of rows.
    pub fn is_list(self) -> bool {
        matches!(self, Kind::Query | Kind::Search)
    }
}

impl Capability {
    /// Returns the required parameters.
    pub fn required(&self) -> impl Iterator<Item = &Param> {
        self.params.values().filter(|p| p.required)
    }

    /// Returns the name by which a program calls the capability as a method: the capability's name without the
    /// entity's name. The method of `ticket_close` is `close`.
    pub fn method_name(&self) -> &str {
        let name = self.name.as_str();
        // The checker calls this for every method of an entity, so the comparison with the entity's name in snake
        // case allocates nothing.
        let entity_length = snake_case(&self.entity).map(char::len_utf8).sum::<usize>();
        let is_entity = |part: &str| part.chars().eq(snake_case(&self.entity));
        let after_entity = || {
            let (first, rest) = name.split_at_checked(entity_length)?;
            rest.strip_prefix(['_', '-']).filter(|_| is_entity(first))
        };
        let before_entity = || {
            let (rest, last) = name.split_at_checked(name.len().checked_sub(entity_length)?)?;
            rest.strip_suffix(['_', '-']).filter(|_| is_entity(last))
        };
        after_entity().or_else(before_entity).filter(|rest| !rest.is_empty()).unwrap_or(name)
    }

    /// Returns whether a program must name an instance to call the capability. The taught table shows such a
    /// capability as a method of an instance. The reader has checked that a parameter or the key fills each hole, so
    /// a call needs exactly the parts in `anchor`.
    pub fn needs_anchor(&self) -> bool {
        self.kind != Kind::Get && !self.anchor.is_empty()
    }

    /// Returns whether a program may set this parameter to `null`, which clears the value in the API. This is allowed
    /// for an optional parameter of an update, if the mapping sends the parameter as a whole JSON value.
    pub fn accepts_null(&self, param: &str) -> bool {
        let has_hole = |value: &ValueTemplate| {
            value.whole_value_holes().iter().any(|hole| hole.param == param && hole.part.is_none())
        };
        let is_optional = self.params.get(param).is_some_and(|p| !p.required);
        let is_sent_as_json = || match &self.transport {
            Transport::Http(http) => matches!(&http.body, Some(Body::Json { shape, .. }) if has_hole(shape)),
            Transport::Graphql(graphql) => graphql.variables.values().any(has_hole),
        };
        self.kind == Kind::Update && is_optional && is_sent_as_json()
    }

    /// Returns whether the answer contains rows.
    pub fn gives_rows(&self) -> bool {
        self.rows.form != RowForm::Nothing
    }
}

/// Returns the characters of a name in snake case: `PullRequest` becomes `pull_request`.
fn snake_case(name: &str) -> impl Iterator<Item = char> {
    let mut after_lower_case = false;
    name.chars().flat_map(move |c| {
        let separator = (c.is_ascii_uppercase() && after_lower_case).then_some('_');
        after_lower_case = c.is_ascii_lowercase() || c.is_ascii_digit();
        separator.into_iter().chain([c.to_ascii_lowercase()])
    })
}

#[cfg(test)]
mod tests {
    fn snake_case(name: &str) -> String {
        super::snake_case(name).collect()
    }

    #[test]
    fn an_entity_name_is_compared_in_snake_case() {
        assert_eq!(snake_case("PullRequest"), "pull_request");
        assert_eq!(snake_case("Ticket"), "ticket");
        assert_eq!(snake_case("HTTPRoute"), "httproute");
        assert_eq!(snake_case("pull_request"), "pull_request");
    }
}

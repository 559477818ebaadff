//! What an API can be asked to do, and how each request travels.
//! Invariant: every hole of a mapping is a parameter or a part of the key (`anchor`); only writes and actions have an `Effect`.

use base::Method;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::shape::{Body, Document, Shape};
use crate::paging::Paging;
use crate::path::DataPath;
use crate::template::Template;
use crate::types::{Type, Wire};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capability {
    pub name: String,
    pub kind: Kind,
    pub entity: String,
    pub about: String,
    /// Other words for what it does, for exposure and discovery.
    pub words: Vec<String>,
    /// Without the parts of the key that the instance fills (`anchor`), except for a get, whose parameters are the key.
    pub params: IndexMap<String, Param>,
    /// Parts of the entity's key that the instance fills: empty for what is asked of the type as a whole.
    pub anchor: Vec<String>,
    /// Which parameter takes the words of a search.
    pub text: Option<String>,
    pub transport: Transport,
    pub rows: Rows,
    /// The entity that the answer's rows are of; the capability's own, unless an action gives something else.
    pub returns: String,
    /// The fields that the answer carries, where it is not all of them: the others take a get.
    pub gives: Option<Vec<String>>,
    pub paging: Option<Paging>,
    pub effect: Option<Effect>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Query,
    Search,
    Get,
    Singleton,
    Create,
    Update,
    Delete,
    Action,
}

/// What a call does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectClass {
    Read,
    Write,
    SideEffect,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Param {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: Type,
    pub required: bool,
    pub role: Role,
    pub about: String,
    /// How several values travel in a query.
    pub list: ListStyle,
    pub wire: Wire,
}

/// What a parameter is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Narrows the rows of a read; an input of a write.
    #[default]
    Filter,
    /// Says where to look: the parent that a list belongs to.
    Scope,
    /// Orders the rows at the API.
    Sort,
    /// Rows per page.
    PageSize,
    /// Changes how the API answers, not which rows.
    Control,
}

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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    Http(Http),
    Graphql(Graphql),
}

impl Transport {
    /// The templates that make text around holes, outside the path.
    pub fn texts(&self) -> Vec<&Template> {
        match self {
            Transport::Http(http) => {
                let pairs = http.query.iter().chain(&http.headers).map(|(_, template)| template);
                pairs.chain(http.body.iter().flat_map(Body::texts)).collect()
            }
            Transport::Graphql(graphql) => graphql.variables.values().flat_map(Shape::texts).collect(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Http {
    pub method: Method,
    pub path: Template,
    /// A pair whose holes have no value is left out.
    pub query: Vec<(String, Template)>,
    /// A header whose holes have no value is left out.
    pub headers: Vec<(String, Template)>,
    pub body: Option<Body>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Graphql {
    /// Of the endpoint, after the catalog's base path.
    pub path: String,
    pub document: Document,
    /// A variable whose holes have no value is left out.
    pub variables: IndexMap<String, Shape>,
}

/// Where the rows are in an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rows {
    /// The first of these that leads to something; an empty path is the whole body.
    pub at: Vec<DataPath>,
    /// Where the row is inside each item.
    pub item: Option<DataPath>,
    pub form: RowForm,
    /// A list that the answer leaves out is empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sparse: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowForm {
    /// An array of rows.
    List,
    /// One row.
    One,
    /// An array of scalars, each the named field of a row.
    Wrap(String),
    /// An object whose keys are the named field and whose values are the rows.
    Entries(String),
    /// An object of arrays of one length, each a column.
    Columns,
    /// Nothing is read from the answer.
    Nothing,
}

/// What makes a write safe to retry, to find out about and to take back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Effect {
    /// What changes, in words, for the plan.
    pub says: String,
    pub idempotency: Option<Idempotency>,
    pub probe: Option<Probe>,
    /// The capability that takes it back; without one the plan says that it cannot be undone.
    pub undo: Option<String>,
    /// Several may be under way at once.
    pub concurrent: bool,
}

/// Where the key goes by which an API recognises a repeated write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Idempotency {
    Header(String),
    Query(String),
    /// A path inside a JSON or form body, or a GraphQL variable.
    Body(String),
    /// The write sets a state: doing it again changes nothing.
    Natural,
}

/// How to find out whether a lost write happened: a read whose rows are compared with what was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    pub capability: String,
    /// Fields of the row that must equal the parameters of the same name.
    pub fields: Vec<String>,
}

impl Kind {
    pub const ALL: [Kind; 8] =
        [Kind::Query, Kind::Search, Kind::Get, Kind::Singleton, Kind::Create, Kind::Update, Kind::Delete, Kind::Action];

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

    pub fn class(self) -> EffectClass {
        match self {
            Kind::Query | Kind::Search | Kind::Get | Kind::Singleton => EffectClass::Read,
            Kind::Create | Kind::Update | Kind::Delete => EffectClass::Write,
            Kind::Action => EffectClass::SideEffect,
        }
    }

    pub fn is_read(self) -> bool {
        self.class() == EffectClass::Read
    }

    /// Whether it gives many rows.
    pub fn is_list(self) -> bool {
        matches!(self, Kind::Query | Kind::Search)
    }
}

impl Capability {
    pub fn required(&self) -> impl Iterator<Item = &Param> {
        self.params.values().filter(|p| p.required)
    }

    /// What a program calls it by: the capability's name without the entity's (`ticket_close` is `close`).
    pub fn method_name(&self) -> &str {
        let name = self.name.as_str();
        // Asked for every method of an entity while a program is checked: nothing is written out to compare it.
        let length = snake(&self.entity).map(char::len_utf8).sum::<usize>();
        let is_entity = |part: &str| part.chars().eq(snake(&self.entity));
        let before = name.split_at_checked(length).filter(|(first, _)| is_entity(first));
        let after = || name.split_at_checked(name.len().checked_sub(length)?).filter(|(_, last)| is_entity(last));
        let short = before
            .and_then(|(_, rest)| rest.strip_prefix(['_', '-']))
            .or_else(|| after().and_then(|(rest, _)| rest.strip_suffix(['_', '-'])));
        short.filter(|rest| !rest.is_empty()).unwrap_or(name)
    }

    /// Whether the table shows it on an instance. How the instance travels (path, body, variable) is no matter here: a strict
    /// catalog says for each hole whether a parameter or the key fills it, so what is taught is what is needed.
    pub fn teaches_anchor(&self) -> bool {
        self.kind != Kind::Get && !self.anchor.is_empty()
    }

    /// Whether a program must name an instance to call it.
    pub fn needs_anchor(&self) -> bool {
        self.teaches_anchor()
    }

    /// Whether `null` can be said of a parameter, and empties what it sets: in an update, where JSON carries it.
    pub fn empties(&self, param: &str) -> bool {
        let carries = |shape: &Shape| shape.lone_holes().iter().any(|hole| hole.param == param && hole.part.is_none());
        let optional = self.params.get(param).is_some_and(|p| !p.required);
        let carried = || match &self.transport {
            Transport::Http(http) => matches!(&http.body, Some(Body::Json { shape, .. }) if carries(shape)),
            Transport::Graphql(graphql) => graphql.variables.values().any(carries),
        };
        self.kind == Kind::Update && optional && carried()
    }

    /// Whether its answer holds a row.
    pub fn gives_rows(&self) -> bool {
        self.rows.form != RowForm::Nothing
    }
}

/// `PullRequest` as `pull_request`.
fn snake(name: &str) -> impl Iterator<Item = char> {
    let mut lower = false;
    name.chars().flat_map(move |c| {
        let word = (c.is_ascii_uppercase() && lower).then_some('_');
        lower = c.is_ascii_lowercase() || c.is_ascii_digit();
        word.into_iter().chain([c.to_ascii_lowercase()])
    })
}

#[cfg(test)]
mod tests {
    fn snake(name: &str) -> String {
        super::snake(name).collect()
    }

    #[test]
    fn entity_names_as_capabilities_write_them() {
        assert_eq!(snake("PullRequest"), "pull_request");
        assert_eq!(snake("Ticket"), "ticket");
        assert_eq!(snake("HTTPRoute"), "httproute");
        assert_eq!(snake("pull_request"), "pull_request");
    }
}

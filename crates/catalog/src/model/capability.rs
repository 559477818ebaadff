//! Capabilities: the operations of an API, and how the request of each is made.
//! Invariant: every hole of a mapping is a parameter or a part of the key (`anchor`), and only writes and actions have an
//! `effect`.

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
    /// The entity that it belongs to.
    pub entity: String,
    pub about: String,
    /// Synonyms for the operation, for exposure and discovery.
    pub words: Vec<String>,
    /// The parameters, without the parts of the key in `anchor`. The parameters of a get include the parts of the key.
    pub params: IndexMap<String, Param>,
    /// The parts of the entity's key that the instance fills. It is empty if the operation is called on the entity as a whole.
    pub anchor: Vec<String>,
    /// The parameter that takes the words of a search.
    pub text: Option<String>,
    pub transport: Transport,
    pub rows: Rows,
    /// The entity of the answer's rows. It differs from `entity` only for an action that answers with something else.
    pub returns: String,
    /// The fields that the answer carries, or `None` for all of them. A get reads the others.
    pub gives: Option<Vec<String>>,
    pub paging: Option<Paging>,
    pub effect: Option<EffectProperties>,
}

/// The kind of an operation, from which its form in a program and its effect class follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Lists rows.
    Query,
    /// Finds rows by words.
    Search,
    /// Reads one row by its key.
    Get,
    /// Reads the only row that there is, such as the caller's own account.
    Singleton,
    Create,
    Update,
    Delete,
    /// Does anything else.
    Action,
}

/// How far a call changes something.
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

/// How the request is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    Http(Http),
    Graphql(Graphql),
}

impl Transport {
    /// Returns the templates outside the path that put text around holes.
    pub fn texts(&self) -> Vec<&Template> {
        match self {
            Transport::Http(http) => {
                let pairs = http.query.iter().chain(&http.headers).map(|(_, template)| template);
                pairs.chain(http.body.iter().flat_map(Body::texts)).collect()
            }
            Transport::Graphql(graphql) => graphql.variables.values().flat_map(ValueTemplate::texts).collect(),
        }
    }
}

/// The mapping of a call to an HTTP request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Http {
    pub method: Method,
    pub path: Template,
    /// The query's names and values. A pair whose holes have no value is left out.
    pub query: Vec<(String, Template)>,
    /// The headers of this request. A header whose holes have no value is left out.
    pub headers: Vec<(String, Template)>,
    pub body: Option<Body>,
}

/// The mapping of a call to a GraphQL request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Graphql {
    /// The path of the endpoint, after the catalog's base path.
    pub path: String,
    pub document: Document,
    /// The variables of the document. A variable whose holes have no value is left out.
    pub variables: IndexMap<String, ValueTemplate>,
}

/// Where the rows are in an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rows {
    /// Alternative paths to the rows, of which the first one that leads to a value counts. An empty path is the whole body.
    pub at: Vec<DataPath>,
    /// The path of the row inside each item of the list.
    pub item: Option<DataPath>,
    pub form: RowForm,
    /// Whether an answer without the list is an empty list, not a mistake.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sparse: bool,
}

/// The JSON form in which an answer holds its rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowForm {
    /// An array of rows.
    List,
    /// One row.
    One,
    /// An array of scalars. Each is the named field of a row.
    Wrap(String),
    /// An object. Its keys are the named field, and its values are the rows.
    Entries(String),
    /// An object of arrays with the same length. Each array is a column.
    Columns,
    /// The answer holds no rows.
    Nothing,
}

/// The properties of a write that say how it can be retried, verified after a lost answer, and undone.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EffectProperties {
    /// The author's sentence about what changes, which a plan shows.
    #[serde(rename = "says")]
    pub summary: String,
    pub idempotency: Option<Idempotency>,
    pub probe: Option<Probe>,
    /// The capability that undoes the write. Without one the plan says that the write cannot be undone.
    pub undo: Option<String>,
    /// Whether several calls may be open at the same time.
    pub concurrent: bool,
}

/// Where the request carries the idempotency key by which an API recognises a repeated write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Idempotency {
    Header(String),
    Query(String),
    /// A path inside a JSON or form body, or a GraphQL variable.
    Body(String),
    /// No key is needed, because the write sets a state and a second one changes nothing.
    Natural,
}

/// The read that finds out whether a write with a lost answer happened: its rows are compared with the write's arguments.
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

    /// Returns the kind's key in the catalog format.
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

    /// Returns how far calls of this kind change something.
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

    /// Returns whether calls of this kind give a list of rows.
    pub fn is_list(self) -> bool {
        matches!(self, Kind::Query | Kind::Search)
    }
}

impl Capability {
    /// Returns the required parameters.
    pub fn required(&self) -> impl Iterator<Item = &Param> {
        self.params.values().filter(|p| p.required)
    }

    /// Returns the name of the method in a program: the capability's name without the entity's (`ticket_close` is `close`).
    pub fn method_name(&self) -> &str {
        let name = self.name.as_str();
        // The checker asks this for every method of an entity, so the entity's name is compared without allocating it.
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

    /// Returns whether a program must name an instance to call it, so the table teaches it as a method of an instance.
    /// The reader checks that each hole is filled by a parameter or by the key, so `anchor` is exactly what the call needs.
    pub fn needs_anchor(&self) -> bool {
        self.kind != Kind::Get && !self.anchor.is_empty()
    }

    /// Returns whether a program may set this parameter to `null`, which clears the value in the API. Only an optional
    /// parameter of an update can do so, and only if JSON carries it.
    pub fn accepts_null(&self, param: &str) -> bool {
        let has_hole =
            |value: &ValueTemplate| value.lone_holes().iter().any(|hole| hole.param == param && hole.part.is_none());
        let is_optional = self.params.get(param).is_some_and(|p| !p.required);
        let is_sent_as_json = || match &self.transport {
            Transport::Http(http) => matches!(&http.body, Some(Body::Json { shape, .. }) if has_hole(shape)),
            Transport::Graphql(graphql) => graphql.variables.values().any(has_hole),
        };
        self.kind == Kind::Update && is_optional && is_sent_as_json()
    }

    /// Returns whether the answer holds rows.
    pub fn gives_rows(&self) -> bool {
        self.rows.form != RowForm::Nothing
    }
}

/// Returns the characters of a name such as `PullRequest` in the form `pull_request`.
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

//! A GraphQL schema as a draft: entities from types that are read, lists from connections, writes from mutations.
//! Invariant: each field of the query and mutation types is a capability or unmapped with a reason; what is selected exists.

mod entities;
mod reads;
mod schema;
mod types;
mod writes;

use std::collections::HashSet;

use indexmap::IndexMap;

use self::schema::{Def, Field, Schema};
use crate::draft::{Call, Capability, Draft, Entity};
use crate::map::{id_of, settle};
use crate::names;
use crate::report::{Guess, Report, Unmapped};
use crate::{Import, ImportError, Options};

/// One entity in the making.
struct Ent {
    entity: Entity,
    /// The root field that reads one, and its arguments by the parts of the key.
    get: Option<String>,
    verbs: HashSet<String>,
    queries: Vec<Vec<String>>,
    searches: Vec<Vec<String>>,
}

struct Mapper<'s> {
    schema: &'s Schema,
    ents: IndexMap<String, Ent>,
    made: Vec<Capability>,
    taken: HashSet<String>,
    unmapped: Vec<Unmapped>,
    guesses: Vec<Guess>,
}

/// A connection: where its rows are, and of which type.
struct Connection<'s> {
    node: &'s Def,
    /// `nodes`, or `edges`, whose items have a `node`.
    edges: bool,
}

pub fn import(bytes: &[u8], options: &Options) -> Result<Import, ImportError> {
    let schema = Schema::parse(bytes)?;
    let (origin, path, guess) = place(options.from.as_deref());
    let id = options.name.clone().unwrap_or_else(|| id_of("", &origin));
    let mut mapper = Mapper {
        schema: &schema,
        ents: IndexMap::new(),
        made: Vec::new(),
        taken: HashSet::new(),
        unmapped: Vec::new(),
        guesses: Vec::new(),
    };
    mapper.guesses.extend(guess.map(|what| Guess { at: "origin".to_owned(), what }));
    let what = "a GraphQL schema says nothing of credentials: add `auth` if the API wants one".to_owned();
    mapper.guesses.push(Guess { at: "auth".to_owned(), what });
    let fits = |field: &&Field| options.only.as_ref().is_none_or(|glob| crate::map::glob_fits(glob, &field.name));
    let root = |name: &str| schema.get(name).map(|def| def.fields.values().collect::<Vec<_>>()).unwrap_or_default();
    let (queries, mutations) = (root(&schema.query), root(&schema.mutation));
    let mut report = Report { operations: queries.len() + mutations.len(), ..Report::default() };
    let mut choose = |all: Vec<&'_ Field>| {
        let (chosen, left): (Vec<&Field>, Vec<&Field>) = all.into_iter().partition(|field| fits(field));
        report.left_out += left.len();
        let (old, new): (Vec<&Field>, Vec<&Field>) = chosen.into_iter().partition(|field| field.deprecated);
        report.deprecated += old.len();
        new.into_iter().cloned().collect::<Vec<Field>>()
    };
    let (queries, mutations) = (choose(queries), choose(mutations));
    mapper.entities(&queries);
    mapper.reads(&queries);
    mapper.relations();
    mapper.writes(&mutations);
    let title = if id == "imported" { "Imported API".to_owned() } else { id.clone() };
    let mut draft = Draft { id, title, origin, graphql: path, ..Draft::default() };
    draft.notes.push("A draft made from a GraphQL schema by `tokamak catalog import`.".to_owned());
    for guess in &mapper.guesses {
        draft.notes.push(format!("LOOK {}: {}", guess.at, guess.what));
    }
    let Mapper { ents, made, unmapped, guesses, .. } = mapper;
    draft.entities = ents.into_values().map(|ent| ent.entity).collect();
    draft.capabilities = made;
    (report.unmapped, report.guesses) = (unmapped, guesses);
    settle::settle(draft, report)
}

/// The origin, the path of the endpoint, and what is a guess of it.
fn place(from: Option<&str>) -> (String, Option<String>, Option<String>) {
    let url = from.and_then(|text| url::Url::parse(text).ok());
    let known = url.and_then(|url| {
        let origin = base::Origin::parse(&url.origin().ascii_serialization()).ok()?;
        let path = url.path();
        let fine = path.len() > 1 && path.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-_.~".contains(&b));
        Some((origin.as_str().to_owned(), fine.then(|| path.trim_end_matches('/').to_owned()), None))
    });
    known.unwrap_or_else(|| {
        let guess =
            "the schema does not say where the API is: write its `origin`, and `graphql` for the path".to_owned();
        ("https://api.example.com".to_owned(), None, Some(guess))
    })
}

impl<'s> Mapper<'s> {
    fn refuse(&mut self, label: String, why: impl Into<String>) {
        self.unmapped.push(Unmapped { operation: label, why: why.into() });
    }

    /// What a type's rows are, where it is a connection.
    fn connection(&self, name: &str) -> Option<Connection<'s>> {
        let def = self.schema.get(name)?;
        def.fields.get("pageInfo")?;
        if let Some(nodes) = def.fields.get("nodes") {
            return Some(Connection { node: self.schema.get(&nodes.ty.name)?, edges: false });
        }
        let edge = self.schema.get(&def.fields.get("edges")?.ty.name)?;
        Some(Connection { node: self.schema.get(&edge.fields.get("node")?.ty.name)?, edges: true })
    }

    fn add(&mut self, capability: Capability) {
        self.made.push(capability);
    }

    fn new_capability(&mut self, kind: catalog::Kind, entity: &str, verb: &str, from: String) -> Capability {
        let name = names::unique(&mut self.taken, format!("{}_{verb}", names::entity_prefix(entity)));
        let call = Call::Graphql { document: String::new(), variables: Vec::new() };
        let mut capability = Capability::new(name, kind, entity.to_owned(), call);
        capability.from = from;
        capability
    }
}

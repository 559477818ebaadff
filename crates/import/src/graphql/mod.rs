//! The import of a GraphQL schema: entities from types that a query reads, lists from connections, writes from mutations.
//! Invariant: each field of the query and mutation types becomes a capability or is reported as unmapped with a reason. A
//! document selects only fields that exist.

mod entities;
mod reads;
mod schema;
mod types;
mod writes;

use std::collections::HashSet;

use catalog::Kind;
use catalog::raw::{self, Declaration};
use indexmap::IndexMap;

use self::schema::{Arg, Field, Schema, TypeDef};
use crate::draft::{self, Draft, DraftCapability, DraftEntity};
use crate::report::{Guess, ImportReport, Unmapped};
use crate::{Import, ImportError, Options, names, settle};

/// The origin that is written if the URL of the schema is unknown. A person replaces it in the draft.
const PLACEHOLDER_ORIGIN: &str = "https://api.example.com";

pub fn import(bytes: &[u8], options: &Options) -> Result<Import, ImportError> {
    let schema = Schema::parse(bytes)?;
    let endpoint = options.from.as_deref().and_then(endpoint);
    let origin = endpoint.as_ref().map_or(PLACEHOLDER_ORIGIN, |endpoint| endpoint.origin.as_str()).to_owned();
    let mut guesses = Vec::new();
    if endpoint.is_none() {
        let what = "the schema does not say where the API is: write its `origin`, and `graphql` for the path";
        guesses.push(Guess { at: "origin".to_owned(), what: what.to_owned() });
    }
    let what = "a GraphQL schema says nothing of credentials: add `auth` if the API wants one";
    guesses.push(Guess { at: "auth".to_owned(), what: what.to_owned() });

    let mut report = ImportReport::default();
    let queries = root_fields(&schema, &schema.query, options, &mut report);
    let mutations = root_fields(&schema, &schema.mutation, options, &mut report);
    let mut mapper = SchemaMapper {
        schema: &schema,
        entities: IndexMap::new(),
        capabilities: Vec::new(),
        taken: HashSet::new(),
        unmapped: Vec::new(),
    };
    mapper.add_entities(&queries);
    mapper.map_reads(&queries);
    mapper.add_relations();
    mapper.map_writes(&mutations);

    let id = options.name.clone().unwrap_or_else(|| names::catalog_id("", &origin));
    let title = if id == "imported" { "Imported API".to_owned() } else { id.clone() };
    let head = raw::Catalog {
        catalog: id,
        version: 1,
        title,
        origin,
        graphql: endpoint.and_then(|endpoint| endpoint.path),
        ..raw::Catalog::default()
    };
    let mut comments = vec!["A draft made from a GraphQL schema by `tokamak catalog import`.".to_owned()];
    comments.extend(guesses.iter().map(|guess| format!("LOOK {}: {}", guess.at, guess.what)));
    let entities = mapper.entities.into_values().map(|entity| entity.draft).collect();
    report.unmapped = mapper.unmapped;
    report.guesses = guesses;
    settle::make_loadable(Draft { head, comments, entities, capabilities: mapper.capabilities }, report)
}

/// The URL of a GraphQL endpoint, split into origin and path.
struct GraphqlEndpoint {
    origin: String,
    /// The value of the catalog's `graphql` key. `None` if the URL has no path that a catalog accepts.
    path: Option<String>,
}

fn endpoint(url: &str) -> Option<GraphqlEndpoint> {
    let url = url::Url::parse(url).ok()?;
    let origin = base::Origin::parse(&url.origin().ascii_serialization()).ok()?;
    let path = url.path();
    let is_valid = path.len() > 1 && path.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-_.~".contains(&b));
    let path = is_valid.then(|| path.trim_end_matches('/').to_owned());
    Some(GraphqlEndpoint { origin: origin.as_str().to_owned(), path })
}

/// Returns the fields of the query or mutation type to map. The report counts all fields, including deprecated and unselected
/// ones.
fn root_fields(schema: &Schema, root: &str, options: &Options, report: &mut ImportReport) -> Vec<Field> {
    let mut out = Vec::new();
    for field in schema.get(root).into_iter().flat_map(|def| def.fields.values()) {
        report.operations += 1;
        if !options.selects(&[&field.name]) {
            report.left_out += 1;
        } else if field.deprecated {
            report.deprecated += 1;
        } else {
            out.push(field.clone());
        }
    }
    out
}

/// An entity to which capabilities are still being added.
struct SchemaEntity {
    draft: DraftEntity,
    /// The query field that reads one row by key; `None` if there is no such field so far.
    get: Option<String>,
    /// The method names that the entity's capabilities already use.
    methods: HashSet<String>,
    /// The required parameters of each list of the entity. Two lists must differ in them, because a program selects a list by
    /// its parameters.
    query_required_inputs: Vec<Vec<String>>,
    /// The required parameters of each search of the entity, which must differ in the same way.
    search_required_inputs: Vec<Vec<String>>,
}

impl SchemaEntity {
    /// Returns the name of the entity's key field. Entities of GraphQL have one.
    fn key(&self) -> &str {
        self.draft.raw.key.first().map(String::as_str).unwrap_or_default()
    }
}

/// The state of one import. The modules `entities`, `reads` and `writes` add the methods of their stage.
struct SchemaMapper<'s> {
    schema: &'s Schema,
    /// Entities by the name of their GraphQL type.
    entities: IndexMap<String, SchemaEntity>,
    capabilities: Vec<DraftCapability>,
    /// The capability names that are already used.
    taken: HashSet<String>,
    unmapped: Vec<Unmapped>,
}

/// A Relay connection: the GraphQL type of one page of a list.
struct Connection<'s> {
    node: &'s TypeDef,
    /// Whether the rows are in `edges { node }`. Otherwise they are in `nodes`.
    has_edges: bool,
}

impl<'s> SchemaMapper<'s> {
    fn report_unmapped(&mut self, label: String, why: impl Into<String>) {
        self.unmapped.push(Unmapped { operation: label, why: why.into() });
    }

    /// Returns the type of this name as a connection; `None` if it is not a connection.
    fn connection(&self, name: &str) -> Option<Connection<'s>> {
        let def = self.schema.get(name)?;
        def.fields.get("pageInfo")?;
        if let Some(nodes) = def.fields.get("nodes") {
            return Some(Connection { node: self.schema.get(&nodes.ty.name)?, has_edges: false });
        }
        let edge = self.schema.get(&def.fields.get("edges")?.ty.name)?;
        Some(Connection { node: self.schema.get(&edge.fields.get("node")?.ty.name)?, has_edges: true })
    }

    fn new_capability(&mut self, kind: Kind, entity: &str, verb: &str, label: String) -> DraftCapability {
        let name = names::reserve_unique(&mut self.taken, format!("{}_{verb}", names::entity_prefix(entity)));
        DraftCapability::new(name, kind, entity.to_owned(), label)
    }

    /// Reserves a method name for the verb on the entity of this type. A number is appended if the name is already used.
    fn free_verb(&mut self, type_name: &str, verb: &str) -> String {
        let Some(entity) = self.entities.get_mut(type_name) else { return names::method_name(verb) };
        let verb = names::snake_case(verb);
        let verb = if verb == names::snake_case(&entity.draft.name) { "read".to_owned() } else { verb };
        names::reserve_unique(&mut entity.methods, names::method_name(&verb))
    }

    /// Returns the declaration of the parameter for an argument. Required arguments have types of one more level.
    fn param(&self, arg: &Arg) -> Declaration {
        let depth = if arg.is_required() { 2 } else { 1 };
        draft::param_declaration(types::input_type(self.schema, &arg.ty, depth), arg.is_required())
    }
}

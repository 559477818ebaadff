//! Operations of OpenAPI to entities and capabilities, in stages: reads by a key, lists, single things, writes.
//! Invariant: every operation ends as a planned capability, or as unmapped with a reason.

mod body;
mod capability;
mod entity;
mod fields;
mod items;
mod keys;
mod lists;
mod properties;
mod relations;
mod singles;
mod verbs;
mod writes;

use std::collections::{BTreeSet, HashMap, HashSet};

use catalog::Kind;
use catalog::raw::{self, Declaration};
use serde_json::Value;

use self::keys::KeyPart;
use crate::api::answer::{self, AnswerLayout};
use crate::api::auth::{self, Credential};
use crate::api::origin::{self, OtherOrigin};
use crate::api::path::{self, OperationPath};
use crate::api::types::{Detail, TypeMapper};
use crate::draft::Draft;
use crate::report::{Guess, ImportReport, Unmapped};
use crate::spec::{Operation, Param, ParamLocation, SchemaReader, Spec, Verb};
use crate::{Import, ImportError, Options, names, settle};

/// The number of slots of a draft. The reader of catalogs takes 200,000; named types and keys take some of them.
const MAX_SLOTS: usize = 180_000;

/// The number of guesses of a report, which is more than a person can check.
const MAX_GUESSES: usize = 200;

/// The length of a path of an operation.
const MAX_PATH: usize = 2_000;

/// Maps a specification. Less detail of its types is spelled out until the draft is small enough for a catalog.
pub fn import(spec: &Spec, options: &Options) -> Result<Import, ImportError> {
    let operations = spec.operations();
    let mut report = ImportReport { operations: operations.len(), ..ImportReport::default() };
    let title = title(spec);
    let api_origin = origin::api_origin(spec, &operations, options.from.as_deref());
    let id = options.name.clone().unwrap_or_else(|| names::catalog_id(&title, &api_origin.origin));
    let reader = SchemaReader::new(spec);
    for detail in Detail::LEVELS {
        let credential = auth::credential(spec, &operations, &id);
        let head = raw::Catalog {
            catalog: id.clone(),
            version: 1,
            title: title.clone(),
            origin: api_origin.origin.clone(),
            auth: credential.auth.clone(),
            anonymous: credential.anonymous,
            ..raw::Catalog::default()
        };
        let mut mapper = Mapper::new(&reader, detail, credential, &api_origin.origin);
        mapper.guess_head(api_origin.guess.as_deref());
        report.deprecated = 0;
        report.left_out = 0;
        for (op, path_prefix) in operations.iter().zip(&api_origin.path_prefixes) {
            if !is_selected(op, options) {
                report.left_out += 1;
            } else if op.deprecated {
                report.deprecated += 1;
            } else {
                mapper.add_endpoint(op, path_prefix);
            }
        }
        let mut draft = mapper.draft(head);
        if draft.slots() > MAX_SLOTS {
            continue;
        }
        add_comments(&mut draft, spec, &mapper.guesses);
        report.unmapped = std::mem::take(&mut mapper.unmapped);
        report.guesses = std::mem::take(&mut mapper.guesses);
        if spec.remote_references() > 0 {
            let what = format!("{} references lead out of the file and are not followed", spec.remote_references());
            report.guesses.insert(0, Guess { at: "specification".to_owned(), what });
        }
        report.guesses.truncate(MAX_GUESSES);
        return settle::settle(draft, report);
    }
    Err(ImportError::TooMuch)
}

fn is_selected(op: &Operation<'_>, options: &Options) -> bool {
    let has_tag = options.tag.as_ref().is_none_or(|tag| op.tags.iter().any(|own| own.eq_ignore_ascii_case(tag)));
    has_tag && options.selects(&[op.path, op.id])
}

fn title(spec: &Spec) -> String {
    let title = names::sentence(spec.text(&["info", "title"]), 60);
    if title.is_empty() { "Imported API".to_owned() } else { title }
}

fn add_comments(draft: &mut Draft, spec: &Spec, guesses: &[Guess]) {
    let version: String = spec.text(&["info", "version"]).chars().filter(|c| !c.is_control()).take(40).collect();
    let kind = if spec.is_swagger { "Swagger 2.0" } else { "OpenAPI" };
    draft.comments.push(format!(
        "{} {version}: a draft made from its {kind} specification by `tokamak catalog import`.",
        draft.head.title
    ));
    draft.comments.push("Look at the lines with a comment first: they are guesses.".to_owned());
    for guess in guesses.iter().filter(|guess| guess.at == "origin" || guess.at == "auth") {
        draft.comments.push(format!("LOOK {}: {}", guess.at, guess.what));
    }
}

/// An operation that can be mapped, with its parsed path and answer.
struct Endpoint<'a> {
    op: &'a Operation<'a>,
    path: OperationPath,
    answer: AnswerLayout<'a>,
    /// The name of each hole where it is a scope: `project_id`, also where the path only has `id`.
    scope_names: Vec<String>,
    /// The text before the path, where servers have different base paths.
    path_prefix: String,
}

/// An entity while operations are still added to it.
struct MappedEntity<'a> {
    name: String,
    about: String,
    /// The keys of the path that leads to one row, where one does (`OperationPath::keys`).
    home: Option<Vec<String>>,
    key: Vec<KeyPart>,
    /// Schemas of its rows. The first is that of the operation that made the entity.
    row_schemas: Vec<&'a Value>,
    /// The cleaned names of these schemas. A row with one of them may be a row of the entity.
    schema_names: HashSet<String>,
    /// The parameters that each of its lists needs. No two need the same, since a program could not tell them apart.
    query_needs: Vec<BTreeSet<String>>,
    search_needs: Vec<BTreeSet<String>>,
    /// Fields that are no properties of a row: `value` of wrapped scalars, `answer` where the answer is undeclared.
    extra_fields: Vec<(String, Declaration)>,
    /// The names of its methods that are taken.
    methods: HashSet<String>,
    /// A comment for the person who edits the draft.
    comment: Option<String>,
}

impl MappedEntity<'_> {
    /// Returns how many holes lead to one row.
    fn home_holes(&self) -> usize {
        self.home.iter().flatten().filter(|key| *key == "{}").count()
    }
}

/// A capability that will call one operation. One operation can have two: a list and its search.
struct PlannedCapability {
    endpoint: usize,
    entity: usize,
    kind: Kind,
    verb: String,
    /// The names in the holes of its path.
    holes: Vec<String>,
    /// Whether it is called on a row, whose key fills the holes.
    on_row: bool,
    /// Parameters of the query that are parts of the key, with the name of the part.
    key_params: Vec<(String, String)>,
    /// The path of the rows in the answer.
    rows: Option<String>,
    /// The field that holds each item, where the items are scalars.
    wrap: Option<String>,
    /// The field that holds the key of each entry, where the rows are the values of an object.
    entries: Option<String>,
    ignores_answer: bool,
    /// The entity of the answer's row, where it is another one than `entity`.
    returns: Option<usize>,
    /// Of a search: the parameter that takes the words.
    search_param: Option<String>,
    /// Of a list: the parameter that belongs to the search of the same operation.
    hidden_param: Option<String>,
}

impl PlannedCapability {
    fn new(endpoint: usize, entity: usize, kind: Kind, verb: &str, holes: Vec<String>) -> Self {
        Self {
            endpoint,
            entity,
            kind,
            verb: verb.to_owned(),
            holes,
            on_row: false,
            key_params: Vec::new(),
            rows: None,
            wrap: None,
            entries: None,
            ignores_answer: false,
            returns: None,
            search_param: None,
            hidden_param: None,
        }
    }
}

/// The state of the mapping. Endpoints and entities are named by their index. The methods stand in the modules of the stages.
struct Mapper<'r, 'a> {
    reader: &'r SchemaReader<'a>,
    /// The origin of the catalog, to recognise fields that hold addresses of this API.
    origin: String,
    types: TypeMapper<'r, 'a>,
    credential: Credential,
    endpoints: Vec<Endpoint<'a>>,
    entities: Vec<MappedEntity<'a>>,
    plans: Vec<PlannedCapability>,
    /// For each endpoint, whether it has a plan or a reason why not.
    is_done: Vec<bool>,
    unmapped: Vec<Unmapped>,
    guesses: Vec<Guess>,
    /// The names of entities in lower case, since two must not differ by case alone.
    entity_names: HashSet<String>,
    /// Cleaned names of schemas to the entities with such rows.
    by_schema_name: HashMap<String, Vec<usize>>,
    /// Homes to their entity.
    by_home: HashMap<String, usize>,
    /// Names in snake case to the first entity with that name.
    first_named: HashMap<String, usize>,
    /// Tags to the first entity of an operation with that tag.
    by_tag: HashMap<String, usize>,
    /// Beginnings of paths to the number of operations below.
    operations_below: HashMap<String, usize>,
    /// Paths of lists to the entity that they list.
    by_list: HashMap<String, usize>,
    /// Names in snake case to their entity. Filled by `index`.
    by_name: HashMap<String, usize>,
    /// Homes that a get reads. Filled by `index`.
    readable_homes: HashSet<String>,
}

impl<'r, 'a> Mapper<'r, 'a> {
    fn new(reader: &'r SchemaReader<'a>, detail: Detail, credential: Credential, origin: &str) -> Self {
        Self {
            reader,
            origin: origin.to_owned(),
            types: TypeMapper { reader, detail },
            credential,
            endpoints: Vec::new(),
            entities: Vec::new(),
            plans: Vec::new(),
            is_done: Vec::new(),
            unmapped: Vec::new(),
            guesses: Vec::new(),
            entity_names: HashSet::new(),
            by_schema_name: HashMap::new(),
            by_home: HashMap::new(),
            first_named: HashMap::new(),
            by_tag: HashMap::new(),
            operations_below: HashMap::new(),
            by_list: HashMap::new(),
            by_name: HashMap::new(),
            readable_homes: HashSet::new(),
        }
    }

    /// Adds an operation, or reports at once why it cannot be mapped.
    fn add_endpoint(&mut self, op: &'a Operation<'a>, path_prefix: &Result<String, OtherOrigin>) {
        let unmapped = |why: String| Unmapped { operation: op.label(), why };
        let path_prefix = match path_prefix {
            Ok(prefix) => prefix.clone(),
            Err(OtherOrigin(origin)) => {
                let why = format!("it lives at another origin ({origin}); import it as a catalog of its own");
                return self.unmapped.push(unmapped(why));
            }
        };
        if let Verb::Other(word) = op.verb {
            return self.unmapped.push(unmapped(format!("a catalog has no {word}")));
        }
        if op.path.len() > MAX_PATH {
            return self.unmapped.push(unmapped("its path is longer than 2,000 characters".to_owned()));
        }
        let path = OperationPath::parse(op.path);
        let answer = answer::layout(self.reader, &op.answer, path.ends_in_hole(), path.last_word());
        for end in 1..=path.keys.len() {
            *self.operations_below.entry(path.keys[..end].join("/")).or_default() += 1;
        }
        let scope_names = scope_names(&path);
        self.endpoints.push(Endpoint { op, path, answer, scope_names, path_prefix });
        self.is_done.push(false);
    }

    /// Runs the stages. Each needs the entities of those before.
    fn draft(&mut self, head: raw::Catalog) -> Draft {
        self.map_items();
        self.map_lists();
        self.map_singles();
        self.map_writes();
        self.index();
        self.write_draft(head)
    }

    /// Fills the indexes that need all entities.
    fn index(&mut self) {
        for (at, entity) in self.entities.iter().enumerate() {
            self.by_name.entry(names::snake(&entity.name)).or_insert(at);
        }
        let gets = self.plans.iter().filter(|plan| plan.kind == Kind::Get);
        self.readable_homes =
            gets.filter_map(|plan| Some(self.entities[plan.entity].home.as_ref()?.join("/"))).collect();
    }

    /// Returns whether a get reads the entity, so that a reference to it leads somewhere.
    fn is_readable(&self, entity: &MappedEntity<'a>) -> bool {
        entity.home.as_ref().is_some_and(|home| self.readable_homes.contains(&home.join("/")))
    }

    fn guess_head(&mut self, origin: Option<&str>) {
        if let Some(what) = origin {
            self.guess("origin", what.to_owned());
        }
        for what in std::mem::take(&mut self.credential.guesses) {
            self.guess("auth", what);
        }
    }

    fn guess(&mut self, at: &str, what: String) {
        self.guesses.push(Guess { at: at.to_owned(), what });
    }

    fn refuse(&mut self, endpoint: usize, why: impl Into<String>) {
        self.is_done[endpoint] = true;
        self.unmapped.push(Unmapped { operation: self.endpoints[endpoint].op.label(), why: why.into() });
    }

    fn add_plan(&mut self, mut plan: PlannedCapability) {
        if plan.kind == Kind::Singleton {
            plan.verb = self.free_verb(plan.entity, &plan.verb, plan.endpoint);
        }
        self.is_done[plan.endpoint] = true;
        self.plans.push(plan);
    }

    /// Returns the schema of a declared parameter of the path; `Null` for a hole that is not declared.
    fn hole_schema(&self, endpoint: usize, hole: usize) -> &'a Value {
        let Endpoint { op, path, .. } = &self.endpoints[endpoint];
        let name = path.holes.get(hole).map(|hole| hole.name.as_str()).unwrap_or_default();
        let declares =
            |param: &&Param<'a>| param.location == ParamLocation::Path && param.name.trim_matches(['+', '*']) == name;
        op.params.iter().find(declares).map_or(&Value::Null, |param| param.schema)
    }
}

/// Returns the name of each hole where it is a scope: a generic `id` gets the word before it, as in `project_id`.
fn scope_names(path: &OperationPath) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut out = Vec::new();
    for (at, hole) in path.holes.iter().enumerate() {
        let mut words = path::hole_words(&hole.name);
        if let [only] = words.as_slice()
            && keys::is_generic(only)
        {
            let mut owner = names::words(path.word_before(at));
            if let Some(last) = owner.last_mut() {
                *last = names::singular(last);
            }
            words = owner.into_iter().chain(words).collect();
        }
        out.push(names::unique(&mut taken, names::name(&words.join("_"))));
    }
    out
}

//! The mapping of OpenAPI operations to entities and capabilities, in stages: reads by key, lists, single things, writes.
//!
//! Words of these modules:
//! - The home of an entity is the path of one of its rows, such as `/projects/{}`.
//! - The stem is the list of words from which an entity's name is made.
//! - A scope is a placeholder of a path before the last word; it selects the parent of the rows.
//!
//! Invariant: every operation becomes a planned capability, or is reported as unmapped with a reason.

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

/// The maximum number of slots of a draft. `catalog::read` allows 200,000; the difference is a reserve for named types and
/// keys.
const MAX_DRAFT_SLOTS: usize = 180_000;

/// The maximum number of guesses in a report. A person cannot check more.
const MAX_GUESSES: usize = 200;

/// The maximum length of an operation's path in bytes.
const MAX_PATH_BYTES: usize = 2_000;

/// Imports a specification. If the draft is too large for a catalog, the import is repeated with less detail in its types.
pub fn import(spec: &Spec, options: &Options) -> Result<Import, ImportError> {
    let operations = spec.operations();
    let mut report = ImportReport { operations: operations.len(), ..ImportReport::default() };
    let title = title(spec);
    let api_origin = origin::choose_origin(spec, &operations, options.from.as_deref());
    let id = options.name.clone().unwrap_or_else(|| names::catalog_id(&title, &api_origin.origin));
    let reader = SchemaReader::new(spec);
    for detail in Detail::LEVELS {
        let credential = auth::choose_credential(spec, &operations, &id);
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
        mapper.report_head_guesses(api_origin.guess.as_deref());
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
        let mut draft = mapper.make_draft(head);
        if draft.count_slots() > MAX_DRAFT_SLOTS {
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
        return settle::make_loadable(draft, report);
    }
    Err(ImportError::TooMuch)
}

fn is_selected(op: &Operation<'_>, options: &Options) -> bool {
    let has_tag = options.tag.as_ref().is_none_or(|tag| op.tags.iter().any(|own| own.eq_ignore_ascii_case(tag)));
    has_tag && options.selects(&[op.path, op.id])
}

fn title(spec: &Spec) -> String {
    let title = names::first_sentence(spec.text(&["info", "title"]), 60);
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

/// An operation that is being mapped, with its parsed path and answer.
struct Endpoint<'a> {
    op: &'a Operation<'a>,
    path: OperationPath,
    answer: AnswerLayout<'a>,
    /// The parameter name of each placeholder if the placeholder is a scope: `project_id`, also if the path only has `id`.
    scope_names: Vec<String>,
    /// The text before the path. It is empty unless operations have servers with different base paths.
    path_prefix: String,
}

/// An entity to which operations are still being added.
struct MappedEntity<'a> {
    name: String,
    about: String,
    /// The keys (`OperationPath::keys`) of the path of one row. `None` if no operation addresses one row.
    home: Option<Vec<String>>,
    key: Vec<KeyPart>,
    /// The schemas of the entity's rows. The first comes from the operation that created the entity.
    row_schemas: Vec<&'a Value>,
    /// The names of `row_schemas` without noise words. A row with one of these schema names may be a row of the entity.
    schema_names: HashSet<String>,
    /// The required parameters of each list of the entity. Two lists must differ in them, because a program selects a list by
    /// its parameters.
    query_required_inputs: Vec<BTreeSet<String>>,
    /// The required parameters of each search of the entity, which must differ in the same way.
    search_required_inputs: Vec<BTreeSet<String>>,
    /// Fields that are not row properties: `value` for wrapped scalars, `answer` for an undeclared answer.
    extra_fields: Vec<(String, Declaration)>,
    /// The method names that the entity's capabilities already use.
    methods: HashSet<String>,
    /// A comment in the draft that asks a person to review the entity.
    comment: Option<String>,
}

impl MappedEntity<'_> {
    /// Returns the number of placeholders in the entity's home.
    fn count_home_placeholders(&self) -> usize {
        self.home.iter().flatten().filter(|key| *key == "{}").count()
    }
}

/// A capability that will call one operation. A list operation can have two capabilities: a query and a search.
struct PlannedCapability {
    endpoint: usize,
    entity: usize,
    kind: Kind,
    verb: String,
    /// The names that fill the placeholders of the path: parameters or key parts.
    placeholder_names: Vec<String>,
    /// Whether the capability is called on a row. The row's key then fills the placeholders of the path.
    on_row: bool,
    /// Query parameters that take a key part: the name of the parameter and the name of the key part.
    key_params: Vec<(String, String)>,
    /// The path of the rows in the answer; `None` if the answer itself is the rows.
    rows: Option<String>,
    /// The name of the field for each item, if the items are scalars.
    wrap: Option<String>,
    /// The name of the field for each property name, if the rows are the property values of an object.
    entries: Option<String>,
    ignores_answer: bool,
    /// The entity of the answer's row, if it differs from `entity`.
    returns: Option<usize>,
    /// For a search: the name of the parameter for the words.
    search_param: Option<String>,
    /// For a list: the name of the parameter that only the search of the same operation offers.
    hidden_param: Option<String>,
}

impl PlannedCapability {
    fn new(endpoint: usize, entity: usize, kind: Kind, verb: &str, placeholder_names: Vec<String>) -> Self {
        Self {
            endpoint,
            entity,
            kind,
            verb: verb.to_owned(),
            placeholder_names,
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

/// The state of one import. Endpoints and entities are referred to by index. The submodules add the methods of their stage.
struct Mapper<'r, 'a> {
    reader: &'r SchemaReader<'a>,
    /// The origin of the catalog. It is needed to recognise fields with URLs of this API.
    origin: String,
    types: TypeMapper<'r, 'a>,
    credential: Credential,
    endpoints: Vec<Endpoint<'a>>,
    entities: Vec<MappedEntity<'a>>,
    plans: Vec<PlannedCapability>,
    /// For each endpoint, whether it is planned or reported as unmapped.
    is_done: Vec<bool>,
    unmapped: Vec<Unmapped>,
    guesses: Vec<Guess>,
    /// The used entity names in lower case, because two names must not differ only by case.
    entity_names: HashSet<String>,
    /// The entities by the schema names of their rows.
    entities_by_schema_name: HashMap<String, Vec<usize>>,
    /// The entity by its home, joined by `/`.
    entity_by_home: HashMap<String, usize>,
    /// The first entity by its name in snake case.
    first_entity_by_name: HashMap<String, usize>,
    /// The first entity that an operation with this tag created.
    entity_by_tag: HashMap<String, usize>,
    /// The number of operations at and below each path prefix.
    operations_below: HashMap<String, usize>,
    /// The entity by the path of its list.
    entity_by_list_path: HashMap<String, usize>,
    /// The entity by its name in snake case. Filled by `index`, when all names are final.
    entity_by_name: HashMap<String, usize>,
    /// The homes of entities with a get. Filled by `index`.
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
            entities_by_schema_name: HashMap::new(),
            entity_by_home: HashMap::new(),
            first_entity_by_name: HashMap::new(),
            entity_by_tag: HashMap::new(),
            operations_below: HashMap::new(),
            entity_by_list_path: HashMap::new(),
            entity_by_name: HashMap::new(),
            readable_homes: HashSet::new(),
        }
    }

    /// Adds an operation as an endpoint, or reports it as unmapped if no catalog can call it.
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
        if op.path.len() > MAX_PATH_BYTES {
            return self.unmapped.push(unmapped("its path is longer than 2,000 characters".to_owned()));
        }
        let path = OperationPath::parse(op.path);
        let answer = answer::detect_layout(self.reader, &op.answer, path.ends_in_placeholder(), path.last_word());
        for end in 1..=path.keys.len() {
            *self.operations_below.entry(path.keys[..end].join("/")).or_default() += 1;
        }
        let scope_names = scope_names(&path);
        self.endpoints.push(Endpoint { op, path, answer, scope_names, path_prefix });
        self.is_done.push(false);
    }

    /// Runs the stages in order. Each stage needs the entities of the earlier stages.
    fn make_draft(&mut self, head: raw::Catalog) -> Draft {
        self.map_items();
        self.map_lists();
        self.map_singles();
        self.map_writes();
        self.index();
        self.write_draft(head)
    }

    /// Fills the indexes that can only be built when all entities exist.
    fn index(&mut self) {
        for (at, entity) in self.entities.iter().enumerate() {
            self.entity_by_name.entry(names::snake_case(&entity.name)).or_insert(at);
        }
        let gets = self.plans.iter().filter(|plan| plan.kind == Kind::Get);
        self.readable_homes =
            gets.filter_map(|plan| Some(self.entities[plan.entity].home.as_ref()?.join("/"))).collect();
    }

    /// Returns whether a get reads the entity. Only such entities are targets of references.
    fn is_readable(&self, entity: &MappedEntity<'a>) -> bool {
        entity.home.as_ref().is_some_and(|home| self.readable_homes.contains(&home.join("/")))
    }

    fn report_head_guesses(&mut self, origin: Option<&str>) {
        if let Some(what) = origin {
            self.report_guess("origin", what.to_owned());
        }
        for what in std::mem::take(&mut self.credential.guesses) {
            self.report_guess("auth", what);
        }
    }

    fn report_guess(&mut self, at: &str, what: String) {
        self.guesses.push(Guess { at: at.to_owned(), what });
    }

    fn report_unmapped(&mut self, endpoint: usize, why: impl Into<String>) {
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

    /// Returns the schema of the path parameter for a placeholder; `Null` if the specification does not declare the parameter.
    fn placeholder_schema(&self, endpoint: usize, placeholder: usize) -> &'a Value {
        let Endpoint { op, path, .. } = &self.endpoints[endpoint];
        let name = path.placeholders.get(placeholder).map(|placeholder| placeholder.name.as_str()).unwrap_or_default();
        let declares =
            |param: &&Param<'a>| param.location == ParamLocation::Path && param.name.trim_matches(['+', '*']) == name;
        op.params.iter().find(declares).map_or(&Value::Null, |param| param.schema)
    }
}

/// Returns the scope name of each placeholder. A general name such as `id` gets the path word before it: `project_id`.
fn scope_names(path: &OperationPath) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut out = Vec::new();
    for (at, placeholder) in path.placeholders.iter().enumerate() {
        let mut words = path::placeholder_words(&placeholder.name);
        if let [only] = words.as_slice()
            && keys::is_generic(only)
        {
            let mut owner = names::words(path.word_before(at));
            if let Some(last) = owner.last_mut() {
                *last = names::singular(last);
            }
            words = owner.into_iter().chain(words).collect();
        }
        out.push(names::reserve_unique(&mut taken, names::field_name(&words.join("_"))));
    }
    out
}

//! Operations to entities and capabilities: first what can be read by a key, then lists, then single things, then writes.
//! Invariant: every operation ends as a plan or as unmapped with a reason; an entity exists only where something reads it.

mod call_body;
mod calls;
mod entity;
mod fields;
mod items;
mod keys;
mod lists;
mod relations;
mod rows;
pub(crate) mod settle;
mod singles;
mod verbs;
mod writes;

use std::collections::{BTreeSet, HashMap, HashSet};

use catalog::Kind;
use serde_json::Value;

use crate::api::answer::{self, Seen};
use crate::api::auth::{self, Signed};
use crate::api::origin;
use crate::api::path::{self, Path};
use crate::api::types::{Detail, Types};
use crate::draft::{Draft, Place, Ty};
use crate::names;
use crate::report::{Guess, Report, Unmapped};
use crate::spec::{Operation, Reader, Spec, Verb};
use crate::{Import, ImportError, Options};

/// The reader of catalogs takes 200,000; named types and keys take some of them.
const MAX_SLOTS: usize = 180_000;

/// More than anyone can work through; the rest is counted.
const MAX_GUESSES: usize = 200;

/// One operation, looked at.
struct View<'a> {
    op: &'a Operation<'a>,
    path: Path,
    seen: Seen<'a>,
    /// What each hole is called where it says a scope.
    holes: Vec<String>,
    /// Goes before the path.
    before: String,
}

/// One part of an entity's key.
#[derive(Debug, Clone)]
struct Part {
    name: String,
    place: Place,
    ty: Ty,
}

struct Ent<'a> {
    name: String,
    about: String,
    /// The steps of the path that leads to one of it.
    home: Option<Vec<String>>,
    parts: Vec<Part>,
    /// Schemas of its rows, the fullest first.
    rows: Vec<&'a Value>,
    /// What the specification calls its rows, cleaned.
    idents: HashSet<String>,
    /// What each list of it needs, so that no two need the same.
    queries: Vec<BTreeSet<String>>,
    searches: Vec<BTreeSet<String>>,
    /// Fields that are no properties: `value` of wrapped scalars, `answer` where nothing is said.
    extra: Vec<(String, Ty, String)>,
    /// Method names that are taken.
    verbs: HashSet<String>,
    note: Option<String>,
}

/// What one operation becomes.
struct Plan {
    view: usize,
    ent: usize,
    kind: Kind,
    verb: String,
    /// The names in the holes of its path.
    holes: Vec<String>,
    /// Whether the instance fills the key.
    instance: bool,
    /// Query parameters that are parts of the key.
    keyed: Vec<(String, String)>,
    rows: Option<String>,
    wrap: Option<String>,
    entries: Option<String>,
    silent: bool,
    returns: Option<usize>,
    /// Of a search: the parameter that takes the words.
    text: Option<String>,
    /// Of a list: the parameter that is its search's.
    without: Option<String>,
}

impl Plan {
    fn new(view: usize, ent: usize, kind: Kind, verb: &str, holes: Vec<String>) -> Self {
        Self {
            view,
            ent,
            kind,
            verb: verb.to_owned(),
            holes,
            instance: false,
            keyed: Vec::new(),
            rows: None,
            wrap: None,
            entries: None,
            silent: false,
            returns: None,
            text: None,
            without: None,
        }
    }
}

struct Mapper<'r, 'a> {
    reader: &'r Reader<'a>,
    /// Where the API is.
    origin: String,
    types: Types<'r, 'a>,
    signed: Signed,
    views: Vec<View<'a>>,
    ents: Vec<Ent<'a>>,
    plans: Vec<Plan>,
    /// Which views have a plan or a reason.
    done: Vec<bool>,
    unmapped: Vec<Unmapped>,
    guesses: Vec<Guess>,
    taken: HashSet<String>,
    /// Cleaned names of schemas to the entities with such rows.
    by_ident: HashMap<String, Vec<usize>>,
    by_home: HashMap<String, usize>,
    /// The first entity of each name, in words.
    first_named: HashMap<String, usize>,
    /// The first entity of each tag.
    by_tag: HashMap<String, usize>,
    /// How many operations begin with these steps.
    weight: HashMap<String, usize>,
    /// Paths of lists to the entity they list.
    by_list: HashMap<String, usize>,
    /// Entities by their name in words, once all are known.
    by_name: HashMap<String, usize>,
    /// Homes that a get reads, once all are known.
    readable: HashSet<String>,
}

pub fn import(spec: &Spec, options: &Options) -> Result<Import, ImportError> {
    let operations = spec.operations();
    let mut report = Report { operations: operations.len(), ..Report::default() };
    let title = title(spec);
    let home = origin::home(spec, &operations, options.from.as_deref());
    let id = options.name.clone().unwrap_or_else(|| id_of(&title, &home.origin));
    let reader = Reader::new(spec);
    for detail in Detail::LEVELS {
        let signed = auth::signed(spec, &operations, &id);
        let mut head = Draft { id: id.clone(), title: title.clone(), origin: home.origin.clone(), ..Draft::default() };
        head.auth = signed.auth.clone();
        head.anonymous = signed.anonymous;
        let mut mapper = Mapper::new(&reader, detail, signed, &home.origin);
        mapper.guess_head(home.guess.as_deref());
        report.deprecated = 0;
        report.left_out = 0;
        for (op, before) in operations.iter().zip(&home.before) {
            match chosen(op, options) {
                Chosen::Yes => mapper.look(op, before),
                Chosen::Deprecated => report.deprecated += 1,
                Chosen::No => report.left_out += 1,
            }
        }
        let mut draft = mapper.draft(head);
        if draft.slots() > MAX_SLOTS {
            continue;
        }
        notes(&mut draft, spec, &mapper.guesses);
        report.unmapped = std::mem::take(&mut mapper.unmapped);
        report.guesses = std::mem::take(&mut mapper.guesses);
        if spec.remote() > 0 {
            let what = format!("{} references lead out of the file and are not followed", spec.remote());
            report.guesses.insert(0, Guess { at: "specification".to_owned(), what });
        }
        report.guesses.truncate(MAX_GUESSES);
        return settle::settle(draft, report);
    }
    Err(ImportError::TooMuch)
}

enum Chosen {
    Yes,
    No,
    Deprecated,
}

fn chosen(op: &Operation<'_>, options: &Options) -> Chosen {
    let tagged = options.tag.as_ref().is_none_or(|tag| op.tags.iter().any(|own| own.eq_ignore_ascii_case(tag)));
    let fits = options.only.as_ref().is_none_or(|glob| glob_fits(glob, op.path) || glob_fits(glob, op.id));
    match (tagged && fits, op.deprecated) {
        (false, _) => Chosen::No,
        (true, true) => Chosen::Deprecated,
        (true, false) => Chosen::Yes,
    }
}

/// `*` stands for anything, `/` included.
pub(crate) fn glob_fits(glob: &str, text: &str) -> bool {
    let mut parts = glob.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    let mut any = false;
    while let Some(part) = parts.next() {
        any = true;
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    any || rest.is_empty()
}

fn title(spec: &Spec) -> String {
    let title = names::sentence(spec.text(&["info", "title"]), 60);
    if title.is_empty() { "Imported API".to_owned() } else { title }
}

/// A catalog's id: what the title says beside that it is an API; where that is long, the name of the host.
pub(crate) fn id_of(title: &str, origin: &str) -> String {
    let noise = [
        "api",
        "apis",
        "rest",
        "the",
        "openapi",
        "swagger",
        "specification",
        "spec",
        "public",
        "v1",
        "v2",
        "v3",
        "official",
        "service",
        "services",
        "for",
        "and",
        "of",
        "web",
        "restful",
        "http",
        "reference",
    ];
    let bare = |word: &str| word.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let words: Vec<String> =
        title.replace("'s", "").replace("’s", "").split([' ', '-', '_', '/', ':', '.']).map(bare).collect();
    let digits = |word: &String| word.bytes().all(|b| b.is_ascii_digit());
    let own: Vec<String> = words.into_iter().filter(|w| !noise.contains(&w.as_str()) && !digits(w)).collect();
    let host = origin.split("://").nth(1).and_then(|rest| rest.split(['/', ':']).next()).unwrap_or_default();
    let labels: Vec<&str> = host.split('.').filter(|label| !matches!(*label, "api" | "www" | "example")).collect();
    let host = labels.len().checked_sub(2).and_then(|at| labels.get(at)).copied().unwrap_or_default();
    let joined = if own.is_empty() || (own.len() > 3 && !host.is_empty()) {
        bare(host)
    } else {
        own.into_iter().take(3).collect::<Vec<_>>().join("-")
    };
    let joined: String = joined.chars().take(40).collect();
    if joined.is_empty() { "imported".to_owned() } else { joined }
}

fn notes(draft: &mut Draft, spec: &Spec, guesses: &[Guess]) {
    let version: String = spec.text(&["info", "version"]).chars().filter(|c| !c.is_control()).take(40).collect();
    let kind = if spec.old { "Swagger 2.0" } else { "OpenAPI" };
    draft.notes.push(format!(
        "{} {version}: a draft made from its {kind} specification by `tokamak catalog import`.",
        draft.title
    ));
    draft.notes.push("Look at the lines with a comment first: they are guesses.".to_owned());
    for guess in guesses.iter().filter(|guess| guess.at == "origin" || guess.at == "auth") {
        draft.notes.push(format!("LOOK {}: {}", guess.at, guess.what));
    }
}

impl<'r, 'a> Mapper<'r, 'a> {
    fn new(reader: &'r Reader<'a>, detail: Detail, signed: Signed, origin: &str) -> Self {
        Self {
            reader,
            origin: origin.to_owned(),
            types: Types { reader, detail },
            signed,
            views: Vec::new(),
            ents: Vec::new(),
            plans: Vec::new(),
            done: Vec::new(),
            unmapped: Vec::new(),
            guesses: Vec::new(),
            taken: HashSet::new(),
            by_ident: HashMap::new(),
            by_home: HashMap::new(),
            first_named: HashMap::new(),
            by_tag: HashMap::new(),
            weight: HashMap::new(),
            by_list: HashMap::new(),
            by_name: HashMap::new(),
            readable: HashSet::new(),
        }
    }

    /// What can only be known once every operation has its place.
    fn index(&mut self) {
        for (at, ent) in self.ents.iter().enumerate() {
            self.by_name.entry(names::snake(&ent.name)).or_insert(at);
        }
        let gets = self.plans.iter().filter(|plan| plan.kind == Kind::Get);
        self.readable = gets.filter_map(|plan| Some(self.ents[plan.ent].home.as_ref()?.join("/"))).collect();
    }

    fn guess_head(&mut self, origin: Option<&str>) {
        if let Some(what) = origin {
            self.guess("origin", what.to_owned());
        }
        for what in std::mem::take(&mut self.signed.guesses) {
            self.guess("auth", what);
        }
    }

    fn guess(&mut self, at: &str, what: String) {
        self.guesses.push(Guess { at: at.to_owned(), what });
    }

    fn refuse(&mut self, view: usize, why: impl Into<String>) {
        self.done[view] = true;
        self.unmapped.push(Unmapped { operation: self.views[view].op.label(), why: why.into() });
    }

    /// Takes an operation in, or says at once why not.
    fn look(&mut self, op: &'a Operation<'a>, before: &Result<String, origin::Elsewhere>) {
        let unmapped = |why: String| Unmapped { operation: op.label(), why };
        let before = match before {
            Ok(before) => before.clone(),
            Err(origin::Elsewhere(at)) => {
                let why = format!("it lives at another origin ({at}); import it as a catalog of its own");
                return self.unmapped.push(unmapped(why));
            }
        };
        if let Verb::Other(word) = op.verb {
            return self.unmapped.push(unmapped(format!("a catalog has no {word}")));
        }
        if op.path.len() > 2_000 {
            return self.unmapped.push(unmapped("its path is longer than 2,000 characters".to_owned()));
        }
        let path = Path::parse(op.path);
        let seen = answer::see(self.reader, &op.answer, path.ends_in_hole(), path.last_word());
        for end in 1..=path.keys.len() {
            *self.weight.entry(path.keys[..end].join("/")).or_default() += 1;
        }
        let holes = self.scope_names(&path);
        self.views.push(View { op, path, seen, holes, before });
        self.done.push(false);
    }

    /// What each hole is called where it says a scope: `project_id` also where the path only says `id`.
    fn scope_names(&self, path: &Path) -> Vec<String> {
        let mut taken = HashSet::new();
        let mut out = Vec::new();
        for (at, hole) in path.holes.iter().enumerate() {
            let mut words = path::hole_words(&hole.name);
            if let [only] = words.as_slice()
                && keys::is_generic(only)
            {
                let mut before = names::words(path.word_before(at));
                if let Some(last) = before.last_mut() {
                    *last = names::singular(last);
                }
                words = before.into_iter().chain(words).collect();
            }
            out.push(names::unique(&mut taken, names::name(&words.join("_"))));
        }
        out
    }

    fn draft(&mut self, head: Draft) -> Draft {
        self.items();
        self.lists();
        self.singles();
        self.writes();
        self.write_down(head)
    }

    /// The schema of a declared path parameter.
    fn hole_schema(&self, view: usize, hole: usize) -> &'a Value {
        let View { op, path, .. } = &self.views[view];
        let name = path.holes.get(hole).map(|hole| hole.name.as_str()).unwrap_or_default();
        let declared =
            op.params.iter().find(|p| p.place == crate::spec::In::Path && p.name.trim_matches(['+', '*']) == name);
        declared.map_or(&Value::Null, |param| param.schema)
    }
}

//! Entities: how one is made and named, and whether an operation's rows are rows of it.
//! Invariant: two entities never have one name; a row that is said to fit has, or was asked with, the whole key.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::keys::place_of;
use super::{Ent, Mapper, Part, View};
use crate::api::path::{Step, is_root_word};
use crate::draft::{Place, Ty};
use crate::names;
use crate::spec::{Body, In};

/// Words before a name that say how much of it there is.
const BEFORE: [&str; 22] = [
    "full", "minimal", "simple", "base", "basic", "nullable", "detailed", "short", "get", "list", "retrieve", "inline",
    "api", "the", "read", "compact", "public", "private", "objs", "obj", "defs", "def",
];
/// Words after a name that say what it is in the program that made it.
const AFTER: [&str; 33] = [
    "response",
    "dto",
    "model",
    "resource",
    "object",
    "out",
    "output",
    "details",
    "detail",
    "summary",
    "result",
    "results",
    "schema",
    "entity",
    "full",
    "read",
    "bean",
    "json",
    "representation",
    "base",
    "v1",
    "v2",
    "v3",
    "ok",
    "200",
    "201",
    "payload",
    "body",
    "compact",
    "vo",
    "simple",
    "short",
    "minimal",
];
/// Names that name nothing.
const NOTHING: [&str; 24] = [
    "response",
    "result",
    "object",
    "data",
    "item",
    "list",
    "collection",
    "body",
    "payload",
    "inline",
    "model",
    "entity",
    "schema",
    "success",
    "ok",
    "value",
    "resource",
    "any",
    "default",
    "root",
    "type",
    "base",
    "api",
    "page",
];

/// What the specification calls something, without what it says around it.
pub fn clean(ident: &str) -> Vec<String> {
    let family = ident.rsplit(['.', '~']).find(|part| part.chars().any(|c| c.is_ascii_alphabetic())).unwrap_or(ident);
    let mut words = names::words(family);
    while words.len() > 1 && BEFORE.contains(&words[0].as_str()) {
        words.remove(0);
    }
    while words.len() > 1 && words.last().is_some_and(|last| AFTER.contains(&last.as_str())) {
        words.pop();
    }
    if let Some(last) = words.last_mut() {
        *last = names::singular(last);
    }
    let digits = |word: &String| word.bytes().all(|b| b.is_ascii_digit());
    if words.len() > 5 || words.iter().all(|word| NOTHING.contains(&word.as_str()) || digits(word)) {
        words.clear();
    }
    words
}

/// A description that says more than the name does.
fn told(about: &str, name: &str) -> String {
    let own = names::words(name);
    let says = |word: &String| {
        own.contains(word)
            || own.contains(&names::singular(word))
            || BEFORE.contains(&word.as_str())
            || AFTER.contains(&word.as_str())
    };
    let noise = |word: &String| matches!(word.as_str(), "a" | "an" | "the" | "of" | "this");
    if names::words(about).iter().all(|word| says(word) || noise(word)) { String::new() } else { about.to_owned() }
}

impl<'a> Mapper<'_, 'a> {
    /// The cleaned name of a row's schema; empty where it has none.
    pub(super) fn ident(&self, row: &'a Value) -> String {
        let own = self.reader.ident(row).map(clean).unwrap_or_default();
        own.join("_")
    }

    /// Words for an entity: what its schema is called, else the last word of its path.
    pub(super) fn stem(&self, row: Option<&'a Value>, view: usize) -> Vec<String> {
        let named = row.and_then(|row| self.reader.ident(row)).map(clean).unwrap_or_default();
        if !named.is_empty() && named.len() <= 4 {
            return named;
        }
        let path = &self.views[view].path;
        let mut words = names::words(path.last_word());
        // `users.list` is about users.
        let said: Vec<&String> =
            path.steps.iter().filter_map(|step| if let Step::Word(word) = step { Some(word) } else { None }).collect();
        let verb = matches!(words.as_slice(), [only] if matches!(only.as_str(), "list" | "info" | "get" | "show" | "all" | "search" | "find" | "lookup"));
        let before = said.len().checked_sub(2).and_then(|at| said.get(at));
        if let Some(before) = before.filter(|_| verb) {
            words = names::words(before);
        }
        // `usage` alone says nothing: it is of what stands before it.
        if words.last().is_some_and(|last| !names::is_plural(last)) {
            let before = path.steps.iter().rev().filter_map(|step| match step {
                Step::Word(word) if !is_root_word(word) => Some(word),
                _ => None,
            });
            let outer = before.skip(1).take(1).flat_map(|word| names::words(word)).map(|word| names::singular(&word));
            let outer: Vec<String> = outer.filter(|word| !words.contains(word)).collect();
            words = outer.into_iter().chain(words).collect();
        }
        if let Some(last) = words.last_mut() {
            *last = names::singular(last);
        }
        if words.is_empty() {
            words = names::words(self.views[view].op.id);
        }
        if words.is_empty() { vec!["item".to_owned()] } else { words }
    }

    /// A name nobody has: the stem, with words of the path before it as long as it is taken.
    pub(super) fn name_entity(&mut self, stem: &[String], view: usize) -> String {
        let mut words: Vec<String> = stem.to_vec();
        let before: Vec<String> = self.views[view]
            .path
            .steps
            .iter()
            .rev()
            .filter_map(|step| match step {
                Step::Word(word) if !is_root_word(word) => Some(names::words(word)),
                _ => None,
            })
            .map(|words| words.iter().map(|word| names::singular(word)).collect::<Vec<_>>().join("_"))
            .collect();
        let mut before = before.into_iter();
        let taken = |mapper: &Self, words: &[String]| mapper.taken.contains(&names::pascal(words).to_ascii_lowercase());
        while taken(self, &words) {
            let Some(outer) = before.next() else { break };
            let outer = names::words(&outer);
            let said = outer.iter().all(|word| words.iter().any(|own| own.starts_with(word.as_str())));
            if !outer.is_empty() && !said {
                words = outer.into_iter().chain(words).collect();
            }
        }
        let name = names::pascal(&words);
        let mut free = name.clone();
        let mut n = 2;
        while !self.taken.insert(free.to_ascii_lowercase()) {
            free = format!("{name}{n}");
            n += 1;
        }
        free
    }

    pub(super) fn add(&mut self, view: usize, name: String, home: Option<Vec<String>>, parts: Vec<Part>) -> usize {
        let at = self.ents.len();
        let View { op, .. } = &self.views[view];
        self.first_named.entry(names::snake(&name)).or_insert(at);
        if let Some(tag) = op.tags.first().filter(|tag| !tag.is_empty()) {
            self.by_tag.entry((*tag).to_owned()).or_insert(at);
        }
        if let Some(home) = &home {
            self.by_home.entry(home.join("/")).or_insert(at);
        }
        self.ents.push(Ent {
            name,
            about: String::new(),
            home,
            parts,
            rows: Vec::new(),
            idents: HashSet::new(),
            queries: Vec::new(),
            searches: Vec::new(),
            extra: Vec::new(),
            verbs: HashSet::new(),
            note: None,
        });
        at
    }

    /// One more schema of its rows.
    pub(super) fn add_row(&mut self, ent: usize, row: &'a Value) {
        let opened = self.reader.open(row);
        let arms = self.reader.arms(opened);
        let idents: Vec<String> = [row].into_iter().chain(arms).map(|schema| self.ident(schema)).collect();
        let known = &mut self.ents[ent];
        if known.rows.iter().any(|other| std::ptr::eq(*other, row)) {
            return;
        }
        known.rows.push(row);
        if known.about.is_empty() {
            let all = opened
                .get("allOf")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter(|part| part.get("$ref").is_none());
            let says = [opened].into_iter().chain(all).find_map(|part| part.get("description")?.as_str());
            known.about = told(&names::sentence(says.unwrap_or_default(), 56), &known.name);
        }
        for ident in idents {
            if !ident.is_empty() && known.idents.insert(ident.clone()) {
                self.by_ident.entry(ident).or_default().push(ent);
            }
        }
    }

    /// Whether each part of the key is in such a row or was asked for.
    pub(super) fn fits(&self, ent: usize, view: usize, row: &'a Value, list: bool) -> bool {
        let View { holes, op, .. } = &self.views[view];
        let parts = &self.ents[ent].parts;
        let asked = |part: &Part| {
            let whole = list && parts.len() == 1;
            let by_query = || op.params.iter().any(|p| p.place == In::Query && p.required && p.name == part.name);
            !whole && (holes.contains(&part.name) || by_query())
        };
        parts.iter().all(|part| asked(part) || self.holds(row, &part.place, &part.name))
    }

    /// A part of a key that only the answer's own header can say: for things of which there is one.
    pub(super) fn served() -> Part {
        Part { name: "served".to_owned(), place: Place::Header("date"), ty: Ty::named("string") }
    }

    /// A key of one property of the row, guessed where no path says it.
    pub(super) fn row_key(&mut self, row: &'a Value, stem: &[String], at: &str) -> Option<Part> {
        let (found, sure) = self.guessed_place(row, stem)?;
        let name = names::name(found.path.rsplit('.').next().unwrap_or_default());
        if !sure {
            self.guess(at, format!("`{name}` is taken for what identifies it"));
        }
        Some(Part { place: place_of(&found, &name), ty: self.key_type(found.schema), name })
    }

    /// What a list needs: two of one entity must not need the same.
    pub(super) fn needs(&self, view: usize) -> BTreeSet<String> {
        let View { op, holes, .. } = &self.views[view];
        let mut out: BTreeSet<String> = holes.iter().cloned().collect();
        let required = op.params.iter().filter(|p| p.required && matches!(p.place, In::Query | In::Header));
        out.extend(required.map(|p| names::name(p.name)));
        match &op.body {
            Body::Content { schema, .. } if self.reader.is_object(schema) => {
                let object = self.reader.object(schema);
                out.extend(object.props.iter().filter(|(_, prop)| prop.required).map(|(name, _)| names::name(name)));
            }
            Body::Form { fields, .. } => out.extend(fields.iter().filter(|f| f.required).map(|f| names::name(f.name))),
            _ => {}
        }
        out
    }
}

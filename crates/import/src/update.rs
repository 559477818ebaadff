//! A new draft merged into a catalog that a person has edited: what they wrote stays, what is new is added at the end of its part.
//! Invariant: no line of theirs is changed or lost; what comes out loads; what could not be added is said, with why.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use base::LineIndex;
use catalog::{Capability, Catalog, Transport};
use serde::Serialize;

use crate::{Import, ImportError};

/// What cannot stand beside what is there is left out, this often and no more.
const MAX_ROUNDS: usize = 12;

#[derive(Debug, Clone, Serialize)]
pub struct Update {
    #[serde(skip)]
    pub text: String,
    /// Capabilities that are new in the specification, as they are called in the file.
    pub added: Vec<String>,
    /// Capabilities of the file whose operation the specification has no more. They stay: a person decides.
    pub gone: Vec<String>,
    /// Capabilities whose operation takes other parameters than before.
    pub changed: Vec<String>,
    /// New ones that do not fit beside what is there, and why.
    pub refused: Vec<String>,
}

/// One piece of text that may be added.
struct Block {
    name: String,
    text: String,
}

pub fn update(existing: &str, made: &Import) -> Result<Update, ImportError> {
    let old = catalog::read("existing", existing).map_err(|rejected| ImportError::Existing(rejected.lines()))?;
    let (known, new) = (operations(&old), operations(&made.catalog));
    let gone =
        known.iter().filter(|(operation, _)| !new.contains_key(*operation)).map(|(_, c)| c.name.clone()).collect();
    let same = known.iter().filter_map(|(operation, before)| Some((*before, *new.get(operation)?)));
    let changed = same.filter_map(|(before, after)| difference(before, after)).collect();
    let renamed = renamed(&known, &new);
    let sections = Sections::of(&made.text);
    let unknown: BTreeSet<&str> =
        new.iter().filter(|(operation, _)| !known.contains_key(*operation)).map(|(_, c)| c.name.as_str()).collect();
    let fresh: Vec<&Capability> =
        made.catalog.capabilities.values().filter(|c| unknown.contains(c.name.as_str())).collect();
    let mut capabilities: Vec<Block> = Vec::new();
    let mut wanted: BTreeSet<&str> = BTreeSet::new();
    for capability in fresh.iter().filter(|c| !old.capabilities.contains_key(&c.name)) {
        let Some(text) = sections.capabilities.get(capability.name.as_str()) else { continue };
        capabilities.push(Block { name: capability.name.clone(), text: rename(text, &renamed) });
        for entity in [&capability.entity, &capability.returns] {
            if !old.entities.contains_key(entity) && !renamed.contains_key(entity) {
                wanted.insert(entity);
            }
        }
    }
    let entity = |name: &&str| {
        let text = sections.entities.get(name)?;
        Some(Block { name: (*name).to_owned(), text: rename(&without_relations(text), &renamed) })
    };
    let entities: Vec<Block> = wanted.iter().filter_map(entity).collect();
    let (text, added, refused) = merge(existing, entities, capabilities)?;
    Ok(Update { text, added, gone, changed, refused })
}

/// `GET /tickets/{}`: an operation, whatever its holes are called, to its first capability.
fn operations(catalog: &Catalog) -> BTreeMap<String, &Capability> {
    let mut out = BTreeMap::new();
    for capability in catalog.capabilities.values() {
        let operation = match &capability.transport {
            Transport::Http(http) => {
                let path = format!("{}{}", catalog.base_path, http.path);
                let bare: Vec<&str> =
                    path.split('{').map(|part| part.split_once('}').map_or(part, |(_, rest)| rest)).collect();
                format!("{} {}", http.method.as_str(), bare.join("{}"))
            }
            Transport::Graphql(_) => capability.name.clone(),
        };
        out.entry(operation).or_insert(capability);
    }
    out
}

fn difference(before: &Capability, after: &Capability) -> Option<String> {
    let new: Vec<&str> =
        after.params.keys().filter(|name| !before.params.contains_key(*name)).map(String::as_str).collect();
    let lost: Vec<&str> =
        before.params.keys().filter(|name| !after.params.contains_key(*name)).map(String::as_str).collect();
    let part = |what: &str, names: Vec<&str>| {
        if names.is_empty() { String::new() } else { format!(" {what} {}", names.join(", ")) }
    };
    let says = format!("{}{}", part("also takes", new), part("no longer takes", lost));
    (!says.is_empty()).then(|| format!("{}:{says}", before.name))
}

/// What a person calls an entity that the draft calls something else, seen by the operations of both.
fn renamed(known: &BTreeMap<String, &Capability>, new: &BTreeMap<String, &Capability>) -> HashMap<String, String> {
    let mut count: HashMap<(&str, &str), usize> = HashMap::new();
    for (operation, before) in known {
        if let Some(after) = new.get(operation) {
            *count.entry((&after.entity, &before.entity)).or_default() += 1;
        }
    }
    let mut most: HashMap<&str, (&str, usize)> = HashMap::new();
    for ((from, to), n) in count {
        let best = most.entry(from).or_insert((to, n));
        if n > best.1 || (n == best.1 && to < best.0) {
            *best = (to, n);
        }
    }
    most.into_iter()
        .filter(|(from, (to, _))| from != to)
        .map(|(from, (to, _))| (from.to_owned(), to.to_owned()))
        .collect()
}

/// Names of entities where a draft writes them: after a kind, `returns: ` and `ref: `.
fn rename(text: &str, renamed: &HashMap<String, String>) -> String {
    let mut out = text.to_owned();
    let before = ["query", "search", "get", "singleton", "create", "update", "delete", "action", "returns", "ref"];
    for (from, to) in renamed {
        for key in before {
            for end in ["\n", "}", ","] {
                out = out.replace(&format!("{key}: {from}{end}"), &format!("{key}: {to}{end}"));
            }
        }
    }
    out
}

fn without_relations(text: &str) -> String {
    let mut inside = false;
    let kept = text.lines().filter(|line| {
        inside =
            if line.starts_with("    ") && !line.starts_with("     ") { line.trim() == "relations:" } else { inside };
        !inside
    });
    kept.map(|line| format!("{line}\n")).collect()
}

/// The blocks of a draft, by their names.
struct Sections<'t> {
    entities: HashMap<&'t str, String>,
    capabilities: HashMap<&'t str, String>,
}

impl<'t> Sections<'t> {
    fn of(text: &'t str) -> Self {
        let mut sections = Self { entities: HashMap::new(), capabilities: HashMap::new() };
        let mut section = "";
        let mut name = "";
        for line in text.lines() {
            if !line.starts_with([' ', '#']) && !line.is_empty() {
                section = line.split(':').next().unwrap_or_default();
                name = "";
                continue;
            }
            if line.starts_with("  ") && !line.starts_with("   ") && !line.trim_start().starts_with('#') {
                name = line.trim().trim_end_matches(':');
            }
            let blocks = match section {
                "entities" => &mut sections.entities,
                "capabilities" => &mut sections.capabilities,
                _ => continue,
            };
            if !name.is_empty() && !line.is_empty() {
                let block = blocks.entry(name).or_default();
                block.push_str(line);
                block.push('\n');
            }
        }
        sections
    }
}

/// The text with the blocks in it, what was added and what was not.
fn merge(
    existing: &str,
    mut entities: Vec<Block>,
    mut capabilities: Vec<Block>,
) -> Result<(String, Vec<String>, Vec<String>), ImportError> {
    let mut refused = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let (text, starts) = laid_out(existing, &entities, &capabilities);
        let Err(rejected) = catalog::read("merged", &text) else {
            return Ok((text, capabilities.into_iter().map(|block| block.name).collect(), refused));
        };
        let index = LineIndex::new(&text);
        let mut out: BTreeMap<usize, String> = BTreeMap::new();
        for diagnostic in &rejected.diagnostics {
            let line = index.location(diagnostic.span.start).line as usize;
            if let Some((_, at)) = starts.iter().find(|(lines, _)| lines.contains(&line)) {
                out.entry(*at).or_insert_with(|| diagnostic.message.clone());
            }
        }
        if out.is_empty() {
            break;
        }
        // Entities are counted first, then capabilities, as they were laid out.
        for (at, why) in out.into_iter().rev() {
            let count = entities.len();
            let block = if at < count { entities.remove(at) } else { capabilities.remove(at - count) };
            refused.push(format!("{}: {why}", block.name));
        }
    }
    refused.extend(capabilities.iter().map(|block| format!("{}: it does not fit beside what is there", block.name)));
    Ok((existing.to_owned(), Vec::new(), refused))
}

/// Entities at the end of theirs, capabilities at the end of theirs; and the lines of each block.
fn laid_out(existing: &str, entities: &[Block], capabilities: &[Block]) -> (String, Vec<(Range<usize>, usize)>) {
    let lines: Vec<&str> = existing.lines().collect();
    let end_of = |section: &str| {
        let head = format!("{section}:");
        let start = lines.iter().position(|line| line.trim_end().starts_with(&head)).unwrap_or(lines.len());
        let next = lines
            .iter()
            .enumerate()
            .skip(start + 1)
            .find(|(_, line)| !line.starts_with([' ', '#']) && !line.trim().is_empty());
        let mut end = next.map_or(lines.len(), |(at, _)| at);
        while end > start + 1 && lines[end - 1].trim().is_empty() {
            end -= 1;
        }
        end
    };
    let (of_entities, of_capabilities) = (end_of("entities"), end_of("capabilities"));
    let mut text = String::new();
    let mut starts = Vec::new();
    let mut line = 1;
    for at in 0..=lines.len() {
        for (end, blocks, first) in [(of_entities, entities, 0), (of_capabilities, capabilities, entities.len())] {
            for (n, block) in blocks.iter().enumerate().filter(|_| end == at) {
                let count = block.text.lines().count();
                starts.push((line..line + count, first + n));
                text.push_str(&block.text);
                line += count;
            }
        }
        if let Some(own) = lines.get(at) {
            text.push_str(own);
            text.push('\n');
            line += 1;
        }
    }
    (text, starts)
}

//! The update of an edited catalog from a new draft: edited lines stay, and new blocks are added at the end of their section.
//! A block is the lines of one entity or capability.
//! Invariant: no line of the edited catalog is changed or removed, and `catalog::read` accepts the result. Blocks that do not
//! fit are reported with a reason.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use base::LineIndex;
use catalog::{Capability, Catalog, Transport};
use serde::Serialize;

use crate::{Import, ImportError};

/// The maximum number of rounds in which refused blocks are removed before the update adds nothing.
const MAX_MERGE_ROUNDS: usize = 12;

/// The keys of a draft whose value is the name of an entity.
const ENTITY_KEYS: [&str; 10] =
    ["query", "search", "get", "singleton", "create", "update", "delete", "action", "returns", "ref"];

#[derive(Debug, Clone, Serialize)]
pub struct Update {
    /// The text of the updated catalog.
    #[serde(skip)]
    pub text: String,
    /// The names of the capabilities that were added.
    pub added: Vec<String>,
    /// The names of capabilities whose operation is no longer in the specification. They stay in the catalog until a person
    /// removes them.
    pub gone: Vec<String>,
    /// One line for each capability whose operation has new or removed parameters: the name and the difference.
    pub changed: Vec<String>,
    /// One line for each new block that the catalog cannot contain: the name and the reason.
    pub refused: Vec<String>,
}

/// The YAML lines of one entity or capability of the draft.
struct YamlBlock {
    name: String,
    text: String,
}

/// The result of adding blocks to a catalog.
struct Merged {
    text: String,
    added: Vec<String>,
    refused: Vec<String>,
}

/// Adds the new capabilities of a draft to an existing catalog, with the entities that the capabilities need.
pub fn update(existing: &str, import: &Import) -> Result<Update, ImportError> {
    let old = catalog::read("existing", existing).map_err(|rejected| ImportError::Existing(rejected.lines()))?;
    let old_operations = capabilities_by_operation(&old);
    let new_operations = capabilities_by_operation(&import.catalog);
    let mut gone = Vec::new();
    let mut changed = Vec::new();
    for (operation, before) in &old_operations {
        match new_operations.get(operation) {
            Some(after) => changed.extend(describe_parameter_difference(before, after)),
            None => gone.push(before.name.clone()),
        }
    }

    let renames = find_renamed_entities(&old_operations, &new_operations);
    let sections = Sections::split(&import.text);
    let new_names: BTreeSet<&str> = new_operations
        .iter()
        .filter(|(operation, _)| !old_operations.contains_key(*operation))
        .map(|(_, capability)| capability.name.as_str())
        .collect();
    let mut capabilities: Vec<YamlBlock> = Vec::new();
    let mut needed_entities: BTreeSet<&str> = BTreeSet::new();
    for capability in import.catalog.capabilities.values() {
        if !new_names.contains(capability.name.as_str()) || old.capabilities.contains_key(&capability.name) {
            continue;
        }
        let Some(text) = sections.capabilities.get(capability.name.as_str()) else { continue };
        capabilities.push(YamlBlock { name: capability.name.clone(), text: rename_entities(text, &renames) });
        for entity in [&capability.entity, &capability.returns] {
            if !old.entities.contains_key(entity) && !renames.contains_key(entity) {
                needed_entities.insert(entity);
            }
        }
    }
    let mut entities: Vec<YamlBlock> = Vec::new();
    for name in needed_entities {
        if let Some(text) = sections.entities.get(name) {
            // Relations name capabilities of the draft, which may have other names in the edited catalog, so relations are
            // removed.
            let text = rename_entities(&remove_relations(text), &renames);
            entities.push(YamlBlock { name: name.to_owned(), text });
        }
    }
    let Merged { text, added, refused } = merge(existing, entities, capabilities)?;
    Ok(Update { text, added, gone, changed, refused })
}

/// Returns the first capability of each operation. The map's key is the method and the path without placeholder names: `GET
/// /tickets/{}`.
fn capabilities_by_operation(catalog: &Catalog) -> BTreeMap<String, &Capability> {
    let mut out = BTreeMap::new();
    for capability in catalog.capabilities.values() {
        let operation = match &capability.transport {
            Transport::Http(http) => {
                let path = format!("{}{}", catalog.base_path, http.path);
                let literals: Vec<&str> =
                    path.split('{').map(|part| part.split_once('}').map_or(part, |(_, rest)| rest)).collect();
                format!("{} {}", http.method.as_str(), literals.join("{}"))
            }
            Transport::Graphql(_) => capability.name.clone(),
        };
        out.entry(operation).or_insert(capability);
    }
    out
}

/// Returns a line about new and removed parameters; `None` if the parameters are the same.
fn describe_parameter_difference(before: &Capability, after: &Capability) -> Option<String> {
    let only_in = |one: &Capability, other: &Capability| {
        let names: Vec<&str> =
            one.params.keys().filter(|name| !other.params.contains_key(*name)).map(String::as_str).collect();
        names.join(", ")
    };
    let new = only_in(after, before);
    let lost = only_in(before, after);
    let mut line = format!("{}:", before.name);
    if !new.is_empty() {
        line.push_str(&format!(" also takes {new}"));
    }
    if !lost.is_empty() {
        line.push_str(&format!(" no longer takes {lost}"));
    }
    (!new.is_empty() || !lost.is_empty()).then_some(line)
}

/// Returns the renamed entities: the name in the draft and the name in the edited catalog. Two names belong together if they
/// share more operations than any other pair.
fn find_renamed_entities(
    old: &BTreeMap<String, &Capability>,
    new: &BTreeMap<String, &Capability>,
) -> HashMap<String, String> {
    let mut operations: HashMap<(&str, &str), usize> = HashMap::new();
    for (operation, before) in old {
        if let Some(after) = new.get(operation) {
            *operations.entry((&after.entity, &before.entity)).or_default() += 1;
        }
    }
    let mut best: HashMap<&str, (&str, usize)> = HashMap::new();
    for ((draft_name, name), count) in operations {
        let known = best.entry(draft_name).or_insert((name, count));
        // Of names with equally many operations, the first in the alphabet wins, because the order of a hash map is random.
        if count > known.1 || (count == known.1 && name < known.0) {
            *known = (name, count);
        }
    }
    best.into_iter()
        .filter(|(draft_name, (name, _))| draft_name != name)
        .map(|(draft_name, (name, _))| (draft_name.to_owned(), name.to_owned()))
        .collect()
}

/// Replaces the names of renamed entities in a block of the draft.
fn rename_entities(text: &str, renames: &HashMap<String, String>) -> String {
    let mut out = text.to_owned();
    for (draft_name, name) in renames {
        for key in ENTITY_KEYS {
            for end in ["\n", "}", ","] {
                out = out.replace(&format!("{key}: {draft_name}{end}"), &format!("{key}: {name}{end}"));
            }
        }
    }
    out
}

/// Removes the key `relations` from the block of an entity. Keys of an entity are indented by four spaces.
fn remove_relations(text: &str) -> String {
    let mut in_relations = false;
    let mut out = String::new();
    for line in text.lines() {
        if line.starts_with("    ") && !line.starts_with("     ") {
            in_relations = line.trim() == "relations:";
        }
        if !in_relations {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// The blocks of a draft by name.
struct Sections<'t> {
    entities: HashMap<&'t str, String>,
    capabilities: HashMap<&'t str, String>,
}

impl<'t> Sections<'t> {
    /// Splits the text of a draft into blocks. A draft has sections without indentation and names indented by two spaces.
    fn split(text: &'t str) -> Self {
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

/// Adds the blocks to the catalog. Blocks that `catalog::read` refuses are removed, and the rest is tried again.
fn merge(
    existing: &str,
    mut entities: Vec<YamlBlock>,
    mut capabilities: Vec<YamlBlock>,
) -> Result<Merged, ImportError> {
    let mut refused = Vec::new();
    for _ in 0..MAX_MERGE_ROUNDS {
        let layout = MergedText::assemble(existing, &entities, &capabilities);
        let Err(rejected) = catalog::read("merged", &layout.text) else {
            let added = capabilities.into_iter().map(|block| block.name).collect();
            return Ok(Merged { text: layout.text, added, refused });
        };
        let index = LineIndex::new(&layout.text);
        let mut refused_blocks: BTreeMap<usize, String> = BTreeMap::new();
        for diagnostic in &rejected.diagnostics {
            let line = index.location(diagnostic.span.start).line as usize;
            if let Some((_, block)) = layout.blocks.iter().find(|(lines, _)| lines.contains(&line)) {
                refused_blocks.entry(*block).or_insert_with(|| diagnostic.message.clone());
            }
        }
        if refused_blocks.is_empty() {
            break;
        }
        // Blocks are removed from the last to the first, so that the numbers of the remaining blocks stay valid.
        for (number, reason) in refused_blocks.into_iter().rev() {
            let block = match number.checked_sub(entities.len()) {
                Some(at) => capabilities.remove(at),
                None => entities.remove(number),
            };
            refused.push(format!("{}: {reason}", block.name));
        }
    }
    refused.extend(capabilities.iter().map(|block| format!("{}: it does not fit beside what is there", block.name)));
    Ok(Merged { text: existing.to_owned(), added: Vec::new(), refused })
}

/// The text of a catalog with added blocks, and the position of each block.
struct MergedText {
    text: String,
    /// The line range and the number of each block. Entities are numbered before capabilities.
    blocks: Vec<(Range<usize>, usize)>,
}

impl MergedText {
    /// Inserts entities at the end of the section `entities`, and capabilities at the end of the section `capabilities`.
    fn assemble(existing: &str, entities: &[YamlBlock], capabilities: &[YamlBlock]) -> Self {
        let lines: Vec<&str> = existing.lines().collect();
        let end_of_entities = end_of_section(&lines, "entities");
        let end_of_capabilities = end_of_section(&lines, "capabilities");
        let mut layout = Self { text: String::new(), blocks: Vec::new() };
        let mut next_line = 1;
        for at in 0..=lines.len() {
            if at == end_of_entities {
                layout.add(entities, 0, &mut next_line);
            }
            if at == end_of_capabilities {
                layout.add(capabilities, entities.len(), &mut next_line);
            }
            if let Some(line) = lines.get(at) {
                layout.text.push_str(line);
                layout.text.push('\n');
                next_line += 1;
            }
        }
        layout
    }

    fn add(&mut self, blocks: &[YamlBlock], first_number: usize, next_line: &mut usize) {
        for (at, block) in blocks.iter().enumerate() {
            let count = block.text.lines().count();
            self.blocks.push((*next_line..*next_line + count, first_number + at));
            self.text.push_str(&block.text);
            *next_line += count;
        }
    }
}

/// Returns the index after the last non-empty line of a section.
fn end_of_section(lines: &[&str], section: &str) -> usize {
    let head = format!("{section}:");
    let start = lines.iter().position(|line| line.trim_end().starts_with(&head)).unwrap_or(lines.len());
    let is_next_section = |line: &&str| !line.starts_with([' ', '#']) && !line.trim().is_empty();
    let next = lines.iter().skip(start + 1).position(is_next_section);
    let mut end = next.map_or(lines.len(), |offset| start + 1 + offset);
    while end > start + 1 && lines[end - 1].trim().is_empty() {
        end -= 1;
    }
    end
}

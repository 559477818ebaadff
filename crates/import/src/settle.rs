//! The settlement of a draft: the reader of catalogs judges its text, and what it refuses is removed with a reason in the report.
//! Invariant: a draft that comes out loads. Each round removes something, so the rounds end.

use std::collections::{HashMap, HashSet};

use base::LineIndex;
use catalog::raw::SlotType;
use catalog::{Kind, Rejected};

use crate::draft::{self, Draft, DraftCapability, DraftText};
use crate::report::{ImportReport, Unmapped};
use crate::{Import, ImportError};

/// The number of rounds: the removal of one part can make another one invalid.
const MAX_ROUNDS: usize = 12;

pub fn settle(mut draft: Draft, mut report: ImportReport) -> Result<Import, ImportError> {
    for _ in 0..MAX_ROUNDS {
        prune(&mut draft, &mut report);
        let written = draft.write()?;
        match catalog::read("draft", &written.text) {
            Ok(catalog) => {
                let operations: HashSet<&str> = draft.capabilities.iter().map(|c| c.operation.as_str()).collect();
                report.mapped = operations.len();
                report.count(&catalog);
                return Ok(Import { text: written.text, catalog, report });
            }
            Err(rejected) => {
                if !repair(&mut draft, &written, &rejected, &mut report) {
                    return Err(ImportError::Refused(rejected.lines().chars().take(2_000).collect()));
                }
            }
        }
    }
    Err(ImportError::Refused("parts are removed without end".to_owned()))
}

/// Removes the parts that the reader refused. Returns false where a refusal concerns none of them.
fn repair(draft: &mut Draft, written: &DraftText, rejected: &Rejected, report: &mut ImportReport) -> bool {
    let index = LineIndex::new(&rejected.text);
    let first_capability_line = written.capability_lines.first().copied().unwrap_or(usize::MAX);
    let mut refused_capabilities: HashMap<usize, String> = HashMap::new();
    let mut refused_entities: Vec<(usize, String)> = Vec::new();
    for diagnostic in &rejected.diagnostics {
        let line = index.location(diagnostic.span.start).line as usize;
        let part_at = |starts: &[usize]| starts.partition_point(|start| *start <= line).checked_sub(1);
        match (part_at(&written.capability_lines), part_at(&written.entity_lines)) {
            (Some(at), _) if line >= first_capability_line => {
                refused_capabilities.insert(at, diagnostic.message.clone());
            }
            (_, Some(at)) => refused_entities.push((at, diagnostic.message.clone())),
            _ => return false,
        }
    }
    if refused_capabilities.is_empty() && refused_entities.is_empty() {
        return false;
    }
    // An entity may only be invalid because of its relations, so they are removed first, and the entity in a later round.
    let mut removed_entities: HashMap<String, String> = HashMap::new();
    let mut cleared: HashSet<usize> = HashSet::new();
    for (at, reason) in refused_entities {
        let entity = &mut draft.entities[at];
        if !entity.raw.relations.is_empty() {
            entity.raw.relations.clear();
            cleared.insert(at);
        } else if !cleared.contains(&at) {
            removed_entities.insert(entity.name.clone(), reason);
        }
    }
    remove_capabilities(draft, &|at, _| refused_capabilities.get(&at).cloned(), report);
    remove_entities(draft, &removed_entities, report);
    true
}

/// Removes every capability for which `reason` returns a text, with what names it.
fn remove_capabilities(
    draft: &mut Draft,
    reason: &dyn Fn(usize, &DraftCapability) -> Option<String>,
    report: &mut ImportReport,
) {
    let mut removed: Vec<(DraftCapability, String)> = Vec::new();
    for (at, capability) in std::mem::take(&mut draft.capabilities).into_iter().enumerate() {
        match reason(at, &capability) {
            Some(reason) => removed.push((capability, reason)),
            None => draft.capabilities.push(capability),
        }
    }
    if removed.is_empty() {
        return;
    }
    // An operation is reported once, and only if no other capability calls it.
    let mut accounted: HashSet<String> = draft.capabilities.iter().map(|c| c.operation.clone()).collect();
    let names: HashSet<String> = removed.iter().map(|(capability, _)| capability.name.clone()).collect();
    for (capability, reason) in removed {
        if accounted.insert(capability.operation.clone()) {
            let why = format!("a catalog cannot say it: {reason}");
            report.unmapped.push(Unmapped { operation: capability.operation, why });
        }
    }
    for entity in &mut draft.entities {
        entity.raw.relations.retain(|_, relation| relation.by.as_ref().is_none_or(|query| !names.contains(query)));
        entity.raw.primary_read = entity.raw.primary_read.take().filter(|get| !names.contains(get));
    }
}

/// Removes entities, with a reason for each name, and their capabilities.
fn remove_entities(draft: &mut Draft, reasons: &HashMap<String, String>, report: &mut ImportReport) {
    if reasons.is_empty() {
        return;
    }
    remove_capabilities(draft, &|_, capability| reasons.get(&capability.entity).cloned(), report);
    draft.entities.retain(|entity| !reasons.contains_key(&entity.name));
    remove_references(draft, &reasons.keys().cloned().collect());
}

/// Replaces everything that refers to the removed entities.
fn remove_references(draft: &mut Draft, removed: &HashSet<String>) {
    for capability in &mut draft.capabilities {
        if capability.raw.returns.as_ref().is_some_and(|entity| removed.contains(entity)) {
            capability.raw.returns = None;
            capability.set_rows(None);
            if matches!(capability.kind, Kind::Create | Kind::Update) {
                capability.ignore_answer();
            }
        }
        for param in capability.raw.params.values_mut() {
            replace_reference(&mut param.kind, removed);
        }
    }
    for entity in &mut draft.entities {
        entity
            .raw
            .relations
            .retain(|_, relation| relation.many.iter().chain(&relation.one).all(|target| !removed.contains(target)));
        for field in entity.raw.fields.values_mut() {
            // Paths by the parts of a key mean nothing without the reference.
            let by_parts = matches!(field.path, Some(catalog::raw::FieldPath::Parts(_)));
            if replace_reference(&mut field.kind, removed) && by_parts {
                field.path = None;
            }
        }
    }
}

/// Makes a reference to a removed entity `json`. Returns whether it was one.
fn replace_reference(kind: &mut SlotType, removed: &HashSet<String>) -> bool {
    let target = match kind {
        SlotType::Ref(entity) => Some(&*entity),
        SlotType::Array(item) => match &**item {
            SlotType::Ref(entity) => Some(entity),
            _ => None,
        },
        _ => None,
    };
    let is_removed = target.is_some_and(|entity| removed.contains(entity));
    if is_removed {
        *kind = draft::named("json");
    }
    is_removed
}

/// Removes entities that no call reads and no answer holds: their writes could not be called on anything.
fn prune(draft: &mut Draft, report: &mut ImportReport) {
    let mut reached: HashSet<&str> = HashSet::new();
    for capability in &draft.capabilities {
        let raw = &capability.raw;
        let answers_with_row =
            matches!(capability.kind, Kind::Create | Kind::Update) && raw.answer.is_none() && raw.returns.is_none();
        // An action that is not called on a row can be called without one.
        let needs_no_row = capability.kind == Kind::Action && !capability.on_row;
        if capability.kind.is_read() || answers_with_row || needs_no_row {
            reached.insert(&capability.entity);
        }
        reached.extend(raw.returns.as_deref());
    }
    let reason = "nothing reads what it belongs to";
    let unreached: HashMap<String, String> = draft
        .entities
        .iter()
        .filter(|entity| !reached.contains(entity.name.as_str()))
        .map(|entity| (entity.name.clone(), reason.to_owned()))
        .collect();
    remove_entities(draft, &unreached, report);
}

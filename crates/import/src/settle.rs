//! The repair of a draft: `catalog::read` checks the text, and each part that it refuses is removed and reported as unmapped.
//! Invariant: `catalog::read` accepts every returned draft. Each round removes at least one part, so the repair ends.

use std::collections::{HashMap, HashSet};

use base::LineIndex;
use catalog::raw::SlotType;
use catalog::{Kind, Rejected};

use crate::draft::{self, Draft, DraftCapability, DraftText};
use crate::report::{ImportReport, Unmapped};
use crate::{Import, ImportError};

/// The maximum number of rounds. The removal of one part can make another part invalid, so several rounds can be necessary.
const MAX_REPAIR_ROUNDS: usize = 12;

pub fn make_loadable(mut draft: Draft, mut report: ImportReport) -> Result<Import, ImportError> {
    for _ in 0..MAX_REPAIR_ROUNDS {
        remove_unreachable_entities(&mut draft, &mut report);
        let written = draft.write()?;
        match catalog::read("draft", &written.text) {
            Ok(catalog) => {
                let operations: HashSet<&str> = draft.capabilities.iter().map(|c| c.operation.as_str()).collect();
                report.mapped = operations.len();
                report.count_parts(&catalog);
                return Ok(Import { text: written.text, catalog, report });
            }
            Err(rejected) => {
                if !remove_refused_parts(&mut draft, &written, &rejected, &mut report) {
                    return Err(ImportError::Refused(rejected.lines().chars().take(2_000).collect()));
                }
            }
        }
    }
    Err(ImportError::Refused("parts are removed without end".to_owned()))
}

/// Removes the parts that `catalog::read` refused. Returns false if a diagnostic belongs to no entity and no capability.
fn remove_refused_parts(
    draft: &mut Draft,
    written: &DraftText,
    rejected: &Rejected,
    report: &mut ImportReport,
) -> bool {
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
    // The cause may be the entity's relations, so they are removed first. The entity itself is removed only if it is refused
    // again.
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

/// Removes every capability for which `reason` returns a text, and the relations and primary reads that name the capability.
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
    // An operation is reported at most once, and only if no remaining capability calls it.
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

/// Removes the entities that are named in `reasons`, with their capabilities. The report gets the reasons.
fn remove_entities(draft: &mut Draft, reasons: &HashMap<String, String>, report: &mut ImportReport) {
    if reasons.is_empty() {
        return;
    }
    remove_capabilities(draft, &|_, capability| reasons.get(&capability.entity).cloned(), report);
    draft.entities.retain(|entity| !reasons.contains_key(&entity.name));
    remove_references(draft, &reasons.keys().cloned().collect());
}

/// Removes relations to the removed entities, and replaces references to them by the type `json`.
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
            // A path for each key part is only valid in a reference.
            let by_parts = matches!(field.path, Some(catalog::raw::FieldPath::Parts(_)));
            if replace_reference(&mut field.kind, removed) && by_parts {
                field.path = None;
            }
        }
    }
}

/// Replaces the type by `json` if it refers to a removed entity. Returns whether the type was replaced.
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
        *kind = draft::named_type("json");
    }
    is_removed
}

/// Removes entities whose rows no capability returns, because a program could not get a row for their writes.
fn remove_unreachable_entities(draft: &mut Draft, report: &mut ImportReport) {
    let mut reached: HashSet<&str> = HashSet::new();
    for capability in &draft.capabilities {
        let raw = &capability.raw;
        let answers_with_row =
            matches!(capability.kind, Kind::Create | Kind::Update) && raw.answer.is_none() && raw.returns.is_none();
        // An action without a row can be called directly, so its entity is kept.
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

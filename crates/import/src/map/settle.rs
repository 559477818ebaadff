//! The draft as text, read back by the reader of catalogs; what it refuses is left out and said.
//! Invariant: what comes out loads; each round leaves something out, so the rounds end.

use std::collections::{HashMap, HashSet};

use base::LineIndex;
use catalog::Rejected;

use crate::draft::{self, Capability, Draft, Entity, Ty, Via, Written};
use crate::report::{Report, Unmapped};
use crate::{Import, ImportError};

/// Leaving something out can make something else wrong; this often and no more.
const MAX_ROUNDS: usize = 12;

pub fn settle(mut draft: Draft, mut report: Report) -> Result<Import, ImportError> {
    for _ in 0..MAX_ROUNDS {
        prune(&mut draft, &mut report);
        let written = draft::write(&draft);
        match catalog::read("draft", &written.text) {
            Ok(catalog) => {
                let from: HashSet<&str> = draft.capabilities.iter().map(|c| c.from.as_str()).collect();
                report.mapped = from.len();
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
    Err(ImportError::Refused("leaving things out did not end".to_owned()))
}

/// Takes out what the reader named; false where nothing can be.
fn repair(draft: &mut Draft, written: &Written, rejected: &Rejected, report: &mut Report) -> bool {
    let index = LineIndex::new(&rejected.text);
    let mut capabilities: Vec<(usize, String)> = Vec::new();
    let mut entities: Vec<(usize, String)> = Vec::new();
    for diagnostic in &rejected.diagnostics {
        let line = index.location(diagnostic.span.start).line as usize;
        let of = |starts: &[usize]| starts.partition_point(|start| *start <= line).checked_sub(1);
        let first = written.capabilities.first().copied().unwrap_or(usize::MAX);
        match (of(&written.capabilities), of(&written.entities)) {
            (Some(at), _) if line >= first => capabilities.push((at, diagnostic.message.clone())),
            (_, Some(at)) => entities.push((at, diagnostic.message.clone())),
            _ => return false,
        }
    }
    if capabilities.is_empty() && entities.is_empty() {
        return false;
    }
    let cleared: Vec<(usize, String)> =
        entities.iter().filter(|(at, _)| !draft.entities[*at].relations.is_empty()).cloned().collect();
    let capabilities: HashMap<usize, String> = capabilities.into_iter().collect();
    // An entity may only have been wrong because of a capability: its relations go first, then all of it.
    let mut gone: HashMap<String, String> = HashMap::new();
    for (at, why) in entities {
        if draft.entities[at].relations.is_empty() {
            gone.insert(draft.entities[at].name.clone(), why);
        }
    }
    for (at, _) in cleared {
        draft.entities[at].relations.clear();
    }
    leave_out(draft, &|at, _| capabilities.get(&at).cloned(), report);
    drop_entities(draft, &gone, report);
    true
}

/// Takes out every capability that there is a reason to.
fn leave_out(draft: &mut Draft, why: &dyn Fn(usize, &Capability) -> Option<String>, report: &mut Report) {
    let all = std::mem::take(&mut draft.capabilities);
    let mut out: Vec<(Capability, String)> = Vec::new();
    for (at, capability) in all.into_iter().enumerate() {
        match why(at, &capability) {
            Some(why) => out.push((capability, why)),
            None => draft.capabilities.push(capability),
        }
    }
    if out.is_empty() {
        return;
    }
    let mut kept: HashSet<String> = draft.capabilities.iter().map(|c| c.from.clone()).collect();
    let names: HashSet<String> = out.iter().map(|(c, _)| c.name.clone()).collect();
    for (capability, why) in out {
        if kept.insert(capability.from.clone()) {
            report
                .unmapped
                .push(Unmapped { operation: capability.from, why: format!("a catalog cannot say it: {why}") });
        }
    }
    for entity in &mut draft.entities {
        entity.relations.retain(|relation| {
            let Via::By { capability, .. } = &relation.via;
            !names.contains(capability)
        });
        entity.primary_read = entity.primary_read.take().filter(|get| !names.contains(get));
    }
}

fn drop_entities(draft: &mut Draft, gone: &HashMap<String, String>, report: &mut Report) {
    if gone.is_empty() {
        return;
    }
    leave_out(draft, &|_, capability| gone.get(&capability.entity).cloned(), report);
    draft.entities.retain(|entity| !gone.contains_key(&entity.name));
    forget(draft, &gone.keys().cloned().collect());
}

/// Nothing leads to entities that are gone.
fn forget(draft: &mut Draft, gone: &HashSet<String>) {
    for capability in &mut draft.capabilities {
        if capability.returns.as_ref().is_some_and(|entity| gone.contains(entity)) {
            capability.returns = None;
            capability.rows = None;
            capability.silent = matches!(capability.kind, draft::Kind::Create | draft::Kind::Update);
        }
        for param in &mut capability.params {
            unrefer(&mut param.ty, gone);
        }
    }
    for entity in &mut draft.entities {
        entity.relations.retain(|relation| !gone.contains(&relation.target));
        for field in &mut entity.fields {
            if unrefer(&mut field.ty, gone) && matches!(field.place, draft::Place::Parts(_)) {
                field.place = draft::Place::Own;
            }
        }
    }
}

fn unrefer(ty: &mut Ty, gone: &HashSet<String>) -> bool {
    match ty {
        Ty::Ref(entity) if gone.contains(entity) => *ty = Ty::named("json"),
        Ty::Array(of) if matches!(&**of, Ty::Ref(entity) if gone.contains(entity)) => *ty = Ty::named("json"),
        _ => return false,
    }
    true
}

/// Entities that nothing reads and no answer gives: their writes cannot be called on anything.
fn prune(draft: &mut Draft, report: &mut Report) {
    let reached: HashSet<String> = draft
        .capabilities
        .iter()
        .flat_map(|c| {
            let read = c.kind.is_read().then(|| c.entity.clone());
            let whole = !c.silent && matches!(c.kind, draft::Kind::Create | draft::Kind::Update) && c.returns.is_none();
            // What stands for itself can be called without a row.
            let free = matches!(c.kind, draft::Kind::Action) && !c.instance;
            let read = read.or_else(|| free.then(|| c.entity.clone()));
            read.into_iter().chain(whole.then(|| c.entity.clone())).chain(c.returns.clone())
        })
        .collect();
    let lost: HashSet<String> =
        draft.entities.iter().map(|e: &Entity| e.name.clone()).filter(|n| !reached.contains(n)).collect();
    if lost.is_empty() {
        return;
    }
    let why = "nothing reads what it belongs to".to_owned();
    drop_entities(draft, &lost.into_iter().map(|name| (name, why.clone())).collect(), report);
}

//! The draft as text, read back by the reader of catalogs; what it refuses is left out and said.
//! Invariant: what comes out loads; each round leaves something out, so the rounds end.

use std::collections::HashSet;

use base::LineIndex;
use catalog::Rejected;

use crate::draft::{self, Draft, Entity, Ty, Via, Written};
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
        let line = index.place(diagnostic.span.start).line as usize;
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
    capabilities.sort();
    capabilities.dedup_by_key(|(at, _)| *at);
    for (at, why) in capabilities.into_iter().rev() {
        leave_out(draft, at, &why, report);
    }
    // An entity may only have been wrong because of a capability: its relations go first, then all of it.
    entities.sort();
    entities.dedup_by_key(|(at, _)| *at);
    for (at, why) in entities.into_iter().rev() {
        if draft.entities[at].relations.is_empty() {
            let name = draft.entities[at].name.clone();
            drop_entity(draft, &name, &why, report);
        } else {
            draft.entities[at].relations.clear();
        }
    }
    true
}

fn leave_out(draft: &mut Draft, at: usize, why: &str, report: &mut Report) {
    let capability = draft.capabilities.remove(at);
    let others = draft.capabilities.iter().any(|other| other.from == capability.from);
    if !others {
        let why = format!("a catalog cannot say it: {why}");
        report.unmapped.push(Unmapped { operation: capability.from, why });
    }
    let gone = |via: &Via| matches!(via, Via::By { capability: by, .. } if *by == capability.name);
    for entity in &mut draft.entities {
        entity.relations.retain(|relation| !gone(&relation.via));
        entity.primary_read = entity.primary_read.take().filter(|get| *get != capability.name);
    }
}

fn drop_entity(draft: &mut Draft, name: &str, why: &str, report: &mut Report) {
    let mine: Vec<usize> =
        draft.capabilities.iter().enumerate().filter(|(_, c)| c.entity == name).map(|(at, _)| at).collect();
    for at in mine.into_iter().rev() {
        leave_out(draft, at, why, report);
    }
    draft.entities.retain(|entity| entity.name != name);
    forget(draft, &HashSet::from([name.to_owned()]));
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
    let lost: HashSet<String> = draft.entities.iter().map(|e: &Entity| e.name.clone()).filter(|n| !reached.contains(n)).collect();
    if lost.is_empty() {
        return;
    }
    let mine: Vec<usize> = draft.capabilities.iter().enumerate().filter(|(_, c)| lost.contains(&c.entity)).map(|(at, _)| at).collect();
    for at in mine.into_iter().rev() {
        leave_out(draft, at, "nothing reads what it belongs to", report);
    }
    draft.entities.retain(|entity| !lost.contains(&entity.name));
    forget(draft, &lost);
}

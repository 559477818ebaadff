//! Finds out whether an effect with a lost answer happened: a read that the catalog declares is compared with what
//! was sent.
//! Invariant: an answer is given only if the read is conclusive. A list that was not read to its end cannot show that
//! something is missing, and two matching rows do not show which one is meant.

use catalog::{Args, Capability, Entity, Kind, Row};

use super::EffectStep;
use crate::budget::{Allowance, Counted};
use crate::call::{self, Part, Reads, Target};
use crate::coverage::Coverage;
use crate::paging::{self, ListLimits};
use crate::step::pure::filter::equal;

/// The finding of a probe.
pub enum ProbeResult {
    /// It happened, with the row that shows it, if there is one.
    Happened(Vec<Row>),
    DidNotHappen,
}

/// Runs the probe. Returns its name and finding, or `None` if the capability has no probe or the probe is
/// inconclusive.
pub async fn ask(doing: &EffectStep<'_>, args: &Args) -> Option<(String, ProbeResult)> {
    let Target { catalog, capability: effect } = doing.target;
    let declared = doing.effect()?.probe.as_ref()?;
    let probe = catalog.capability(&declared.capability)?;
    let entity = catalog.entity(&probe.returns)?;
    let limits = doing.reads.ctx.limits;
    let allowance = Allowance::of_probe(doing.budget, limits.pages, limits.rows);
    let reads = Reads { ctx: doing.reads.ctx, allowance: &allowance, counted: Counted::Extra, fields: None };
    let probe_args = probe_args(probe, args)?;
    let target = Target { catalog, capability: probe };
    let (rows, all) = if probe.kind.is_list() {
        let want = ListLimits { rows: None, page_size: None, pages: limits.pages };
        let list = paging::list(&reads, target, &probe_args, want).await.ok()?;
        (list.rows.iter().map(|row| Row::clone(row)).collect(), list.coverage == Coverage::Complete)
    } else {
        match call::read(&reads, target, &probe_args, Part::WHOLE).await {
            Ok(decoded) => (decoded.rows, true),
            Err(error) if error.is_not_found() => (Vec::new(), true),
            Err(_) => return None,
        }
    };
    let found = compare(effect, entity, &declared.fields, args, rows)?;
    let probed = conclude(effect.kind == Kind::Delete, found, all)?;
    Some((probe.name.clone(), probed))
}

/// Returns the probe's arguments, taken from the effect's values. `None` if a required one was not sent.
fn probe_args(probe: &Capability, args: &Args) -> Option<Args> {
    let given: Args = args.iter().filter(|(name, _)| takes(probe, name)).map(|(n, v)| (n.clone(), v.clone())).collect();
    probe.required().all(|param| given.contains_key(&param.name)).then_some(given)
}

fn takes(probe: &Capability, name: &str) -> bool {
    probe.params.contains_key(name) || probe.anchor.iter().any(|part| part == name)
}

/// Returns the rows that match the values that were sent. `None` if a row shows none of these values.
fn compare(effect: &Capability, entity: &Entity, fields: &[String], args: &Args, rows: Vec<Row>) -> Option<Vec<Row>> {
    let declared: Vec<&String> = match fields {
        [] => effect.params.keys().filter(|name| entity.fields.contains_key(*name)).collect(),
        fields => fields.iter().collect(),
    };
    let key = entity.key.iter().filter(|part| effect.anchor.contains(part));
    let sent_values: Vec<(&String, &serde_json::Value)> =
        declared.into_iter().chain(key).filter_map(|name| Some((name, args.get(name)?))).collect();
    let beyond_key = sent_values.iter().any(|(name, _)| !effect.anchor.contains(name));
    // The existence of a row shows only that it was created or that it was not deleted. It says nothing about an
    // update or an action.
    if !beyond_key && !matches!(effect.kind, Kind::Create | Kind::Delete) {
        return None;
    }
    if sent_values.is_empty() {
        return None;
    }
    let fits = |row: &Row| {
        sent_values.iter().all(|(name, sent)| {
            let kind = entity.fields.get(*name).map(|f| &f.kind);
            row.get(*name).zip(kind).is_some_and(|(found, kind)| equal(kind, found, sent))
        })
    };
    Some(rows.into_iter().filter(fits).collect())
}

fn conclude(deleted: bool, mut found: Vec<Row>, all: bool) -> Option<ProbeResult> {
    match (found.len(), deleted) {
        (0, true) if all => Some(ProbeResult::Happened(Vec::new())),
        (0, false) if all => Some(ProbeResult::DidNotHappen),
        (1, false) => found.pop().map(|row| ProbeResult::Happened(vec![row])),
        (1.., true) => Some(ProbeResult::DidNotHappen),
        _ => None,
    }
}

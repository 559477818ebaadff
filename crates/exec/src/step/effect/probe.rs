//! The probe of an effect with a lost answer: a read, declared by the catalog, that shows whether the effect happened.
//! Invariant: a probe returns a finding only if its read is conclusive. A list that was not read to its end cannot prove that a
//! row is missing, and two matching rows cannot prove which row the effect made.

use base::Limits;
use catalog::{Args, Capability, Entity, Kind, Probe, Row};
use ports::receipts::Settlement;

use crate::budget::{Allowance, Budget, Counted};
use crate::call::{self, ListPart, ReadContext, Target};
use crate::coverage::Coverage;
use crate::ctx::Ctx;
use crate::paging::{self, ListLimits};
use crate::step::pure::filter::is_equal_as;

/// The conclusion of a probe about the effect.
pub enum ProbeFinding {
    /// The effect happened. The list contains the row that proves it; it is empty for a delete.
    Happened(Vec<Row>),
    /// The effect did not happen.
    DidNotHappen,
}

/// The probe of an effect, with the arguments of its read.
struct ProbeRead<'a> {
    declared: &'a Probe,
    capability: &'a Capability,
    entity: &'a Entity,
    args: Args,
}

impl<'a> ProbeRead<'a> {
    /// Returns `None` if there is no probe, or if the arguments of the effect do not fill it.
    fn of(Target { catalog, capability: effect }: Target<'a>, args: &Args) -> Option<Self> {
        let declared = effect.effect.as_ref()?.probe.as_ref()?;
        let capability = catalog.capability(&declared.capability)?;
        let entity = catalog.entity(&capability.returns)?;
        Some(Self { declared, capability, entity, args: probe_args(capability, args)? })
    }
}

/// Returns what a later look at this effect needs. `None` if no look can decide anything.
pub fn settlement(limits: &Limits, target: Target<'_>, args: &Args) -> Option<Settlement> {
    let probe = ProbeRead::of(target, args)?;
    matching_rows(target.capability, probe.entity, &probe.declared.fields, args, Vec::new())?;
    let declared = target.capability.effect.as_ref().and_then(|effect| effect.settles);
    let default_ms = limits.request_timeout_ms.saturating_mul(2);
    Some(Settlement {
        catalog: target.catalog.digest(),
        capability: target.capability.name.clone(),
        args: args.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        settles_ms: declared.map_or(default_ms, |seconds| u64::from(seconds) * 1000),
    })
}

/// Runs the probe of an effect. Returns the name of the probe capability and the finding; `None` if there is no probe or the
/// read is inconclusive.
pub async fn run(
    ctx: &Ctx<'_>,
    budget: &Budget<'_>,
    effect: Target<'_>,
    args: &Args,
) -> Option<(String, ProbeFinding)> {
    let ProbeRead { declared, capability: probe, entity, args: probe_args } = ProbeRead::of(effect, args)?;
    let Target { catalog, capability: effect } = effect;
    let limits = ctx.limits;
    let allowance = Allowance::of_probe(budget, limits.pages, limits.rows);
    let reads = ReadContext { ctx, allowance: &allowance, counted: Counted::Extra, fields: None };
    let target = Target { catalog, capability: probe };
    let (rows, is_complete) = if probe.kind.is_list() {
        let wanted = ListLimits { rows: None, page_size: None, pages: limits.pages };
        let list = paging::read_list(&reads, target, &probe_args, wanted).await.ok()?;
        (list.rows.iter().map(|row| Row::clone(row)).collect(), list.coverage == Coverage::Complete)
    } else {
        match call::read(&reads, target, &probe_args, ListPart::WHOLE).await {
            Ok(decoded) => (decoded.rows, true),
            Err(error) if error.is_not_found() => (Vec::new(), true),
            Err(_) => return None,
        }
    };
    let matching = matching_rows(effect, entity, &declared.fields, args, rows)?;
    let finding = conclude(effect.kind == Kind::Delete, matching, is_complete)?;
    Some((probe.name.clone(), finding))
}

/// Returns the arguments of the probe, copied from the arguments of the effect. Returns `None` if a required argument is
/// missing.
fn probe_args(probe: &Capability, args: &Args) -> Option<Args> {
    let given: Args =
        args.iter().filter(|(name, _)| takes_argument(probe, name)).map(|(n, v)| (n.clone(), v.clone())).collect();
    probe.required().all(|param| given.contains_key(&param.name)).then_some(given)
}

fn takes_argument(probe: &Capability, name: &str) -> bool {
    probe.params.contains_key(name) || probe.anchor.iter().any(|part| part == name)
}

/// Returns the rows whose fields equal the sent values. Returns `None` if the sent values cannot prove the effect.
fn matching_rows(
    effect: &Capability,
    entity: &Entity,
    fields: &[String],
    args: &Args,
    rows: Vec<Row>,
) -> Option<Vec<Row>> {
    let declared: Vec<&String> = match fields {
        [] => effect.params.keys().filter(|name| entity.fields.contains_key(*name)).collect(),
        fields => fields.iter().collect(),
    };
    let key = entity.key.iter().filter(|part| effect.anchor.contains(part));
    let sent_values: Vec<(&String, &serde_json::Value)> =
        declared.into_iter().chain(key).filter_map(|name| Some((name, args.get(name)?))).collect();
    let has_value_beyond_key = sent_values.iter().any(|(name, _)| !effect.anchor.contains(name));
    // The key alone proves that a row exists. That is enough for a create or a delete, but not for an update or an action.
    if !has_value_beyond_key && !matches!(effect.kind, Kind::Create | Kind::Delete) {
        return None;
    }
    if sent_values.is_empty() {
        return None;
    }
    let matches = |row: &Row| {
        sent_values.iter().all(|(name, sent)| {
            let kind = entity.fields.get(*name).map(|f| &f.kind);
            row.get(*name).zip(kind).is_some_and(|(shown, kind)| is_equal_as(kind, shown, sent))
        })
    };
    Some(rows.into_iter().filter(matches).collect())
}

/// Returns the finding for the matching rows; `None` if it is inconclusive. `is_complete` is true if all rows were read.
fn conclude(is_delete: bool, mut matching: Vec<Row>, is_complete: bool) -> Option<ProbeFinding> {
    match (matching.len(), is_delete) {
        (0, true) if is_complete => Some(ProbeFinding::Happened(Vec::new())),
        (0, false) if is_complete => Some(ProbeFinding::DidNotHappen),
        (1, false) => matching.pop().map(|row| ProbeFinding::Happened(vec![row])),
        (1.., true) => Some(ProbeFinding::DidNotHappen),
        _ => None,
    }
}

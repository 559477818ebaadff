//! Finding out whether a lost effect happened: the read that its catalog declares, compared with what was sent.
//! Invariant: it says that something happened, or did not, only where the read can tell; a list that was not read to its end
//! cannot tell that something is not there, and two rows that fit do not tell which one is meant.

use catalog::{Args, Capability, Entity, Kind, Row};

use super::Doing;
use crate::budget::{Allowance, Counted};
use crate::call::{self, Part, Reads};
use crate::coverage::Coverage;
use crate::paging::{self, Want};
use crate::step::pure::filter::equal;

pub enum Probed {
    /// With the row that shows it, where there is one.
    Happened(Vec<Row>),
    Not,
}

/// The probe's name and what it found; `None` where there is none, or it cannot tell.
pub async fn ask(doing: &Doing<'_>, args: &Args) -> Option<(String, Probed)> {
    let (catalog, effect) = doing.target;
    let declared = doing.effect()?.probe.as_ref()?;
    let probe = catalog.capability(&declared.capability)?;
    let entity = catalog.entity(&probe.returns)?;
    let limits = doing.reads.ctx.limits;
    let allowance = Allowance::of_probe(doing.budget, limits.pages, limits.rows);
    let reads = Reads { ctx: doing.reads.ctx, allowance: &allowance, counted: Counted::Extra, fields: None };
    let given = given(probe, args)?;
    let (rows, all) = if probe.kind.is_list() {
        let want = Want { rows: None, page_size: None, pages: limits.pages };
        let list = paging::list(&reads, (catalog, probe), &given, want).await.ok()?;
        (list.rows.iter().map(|row| Row::clone(row)).collect(), list.coverage == Coverage::Complete)
    } else {
        match call::read(&reads, (catalog, probe), &given, Part::WHOLE).await {
            Ok(decoded) => (decoded.rows, true),
            Err(error) if error.is_not_found() => (Vec::new(), true),
            Err(_) => return None,
        }
    };
    let found = compare(effect, entity, (&declared.fields, args), rows)?;
    let probed = tell(effect.kind == Kind::Delete, found, all)?;
    Some((probe.name.clone(), probed))
}

/// What of the effect's values the probe takes; `None` where it needs one that was not sent.
fn given(probe: &Capability, args: &Args) -> Option<Args> {
    let given: Args = args.iter().filter(|(name, _)| takes(probe, name)).map(|(n, v)| (n.clone(), v.clone())).collect();
    probe.required().all(|param| given.contains_key(&param.name)).then_some(given)
}

fn takes(probe: &Capability, name: &str) -> bool {
    probe.params.contains_key(name) || probe.anchor.iter().any(|part| part == name)
}

/// The rows that fit what was sent; `None` where nothing that was sent can be seen in a row.
fn compare(
    effect: &Capability,
    entity: &Entity,
    (fields, args): (&[String], &Args),
    rows: Vec<Row>,
) -> Option<Vec<Row>> {
    let declared: Vec<&String> = match fields {
        [] => effect.params.keys().filter(|name| entity.fields.contains_key(*name)).collect(),
        fields => fields.iter().collect(),
    };
    let key = entity.key.iter().filter(|part| effect.anchor.contains(part));
    let seen: Vec<(&String, &serde_json::Value)> =
        declared.into_iter().chain(key).filter_map(|name| Some((name, args.get(name)?))).collect();
    let beyond_key = seen.iter().any(|(name, _)| !effect.anchor.contains(name));
    // That a row is there tells that it was made, or that it was not deleted; nothing else.
    if !beyond_key && !matches!(effect.kind, Kind::Create | Kind::Delete) {
        return None;
    }
    if seen.is_empty() {
        return None;
    }
    let fits = |row: &Row| {
        seen.iter().all(|(name, sent)| {
            let kind = entity.fields.get(*name).map(|f| &f.kind);
            row.get(*name).zip(kind).is_some_and(|(found, kind)| equal(kind, found, sent))
        })
    };
    Some(rows.into_iter().filter(fits).collect())
}

fn tell(deleted: bool, mut found: Vec<Row>, all: bool) -> Option<Probed> {
    match (found.len(), deleted) {
        (0, true) if all => Some(Probed::Happened(Vec::new())),
        (0, false) if all => Some(Probed::Not),
        (1, false) => found.pop().map(|row| Probed::Happened(vec![row])),
        (1.., true) => Some(Probed::Not),
        _ => None,
    }
}

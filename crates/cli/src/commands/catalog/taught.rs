//! What a fresh session is taught of a catalog, and what each capability adds to that.
//! Invariant: the table is the one that a session gets for the same seeds; a capability costs what the table loses without it.

use std::collections::BTreeSet;
use std::sync::Arc;

use catalog::{Catalog, Via};
use teach::{Catalogs, Ledger, RenderedTable, Seed, SeedError, SlotStyle, TeachRequest, render_wave};

use super::tokens;

/// Of all entities.
pub fn whole(catalog: &Catalog) -> Result<RenderedTable, SeedError> {
    let all: Vec<&str> = catalog.entities.keys().map(String::as_str).collect();
    table(catalog, &all, true, SlotStyle::default())
}

/// Of some entities; `first` also teaches how to read it.
pub fn table(catalog: &Catalog, entities: &[&str], first: bool, slots: SlotStyle) -> Result<RenderedTable, SeedError> {
    table_of(&alone(catalog), entities, first, slots)
}

/// The catalogs of a session that has only this one.
pub fn alone(catalog: &Catalog) -> Catalogs {
    Catalogs::from([(catalog.id.clone(), Arc::new(catalog.clone()))])
}

/// As `table`, of a catalog that need not be copied again.
pub fn table_of(
    catalogs: &Catalogs,
    entities: &[&str],
    first: bool,
    slots: SlotStyle,
) -> Result<RenderedTable, SeedError> {
    let seeds: Vec<Seed> =
        catalogs.keys().flat_map(|id| entities.iter().map(|entity| Seed::new(id.clone(), *entity))).collect();
    let extended = Ledger::default().extend(catalogs, &TeachRequest::all(&seeds))?;
    let mut taught = render_wave(slots, &Ledger::default(), &extended.ledger, catalogs, &extended.wave);
    if !first {
        taught.text = taught.text.lines().filter(|line| !line.starts_with("# ")).collect::<Vec<_>>().join("\n");
    }
    Ok(taught)
}

/// Tokens of the lines that say how to read this table and write a program, which a session pays once.
pub fn contract(catalog: &Catalog, entities: &[&str], slots: SlotStyle) -> usize {
    let count = |first| table(catalog, entities, first, slots).map_or(0, |taught| tokens::count(&taught.text));
    count(true).saturating_sub(count(false))
}

/// What one capability costs, where `entities` are taught: the table of its entity, and of those whose relations it serves,
/// with it and without it.
pub fn cost_of(catalog: &Catalog, entities: &[&str], capability: &str, slots: SlotStyle) -> usize {
    let Some(found) = catalog.capability(capability) else { return 0 };
    let near: BTreeSet<&str> = served(catalog, capability).chain([found.entity.as_str()]).collect();
    let near: Vec<&str> = near.into_iter().filter(|name| entities.contains(name)).collect();
    let cost = |catalog: &Catalog| table(catalog, &near, false, slots).map_or(0, |taught| tokens::count(&taught.text));
    cost(catalog).saturating_sub(cost(&without(catalog, capability)))
}

/// Entities with a relation that is followed by this capability.
fn served<'a>(catalog: &'a Catalog, capability: &'a str) -> impl Iterator<Item = &'a str> {
    let by = move |via: &Via| matches!(via, Via::Call { capability: name, .. } if name == capability);
    catalog.entities.values().filter(move |e| e.relations.values().any(|r| by(&r.via))).map(|e| e.name.as_str())
}

fn without(catalog: &Catalog, capability: &str) -> Catalog {
    let mut less = catalog.clone();
    less.capabilities.shift_remove(capability);
    for entity in less.entities.values_mut() {
        entity.relations.retain(|_, r| !matches!(&r.via, Via::Call { capability: by, .. } if by == capability));
        // A get that is gone is nobody's first.
        entity.primary_read = entity.primary_read.take().filter(|name| name != capability);
    }
    less
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::shipped;

    #[test]
    fn each_read_of_the_demo_costs_something_and_less_than_the_table() {
        let demo = shipped::demo().unwrap();
        let all: Vec<&str> = demo.entities.keys().map(String::as_str).collect();
        let taught = whole(&demo).unwrap();
        assert!(taught.dropped.is_empty(), "{:?}", taught.dropped);
        let total = tokens::count(&taught.text);
        for capability in demo.capabilities.values().filter(|c| c.kind.is_read()) {
            let cost = cost_of(&demo, &all, &capability.name, SlotStyle::default());
            assert!(cost > 0 && cost < total, "{}: {cost} of {total}", capability.name);
        }
        assert_eq!(
            cost_of(&demo, &["Comment"], "project_get", SlotStyle::default()),
            0,
            "what is not taught costs nothing"
        );
        let contract = contract(&demo, &all, SlotStyle::default());
        assert!((100..=400).contains(&contract), "{contract}");
    }

    #[test]
    fn what_is_left_out_leaves_no_name_behind() {
        let less = without(&shipped::demo().unwrap(), "ticket_list");
        assert!(less.capability("ticket_list").is_none());
        assert!(!less.entity("Person").unwrap().relations.contains_key("tickets"));
        assert!(less.entity("Ticket").unwrap().relations.contains_key("comments"));
    }
}

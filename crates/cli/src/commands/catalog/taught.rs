//! Renders the table that teaches a catalog to a new session, and counts its tokens.
//! Invariant: the table is the same as that of a session with the same seeds. The cost of a capability is the number of tokens that the
//! table loses without this capability.

use std::collections::BTreeSet;
use std::sync::Arc;

use catalog::{Catalog, Via};
use teach::{Catalogs, Ledger, RenderedTable, Seed, SeedError, SlotStyle, TeachRequest, render_wave};

/// Counts the tokens of a text by the vocabulary o200k, which is in the binary. The first call is slow, because it reads the vocabulary.
pub fn count_tokens(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().count_ordinary(text)
}

/// Returns the table of all entities of a catalog, with the contract.
pub fn full_table(catalog: &Catalog) -> Result<RenderedTable, SeedError> {
    let all: Vec<&str> = catalog.entities.keys().map(String::as_str).collect();
    table(catalog, &all, true, SlotStyle::default())
}

/// Returns the table of some entities. With `first` the table begins with the contract, which explains how to read a table.
pub fn table(catalog: &Catalog, entities: &[&str], first: bool, slots: SlotStyle) -> Result<RenderedTable, SeedError> {
    table_of(&single_catalog(catalog), entities, first, slots)
}

/// Returns the catalogs of a session that has only this catalog.
pub fn single_catalog(catalog: &Catalog) -> Catalogs {
    Catalogs::from([(catalog.id.clone(), Arc::new(catalog.clone()))])
}

/// Returns the same table as `table`, for a caller that renders many tables and has already made `catalogs` with `single_catalog`.
pub fn table_of(
    catalogs: &Catalogs,
    entities: &[&str],
    first: bool,
    slots: SlotStyle,
) -> Result<RenderedTable, SeedError> {
    let seeds: Vec<Seed> =
        catalogs.keys().flat_map(|id| entities.iter().map(|entity| Seed::new(id.clone(), *entity))).collect();
    let extended = Ledger::default().extend(catalogs, &TeachRequest::all(&seeds))?;
    let mut table = render_wave(slots, &Ledger::default(), &extended.ledger, catalogs, &extended.wave);
    if !first {
        // The lines of the contract begin with `# `.
        table.text = table.text.lines().filter(|line| !line.starts_with("# ")).collect::<Vec<_>>().join("\n");
    }
    Ok(table)
}

/// Counts the tokens of the contract, which explains how to read this table and write a program. A session is taught the contract once.
pub fn contract_tokens(catalog: &Catalog, entities: &[&str], slots: SlotStyle) -> usize {
    let count = |first| table(catalog, entities, first, slots).map_or(0, |table| count_tokens(&table.text));
    count(true).saturating_sub(count(false))
}

/// Counts the tokens that one capability costs if `entities` are taught. The cost is the difference between two tables, with and without
/// the capability, of its entity and of the entities whose relations use it.
pub fn capability_tokens(catalog: &Catalog, entities: &[&str], capability: &str, slots: SlotStyle) -> usize {
    let Some(described) = catalog.capability(capability) else { return 0 };
    let affected: BTreeSet<&str> =
        entities_with_relations_by(catalog, capability).chain([described.entity.as_str()]).collect();
    let affected: Vec<&str> = affected.into_iter().filter(|name| entities.contains(name)).collect();
    let cost = |catalog: &Catalog| table(catalog, &affected, false, slots).map_or(0, |table| count_tokens(&table.text));
    cost(catalog).saturating_sub(cost(&without_capability(catalog, capability)))
}

/// Returns the entities with a relation that this capability follows.
fn entities_with_relations_by<'a>(catalog: &'a Catalog, capability: &'a str) -> impl Iterator<Item = &'a str> {
    let by = move |via: &Via| matches!(via, Via::Call { capability: name, .. } if name == capability);
    catalog.entities.values().filter(move |e| e.relations.values().any(|r| by(&r.via))).map(|e| e.name.as_str())
}

/// Returns the catalog without one capability, and without the relations that need it.
fn without_capability(catalog: &Catalog, capability: &str) -> Catalog {
    let mut reduced = catalog.clone();
    reduced.capabilities.shift_remove(capability);
    for entity in reduced.entities.values_mut() {
        entity.relations.retain(|_, r| !matches!(&r.via, Via::Call { capability: by, .. } if by == capability));
        // The removed capability may have been the get by which single rows of the entity are read.
        entity.primary_read = entity.primary_read.take().filter(|name| name != capability);
    }
    reduced
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::shipped;

    #[test]
    fn each_read_of_the_demo_costs_something_and_less_than_the_table() {
        let demo = shipped::demo_catalog().unwrap();
        let all: Vec<&str> = demo.entities.keys().map(String::as_str).collect();
        let table = full_table(&demo).unwrap();
        assert!(table.dropped.is_empty(), "{:?}", table.dropped);
        let total = count_tokens(&table.text);
        for capability in demo.capabilities.values().filter(|c| c.kind.is_read()) {
            let cost = capability_tokens(&demo, &all, &capability.name, SlotStyle::default());
            assert!(cost > 0 && cost < total, "{}: {cost} of {total}", capability.name);
        }
        assert_eq!(
            capability_tokens(&demo, &["Comment"], "project_get", SlotStyle::default()),
            0,
            "a capability that is not taught costs nothing"
        );
        let contract = contract_tokens(&demo, &all, SlotStyle::default());
        assert!((100..=400).contains(&contract), "{contract}");
    }

    #[test]
    fn a_removed_capability_takes_its_relations_with_it() {
        let reduced = without_capability(&shipped::demo_catalog().unwrap(), "ticket_list");
        assert!(reduced.capability("ticket_list").is_none());
        assert!(!reduced.entity("Person").unwrap().relations.contains_key("tickets"));
        assert!(reduced.entity("Ticket").unwrap().relations.contains_key("comments"));
    }

    /// The expected counts come from the makers of the vocabulary, so the test fails with any other vocabulary.
    #[test]
    fn tokens_are_those_of_o200k() {
        assert_eq!(count_tokens(""), 0);
        assert_eq!(count_tokens("hello world"), 2);
        assert_eq!(count_tokens("tiktoken is great!"), 6);
        assert_eq!(count_tokens("お誕生日おめでとう"), 8);
        assert_eq!(count_tokens("<|endoftext|>"), 7, "the text of a special token is counted as text");
    }
}

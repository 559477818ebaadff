//! Which methods of a seeded entity enter a wave.
//! Invariant: reads always do; a write does when the intent speaks of it, when it is asked for by name, or when the entity has
//! nothing else or is what a call of another answers with. Lists, searches and gets are not methods: an exposed entity has all of them.

use std::collections::{BTreeMap, BTreeSet};

use base::{CatalogId, near};
use catalog::{Capability, Catalog};

use crate::seed::{Ask, Catalogs, SeedError, clip};
use crate::words::{Intent, Vocabulary};

/// Seeded entities, and the writes that were asked for by name.
type Picks<'a> = BTreeMap<(&'a CatalogId, &'a str), BTreeSet<&'a str>>;

/// What one call exposes, before it has symbols.
pub struct Exposure<'a> {
    pub entities: BTreeSet<(&'a CatalogId, &'a str)>,
    /// Capabilities that are called by name, of these entities and in `ranked` also of earlier ones.
    pub methods: BTreeSet<(&'a CatalogId, &'a str, &'a str)>,
}

impl<'a> Exposure<'a> {
    /// `earlier` are the entities that the session has.
    pub fn of(
        catalogs: &'a Catalogs,
        ask: &Ask<'a>,
        earlier: impl Iterator<Item = (&'a CatalogId, &'a str)>,
    ) -> Result<Self, SeedError> {
        let mut picks = picks(catalogs, ask)?;
        let entities: BTreeSet<_> = picks.keys().copied().collect();
        let known: BTreeSet<_> = entities.iter().copied().chain(earlier).collect();
        for name in ask.ranked {
            let capability = ranked(catalogs, &known, name)?;
            picks.entry((capability.0, &capability.1.entity)).or_default().insert(&capability.1.name);
        }
        let intent = ask.intent.map(Intent::new);
        let mut vocabularies: BTreeMap<&CatalogId, Vocabulary<'_>> = BTreeMap::new();
        let mut methods = BTreeSet::new();
        for ((id, entity), named) in &picks {
            let Some(catalog) = catalogs.get(*id) else { continue };
            let mut speaks = |capability: &Capability| match &intent {
                None => true,
                Some(intent) => {
                    let vocabulary = vocabularies.entry(id).or_insert_with(|| Vocabulary::of(catalog));
                    vocabulary.relevance(capability, intent) >= ask.threshold
                }
            };
            let seeded = entities.contains(&(*id, *entity));
            let asked = |c: &Capability| named.contains("*") || named.contains(c.name.as_str());
            let before = methods.len();
            let all = || catalog.methods(entity);
            let taught = all().filter(|c| asked(c) || (seeded && (c.kind.is_read() || speaks(c))));
            methods.extend(taught.map(|c| (*id, *entity, c.name.as_str())));
            if seeded && methods.len() == before && !is_read(catalog, entity) {
                methods.extend(all().map(|c| (*id, *entity, c.name.as_str())));
                // What only calls of others answer with is reached by those calls.
                let of_known = givers(catalog, entity).filter(|c| known.contains(&(*id, c.entity.as_str())));
                methods.extend(of_known.map(|c| (*id, c.entity.as_str(), c.name.as_str())));
            }
        }
        Ok(Self { entities, methods })
    }
}

/// Calls of other entities that answer with rows of this one.
pub fn givers<'a>(catalog: &'a Catalog, entity: &'a str) -> impl Iterator<Item = &'a Capability> {
    catalog.capabilities.values().filter(move |c| c.returns == entity && c.entity != entity && c.gives_rows())
}

/// Whether anything but a method reads it.
pub fn is_read(catalog: &Catalog, entity: &str) -> bool {
    catalog.queries(entity).next().is_some()
        || catalog.searches(entity).next().is_some()
        || catalog.get_of(entity).is_some()
}

fn picks<'a>(catalogs: &'a Catalogs, ask: &Ask<'a>) -> Result<Picks<'a>, SeedError> {
    let mut picks = Picks::new();
    for seed in ask.seeds {
        let catalog = catalogs.get(&seed.catalog).ok_or_else(|| SeedError::UnknownApi {
            api: seed.catalog.to_string(),
            near: near(seed.catalog.as_str(), catalogs.keys().map(CatalogId::as_str)),
        })?;
        if !catalog.offers(&seed.entity) {
            return Err(SeedError::UnknownEntity {
                api: seed.catalog.to_string(),
                entity: clip(&seed.entity),
                near: near(&seed.entity, catalog.offered().map(|e| e.name.as_str())),
            });
        }
        let named = picks.entry((&seed.catalog, seed.entity.as_str())).or_default();
        for name in &seed.capabilities {
            named.insert(if name == "*" { "*" } else { capability_of(catalog, &seed.entity, name)? });
        }
    }
    Ok(picks)
}

/// By its name, or its name without the entity's.
fn capability_of<'a>(catalog: &'a Catalog, entity: &str, name: &str) -> Result<&'a str, SeedError> {
    let mine = || catalog.capabilities_of(entity);
    let found = mine().find(|c| c.name == name).or_else(|| mine().find(|c| c.method_name() == name));
    found.map(|c| c.name.as_str()).ok_or_else(|| SeedError::UnknownCapability {
        api: catalog.id.to_string(),
        entity: entity.to_owned(),
        name: clip(name),
        near: near(name, mine().map(|c| c.name.as_str())),
    })
}

fn ranked<'a>(
    catalogs: &'a Catalogs,
    known: &BTreeSet<(&'a CatalogId, &'a str)>,
    name: &str,
) -> Result<(&'a CatalogId, &'a Capability), SeedError> {
    let (api, plain) = match name.split_once(':') {
        Some((api, plain)) => (Some(api), plain),
        None => (None, name),
    };
    let of = |catalog: &Catalog| api.is_none_or(|api| catalog.id.as_str() == api || has_alias(catalog, api));
    let all =
        || catalogs.iter().filter(|(_, c)| of(c)).flat_map(|(id, c)| c.capabilities.values().map(move |c| (id, c)));
    let reachable = || all().filter(|(id, c)| known.contains(&(*id, c.entity.as_str())));
    // Its own name first; then as a table writes it.
    let by_name: Vec<_> = reachable().filter(|(_, c)| c.name == plain).collect();
    let found = if by_name.is_empty() { reachable().filter(|(_, c)| is_written(c, plain)).collect() } else { by_name };
    match found.as_slice() {
        [only] => Ok(*only),
        [] => {
            let near = near(plain, reachable().map(|(_, c)| c.name.as_str()));
            Err(SeedError::UnknownRanked { name: clip(name), near })
        }
        several => {
            let apis = several.iter().map(|(id, c)| format!("{id}:{}", c.name)).collect();
            Err(SeedError::Ambiguous { name: clip(name), apis })
        }
    }
}

/// `close`, `Ticket.close`
fn is_written(capability: &Capability, name: &str) -> bool {
    let (entity, method) = name.rsplit_once('.').map_or((None, name), |(entity, method)| (Some(entity), method));
    entity.is_none_or(|entity| entity == capability.entity)
        && (capability.method_name() == method || capability.method_name().replace('-', "_") == method)
}

fn has_alias(catalog: &Catalog, api: &str) -> bool {
    catalog.aliases.iter().any(|alias| alias.as_str() == api)
}

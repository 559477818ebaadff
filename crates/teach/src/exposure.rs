//! Which methods of a seeded entity enter a wave.
//! Invariant: reads always do; a write does when the intent speaks of it, when it is asked for by name, or when the entity has
//! nothing else or is what a call of another answers with. Lists, searches and gets are not methods: an exposed entity has all of them.

use std::collections::{BTreeMap, BTreeSet};

use base::{CatalogId, similar_names};
use catalog::{Capability, Catalog};

use crate::seed::{Catalogs, SeedError, TeachRequest, clip_name};
use crate::words::{Intent, Vocabulary};

/// Seeded entities, and the writes that were asked for by name.
type SelectedWrites<'a> = BTreeMap<(&'a CatalogId, &'a str), BTreeSet<&'a str>>;

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
        ask: &TeachRequest<'a>,
        earlier: impl Iterator<Item = (&'a CatalogId, &'a str)>,
    ) -> Result<Self, SeedError> {
        let mut selected_writes = selected_writes(catalogs, ask)?;
        let entities: BTreeSet<_> = selected_writes.keys().copied().collect();
        let known: BTreeSet<_> = entities.iter().copied().chain(earlier).collect();
        for name in ask.ranked {
            let capability = find_ranked(catalogs, &known, name)?;
            selected_writes.entry((capability.0, &capability.1.entity)).or_default().insert(&capability.1.name);
        }
        let intent = ask.intent.map(Intent::new);
        let mut vocabularies: BTreeMap<&CatalogId, Vocabulary<'_>> = BTreeMap::new();
        let mut methods = BTreeSet::new();
        for ((id, entity), named) in &selected_writes {
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
            if seeded && methods.len() == before && !is_readable(catalog, entity) {
                methods.extend(all().map(|c| (*id, *entity, c.name.as_str())));
                // What only calls of others answer with is reached by those calls.
                let of_known =
                    capabilities_returning(catalog, entity).filter(|c| known.contains(&(*id, c.entity.as_str())));
                methods.extend(of_known.map(|c| (*id, c.entity.as_str(), c.name.as_str())));
            }
        }
        Ok(Self { entities, methods })
    }
}

/// Calls of other entities that answer with rows of this one.
pub fn capabilities_returning<'a>(catalog: &'a Catalog, entity: &'a str) -> impl Iterator<Item = &'a Capability> {
    catalog.capabilities.values().filter(move |c| c.returns == entity && c.entity != entity && c.gives_rows())
}

/// Whether anything but a method reads it.
pub fn is_readable(catalog: &Catalog, entity: &str) -> bool {
    catalog.queries(entity).next().is_some()
        || catalog.searches(entity).next().is_some()
        || catalog.get_of(entity).is_some()
}

fn selected_writes<'a>(catalogs: &'a Catalogs, ask: &TeachRequest<'a>) -> Result<SelectedWrites<'a>, SeedError> {
    let mut selected_writes = SelectedWrites::new();
    for seed in ask.seeds {
        let catalog = catalogs.get(&seed.catalog).ok_or_else(|| SeedError::UnknownApi {
            api: seed.catalog.to_string(),
            near: similar_names(seed.catalog.as_str(), catalogs.keys().map(CatalogId::as_str)),
        })?;
        if !catalog.offers(&seed.entity) {
            return Err(SeedError::UnknownEntity {
                api: seed.catalog.to_string(),
                entity: clip_name(&seed.entity),
                near: similar_names(&seed.entity, catalog.offered().map(|e| e.name.as_str())),
            });
        }
        let named = selected_writes.entry((&seed.catalog, seed.entity.as_str())).or_default();
        for name in &seed.capabilities {
            named.insert(if name == "*" { "*" } else { find_capability(catalog, &seed.entity, name)? });
        }
    }
    Ok(selected_writes)
}

/// By its name, or its name without the entity's.
fn find_capability<'a>(catalog: &'a Catalog, entity: &str, name: &str) -> Result<&'a str, SeedError> {
    let mine = || catalog.capabilities_of(entity);
    let found = mine().find(|c| c.name == name).or_else(|| mine().find(|c| c.method_name() == name));
    found.map(|c| c.name.as_str()).ok_or_else(|| SeedError::UnknownCapability {
        api: catalog.id.to_string(),
        entity: entity.to_owned(),
        name: clip_name(name),
        near: similar_names(name, mine().map(|c| c.name.as_str())),
    })
}

fn find_ranked<'a>(
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
    let found =
        if by_name.is_empty() { reachable().filter(|(_, c)| is_written_as(c, plain)).collect() } else { by_name };
    match found.as_slice() {
        [only] => Ok(*only),
        [] => {
            let near = similar_names(plain, reachable().map(|(_, c)| c.name.as_str()));
            Err(SeedError::UnknownRanked { name: clip_name(name), near })
        }
        several => {
            let apis = several.iter().map(|(id, c)| format!("{id}:{}", c.name)).collect();
            Err(SeedError::Ambiguous { name: clip_name(name), apis })
        }
    }
}

/// `close`, `Ticket.close`
fn is_written_as(capability: &Capability, name: &str) -> bool {
    let (entity, method) = name.rsplit_once('.').map_or((None, name), |(entity, method)| (Some(entity), method));
    entity.is_none_or(|entity| entity == capability.entity)
        && (capability.method_name() == method || capability.method_name().replace('-', "_") == method)
}

fn has_alias(catalog: &Catalog, api: &str) -> bool {
    catalog.aliases.iter().any(|alias| alias.as_str() == api)
}

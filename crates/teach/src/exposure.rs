//! Exposure: the decision which methods of the seeded entities a wave teaches. Lists, searches and gets are not methods; each
//! exposed entity has all of them.
//! Invariant: methods that read are always taught. A write is taught if the intent mentions it, if the request names it, or if
//! no list, search or get reads its entity.

use std::collections::{BTreeMap, BTreeSet};

use base::{CatalogId, similar_names};
use catalog::{Capability, Catalog};

use crate::relevance::{Intent, Vocabulary};
use crate::request::{Catalogs, SeedError, TeachRequest, clip_name};

/// The capabilities that the request names, by entity; `*` means all capabilities of the entity.
type NamedCapabilities<'a> = BTreeMap<(&'a CatalogId, &'a str), BTreeSet<&'a str>>;

/// The entities and methods that one request teaches, before symbols are assigned.
pub struct Exposure<'a> {
    /// The seeded entities.
    pub entities: BTreeSet<(&'a CatalogId, &'a str)>,
    /// The methods as catalog, entity and capability name. They can belong to entities of earlier waves, because `ranked` may
    /// name such capabilities.
    pub methods: BTreeSet<(&'a CatalogId, &'a str, &'a str)>,
}

impl<'a> Exposure<'a> {
    /// Returns the exposure of a request. `earlier` has the entities that earlier waves taught.
    pub fn of(
        catalogs: &'a Catalogs,
        request: &TeachRequest<'a>,
        earlier: impl Iterator<Item = (&'a CatalogId, &'a str)>,
    ) -> Result<Self, SeedError> {
        let mut named_capabilities = capabilities_of_seeds(catalogs, request)?;
        let entities: BTreeSet<_> = named_capabilities.keys().copied().collect();
        let known: BTreeSet<_> = entities.iter().copied().chain(earlier).collect();
        for name in request.ranked {
            let (id, capability) = find_ranked(catalogs, &known, name)?;
            named_capabilities.entry((id, &capability.entity)).or_default().insert(&capability.name);
        }
        let intent = request.intent.map(Intent::new);
        // Building a vocabulary reads all words of a catalog, so each vocabulary is built once and only if a write must be
        // judged.
        let mut vocabularies: BTreeMap<&CatalogId, Vocabulary<'_>> = BTreeMap::new();
        let mut methods = BTreeSet::new();
        for ((id, entity), named) in &named_capabilities {
            let Some(catalog) = catalogs.get(*id) else { continue };
            let mut mentioned = |capability: &Capability| match &intent {
                None => true,
                Some(intent) => {
                    let vocabulary = vocabularies.entry(id).or_insert_with(|| Vocabulary::of(catalog));
                    vocabulary.relevance(capability, intent) >= request.threshold
                }
            };
            let is_seeded = entities.contains(&(*id, *entity));
            let count_before = methods.len();
            for capability in catalog.methods(entity) {
                let is_named = named.contains("*") || named.contains(capability.name.as_str());
                if is_named || (is_seeded && (capability.kind.is_read() || mentioned(capability))) {
                    methods.insert((*id, *entity, capability.name.as_str()));
                }
            }
            // A seed without taught reads and methods would be useless. An entity with only writes is taught with all writes;
            // an entity that only other entities' calls return is taught with those calls.
            if is_seeded && methods.len() == count_before && !is_readable(catalog, entity) {
                methods.extend(catalog.methods(entity).map(|c| (*id, *entity, c.name.as_str())));
                let of_known =
                    capabilities_returning(catalog, entity).filter(|c| known.contains(&(*id, c.entity.as_str())));
                methods.extend(of_known.map(|c| (*id, c.entity.as_str(), c.name.as_str())));
            }
        }
        Ok(Self { entities, methods })
    }
}

/// Returns the capabilities of other entities whose answers contain rows of this entity.
pub fn capabilities_returning<'a>(catalog: &'a Catalog, entity: &'a str) -> impl Iterator<Item = &'a Capability> {
    catalog.capabilities.values().filter(move |c| c.returns == entity && c.entity != entity && c.gives_rows())
}

/// Returns whether the entity has a list, a search or a get.
pub fn is_readable(catalog: &Catalog, entity: &str) -> bool {
    catalog.queries(entity).next().is_some()
        || catalog.searches(entity).next().is_some()
        || catalog.get_of(entity).is_some()
}

/// Checks the seeds. Returns the seeded entities with the capabilities that the seeds name.
fn capabilities_of_seeds<'a>(
    catalogs: &'a Catalogs,
    request: &TeachRequest<'a>,
) -> Result<NamedCapabilities<'a>, SeedError> {
    let mut named_capabilities = NamedCapabilities::new();
    for seed in request.seeds {
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
        let named = named_capabilities.entry((&seed.catalog, seed.entity.as_str())).or_default();
        for name in &seed.capabilities {
            named.insert(if name == "*" { "*" } else { find_capability(catalog, &seed.entity, name)? });
        }
    }
    Ok(named_capabilities)
}

/// Finds a capability of an entity by its name or by its method name (`close` for `ticket_close`).
fn find_capability<'a>(catalog: &'a Catalog, entity: &str, name: &str) -> Result<&'a str, SeedError> {
    catalog
        .capabilities_of(entity)
        .find(|c| c.name == name)
        .or_else(|| catalog.capabilities_of(entity).find(|c| c.method_name() == name))
        .map(|c| c.name.as_str())
        .ok_or_else(|| SeedError::UnknownCapability {
            api: catalog.id.to_string(),
            entity: entity.to_owned(),
            name: clip_name(name),
            near: similar_names(name, catalog.capabilities_of(entity).map(|c| c.name.as_str())),
        })
}

/// Finds a capability of any known entity by a name of the request's `ranked_capabilities`. The name may start with an API:
/// `demo:ticket_close`.
fn find_ranked<'a>(
    catalogs: &'a Catalogs,
    known: &BTreeSet<(&'a CatalogId, &'a str)>,
    name: &str,
) -> Result<(&'a CatalogId, &'a Capability), SeedError> {
    let (api, plain_name) = match name.split_once(':') {
        Some((api, plain_name)) => (Some(api), plain_name),
        None => (None, name),
    };
    let candidates: Vec<(&CatalogId, &Capability)> = catalogs
        .iter()
        .filter(|(_, catalog)| api.is_none_or(|api| catalog.id.as_str() == api || has_alias(catalog, api)))
        .flat_map(|(id, catalog)| catalog.capabilities.values().map(move |c| (id, c)))
        .filter(|(id, c)| known.contains(&(*id, c.entity.as_str())))
        .collect();
    // A full name takes precedence over the short form of a table, because several entities may share a short form.
    let mut matches: Vec<_> = candidates.iter().filter(|(_, c)| c.name == plain_name).copied().collect();
    if matches.is_empty() {
        matches = candidates.iter().filter(|(_, c)| is_written_as(c, plain_name)).copied().collect();
    }
    match matches.as_slice() {
        [only] => Ok(*only),
        [] => {
            let near = similar_names(plain_name, candidates.iter().map(|(_, c)| c.name.as_str()));
            Err(SeedError::UnknownRanked { name: clip_name(name), near })
        }
        several => {
            let apis = several.iter().map(|(id, c)| format!("{id}:{}", c.name)).collect();
            Err(SeedError::Ambiguous { name: clip_name(name), apis })
        }
    }
}

/// Returns whether `name` is a short form of the capability: `close` or `Ticket.close`.
fn is_written_as(capability: &Capability, name: &str) -> bool {
    let (entity, method) = name.rsplit_once('.').map_or((None, name), |(entity, method)| (Some(entity), method));
    entity.is_none_or(|entity| entity == capability.entity)
        && (capability.method_name() == method || capability.method_name().replace('-', "_") == method)
}

fn has_alias(catalog: &Catalog, api: &str) -> bool {
    catalog.aliases.iter().any(|alias| alias.as_str() == api)
}

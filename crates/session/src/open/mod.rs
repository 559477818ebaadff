//! `plasm_context`: opens a logical session, finds it again, adds seeds to it, or moves it to newer catalogs.
//! Invariant: one session per (tenant, intent); a call adds all of its seeds or none; of two concurrent calls both
//! take effect.

mod catalog_update;
mod execute_address;
mod snapshot;
mod unchanged_open;
mod wave;

use std::sync::Arc;

use access::Caller;
use base::{CatalogId, LogicalSessionId, Slot};
use catalog::{Catalog, Registry};
use teach::{Catalogs, Seed, SeedError, TaughtRelation, TeachRequest};

use crate::commit::TRIES;
use crate::error::Error;
use crate::reuse_key::SessionReuseKey;
use crate::rows::{ExecuteBinding, Revision};
use crate::service::Service;

pub use catalog_update::CatalogUpdate;
pub use execute_address::{ExecuteAddress, ExecuteRequest, OpenedExecute};
use snapshot::SessionSnapshot;
use wave::NewWave;

/// A request to open a session.
#[derive(Debug, Clone)]
pub struct OpenRequest {
    /// The intent, by which the session is found. Empty for an open by seeds alone.
    pub intent: String,
    /// The entities to teach. At least one.
    pub seeds: Vec<SeedRequest>,
    /// Capabilities to teach regardless of the intent: `ticket_close`, or `demo:ticket_close`.
    pub ranked: Vec<String>,
    /// Send the cumulative table again under the same symbols.
    pub replay: bool,
    /// Open again on the newest catalogs, which makes a new symbol space.
    pub refresh: bool,
}

/// An entity to teach, as the caller wrote it: `api` is an id or an alias.
#[derive(Debug, Clone)]
pub struct SeedRequest {
    pub api: String,
    /// The name of the entity in that API.
    pub entity: String,
    /// Names of capabilities, or `*` for all of the entity.
    pub capabilities: Vec<String>,
}

impl OpenRequest {
    pub fn new(intent: &str, seeds: Vec<SeedRequest>) -> Self {
        Self { intent: intent.to_owned(), seeds, ranked: Vec::new(), replay: false, refresh: false }
    }
}

impl SeedRequest {
    /// Returns a seed for everything that the entity has, regardless of the intent.
    pub fn all(api: &str, entity: &str) -> Self {
        Self { api: api.to_owned(), entity: entity.to_owned(), capabilities: vec!["*".to_owned()] }
    }
}

/// The answer to an [`OpenRequest`].
#[derive(Debug)]
pub struct OpenedSession {
    /// The slot by which this caller names the session from now on.
    pub slot: Slot,
    pub session: LogicalSessionId,
    /// The execute session that the logical session is bound to.
    pub execute: ExecuteBinding,
    /// The execute session existed before this call.
    pub reused: bool,
    /// The table of this call.
    pub taught: TaughtTable,
    /// The number of waves that the session has had.
    pub revision: Revision,
    /// The relations that this wave taught.
    pub relations: Vec<TaughtRelation>,
    /// Whether earlier symbols are still valid.
    pub continuity: Continuity,
    /// Pinned catalogs of which the registry has another version. Each is announced once.
    pub catalog_updates: Vec<CatalogUpdate>,
}

/// The table that a call taught, if any.
#[derive(Debug, PartialEq, Eq)]
pub enum TaughtTable {
    /// A table: the first one, the one of a later wave, or on request all of them.
    Text(String),
    /// Nothing new was taught. `entities` counts what the session has.
    Unchanged { entities: usize },
}

/// Tells whether the symbols that the session had before are still valid.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Continuity {
    /// Symbols of earlier tables mean nothing in this session.
    pub new_symbol_space: bool,
    /// The caller asked for the newest catalogs.
    pub refreshed: bool,
    /// The session's earlier execute session, if it was lost.
    pub previous_execute: Option<ExecuteBinding>,
}

/// One call with the registry that it sees.
struct OpenCall<'a> {
    caller: &'a Caller,
    request: &'a OpenRequest,
    /// The registry as the tenant sees it.
    registry: &'a Arc<Registry>,
    /// The registry without the tenant's restrictions, from which whole catalogs are pinned.
    unrestricted: &'a Registry,
    /// The id of the row in the table of intents by which the session is found.
    intent_row_id: String,
}

impl Service {
    /// Opens the session of an intent.
    pub async fn open(&self, caller: &Caller, request: &OpenRequest) -> Result<OpenedSession, Error> {
        if request.intent.trim().is_empty() {
            return Err(Error::NoIntent);
        }
        self.open_as(caller, request, self.intent_row_id(caller, &request.intent)).await
    }

    /// Opens a session without an intent. The same seeds on the same catalogs find the same session.
    pub async fn open_unnamed(&self, caller: &Caller, seeds: Vec<SeedRequest>) -> Result<OpenedSession, Error> {
        let request = OpenRequest::new("", seeds);
        let registry = self.registry_for(&caller.tenant);
        self.check(&request, &registry)?;
        let seeds = resolve_seeds(&Catalogs::new(), &registry, &request.seeds)?.1;
        let key = self.reuse_key(caller, &seeds, &registry, None).ok_or(Error::NoIntent)?;
        self.open_as(caller, &request, key.row_id()).await
    }

    /// Opens the session under a row id, which is an intent's or a reuse key's.
    pub(crate) async fn open_as(
        &self,
        caller: &Caller,
        request: &OpenRequest,
        intent_row_id: String,
    ) -> Result<OpenedSession, Error> {
        // Taken once, so that a reload during this call has no effect on it.
        let unrestricted = self.registry();
        let registry = self.tenants.registry_view(&caller.tenant, unrestricted.clone());
        self.check(request, &registry)?;
        let call = OpenCall { caller, request, registry: &registry, unrestricted: &unrestricted, intent_row_id };
        // Tried before this call waits for its turn on the session: most opens change nothing and need not wait for each other.
        if let Some(opened) = self.try_unchanged(&call).await? {
            return Ok(opened);
        }
        let _turn = self.turn(&format!("{}/{}", caller.tenant, call.intent_row_id)).await;
        for _ in 0..TRIES {
            let snapshot = self.snapshot(&call).await?;
            if let Some(opened) = self.try_open(&call, snapshot).await? {
                return Ok(opened);
            }
        }
        Err(Error::Busy)
    }

    /// Checks the limits of a request.
    fn check(&self, request: &OpenRequest, registry: &Registry) -> Result<(), Error> {
        let limits = &self.limits;
        if request.intent.len() > limits.intent_bytes {
            return Err(Error::IntentTooLong { max: limits.intent_bytes, found: request.intent.len() });
        }
        if request.seeds.is_empty() {
            return Err(Error::NoSeeds { known: list_offered(registry) });
        }
        let capabilities_named =
            request.seeds.iter().map(|seed| seed.capabilities.len()).sum::<usize>() + request.ranked.len();
        if request.seeds.len().max(capabilities_named) > limits.seeds {
            return Err(Error::TooManySeeds { max: limits.seeds, found: request.seeds.len().max(capabilities_named) });
        }
        Ok(())
    }

    /// Answers the open on this snapshot. Returns `None` after a lost race, since the snapshot is then out of date.
    async fn try_open(
        &self,
        call: &OpenCall<'_>,
        mut snapshot: SessionSnapshot,
    ) -> Result<Option<OpenedSession>, Error> {
        let request = call.request;
        let (catalogs, new_seeds) = resolve_seeds(&snapshot.pinned, call.registry, &request.seeds)?;
        let mut seeds = std::mem::take(&mut snapshot.carried);
        seeds.extend(new_seeds.iter().cloned());
        let before = snapshot.execute.as_ref().map(|(_, execute)| execute.row.ledger.clone()).unwrap_or_default();
        let teach_request = TeachRequest {
            seeds: &seeds,
            ranked: &request.ranked,
            intent: Some(request.intent.as_str()).filter(|intent| !intent.is_empty()),
            threshold: self.teaching.writes,
        };
        let extended = before.extend(&catalogs, &teach_request)?;
        let catalog_updates = snapshot.take_catalog_updates(call.registry);
        if extended.wave.is_empty() && snapshot.execute.is_some() {
            return self.answer_unchanged(call, snapshot, &catalogs, catalog_updates).await;
        }
        let logical = (!snapshot.logical.row.is_unnamed()).then_some(snapshot.id);
        let key = self.reuse_key(call.caller, &new_seeds, call.registry, logical);
        self.teach_wave(call, NewWave { snapshot, catalogs, before, extended, catalog_updates, key }).await
    }

    /// Returns the reuse key of seeds, or `None` without seeds or if the registry lacks their primary catalog.
    fn reuse_key(
        &self,
        caller: &Caller,
        seeds: &[Seed],
        registry: &Registry,
        logical_session_id: Option<LogicalSessionId>,
    ) -> Option<SessionReuseKey> {
        let entry_id = seeds.iter().map(|seed| &seed.catalog).min()?.clone();
        let catalog_digest = registry.get(entry_id.as_str())?.digest();
        let entities = seeds.iter().filter(|seed| seed.catalog == entry_id).map(|seed| seed.entity.clone()).collect();
        Some(SessionReuseKey {
            tenant_scope: caller.tenant.clone(),
            entry_id,
            catalog_digest,
            entities,
            principal: self.delegated.then(|| caller.principal.clone()),
            engine_generation: lang::VERSION,
            logical_session_id,
        })
    }
}

/// Returns the catalogs and seeds of a request. A pinned catalog keeps its version; other catalogs come from the
/// registry.
fn resolve_seeds(
    pinned: &Catalogs,
    registry: &Registry,
    requested: &[SeedRequest],
) -> Result<(Catalogs, Vec<Seed>), Error> {
    let mut catalogs = pinned.clone();
    let mut seeds = Vec::new();
    for seed in requested {
        let catalog = pinned_by_name(&catalogs, &seed.api)
            .or_else(|| registry.get(&seed.api).cloned())
            .ok_or_else(|| unknown_api(registry.iter(), &seed.api))?;
        let id = catalog.id.clone();
        seeds.push(Seed { catalog: id.clone(), entity: seed.entity.clone(), capabilities: seed.capabilities.clone() });
        // An alias may lead to a newer version of a catalog that the session has already pinned under this id.
        catalogs.entry(id).or_insert(catalog);
    }
    Ok((catalogs, seeds))
}

/// Finds a pinned catalog by name. Ids take precedence over aliases, as in a registry.
fn pinned_by_name(pinned: &Catalogs, name: &str) -> Option<Arc<Catalog>> {
    let name = CatalogId::parse(name).ok()?;
    pinned.get(&name).or_else(|| pinned.values().find(|catalog| catalog.aliases.contains(&name))).cloned()
}

/// Returns the available APIs with their entities, such as `demo (Project, Person)`, for an error message.
fn list_offered(registry: &Registry) -> String {
    let mut apis = Vec::new();
    for catalog in registry.iter().take(20) {
        let entities: Vec<&str> = catalog.offered().take(20).map(|entity| entity.name.as_str()).collect();
        apis.push(format!("{} ({})", catalog.id, entities.join(", ")));
    }
    apis.join("; ")
}

/// Returns the error for a name that no API has, with the similar names among the known APIs.
pub(crate) fn unknown_api<'a>(known: impl Iterator<Item = &'a Arc<Catalog>>, api: &str) -> SeedError {
    let near = base::similar_names(api, known.map(|catalog| catalog.id.as_str()));
    SeedError::UnknownApi { api: base::printable(api, 80), near }
}

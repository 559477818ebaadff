//! `plasm_context`: open a logical session, add to it, find it again, move it to newer catalogs.
//! Invariant: one session per (tenant, intent); a call adds all of its seeds or nothing; two calls at once both land.

mod door;
mod find;
mod newer;
mod reuse;
mod steady;
mod wave;

use std::sync::Arc;

use base::{CatalogId, LogicalSessionId, Slot};
use catalog::{Catalog, Registry};
use teach::{Catalogs, Seed, SeedError, TaughtRelation, TeachRequest};

use crate::commit::TRIES;
use crate::error::Error;
use crate::reuse::intent_id;
use crate::rows::{ExecuteBinding, Revision};
use crate::service::Service;
use access::Caller;

pub use door::{Door, ExecuteRequest, Executed};
use find::Found;
pub use newer::Newer;
use wave::Step;

#[derive(Debug, Clone)]
pub struct OpenRequest {
    pub intent: String,
    pub seeds: Vec<SeedRequest>,
    /// Capabilities to teach whatever the intent says: `ticket_close`, or `demo:ticket_close`.
    pub ranked: Vec<String>,
    /// Send the cumulative table again under the same symbols.
    pub replay: bool,
    /// Open again on the newest catalogs: a new symbol space.
    pub refresh: bool,
}

/// As written: `api` is an id or an alias.
#[derive(Debug, Clone)]
pub struct SeedRequest {
    pub api: String,
    pub entity: String,
    /// Names, or `*` for all of the entity.
    pub capabilities: Vec<String>,
}

impl OpenRequest {
    pub fn new(intent: &str, seeds: Vec<SeedRequest>) -> Self {
        Self { intent: intent.to_owned(), seeds, ranked: Vec::new(), replay: false, refresh: false }
    }
}

impl SeedRequest {
    /// With everything that the entity has, whatever the intent says.
    pub fn all(api: &str, entity: &str) -> Self {
        Self { api: api.to_owned(), entity: entity.to_owned(), capabilities: vec!["*".to_owned()] }
    }
}

#[derive(Debug)]
pub struct Opened {
    pub slot: Slot,
    pub session: LogicalSessionId,
    /// The symbol space that the session is bound to.
    pub execute: ExecuteBinding,
    /// That symbol space was there before this call.
    pub reused: bool,
    pub taught: Taught,
    pub revision: Revision,
    pub relations: Vec<TaughtRelation>,
    pub continuity: Continuity,
    /// Pinned catalogs of which something newer is offered; said once of each.
    pub newer: Vec<Newer>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Taught {
    /// The first table, a later wave, or on request all of them.
    Table(String),
    /// Nothing new; how many entities the session has.
    Unchanged { entities: usize },
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Continuity {
    pub new_symbol_space: bool,
    /// The caller asked for the newest catalogs.
    pub refreshed: bool,
    /// The session's earlier symbol space was gone.
    pub previous_execute: Option<ExecuteBinding>,
}

/// One call, and the registry it sees.
struct Asked<'a> {
    caller: &'a Caller,
    request: &'a OpenRequest,
    registry: &'a Arc<Registry>,
    /// The same, with what the caller may not use.
    whole: &'a Registry,
    /// What its session is found by.
    name: String,
}

impl Service {
    /// The session of an intent.
    pub async fn open(&self, caller: &Caller, request: &OpenRequest) -> Result<Opened, Error> {
        if request.intent.trim().is_empty() {
            return Err(Error::NoIntent);
        }
        self.open_as(caller, request, intent_id(&request.intent)).await
    }

    /// A session without an intent: the same seeds on the same catalogs are the same one.
    pub async fn open_unnamed(&self, caller: &Caller, seeds: Vec<SeedRequest>) -> Result<Opened, Error> {
        let request = OpenRequest::new("", seeds);
        let registry = self.registry_for(&caller.tenant);
        self.check(&request, &registry)?;
        let seeds = resolved(&Catalogs::new(), &registry, &request.seeds)?.1;
        let key = self.reuse_key(caller, (&seeds, &registry), None).ok_or(Error::NoIntent)?;
        self.open_as(caller, &request, key.row_id()).await
    }

    pub(crate) async fn open_as(&self, caller: &Caller, request: &OpenRequest, name: String) -> Result<Opened, Error> {
        // Taken once: a reload in the middle changes nothing for this call.
        let whole = self.registry();
        let registry = self.tenants.registry_view(&caller.tenant, whole.clone());
        self.check(request, &registry)?;
        let asked = Asked { caller, request, registry: &registry, whole: &whole, name };
        if let Some(opened) = self.steady(&asked).await? {
            return Ok(opened);
        }
        let _turn = self.turn(&format!("{}/{}", caller.tenant, asked.name)).await;
        for _ in 0..TRIES {
            let found = self.find(&asked).await?;
            if let Some(opened) = self.try_open(&asked, found).await? {
                return Ok(opened);
            }
        }
        Err(Error::Busy)
    }

    fn check(&self, request: &OpenRequest, registry: &Registry) -> Result<(), Error> {
        let limits = &self.limits;
        if request.intent.len() > limits.intent_bytes {
            return Err(Error::IntentTooLong { max: limits.intent_bytes, found: request.intent.len() });
        }
        if request.seeds.is_empty() {
            return Err(Error::NoSeeds { known: offered(registry) });
        }
        let named = request.seeds.iter().map(|seed| seed.capabilities.len()).sum::<usize>() + request.ranked.len();
        if request.seeds.len().max(named) > limits.seeds {
            return Err(Error::TooManySeeds { max: limits.seeds, found: request.seeds.len().max(named) });
        }
        Ok(())
    }

    /// `None` when someone else was faster.
    async fn try_open(&self, asked: &Asked<'_>, mut found: Found) -> Result<Option<Opened>, Error> {
        let request = asked.request;
        let (catalogs, asked_for) = resolved(&found.pinned, asked.registry, &request.seeds)?;
        let mut seeds = std::mem::take(&mut found.carried);
        seeds.extend(asked_for.iter().cloned());
        let before = found.execute.as_ref().map(|(_, e)| e.row.ledger.clone()).unwrap_or_default();
        let ask = TeachRequest {
            seeds: &seeds,
            ranked: &request.ranked,
            intent: Some(request.intent.as_str()).filter(|intent| !intent.is_empty()),
            threshold: self.teaching.writes,
        };
        let extended = before.extend(&catalogs, &ask)?;
        let newer = found.newer(asked.registry);
        if extended.wave.is_empty() && found.execute.is_some() {
            return self.unchanged(asked, found, &catalogs, newer).await;
        }
        let logical = (!found.logical.row.is_unnamed()).then_some(found.id);
        let key = self.reuse_key(asked.caller, (&asked_for, asked.registry), logical);
        self.teach(asked, Step { found, catalogs, before, extended, newer, key }).await
    }
}

/// What the session has pinned keeps its names; what a seed adds comes from the registry.
fn resolved(pinned: &Catalogs, registry: &Registry, asked: &[SeedRequest]) -> Result<(Catalogs, Vec<Seed>), Error> {
    let mut catalogs = pinned.clone();
    let mut seeds = Vec::new();
    for seed in asked {
        let catalog = called(&catalogs, &seed.api)
            .or_else(|| registry.get(&seed.api).cloned())
            .ok_or_else(|| unknown_api(registry.iter(), &seed.api))?;
        let id = catalog.id.clone();
        let (entity, capabilities) = (seed.entity.clone(), seed.capabilities.clone());
        seeds.push(Seed { catalog: id.clone(), entity, capabilities });
        // An alias may have led to a newer version of what the session has pinned under that id.
        catalogs.entry(id).or_insert(catalog);
    }
    Ok((catalogs, seeds))
}

/// What a session calls so: an id before an alias, as in a registry.
fn called(pinned: &Catalogs, name: &str) -> Option<Arc<Catalog>> {
    let name = CatalogId::parse(name).ok()?;
    let by_alias = || pinned.values().find(|catalog| catalog.aliases.contains(&name));
    pinned.get(&name).or_else(by_alias).cloned()
}

/// `demo (Project, Person)`, for whoever does not know what to ask for.
fn offered(registry: &Registry) -> String {
    let entities = |c: &Catalog| c.offered().take(20).map(|e| e.name.clone()).collect::<Vec<_>>().join(", ");
    let apis: Vec<String> = registry.iter().take(20).map(|c| format!("{} ({})", c.id, entities(c))).collect();
    apis.join("; ")
}

pub(crate) fn unknown_api<'a>(known: impl Iterator<Item = &'a Arc<Catalog>>, api: &str) -> SeedError {
    let near = base::similar_names(api, known.map(|c| c.id.as_str()));
    SeedError::UnknownApi { api: base::printable(api, 80), near }
}

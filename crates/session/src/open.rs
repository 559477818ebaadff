//! `plasm_context`: open a logical session, or add to it.
//! Invariant: one session per (tenant, intent); a call adds all of its seeds or nothing; two calls at once both land.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{CatalogId, Digest, LogicalSessionId, Slot};
use catalog::{Catalog, Registry};
use ports::store::{Batch, Expect, Key, Table};
use teach::{Ask, Catalogs, Extended, Seed, SeedError, TaughtRelation, render_wave};

use crate::caller::Caller;
use crate::commit::{TRIES, unchanged};
use crate::error::Error;
use crate::load::Versioned;
use crate::rows::{self, ExecuteBinding, ExecuteRow, IntentRow, LogicalRow, Revision};
use crate::service::Service;

#[derive(Debug, Clone)]
pub struct OpenRequest {
    pub intent: String,
    pub seeds: Vec<SeedRequest>,
    /// Capabilities to teach whatever the intent says: `ticket_close`, or `demo:ticket_close`.
    pub ranked: Vec<String>,
    /// Send the cumulative table again under the same symbols.
    pub replay: bool,
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
        Self { intent: intent.to_owned(), seeds, ranked: Vec::new(), replay: false }
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
    pub taught: Taught,
    pub revision: Revision,
    pub relations: Vec<TaughtRelation>,
    pub continuity: Continuity,
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
    /// The session's earlier symbol space was gone.
    pub previous_execute: Option<ExecuteBinding>,
}

/// One call, and the registry it sees.
struct Asked<'a> {
    caller: &'a Caller,
    request: &'a OpenRequest,
    registry: &'a Registry,
    /// The same, with what the caller may not use.
    whole: &'a Registry,
}

/// The rows an open starts from.
struct Found {
    id: LogicalSessionId,
    logical: Versioned<LogicalRow>,
    is_new: bool,
    execute: Option<(ExecuteBinding, Versioned<ExecuteRow>)>,
    lost: Option<ExecuteBinding>,
}

/// An open that has something to teach, before it is committed.
struct Step {
    found: Found,
    catalogs: Catalogs,
    before: teach::Ledger,
    extended: Extended,
    slot: Slot,
    batch: Batch,
    continuity: Continuity,
}

impl Service {
    pub async fn open(&self, caller: &Caller, request: &OpenRequest) -> Result<Opened, Error> {
        // Taken once: a reload in the middle changes nothing for this call.
        let whole = self.registry();
        let registry = self.tenants.registry(&caller.tenant, whole.clone());
        let asked = Asked { caller, request, registry: &registry, whole: &whole };
        self.check(&asked)?;
        let _turn = self.turn(&format!("{}/{}", caller.tenant, intent_id(&request.intent))).await;
        for _ in 0..TRIES {
            let found = self.find(caller, &request.intent).await?;
            if let Some(opened) = self.try_open(&asked, found).await? {
                return Ok(opened);
            }
        }
        Err(Error::Busy)
    }

    fn check(&self, asked: &Asked<'_>) -> Result<(), Error> {
        let (request, limits) = (asked.request, &self.limits);
        if request.intent.trim().is_empty() {
            return Err(Error::NoIntent);
        }
        if request.intent.len() > limits.intent_bytes {
            return Err(Error::IntentTooLong { max: limits.intent_bytes, found: request.intent.len() });
        }
        if request.seeds.is_empty() {
            return Err(Error::NoSeeds { known: offered(asked.registry) });
        }
        let named = request.seeds.iter().map(|seed| seed.capabilities.len()).sum::<usize>() + request.ranked.len();
        if request.seeds.len().max(named) > limits.seeds {
            return Err(Error::TooManySeeds { max: limits.seeds, found: request.seeds.len().max(named) });
        }
        Ok(())
    }

    async fn find(&self, caller: &Caller, intent: &str) -> Result<Found, Error> {
        let known = self.intent(caller, &intent_id(intent)).await?;
        let logical = match &known {
            Some(row) => self.logical(caller, row.logical_session).await?,
            None => None,
        };
        let fresh = || LogicalRow {
            intent: intent.to_owned(),
            created: self.ports.clock.now(),
            execute: None,
            runs: 0,
            commits: 0,
            pages: 0,
            operations: 0,
            forked: None,
            fenced: false,
        };
        let is_new = known.is_none();
        let id = known.map_or_else(|| self.new_logical_id(), |row| row.logical_session);
        let logical = logical.unwrap_or_else(|| Versioned { row: fresh(), version: 0 });
        let Some(binding) = logical.row.execute.clone() else {
            return Ok(Found { id, logical, is_new, execute: None, lost: None });
        };
        match self.execute(caller, &binding).await? {
            Some(row) => Ok(Found { id, logical, is_new, execute: Some((binding, row)), lost: None }),
            None => Ok(Found { id, logical, is_new, execute: None, lost: Some(binding) }),
        }
    }

    async fn try_open(&self, asked: &Asked<'_>, found: Found) -> Result<Option<Opened>, Error> {
        let (caller, request) = (asked.caller, asked.request);
        let (catalogs, seeds) = self.pinned_and_new(asked, &found).await?;
        let before = found.execute.as_ref().map(|(_, e)| e.row.ledger.clone()).unwrap_or_default();
        let ask = Ask {
            seeds: &seeds,
            ranked: &request.ranked,
            intent: Some(&request.intent),
            threshold: self.teaching.writes,
        };
        let extended = before.extend(&catalogs, &ask)?;
        let (slot, batch) = self.slot_batch(caller, found.id).await?;
        let continuity = Continuity { new_symbol_space: found.execute.is_none(), previous_execute: found.lost.clone() };
        if let (true, Some((_, execute))) = (extended.wave.is_empty(), &found.execute) {
            if !batch.writes.is_empty() && self.try_commit(batch).await?.is_none() {
                return Ok(None);
            }
            let entities = execute.row.ledger.entity_count();
            let taught = if request.replay {
                Taught::Table(self.again(caller, &execute.row, &catalogs))
            } else {
                Taught::Unchanged { entities }
            };
            let revision = execute.row.revision;
            return Ok(Some(Opened { slot, session: found.id, taught, revision, relations: Vec::new(), continuity }));
        }
        self.teach(asked, Step { found, catalogs, before, extended, slot, batch, continuity }).await
    }

    /// Renders the wave, pins its catalogs and commits all of it. `None` when someone else was faster.
    async fn teach(&self, asked: &Asked<'_>, step: Step) -> Result<Option<Opened>, Error> {
        let (caller, request) = (asked.caller, asked.request);
        let Step { found, catalogs, before, extended, slot, batch, continuity } = step;
        let rendered = render_wave(self.teaching.slots, &before, &extended.ledger, &catalogs, &extended.wave);
        for line in &rendered.dropped {
            tracing::error!(line, "a taught line does not check and was left out");
        }
        let used: BTreeSet<CatalogId> = extended.ledger.catalogs().into_iter().cloned().collect();
        let mut pins = found.execute.as_ref().map(|(_, e)| e.row.catalogs.clone()).unwrap_or_default();
        for seen in catalogs.values().filter(|c| used.contains(&c.id)) {
            // The whole is pinned, whatever this tenant may use of it today.
            let catalog = match asked.whole.by_digest(&seen.digest()) {
                Some(offered) => offered.clone(),
                None => self.catalog(seen.digest()).await?,
            };
            // Blob before pointer: a crash between the two leaves garbage for gc, never a session that pins nothing.
            self.ports.blobs.put(catalog.canonical().as_bytes()).await?;
            pins.insert(catalog.id.clone(), catalog.digest());
        }
        let (binding, row, version) = self.next_execute(&found, extended.ledger, pins, rendered.text.clone());
        let batch = self.open_batch(caller, &found, (&binding, &row, version), batch);
        if self.try_commit(batch).await?.is_none() {
            return Ok(None);
        }
        let text = if request.replay { self.again(caller, &row, &catalogs) } else { rendered.text };
        let (taught, revision, relations) = (Taught::Table(text), row.revision, extended.wave.relations);
        Ok(Some(Opened { slot, session: found.id, taught, revision, relations, continuity }))
    }

    /// The cumulative table. Whose rights are bounded may have lost some since: it gets what it may still use, in one piece.
    pub(crate) fn again(&self, caller: &Caller, row: &ExecuteRow, catalogs: &Catalogs) -> String {
        if !self.tenants.bound(&caller.tenant) {
            return row.cumulative();
        }
        let wave = row.ledger.as_wave(catalogs);
        render_wave(self.teaching.slots, &teach::Ledger::default(), &row.ledger, catalogs, &wave).text
    }

    /// A session keeps the catalogs it pinned, and their names; what a seed adds comes from the registry.
    async fn pinned_and_new(&self, asked: &Asked<'_>, found: &Found) -> Result<(Catalogs, Vec<Seed>), Error> {
        let mut catalogs = Catalogs::new();
        if let Some((_, execute)) = &found.execute {
            for (id, digest) in &execute.row.catalogs {
                if let Some(seen) = self.catalog_for(&asked.caller.tenant, *digest).await? {
                    catalogs.insert(id.clone(), seen);
                }
            }
        }
        let mut seeds = Vec::new();
        for seed in &asked.request.seeds {
            let catalog = called(&catalogs, &seed.api)
                .or_else(|| asked.registry.get(&seed.api).cloned())
                .ok_or_else(|| unknown_api(asked.registry.iter(), &seed.api))?;
            let id = catalog.id.clone();
            let (entity, capabilities) = (seed.entity.clone(), seed.capabilities.clone());
            seeds.push(Seed { catalog: id.clone(), entity, capabilities });
            // An alias may have led to a newer version of what the session has pinned under that id.
            catalogs.entry(id).or_insert(catalog);
        }
        Ok((catalogs, seeds))
    }

    fn next_execute(
        &self,
        found: &Found,
        ledger: teach::Ledger,
        catalogs: BTreeMap<CatalogId, Digest>,
        text: String,
    ) -> (ExecuteBinding, ExecuteRow, u64) {
        match &found.execute {
            Some((binding, execute)) => {
                let mut row = execute.row.clone();
                row.waves.push(text);
                row.revision += 1;
                (binding.clone(), ExecuteRow { ledger, catalogs, ..row }, execute.version)
            }
            None => {
                let prompt_hash = Digest::of(text.as_bytes());
                let binding = ExecuteBinding { prompt_hash, session_id: self.new_execute_id() };
                let opened = self.ports.clock.now();
                let (logical_session, waves) = (found.id, vec![text]);
                (binding, ExecuteRow { prompt_hash, logical_session, catalogs, ledger, revision: 1, waves, opened }, 0)
            }
        }
    }

    fn open_batch(
        &self,
        caller: &Caller,
        found: &Found,
        (binding, row, version): (&ExecuteBinding, &ExecuteRow, u64),
        mut batch: Batch,
    ) -> Batch {
        let key = |table, id: String| Key::new(&caller.tenant, table, id);
        if found.is_new {
            let intent = rows::write(&IntentRow { logical_session: found.id });
            batch = batch.put(key(Table::Intent, intent_id(&found.logical.row.intent)), intent, Expect::Absent);
        }
        if found.logical.row.execute.as_ref() != Some(binding) {
            let logical = LogicalRow { execute: Some(binding.clone()), ..found.logical.row.clone() };
            let at = key(Table::LogicalSession, found.id.to_string());
            batch = batch.put(at, rows::write(&logical), unchanged(found.logical.version));
        }
        let at = key(Table::ExecuteSession, binding.session_id.to_string());
        batch.put(at, rows::write(row), unchanged(version))
    }
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
    let near = base::near(api, known.map(|c| c.id.as_str()));
    SeedError::UnknownApi { api: api.chars().take(80).collect(), near }
}

/// An intent is free text; its row is found by its digest.
pub(crate) fn intent_id(intent: &str) -> String {
    Digest::of(intent.as_bytes()).to_string()
}

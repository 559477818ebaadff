//! Sessions compared with a plain map: random opens, expansions, refreshes, reloads, restarts, removals and passing
//! time, checked after each step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use access::Caller;
use base::{Limits, LogicalSessionId, Slot, Timestamp};
use catalog::{Catalog, Registry};
use ports::Clock;
use session::{CollectionOptions, OpenRequest, OpenedSession, Ports, SeedRequest, Service, TaughtTable};
use testkit::memory::{CountingEntropy, ManualClock, MemoryBlobs, MemoryStore};
use testkit::upstream::ScriptedUpstream;

const APIS: [&str; 3] = ["aaa", "bbb", "ccc"];
const ENTITIES: usize = 5;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A deterministic random generator, the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

fn tracker(id: &str, version: u32) -> Arc<Catalog> {
    let names = || (0..ENTITIES).map(|n| format!("Thing{n}"));
    let entities: String = names()
        .map(|n| format!("  {n}: {{about: a thing, key: [id], fields: {{id: string, v{version}: string}}}}\n"))
        .collect();
    let lists: String = names()
        .map(|n| format!("  list_{0}: {{query: {n}, http: GET /{0}, rows: data}}\n", n.to_lowercase()))
        .collect();
    let text = format!(
        "catalog: {id}\nversion: {version}\ntitle: T\norigin: http://x.localhost\nentities:\n{entities}capabilities:\n{lists}"
    );
    Arc::new(catalog::read("tracker.yaml", &text).unwrap())
}

/// The expected state of a session.
struct Known {
    id: LogicalSessionId,
    slot: Slot,
    /// In the order of their symbols.
    entities: Vec<(usize, usize)>,
    pinned: BTreeMap<usize, u32>,
    used: Timestamp,
    lives: bool,
    told: BTreeSet<(usize, u32)>,
}

struct MemoryService {
    store: Arc<MemoryStore>,
    blobs: Arc<MemoryBlobs>,
    clock: Arc<ManualClock>,
    entropy: Arc<CountingEntropy>,
    service: Service,
    versions: [u32; 3],
    known: BTreeMap<usize, Known>,
    slots: u32,
}

impl MemoryService {
    fn new() -> Self {
        let (store, blobs) = (Arc::new(MemoryStore::new()), Arc::new(MemoryBlobs::new()));
        let (clock, entropy) = (Arc::new(ManualClock::default()), Arc::new(CountingEntropy::new()));
        let versions = [1; 3];
        let service = process(&store, &blobs, (&clock, &entropy), versions);
        Self { store, blobs, clock, entropy, service, versions, known: BTreeMap::new(), slots: 0 }
    }

    fn restart(&mut self) {
        self.service = process(&self.store, &self.blobs, (&self.clock, &self.entropy), self.versions);
    }

    async fn days_pass(&mut self, days: i64) {
        let passed = Duration::from_millis((days * DAY_MS) as u64);
        self.clock.advance(passed);
        self.blobs.age(passed);
        self.service.collect_garbage(CollectionOptions::default()).await.unwrap();
        let now = self.clock.now();
        for known in self.known.values_mut().filter(|known| now.0 - known.used.0 > 30 * DAY_MS) {
            known.lives = false;
        }
        self.known.retain(|_, known| now.0 - known.used.0 <= 365 * DAY_MS);
    }

    async fn open(&mut self, intent: usize, seeds: &BTreeSet<(usize, usize)>, refresh: bool) {
        let asked = seeds.iter().rev().map(|(api, n)| SeedRequest::all(APIS[*api], &format!("Thing{n}"))).collect();
        let request = OpenRequest { refresh, ..OpenRequest::new(&format!("task {intent}"), asked) };
        let opened = self.service.open(&Caller::local(), &request).await.unwrap();
        self.expect(intent, seeds, refresh, &opened);
    }

    /// Applies the call to the map and compares the answer.
    fn expect(&mut self, intent: usize, seeds: &BTreeSet<(usize, usize)>, refresh: bool, opened: &OpenedSession) {
        let (now, versions) = (self.clock.now(), self.versions);
        let before = self.known.remove(&intent);
        let lost = before.as_ref().is_some_and(|known| !known.lives);
        let was_live = before.as_ref().is_some_and(|known| known.lives);
        let mut known = before.unwrap_or_else(|| {
            self.slots += 1;
            let (entities, pinned, told) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
            Known { id: opened.session, slot: Slot(self.slots - 1), entities, pinned, used: now, lives: true, told }
        });
        assert_eq!((opened.session, opened.slot), (known.id, known.slot));
        let fresh_space = !was_live || refresh;
        let mut wanted = seeds.clone();
        if fresh_space {
            let carried = if was_live { std::mem::take(&mut known.entities) } else { Vec::new() };
            wanted.extend(carried);
            (known.entities, known.told, known.lives) = (Vec::new(), BTreeSet::new(), true);
            known.pinned = BTreeMap::new();
        }
        let newer: BTreeSet<(usize, u32)> = known
            .pinned
            .iter()
            .filter(|(api, v)| versions[**api] != **v)
            .map(|(api, _)| (*api, versions[*api]))
            .collect();
        let newly_told = newer.difference(&known.told).count();
        known.told.extend(newer);
        let new: Vec<_> = wanted.into_iter().filter(|seed| !known.entities.contains(seed)).collect();
        for (api, _) in &new {
            known.pinned.entry(*api).or_insert(versions[*api]);
        }
        let changed = fresh_space || !new.is_empty();
        known.entities.extend(&new);
        if fresh_space || now.0 - known.used.0 >= 60 * 60 * 1000 {
            known.used = now;
        }
        assert_eq!(matches!(opened.taught, TaughtTable::Text(_)), changed);
        assert_eq!(opened.continuity.new_symbol_space, fresh_space);
        assert_eq!(opened.continuity.previous_execute.is_some(), lost, "lost");
        assert_eq!(opened.continuity.refreshed, refresh && was_live);
        assert_eq!(opened.catalog_updates.len(), newly_told, "told once of each");
        self.known.insert(intent, known);
    }

    /// Every session matches the map, for every caller.
    async fn check(&self) {
        let views = self.service.list_sessions(&Caller::local()).await.unwrap();
        assert_eq!(views.len(), self.known.len());
        for view in views {
            let intent: usize = view.intent.strip_prefix("task ").unwrap().parse().unwrap();
            let known = &self.known[&intent];
            assert_eq!((view.logical_session_id, view.slot), (known.id, Some(known.slot)));
            assert_eq!(view.space.is_some(), known.lives, "{}", view.intent);
            let Some(space) = view.space else { continue };
            let entities: Vec<String> =
                known.entities.iter().map(|(api, n)| format!("{}:Thing{n}", APIS[*api])).collect();
            assert_eq!(space.entities, entities);
            let pinned = known.pinned.iter().map(|(api, v)| (APIS[*api].to_owned(), tracker(APIS[*api], *v).digest()));
            let found = space.catalogs.into_iter().map(|(id, digest)| (id.to_string(), digest));
            assert_eq!(found.collect::<BTreeMap<_, _>>(), pinned.collect());
        }
    }
}

fn process(
    store: &Arc<MemoryStore>,
    blobs: &Arc<MemoryBlobs>,
    (clock, entropy): (&Arc<ManualClock>, &Arc<CountingEntropy>),
    versions: [u32; 3],
) -> Service {
    let ports = Ports {
        store: store.clone(),
        blobs: blobs.clone(),
        upstream: Arc::new(ScriptedUpstream::new()),
        clock: clock.clone(),
        entropy: entropy.clone(),
    };
    Service::new(ports, registry(versions), Limits::default())
}

fn registry(versions: [u32; 3]) -> Arc<Registry> {
    Arc::new(Registry::new(APIS.into_iter().zip(versions).map(|(id, version)| tracker(id, version))).unwrap())
}

#[tokio::test]
async fn sessions_behave_like_a_plain_map() {
    for seed in 0..12 {
        let (mut world, mut dice) = (MemoryService::new(), Dice(seed));
        for _ in 0..60 {
            let intent = dice.roll(4);
            match dice.roll(12) {
                0..=6 => {
                    let seeds = (0..=dice.roll(3)).map(|_| (dice.roll(3), dice.roll(ENTITIES))).collect();
                    let refresh = dice.roll(6) == 0;
                    world.open(intent, &seeds, refresh).await;
                }
                7 => {
                    world.versions[dice.roll(3)] += 1;
                    world.service.offer(registry(world.versions));
                }
                8 => world.restart(),
                9 => world.days_pass(dice.roll(40) as i64).await,
                10 => world.clock.advance(Duration::from_secs(dice.roll(7_200) as u64)),
                _ => {
                    let Some(known) = world.known.remove(&intent) else { continue };
                    let names = [format!("task {intent}"), known.slot.to_string(), known.id.to_string()];
                    world.service.remove_session(&Caller::local(), &names[dice.roll(3)]).await.unwrap();
                }
            }
            world.check().await;
        }
    }
}

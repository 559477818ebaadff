//! A model test of sessions: random opens, expansions, refreshes, reloads, restarts, removals and passing time are
//! compared with a plain map after each step.

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

use crate::harness::DeterministicRandom;

const APIS: [&str; 3] = ["aaa", "bbb", "ccc"];
const ENTITIES: usize = 5;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Returns a catalog whose fields show its version.
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

/// The state that a session must have.
struct ExpectedSession {
    id: LogicalSessionId,
    slot: Slot,
    /// The taught entities in the order of their symbols: the index of the API, and the number of the entity.
    entities: Vec<(usize, usize)>,
    /// The pinned version of each API.
    pinned: BTreeMap<usize, u32>,
    /// The stored time of the last use, which is written at most once an hour.
    used: Timestamp,
    /// Whether the session has a live execute session.
    is_live: bool,
    /// The newer versions that the session has announced.
    announced: BTreeSet<(usize, u32)>,
}

/// A service, and the sessions that it must have.
struct SessionModel {
    store: Arc<MemoryStore>,
    blobs: Arc<MemoryBlobs>,
    clock: Arc<ManualClock>,
    entropy: Arc<CountingEntropy>,
    service: Service,
    /// The offered version of each API.
    versions: [u32; 3],
    /// The expected sessions by the number of their intent.
    expected_sessions: BTreeMap<usize, ExpectedSession>,
    /// The number of slots that were given out, including those of removed sessions.
    slots: u32,
}

impl SessionModel {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        let blobs = Arc::new(MemoryBlobs::new());
        let clock = Arc::new(ManualClock::default());
        let entropy = Arc::new(CountingEntropy::new());
        let versions = [1; 3];
        let service = start_service(&store, &blobs, &clock, &entropy, versions);
        Self { store, blobs, clock, entropy, service, versions, expected_sessions: BTreeMap::new(), slots: 0 }
    }

    fn restart(&mut self) {
        self.service = start_service(&self.store, &self.blobs, &self.clock, &self.entropy, self.versions);
    }

    async fn advance_days(&mut self, days: i64) {
        let passed = Duration::from_millis((days * DAY_MS) as u64);
        self.clock.advance(passed);
        self.blobs.age(passed);
        self.service.collect_garbage(CollectionOptions::default()).await.unwrap();
        let now = self.clock.now();
        for expected in self.expected_sessions.values_mut().filter(|expected| now.0 - expected.used.0 > 30 * DAY_MS) {
            expected.is_live = false;
        }
        self.expected_sessions.retain(|_, expected| now.0 - expected.used.0 <= 365 * DAY_MS);
    }

    async fn open(&mut self, intent: usize, seeds: &BTreeSet<(usize, usize)>, refresh: bool) {
        let seed_requests =
            seeds.iter().rev().map(|(api, n)| SeedRequest::all(APIS[*api], &format!("Thing{n}"))).collect();
        let request = OpenRequest { refresh, ..OpenRequest::new(&format!("task {intent}"), seed_requests) };
        let opened = self.service.open(&Caller::local(), &request).await.unwrap();
        self.apply_and_compare(intent, seeds, refresh, &opened);
    }

    /// Applies the call to the expected sessions and compares the answer.
    fn apply_and_compare(
        &mut self,
        intent: usize,
        seeds: &BTreeSet<(usize, usize)>,
        refresh: bool,
        opened: &OpenedSession,
    ) {
        let now = self.clock.now();
        let versions = self.versions;
        let before = self.expected_sessions.remove(&intent);
        let was_lost = before.as_ref().is_some_and(|expected| !expected.is_live);
        let was_live = before.as_ref().is_some_and(|expected| expected.is_live);
        let mut expected = before.unwrap_or_else(|| {
            self.slots += 1;
            ExpectedSession {
                id: opened.session,
                slot: Slot(self.slots - 1),
                entities: Vec::new(),
                pinned: BTreeMap::new(),
                used: now,
                is_live: true,
                announced: BTreeSet::new(),
            }
        });
        assert_eq!((opened.session, opened.slot), (expected.id, expected.slot));
        let fresh_space = !was_live || refresh;
        let mut seeds_to_teach = seeds.clone();
        if fresh_space {
            let carried = if was_live { std::mem::take(&mut expected.entities) } else { Vec::new() };
            seeds_to_teach.extend(carried);
            expected.entities = Vec::new();
            expected.announced = BTreeSet::new();
            expected.is_live = true;
            expected.pinned = BTreeMap::new();
        }
        let newer: BTreeSet<(usize, u32)> = expected
            .pinned
            .iter()
            .filter(|(api, v)| versions[**api] != **v)
            .map(|(api, _)| (*api, versions[*api]))
            .collect();
        let newly_announced = newer.difference(&expected.announced).count();
        expected.announced.extend(newer);
        let new: Vec<_> = seeds_to_teach.into_iter().filter(|seed| !expected.entities.contains(seed)).collect();
        for (api, _) in &new {
            expected.pinned.entry(*api).or_insert(versions[*api]);
        }
        let changed = fresh_space || !new.is_empty();
        expected.entities.extend(&new);
        if fresh_space || now.0 - expected.used.0 >= 60 * 60 * 1000 {
            expected.used = now;
        }
        assert_eq!(matches!(opened.taught, TaughtTable::Text(_)), changed);
        assert_eq!(opened.continuity.new_symbol_space, fresh_space);
        assert_eq!(opened.continuity.previous_execute.is_some(), was_lost, "the loss is reported");
        assert_eq!(opened.continuity.refreshed, refresh && was_live);
        assert_eq!(opened.catalog_updates.len(), newly_announced, "each update is announced once");
        self.expected_sessions.insert(intent, expected);
    }

    /// Checks that the listed sessions are the expected ones.
    async fn check(&self) {
        let views = self.service.list_sessions(&Caller::local(), 1_000).await.unwrap().0;
        assert_eq!(views.len(), self.expected_sessions.len());
        for view in views {
            let intent: usize = view.intent.strip_prefix("task ").unwrap().parse().unwrap();
            let expected = &self.expected_sessions[&intent];
            assert_eq!((view.logical_session_id, view.slot), (expected.id, Some(expected.slot)));
            assert_eq!(view.space.is_some(), expected.is_live, "{}", view.intent);
            let Some(space) = view.space else { continue };
            let entities: Vec<String> =
                expected.entities.iter().map(|(api, n)| format!("{}:Thing{n}", APIS[*api])).collect();
            assert_eq!(space.entities, entities);
            let pinned =
                expected.pinned.iter().map(|(api, v)| (APIS[*api].to_owned(), tracker(APIS[*api], *v).digest()));
            let listed_catalogs = space.catalogs.into_iter().map(|(id, digest)| (id.to_string(), digest));
            assert_eq!(listed_catalogs.collect::<BTreeMap<_, _>>(), pinned.collect());
        }
    }
}

fn start_service(
    store: &Arc<MemoryStore>,
    blobs: &Arc<MemoryBlobs>,
    clock: &Arc<ManualClock>,
    entropy: &Arc<CountingEntropy>,
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
        let mut model = SessionModel::new();
        let mut random = DeterministicRandom(seed);
        for _ in 0..60 {
            let intent = random.below(4);
            match random.below(12) {
                0..=6 => {
                    let seeds = (0..=random.below(3)).map(|_| (random.below(3), random.below(ENTITIES))).collect();
                    let refresh = random.below(6) == 0;
                    model.open(intent, &seeds, refresh).await;
                }
                7 => {
                    model.versions[random.below(3)] += 1;
                    model.service.offer(registry(model.versions));
                }
                8 => model.restart(),
                9 => model.advance_days(random.below(40) as i64).await,
                10 => model.clock.advance(Duration::from_secs(random.below(7_200) as u64)),
                _ => {
                    let Some(expected) = model.expected_sessions.remove(&intent) else { continue };
                    let names = [format!("task {intent}"), expected.slot.to_string(), expected.id.to_string()];
                    model.service.remove_session(&Caller::local(), &names[random.below(3)]).await.unwrap();
                }
            }
            model.check().await;
        }
    }
}

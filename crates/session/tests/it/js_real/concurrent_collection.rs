//! Collection passes during everything that creates references to heaps: runs, tags, forks and rewinds, on several
//! threads over one SQLite file.
//! Invariant: afterwards every head, kept entry and tagged heap can be read and holds its own count.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use base::Digest;
use session::{CollectionOptions, Error, ForkRequest, Lineage, Tags};

use super::*;
use crate::harness;

/// Makes every heap unique.
const COUNT: &str =
    "globalThis.n = (globalThis.n ?? 0) + 1; globalThis['v' + n % 5] = 'x'.repeat(n % 700) + Math.random(); n";
const WORKERS: u64 = 4;
/// Heaps that were deleted during other work.
const ENOUGH: u64 = 100;
const MOST_TIME: Duration = Duration::from_secs(60);
const KEPT_ENTRIES: u32 = 2;

/// State that the workers share.
struct MemoryService {
    service: Arc<Service>,
    time: SharedTime,
    sessions: Mutex<Vec<String>>,
    /// Known heaps, with the value of `n` in each.
    told: Mutex<BTreeMap<Digest, u64>>,
    tagged: Mutex<BTreeSet<Digest>>,
    done: AtomicBool,
    went: AtomicU64,
    /// Held during a call. A call that takes longer than the grace period is outside of this test.
    under_way: tokio::sync::RwLock<()>,
}

/// Deterministic for each worker, apart from their interaction.
struct Dice {
    state: u64,
    /// Heaps that this worker tagged. No other worker removes these tags.
    mine: Vec<Digest>,
}

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % sides
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        if of.is_empty() { None } else { Some(of[self.roll(of.len())].clone()) }
    }
}

/// Errors that are allowed when a heap was just deleted or its session is active.
fn is_told(error: &Error) -> bool {
    matches!(error.code(), "no_heap" | "under_way" | "busy")
}

impl MemoryService {
    async fn ran(&self, asked: &RunJsRequest) -> (Digest, u64, bool) {
        let ran = self.service.run_js(&me(), asked).await.unwrap();
        let n = value(&ran).as_u64().unwrap();
        self.told.lock().unwrap().insert(ran.heap.unwrap(), n);
        (ran.heap.unwrap(), n, ran.warning.is_some())
    }

    async fn act(&self, dice: &mut Dice) {
        let session = dice.one(&self.sessions.lock().unwrap()).unwrap();
        let told: Vec<(Digest, u64)> = self.told.lock().unwrap().iter().map(|(heap, n)| (*heap, *n)).collect();
        let any = dice.one(&told);
        match (dice.roll(14), any) {
            (0..=5, _) => drop(self.ran(&logical(&session, COUNT)).await),
            // A fresh start: only the log refers to earlier heaps.
            (6 | 7, _) => drop(self.ran(&RunJsRequest { heap: Some(String::new()), ..logical(&session, COUNT) }).await),
            (8, Some((heap, before))) => {
                let (_, n, fresh) = self.ran(&RunJsRequest { heap: Some(heap.to_string()), ..code(COUNT) }).await;
                assert_eq!(n, if fresh { 1 } else { before + 1 });
            }
            (9, Some((heap, _))) => self.tag(heap, dice).await,
            (10, _) => self.untag(dice).await,
            (11, _) if self.sessions.lock().unwrap().len() < 8 => {
                let at = self.index(&session, dice).await.filter(|at| at % 2 == 0);
                let fork = ForkRequest { session, intent: format!("fork {}", dice.roll(1 << 30)), at };
                match self.service.fork_session(&me(), &fork).await {
                    Ok(forked) => self.sessions.lock().unwrap().push(forked.session.to_string()),
                    Err(error) => assert!(is_told(&error), "{error}"),
                }
            }
            (12 | 13, _) => {
                let Some(index) = self.index(&session, dice).await else { return };
                if let Err(error) = self.service.rewind_session(&me(), &session, index).await {
                    assert!(is_told(&error), "{error}");
                }
            }
            _ => {}
        }
    }

    async fn tag(&self, heap: Digest, dice: &mut Dice) {
        if !self.tagged.lock().unwrap().insert(heap) {
            return;
        }
        let tags = Tags::from([("kept".to_owned(), "yes".to_owned())]);
        match self.service.set_heap_tags(&me(), &heap.to_string(), tags).await {
            Ok(()) => dice.mine.push(heap),
            Err(error) => {
                assert!(is_told(&error), "{error}");
                self.tagged.lock().unwrap().remove(&heap);
            }
        }
    }

    async fn untag(&self, dice: &mut Dice) {
        let Some(heap) = dice.mine.pop() else { return };
        self.service.delete_heap_tags(&me(), &heap.to_string(), None).await.unwrap();
        self.tagged.lock().unwrap().remove(&heap);
    }

    /// Picks an entry of a session's log.
    async fn index(&self, session: &str, dice: &mut Dice) -> Option<u64> {
        let log = self.service.session_log(&me(), &SessionTarget::Logical(session.to_owned())).await.unwrap();
        // Usually one of the newest entries, since older heaps are deleted.
        let newest = &log[log.len().saturating_sub(4)..];
        dice.one(&newest.iter().map(|entry| entry.index).collect::<Vec<_>>())
    }

    async fn work(self: Arc<Self>, seed: u64) {
        let (mut dice, began) = (Dice { state: seed, mine: Vec::new() }, Instant::now());
        // A pass is slower than a worker, so the workers continue until it has deleted something.
        while self.went.load(Ordering::Relaxed) < ENOUGH && began.elapsed() < MOST_TIME {
            let _under_way = self.under_way.read().await;
            self.act(&mut dice).await;
        }
    }

    async fn collect(self: Arc<Self>) {
        while !self.done.load(Ordering::Acquire) {
            let collected = self.service.collect_garbage(CollectionOptions::default()).await.unwrap();
            assert!(collected.unread.is_empty(), "{collected:?}");
            self.went.fetch_add(collected.rows.get("heap").copied().unwrap_or(0), Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    }

    /// Advances the clock by an hour or more between two calls.
    async fn hours_pass(self: Arc<Self>) {
        while !self.done.load(Ordering::Acquire) {
            let none = self.under_way.write().await;
            self.time.advance(Duration::from_secs(61 * 60));
            drop(none);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn check(&self, p: &RealProcess) -> usize {
        let mut kept: BTreeSet<Digest> = self.tagged.lock().unwrap().clone();
        for session in self.sessions.lock().unwrap().iter() {
            let of = SessionTarget::Logical(session.clone());
            let Lineage { head, nodes, .. } = p.block(p.service.session_lineage(&me(), &of)).unwrap();
            kept.extend(head);
            kept.extend(nodes.iter().rev().take(KEPT_ENTRIES as usize).map(|node| node.entry.output_heap));
        }
        p.engine.forget();
        let told = self.told.lock().unwrap().clone();
        for heap in &kept {
            assert_eq!(value(&p.run(&on(heap, "n"))), json!(told[heap]), "{heap}");
        }
        kept.len()
    }
}

fn collected_beside(grace_hours: u32) {
    let mut house = RealHarness::new();
    house.retention = Retention { log_entries: KEPT_ENTRIES, grace_hours, ..Retention::default() };
    house.settings.links = 2;
    let p = house.process(Engine::start(&settings()).unwrap());
    p.block(harness::open(&p.service));
    let session = p.block(p.service.session_id(&me(), "s0")).unwrap().to_string();
    let world = Arc::new(MemoryService {
        service: p.service.clone(),
        time: house.time.clone(),
        sessions: Mutex::new(vec![session.clone()]),
        told: Mutex::default(),
        tagged: Mutex::default(),
        done: AtomicBool::new(false),
        went: AtomicU64::new(0),
        under_way: tokio::sync::RwLock::default(),
    });
    p.block(async {
        world.ran(&logical(&session, COUNT)).await;
        let beside = [tokio::spawn(world.clone().collect()), tokio::spawn(world.clone().collect())];
        let time = (grace_hours > 0).then(|| tokio::spawn(world.clone().hours_pass()));
        let workers: Vec<_> = (0..WORKERS).map(|seed| tokio::spawn(world.clone().work(seed))).collect();
        for worker in workers {
            worker.await.unwrap();
        }
        world.done.store(true, Ordering::Release);
        for task in beside.into_iter().chain(time) {
            task.await.unwrap();
        }
    });
    let (went, told) = (world.went.load(Ordering::Relaxed), world.told.lock().unwrap().len());
    assert!(went >= ENOUGH, "only {went} heaps of {told} went");
    assert!(world.check(&p) > 5);
    drop(p);
    // Another process, which knows only what is stored.
    let p = house.process(Engine::start(&settings()).unwrap());
    world.check(&p);
}

#[test]
fn referenced_heaps_survive_collection_during_runs_tags_forks_and_rewinds() {
    collected_beside(1);
}

/// Below the allowed settings: a pass deletes what the previous one condemned.
#[test]
fn referenced_heaps_survive_collection_without_a_grace_period() {
    collected_beside(0);
}

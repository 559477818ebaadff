//! Passes of the collector beside everything that makes something lead to a heap: runs, tags, forks, rewinds, on threads of
//! their own and over one SQLite file.
//! Invariant: what was answered is held to afterwards: a head, a kept entry or a tagged heap restores, with its own count in it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use base::Digest;
use session::{Error, Fork, Lineage, Pass, Tags};

use super::*;
use crate::house;

/// No two of them leave the same heap.
const COUNT: &str =
    "globalThis.n = (globalThis.n ?? 0) + 1; globalThis['v' + n % 5] = 'x'.repeat(n % 700) + Math.random(); n";
const WORKERS: u64 = 4;
/// Heaps that went beside what was done meanwhile.
const ENOUGH: u64 = 100;
const MOST_TIME: Duration = Duration::from_secs(60);
const KEPT_ENTRIES: u32 = 2;

/// What the workers know together.
struct World {
    service: Arc<Service>,
    time: SharedTime,
    sessions: Mutex<Vec<String>>,
    /// Heaps that were told of, and what `n` is in them.
    told: Mutex<BTreeMap<Digest, u64>>,
    tagged: Mutex<BTreeSet<Digest>>,
    done: AtomicBool,
    went: AtomicU64,
    /// Held by who is in the middle of something: a call that takes longer than the grace period is none of ours.
    under_way: tokio::sync::RwLock<()>,
}

/// Deterministic for each worker; what they do to each other is not.
struct Dice {
    state: u64,
    /// Heaps that it has tagged: nobody else takes the tags away.
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

/// What may be answered where a heap went just before, or its session is being run in.
fn is_told(error: &Error) -> bool {
    matches!(error.code(), "no_heap" | "under_way" | "busy")
}

impl World {
    async fn ran(&self, asked: &RunJs) -> (Digest, u64, bool) {
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
            // A new beginning: what was before is the log's alone.
            (6 | 7, _) => drop(self.ran(&RunJs { heap: Some(String::new()), ..logical(&session, COUNT) }).await),
            (8, Some((heap, before))) => {
                let (_, n, fresh) = self.ran(&RunJs { heap: Some(heap.to_string()), ..code(COUNT) }).await;
                assert_eq!(n, if fresh { 1 } else { before + 1 });
            }
            (9, Some((heap, _))) => self.tag(heap, dice).await,
            (10, _) => self.untag(dice).await,
            (11, _) if self.sessions.lock().unwrap().len() < 8 => {
                let at = self.index(&session, dice).await.filter(|at| at % 2 == 0);
                let fork = Fork { session, intent: format!("fork {}", dice.roll(1 << 30)), at };
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

    /// Of some entry of a session.
    async fn index(&self, session: &str, dice: &mut Dice) -> Option<u64> {
        let log = self.service.session_log(&me(), &InSession::Logical(session.to_owned())).await.unwrap();
        // Mostly one of the newest: the others have gone.
        let newest = &log[log.len().saturating_sub(4)..];
        dice.one(&newest.iter().map(|entry| entry.index).collect::<Vec<_>>())
    }

    async fn work(self: Arc<Self>, seed: u64) {
        let (mut dice, began) = (Dice { state: seed, mine: Vec::new() }, Instant::now());
        // A pass is slower than a worker: they go on until it has done something.
        while self.went.load(Ordering::Relaxed) < ENOUGH && began.elapsed() < MOST_TIME {
            let _under_way = self.under_way.read().await;
            self.act(&mut dice).await;
        }
    }

    async fn collect(self: Arc<Self>) {
        while !self.done.load(Ordering::Acquire) {
            let collected = self.service.collect_garbage(Pass::default()).await.unwrap();
            assert!(collected.unread.is_empty(), "{collected:?}");
            self.went.fetch_add(collected.rows.get("heap").copied().unwrap_or(0), Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    }

    /// An hour and more each time, between two calls.
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
            let of = InSession::Logical(session.clone());
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
    let mut house = RealHouse::new();
    house.retention = Retention { log_entries: KEPT_ENTRIES, grace_hours, ..Retention::default() };
    house.settings.links = 2;
    let p = house.process(Engine::start(&settings()).unwrap());
    p.block(house::open(&p.service));
    let session = p.block(p.service.session_id(&me(), "s0")).unwrap().to_string();
    let world = Arc::new(World {
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
    // Another process, which knows nothing but what is stored.
    let p = house.process(Engine::start(&settings()).unwrap());
    world.check(&p);
}

#[test]
fn what_something_leads_to_restores_after_passes_beside_runs_tags_forks_and_rewinds() {
    collected_beside(1);
}

/// Less than any settings allow: a pass removes what the one just before it condemned.
#[test]
fn what_something_leads_to_restores_also_where_there_is_no_grace() {
    collected_beside(0);
}

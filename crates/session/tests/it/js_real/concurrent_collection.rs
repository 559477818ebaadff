//! Collection during runs, tags, forks and rewinds, on several threads over one SQLite file.
//! Invariant: afterwards the heap of every head, retained log entry and tag can be read and holds its own count.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use base::Digest;
use session::{CollectionOptions, Error, ForkRequest, Lineage, Tags};

use super::*;
use crate::harness::{self, DeterministicRandom};

/// A script that counts in `n` and makes every heap unique.
const COUNT: &str =
    "globalThis.n = (globalThis.n ?? 0) + 1; globalThis['v' + n % 5] = 'x'.repeat(n % 700) + Math.random(); n";
const WORKERS: u64 = 4;
/// The number of deleted heaps after which the workers stop.
const ENOUGH_DELETED_HEAPS: u64 = 100;
/// The workers stop after this time even if fewer heaps were deleted.
const MAX_TIME: Duration = Duration::from_secs(60);
const RETAINED_ENTRIES: u32 = 2;

/// State that the workers share.
struct Workload {
    service: Arc<Service>,
    time: SharedTime,
    sessions: Mutex<Vec<String>>,
    /// All heaps that a run returned, with the value of `n` in each.
    heap_counts: Mutex<BTreeMap<Digest, u64>>,
    tagged: Mutex<BTreeSet<Digest>>,
    /// Whether all workers have ended. The background tasks then end too.
    done: AtomicBool,
    /// The number of heaps that the passes deleted.
    deleted_heaps: AtomicU64,
    /// Read by each call and written by the clock. The test does not cover calls that are longer than the grace period,
    /// so the clock may not advance during a call.
    call_lock: tokio::sync::RwLock<()>,
}

/// The own state of one worker. Each worker is deterministic, apart from its interaction with the others.
struct Worker {
    random: DeterministicRandom,
    /// Heaps that this worker tagged. No other worker removes these tags.
    tagged_heaps: Vec<Digest>,
}

impl Worker {
    fn below(&mut self, limit: usize) -> usize {
        self.random.below(limit)
    }

    fn choose<T: Clone>(&mut self, items: &[T]) -> Option<T> {
        if items.is_empty() { None } else { Some(items[self.below(items.len())].clone()) }
    }
}

/// Returns whether the error is expected because a heap was just deleted or its session is active.
fn is_expected(error: &Error) -> bool {
    matches!(error.code(), "no_heap" | "under_way" | "busy")
}

impl Workload {
    /// Returns the heap, the value of `n`, and whether the run started fresh because its heap was missing.
    async fn run_counted(&self, request: &RunJsRequest) -> (Digest, u64, bool) {
        let execution = self.service.run_js(&local_caller(), request).await.unwrap();
        let n = completed_value(&execution).as_u64().unwrap();
        self.heap_counts.lock().unwrap().insert(execution.heap.unwrap(), n);
        (execution.heap.unwrap(), n, execution.warning.is_some())
    }

    /// Does one random thing: a run, a tag, a fork or a rewind.
    async fn act_at_random(&self, worker: &mut Worker) {
        let session = worker.choose(&self.sessions.lock().unwrap()).unwrap();
        let heap_counts: Vec<(Digest, u64)> =
            self.heap_counts.lock().unwrap().iter().map(|(heap, n)| (*heap, *n)).collect();
        let any_heap = worker.choose(&heap_counts);
        match (worker.below(14), any_heap) {
            (0..=5, _) => drop(self.run_counted(&logical_request(&session, COUNT)).await),
            // After a fresh start only the log refers to earlier heaps.
            (6 | 7, _) => drop(
                self.run_counted(&RunJsRequest { heap: Some(String::new()), ..logical_request(&session, COUNT) }).await,
            ),
            (8, Some((heap, before))) => {
                let (_, n, fresh) =
                    self.run_counted(&RunJsRequest { heap: Some(heap.to_string()), ..script_request(COUNT) }).await;
                assert_eq!(n, if fresh { 1 } else { before + 1 });
            }
            (9, Some((heap, _))) => self.tag(heap, worker).await,
            (10, _) => self.untag(worker).await,
            (11, _) if self.sessions.lock().unwrap().len() < 8 => {
                let at = self.random_entry(&session, worker).await.filter(|at| at % 2 == 0);
                let fork = ForkRequest { session, intent: format!("fork {}", worker.below(1 << 30)), at };
                match self.service.fork_session(&local_caller(), &fork).await {
                    Ok(forked) => self.sessions.lock().unwrap().push(forked.session.to_string()),
                    Err(error) => assert!(is_expected(&error), "{error}"),
                }
            }
            (12 | 13, _) => {
                let Some(index) = self.random_entry(&session, worker).await else { return };
                if let Err(error) = self.service.rewind_session(&local_caller(), &session, index).await {
                    assert!(is_expected(&error), "{error}");
                }
            }
            _ => {}
        }
    }

    async fn tag(&self, heap: Digest, worker: &mut Worker) {
        if !self.tagged.lock().unwrap().insert(heap) {
            return;
        }
        let tags = Tags::from([("kept".to_owned(), "yes".to_owned())]);
        match self.service.set_heap_tags(&local_caller(), &heap.to_string(), tags).await {
            Ok(()) => worker.tagged_heaps.push(heap),
            Err(error) => {
                assert!(is_expected(&error), "{error}");
                self.tagged.lock().unwrap().remove(&heap);
            }
        }
    }

    async fn untag(&self, worker: &mut Worker) {
        let Some(heap) = worker.tagged_heaps.pop() else { return };
        self.service.delete_heap_tags(&local_caller(), &heap.to_string(), None).await.unwrap();
        self.tagged.lock().unwrap().remove(&heap);
    }

    /// Returns the index of a random entry of a session's log.
    async fn random_entry(&self, session: &str, worker: &mut Worker) -> Option<u64> {
        let log = self.service.session_log(&local_caller(), &SessionTarget::Logical(session.to_owned())).await.unwrap();
        // One of the newest entries, since older heaps are deleted.
        let newest = &log[log.len().saturating_sub(4)..];
        worker.choose(&newest.iter().map(|entry| entry.index).collect::<Vec<_>>())
    }

    async fn run_worker(self: Arc<Self>, seed: u64) {
        let mut worker = Worker { random: DeterministicRandom(seed), tagged_heaps: Vec::new() };
        let started = Instant::now();
        // A pass is slower than a worker, so the workers continue until the passes have deleted enough heaps.
        while self.deleted_heaps.load(Ordering::Relaxed) < ENOUGH_DELETED_HEAPS && started.elapsed() < MAX_TIME {
            let _call = self.call_lock.read().await;
            self.act_at_random(&mut worker).await;
        }
    }

    async fn collect(self: Arc<Self>) {
        while !self.done.load(Ordering::Acquire) {
            let collected = self.service.collect_garbage(CollectionOptions::default()).await.unwrap();
            assert!(collected.unread.is_empty(), "{collected:?}");
            self.deleted_heaps.fetch_add(collected.rows.get("heap").copied().unwrap_or(0), Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    }

    /// Advances the clock by an hour or more between two calls.
    async fn advance_hours(self: Arc<Self>) {
        while !self.done.load(Ordering::Acquire) {
            let no_call = self.call_lock.write().await;
            self.time.advance(Duration::from_secs(61 * 60));
            drop(no_call);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Checks that every referenced heap can be read and holds its count. Returns their number.
    fn check_referenced_heaps(&self, process: &RealProcess) -> usize {
        let mut referenced: BTreeSet<Digest> = self.tagged.lock().unwrap().clone();
        for session in self.sessions.lock().unwrap().iter() {
            let target = SessionTarget::Logical(session.clone());
            let Lineage { head, nodes, .. } =
                process.block_on(process.service.session_lineage(&local_caller(), &target)).unwrap();
            referenced.extend(head);
            referenced.extend(nodes.iter().rev().take(RETAINED_ENTRIES as usize).map(|node| node.entry.output_heap));
        }
        process.engine.forget();
        let heap_counts = self.heap_counts.lock().unwrap().clone();
        for heap in &referenced {
            assert_eq!(completed_value(&process.run(&run_on_heap(heap, "n"))), json!(heap_counts[heap]), "{heap}");
        }
        referenced.len()
    }
}

fn collect_during_work(grace_hours: u32) {
    let mut harness = RealHarness::new();
    harness.retention = Retention { log_entries: RETAINED_ENTRIES, grace_hours, ..Retention::default() };
    harness.settings.links = 2;
    let process = harness.process(Engine::start(&engine_settings()).unwrap());
    process.block_on(harness::open_session(&process.service));
    let session = process.block_on(process.service.session_id(&local_caller(), "s0")).unwrap().to_string();
    let workload = Arc::new(Workload {
        service: process.service.clone(),
        time: harness.time.clone(),
        sessions: Mutex::new(vec![session.clone()]),
        heap_counts: Mutex::default(),
        tagged: Mutex::default(),
        done: AtomicBool::new(false),
        deleted_heaps: AtomicU64::new(0),
        call_lock: tokio::sync::RwLock::default(),
    });
    process.block_on(async {
        workload.run_counted(&logical_request(&session, COUNT)).await;
        let collectors = [tokio::spawn(workload.clone().collect()), tokio::spawn(workload.clone().collect())];
        let clock = (grace_hours > 0).then(|| tokio::spawn(workload.clone().advance_hours()));
        let workers: Vec<_> = (0..WORKERS).map(|seed| tokio::spawn(workload.clone().run_worker(seed))).collect();
        for worker in workers {
            worker.await.unwrap();
        }
        workload.done.store(true, Ordering::Release);
        for task in collectors.into_iter().chain(clock) {
            task.await.unwrap();
        }
    });
    let deleted = workload.deleted_heaps.load(Ordering::Relaxed);
    let all_heaps = workload.heap_counts.lock().unwrap().len();
    assert!(deleted >= ENOUGH_DELETED_HEAPS, "only {deleted} heaps of {all_heaps} were deleted");
    assert!(workload.check_referenced_heaps(&process) > 5);
    drop(process);
    // Another process has nothing in memory, so it reads all heaps from storage.
    let process = harness.process(Engine::start(&engine_settings()).unwrap());
    workload.check_referenced_heaps(&process);
}

#[test]
fn referenced_heaps_survive_collection_during_runs_tags_forks_and_rewinds() {
    collect_during_work(1);
}

/// The settings do not allow this value. A pass then deletes the heaps that the previous one condemned.
#[test]
fn referenced_heaps_survive_collection_without_a_grace_period() {
    collect_during_work(0);
}

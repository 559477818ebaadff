//! Collection of JavaScript data: referenced heaps stay readable, all others are deleted, also during runs and after
//! interrupted passes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::{Digest, Timestamp};
use ports::store::Table;
use serde_json::{Value, json};
use session::{
    CollectionOptions, CollectionReport, ExecutionState, ForkRequest, Retention, RunJsRequest, SessionTarget, Tags,
};
use testkit::faults::{Fault, Operation};
use testkit::tiny::TinyScripts;

use crate::harness;
use crate::js_harness::{JsHarness, Process, code, completed, later, local, logical, named, timer, value};

const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;

impl JsHarness {
    fn hours_pass(&self, hours: u64) {
        self.time.advance(Duration::from_secs(hours * HOUR));
        self.house.blobs.age(Duration::from_secs(hours * HOUR));
    }

    /// The stored heaps with their parents.
    fn stored(&self) -> BTreeMap<Digest, Option<Digest>> {
        let rows = self.house.store.rows();
        let heaps = rows.iter().filter(|(key, _)| key.table == Table::Heap);
        let parent = |value: &[u8]| {
            let end = value.iter().position(|byte| *byte == b'\n').unwrap();
            let row: Value = serde_json::from_slice(&value[..end]).unwrap();
            row["parent"].as_str().map(|parent| Digest::parse(parent).unwrap())
        };
        heaps.map(|(key, row)| (Digest::parse(&key.id).unwrap(), parent(&row.value))).collect()
    }

    fn count(&self, table: Table) -> usize {
        self.house.store.rows().iter().filter(|(key, _)| key.table == table).count()
    }
}

impl Process {
    fn collect(&self) -> CollectionReport {
        self.block(self.service.collect_garbage(CollectionOptions::default())).unwrap()
    }

    /// Runs passes, with the grace period between them, until all unreferenced heaps are deleted.
    fn collect_all(&self, house: &JsHarness) {
        self.collect();
        house.hours_pass(25);
        self.collect();
    }

    /// Reads the heap through the engine, which verifies it.
    fn restores(&self, heap: Digest) -> bool {
        self.engine.forget();
        let key = heap.to_string();
        self.block(self.service.diff_heaps(&local(), &key, &key)).is_ok()
    }
}

fn step(n: u64) -> Value {
    json!([{"set": [format!("v{n}"), n]}, {"add": ["n", 1]}])
}

#[test]
fn a_log_keeps_heaps_of_young_and_recent_entries_and_marks_the_others() {
    let mut house = JsHarness::new();
    house.retention = Retention { log_entries: 3, heaps: 10, ..Retention::default() };
    // Each heap is stored without a parent, so that none is kept by another.
    house.settings.links = 1;
    let p = house.process();
    p.block(harness::open(&p.service));
    let heaps: Vec<Digest> = (0..6).map(|n| completed(p.run(&logical("s0", step(n)))).heap.unwrap()).collect();
    p.rest(50);
    let said = p
        .block(p.service.collect_garbage(CollectionOptions { dry_run: true, ..CollectionOptions::default() }))
        .unwrap();
    assert_eq!((said.condemned, said.rows.get("heap")), (3, None));
    assert!(house.house.store.rows().iter().all(|(_, row)| !String::from_utf8_lossy(&row.value).contains("condemned")));
    assert_eq!(p.collect().condemned, 3);
    assert_eq!(p.collect().rows.get("heap"), None, "the grace period is not over");
    house.hours_pass(25);
    let said = p
        .block(p.service.collect_garbage(CollectionOptions { dry_run: true, ..CollectionOptions::default() }))
        .unwrap();
    let gone = p.collect();
    assert_eq!((said.rows.get("heap"), gone.rows.get("heap")), (Some(&3), Some(&3)));
    assert!(gone.heap_bytes > 0);
    let log = p.block(p.service.session_log(&local(), &SessionTarget::Logical("s0".into()))).unwrap();
    assert_eq!(log.iter().map(|entry| entry.gone).collect::<Vec<_>>(), [true, true, true, false, false, false]);
    assert_eq!(log.iter().map(|entry| entry.index).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    assert!(heaps[3..].iter().all(|heap| p.restores(*heap)));
    // A deleted heap cannot be referred to again.
    assert_eq!(p.block(p.service.rewind_session(&local(), "s0", 0)).unwrap_err().code(), "no_heap");
    let fork = ForkRequest { session: "s0".into(), intent: "fork".into(), at: Some(1) };
    assert_eq!(p.block(p.service.fork_session(&local(), &fork)).unwrap_err().code(), "no_heap");
    let again = RunJsRequest { heap: Some(heaps[0].to_string()), ..code(json!([])) };
    assert!(completed(p.run(&again)).warning.unwrap().contains(&heaps[0].to_string()));
    // After ten days only the head is left.
    house.hours_pass(11 * 24);
    p.collect_all(&house);
    assert_eq!(house.stored().into_keys().collect::<Vec<_>>(), [heaps[5]]);
    assert_eq!(value(&completed(p.run(&logical("s0", json!([{"get": "n"}]))))), json!(6));
}

/// A caller that saw a heap just before it was condemned may rely on the full grace period, however long the pass
/// took.
#[test]
fn a_pass_longer_than_the_grace_period_still_grants_it_in_full() {
    let mut house = JsHarness::new();
    house.retention = Retention { log_entries: 1, grace_hours: 1, ..Retention::default() };
    let p = house.process();
    p.block(harness::open(&p.service));
    completed(p.run(&logical("s0", step(1))));
    completed(p.run(&RunJsRequest { heap: Some(String::new()), ..logical("s0", step(2)) }));
    let is_condemned = || {
        let rows = house.house.store.rows();
        rows.iter().any(|(_, row)| String::from_utf8_lossy(&row.value).contains("condemned"))
    };
    let collect = |pass: CollectionOptions| {
        let service = p.service.clone();
        async move { service.collect_garbage(pass).await.unwrap() }
    };
    p.block(async {
        let slow = tokio::spawn(collect(CollectionOptions {
            pause: Duration::from_secs(2 * HOUR),
            ..CollectionOptions::default()
        }));
        let mut free = house.time.now();
        while !collect(CollectionOptions { dry_run: true, ..CollectionOptions::default() })
            .await
            .rows
            .contains_key("heap")
        {
            if !is_condemned() {
                free = house.time.now();
            }
            tokio::time::sleep(Duration::from_secs(HOUR / 6)).await;
        }
        assert!(house.time.now().0 - free.0 >= HOUR as i64 * 1000, "it would go before its time");
        assert_eq!(slow.await.unwrap().condemned, 1);
    });
}

#[test]
fn runs_expire_with_their_output_and_a_run_without_a_session_keeps_its_heap_like_a_log() {
    let house = JsHarness::new();
    let p = house.process();
    let program = json!([{"print": "x".repeat(40_000)}, {"set": ["a", 1]}]);
    let ran = completed(p.run(&code(program)));
    let tagged = RunJsRequest { tags: Some(Tags::from([("keep".into(), "me".into())])), ..code(step(7)) };
    let tagged = completed(p.run(&tagged)).heap.unwrap();
    house.hours_pass(28 * 24);
    p.collect_all(&house);
    assert!(p.restores(ran.heap.unwrap()));
    house.hours_pass(2 * 24);
    let gone = p.collect();
    assert_eq!((gone.rows.get("execution"), gone.rows.get("execution_output")), (Some(&2), Some(&3)), "{gone:?}");
    p.collect_all(&house);
    assert_eq!(house.stored().into_keys().collect::<Vec<_>>(), [tagged], "tags keep it");
    assert!(p.restores(tagged));
    p.block(p.service.delete_heap_tags(&local(), &tagged.to_string(), None)).unwrap();
    p.collect_all(&house);
    assert_eq!((house.stored().len(), house.count(Table::ExecutionOutput)), (0, 0));
}

#[test]
fn a_condemned_heap_that_is_used_again_is_retained_with_its_ancestors() {
    let mut house = JsHarness::new();
    house.retention = Retention { log_entries: 1, ..Retention::default() };
    let p = house.process();
    p.block(harness::open(&p.service));
    let heaps: Vec<Digest> = (0..4).map(|n| completed(p.run(&logical("s0", step(n)))).heap.unwrap()).collect();
    // A fresh start: nothing refers to the four heaps any more.
    completed(p.run(&RunJsRequest { heap: Some(String::new()), ..logical("s0", step(9)) }));
    assert_eq!(p.collect().condemned, 4);
    house.hours_pass(25);
    // Each way to use a heap again, at the last moment.
    p.block(p.service.set_heap_tags(&local(), &heaps[3].to_string(), Tags::from([("a".into(), "b".into())]))).unwrap();
    assert_eq!(p.collect().rows.get("heap"), None);
    p.collect_all(&house);
    assert!(heaps.iter().all(|heap| p.restores(*heap)));
    p.block(p.service.delete_heap_tags(&local(), &heaps[3].to_string(), None)).unwrap();
    p.collect();
    house.hours_pass(25);
    drop(p);
    let p = house.process();
    let ran = RunJsRequest { heap: Some(heaps[2].to_string()), ..later("n", json!([timer(20_000), {"get": "n"}])) };
    let ran = p.run(&ran).unwrap();
    p.collect();
    assert!(!house.stored().contains_key(&heaps[3]));
    p.engine.forget();
    p.rest(25_000);
    assert_eq!(value(&p.execution(&ran.id.to_string())), json!(3));
    p.collect_all(&house);
    assert!(p.restores(p.execution(&ran.id.to_string()).heap.unwrap()));
}

#[test]
fn a_parked_run_keeps_its_heap_even_while_its_process_is_dead() {
    let mut house = JsHarness::new();
    house.retention = Retention { log_entries: 1, grace_hours: 1, ..Retention::default() };
    house.settings.most_timeout_ms = 20 * HOUR * 1000;
    let p = house.process();
    let start = completed(p.run(&named("n", json!([{"set": ["kept", "x".repeat(70_000)]}])))).heap.unwrap();
    let waits = json!([{"add": ["n", 1]}, timer(HOUR * 1000), {"add": ["n", 1]}, timer(6 * HOUR * 1000), {"add": ["n", 1]}, {"get": "n"}]);
    let asked = RunJsRequest {
        heap: Some(start.to_string()),
        timeout_ms: Some(20 * HOUR * 1000),
        wait_ms: Some(0),
        ..code(waits)
    };
    let ran = p.run(&asked).unwrap();
    completed(p.run(&named("n", json!([{"set": ["other", 1]}]))));
    p.rest(10);
    for _ in 0..2 {
        house.hours_pass(2);
        p.collect();
    }
    drop(p);
    let p = house.process();
    p.collect();
    house.hours_pass(2);
    p.collect();
    assert_eq!(p.resume(), 1);
    p.rest(10 * HOUR * 1000);
    assert_eq!(value(&p.execution(&ran.id.to_string())), json!(3));
    assert!(p.restores(p.execution(&ran.id.to_string()).heap.unwrap()));
}

#[test]
fn a_session_expires_with_its_log_and_running_scripts_counts_as_use() {
    let house = JsHarness::new();
    let p = house.process();
    p.block(harness::open(&p.service));
    completed(p.run(&logical("s0", step(1))));
    completed(p.run(&named("n", step(2))));
    house.hours_pass(300 * 24);
    completed(p.run(&logical("s0", step(3))));
    completed(p.run(&named("n", step(4))));
    house.hours_pass(300 * 24);
    p.collect_all(&house);
    assert_eq!((house.count(Table::JsSession), house.count(Table::SessionLog)), (2, 4));
    assert_eq!(house.stored().len(), 3, "the heads are left, and what one of them stands on");
    house.hours_pass(70 * 24);
    p.collect_all(&house);
    p.collect_all(&house);
    assert_eq!((house.count(Table::JsSession), house.count(Table::SessionLog), house.stored().len()), (0, 0, 0));
    // The reused name starts again at 0.
    completed(p.run(&named("n", step(5))));
    let log = p.block(p.service.session_log(&local(), &SessionTarget::Named("n".into()))).unwrap();
    assert_eq!(log.iter().map(|entry| entry.index).collect::<Vec<_>>(), [0]);
}

#[test]
fn an_engine_stays_as_long_as_a_heap_needs_it() {
    let house = JsHarness::new();
    let p = house.process();
    let old = RunJsRequest { tags: Some(Tags::from([("keep".into(), "me".into())])), ..code(step(1)) };
    let old = completed(p.run(&old)).heap.unwrap();
    drop(p);
    let p = house.process_with(TinyScripts::build("a tiny engine of the next release"));
    completed(p.run(&named("n", step(2))));
    p.collect_all(&house);
    p.collect_all(&house);
    assert_eq!(house.count(Table::Guest), 2);
    assert!(p.restores(old));
    p.block(p.service.delete_heap_tags(&local(), &old.to_string(), None)).unwrap();
    house.hours_pass(31 * 24);
    p.collect_all(&house);
    p.collect_all(&house);
    assert_eq!((house.count(Table::Guest), house.house.blobs.digests().len()), (1, 1), "with its program");
    completed(p.run(&named("n", step(3))));
}

/// A deterministic random generator, the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

/// The expected state, which the test tracks itself.
struct MemoryService {
    house: JsHarness,
    sessions: Vec<String>,
    /// Known heaps, with the value of `n` in each.
    told: BTreeMap<Digest, u64>,
    tagged: BTreeSet<Digest>,
    /// Runs outside of sessions: their heap, and when it was produced.
    outside: Vec<(Digest, Timestamp)>,
    steps: u64,
}

impl MemoryService {
    fn act(&mut self, p: &Process, dice: &mut Dice) {
        let session = self.sessions[dice.roll(self.sessions.len())].clone();
        let heaps: Vec<Digest> = self.told.keys().copied().collect();
        let any = (!heaps.is_empty()).then(|| heaps[dice.roll(heaps.len())]);
        self.steps += 1;
        let program = json!([{"set": [format!("v{}", self.steps % 5), self.steps]}, {"add": ["n", 1]}, {"get": "n"}]);
        match (dice.roll(12), any) {
            (0..=4, _) => {
                let ran = completed(p.run(&logical(&session, program)));
                self.told.insert(ran.heap.unwrap(), value(&ran).as_u64().unwrap());
            }
            (5, Some(heap)) => {
                let ran = completed(p.run(&RunJsRequest { heap: Some(heap.to_string()), ..code(program) }));
                let n = value(&ran).as_u64().unwrap();
                assert_eq!(n, if ran.warning.is_some() { 1 } else { self.told[&heap] + 1 });
                self.told.insert(ran.heap.unwrap(), n);
                self.outside.push((ran.heap.unwrap(), ran.ended.unwrap()));
            }
            (6, Some(heap)) => {
                let tags = Tags::from([("t".to_owned(), "1".to_owned())]);
                if p.block(p.service.set_heap_tags(&local(), &heap.to_string(), tags)).is_ok() {
                    self.tagged.insert(heap);
                }
            }
            (7, _) => {
                if let Some(heap) = self.tagged.pop_first() {
                    p.block(p.service.delete_heap_tags(&local(), &heap.to_string(), None)).unwrap();
                }
            }
            (8, _) if self.sessions.len() < 6 => {
                let fork = ForkRequest { session, intent: format!("fork {}", self.steps), at: None };
                let forked = p.block(p.service.fork_session(&local(), &fork)).unwrap();
                self.sessions.push(forked.session.to_string());
            }
            (9, _) => {
                let log = p.block(p.service.session_log(&local(), &SessionTarget::Logical(session.clone()))).unwrap();
                if !log.is_empty() {
                    let back = &log[dice.roll(log.len())];
                    let rewound = p.block(p.service.rewind_session(&local(), &session, back.index));
                    assert_eq!(rewound.is_err(), !self.house.stored().contains_key(&back.output_heap));
                }
            }
            (10, _) => self.house.hours_pass(1 + dice.roll(40) as u64),
            _ => {}
        }
    }

    /// The referenced heaps, derived from the rules and not from the code.
    fn led_to(&self, p: &Process) -> BTreeSet<Digest> {
        let Retention { log_entries, heaps, .. } = self.house.retention;
        let now = self.house.time.now();
        let young = |at: Timestamp| now.0 - at.0 <= i64::from(heaps) * DAY as i64 * 1000;
        let outside = self.outside.iter().filter(|(_, at)| young(*at)).map(|(heap, _)| *heap);
        let mut roots: Vec<Digest> = self.tagged.iter().copied().chain(outside).collect();
        for session in &self.sessions {
            let session = SessionTarget::Logical(session.clone());
            let lineage = p.block(p.service.session_lineage(&local(), &session)).unwrap();
            roots.extend(lineage.head);
            let newest = lineage.nodes.iter().rev().take(log_entries as usize);
            roots.extend(newest.filter(|node| young(node.entry.timestamp)).map(|node| node.entry.output_heap));
        }
        let (stored, mut live) = (self.house.stored(), BTreeSet::new());
        while let Some(heap) = roots.pop() {
            assert!(stored.contains_key(&heap), "something leads to {heap}, which is gone");
            if live.insert(heap) {
                roots.extend(stored[&heap]);
            }
        }
        live
    }

    fn check(&self, p: &Process) -> BTreeSet<Digest> {
        let live = self.led_to(p);
        for heap in &live {
            assert!(p.restores(*heap), "{heap} does not restore");
            if let Some(n) = self.told.get(heap) {
                let asked =
                    RunJsRequest { heap: Some(heap.to_string()), require_heap: true, ..code(json!([{"get": "n"}])) };
                assert_eq!(value(&completed(p.run(&asked))), json!(n));
            }
        }
        live
    }
}

#[test]
fn after_random_actions_referenced_heaps_restore_and_all_others_are_collected() {
    for seed in 0..12 {
        let mut house = JsHarness::new();
        house.retention = Retention { log_entries: 3, heaps: 5, executions: 400, ..Retention::default() };
        house.settings.links = 3 + seed as u32 % 4;
        let mut p = house.process();
        p.block(harness::open(&p.service));
        let session = p.block(p.service.session_id(&local(), "s0")).unwrap().to_string();
        let (sessions, told, tagged, outside) = (vec![session], BTreeMap::new(), BTreeSet::new(), Vec::new());
        let mut world = MemoryService { house, sessions, told, tagged, outside, steps: 0 };
        let mut dice = Dice(seed);
        for _ in 0..60 {
            for _ in 0..dice.roll(6) {
                world.act(&p, &mut dice);
            }
            match dice.roll(4) {
                0 => drop(p.collect()),
                // Interrupted at some commit, as by a kill.
                1 => {
                    world.house.house.faults.fail(Operation::Commit, 1 + dice.roll(8) as u64, Fault::Unavailable);
                    let _ = p.block(p.service.collect_garbage(CollectionOptions::default()));
                    world.house.house.faults.heal();
                    p = world.house.process();
                }
                _ => {}
            }
            world.led_to(&p);
        }
        p.rest(1_000);
        world.check(&p);
        // The check's own runs outside of sessions are young.
        world.house.hours_pass(6 * 24);
        p.collect_all(&world.house);
        p.collect_all(&world.house);
        let live = world.check(&p);
        let left: BTreeSet<Digest> = world.house.stored().into_keys().filter(|heap| !live.contains(heap)).collect();
        let young: BTreeSet<Digest> = left.iter().copied().filter(|heap| !world.told.contains_key(heap)).collect();
        assert_eq!(left, young, "seed {seed}: something that nothing leads to is left");
    }
}

#[test]
fn a_pass_interrupted_at_any_commit_leaves_no_dangling_reference() {
    for nth in 1..20 {
        let mut house = JsHarness::new();
        house.retention = Retention { log_entries: 2, ..Retention::default() };
        let p = house.process();
        p.block(harness::open(&p.service));
        for n in 0..8 {
            completed(p.run(&logical("s0", step(n))));
        }
        completed(p.run(&RunJsRequest { heap: Some(String::new()), ..logical("s0", step(20)) }));
        completed(p.run(&logical("s0", step(21))));
        for hours in [0, 25] {
            house.hours_pass(hours);
            house.house.faults.fail(Operation::Commit, nth, Fault::Unavailable);
            let _ = p.block(p.service.collect_garbage(CollectionOptions::default()));
            house.house.faults.heal();
            let stored = house.stored();
            for heap in stored.keys() {
                assert!(p.restores(*heap), "{nth}, {hours}: {heap} stands on what is gone");
            }
        }
        let again = house.process();
        again.collect_all(&house);
        again.collect_all(&house);
        assert_eq!(house.stored().len(), 2, "{nth}");
        assert_eq!(value(&completed(again.run(&logical("s0", json!([{"get": "n"}]))))), json!(2));
        assert_eq!(
            again.execution(&completed(again.run(&logical("s0", step(1)))).id.to_string()).state,
            ExecutionState::Completed
        );
    }
}

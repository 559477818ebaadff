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

use crate::harness::DeterministicRandom;
use crate::js_harness::{
    JsHarness, Process, completed_value, expect_completed, local_caller, logical_request, named_request,
    script_request, timer_step, unawaited_request,
};

const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;

impl JsHarness {
    fn advance_hours(&self, hours: u64) {
        self.time.advance(Duration::from_secs(hours * HOUR));
        self.memory.blobs.age(Duration::from_secs(hours * HOUR));
    }

    /// Returns the stored heaps with the parents that they are stored against.
    fn stored_heaps(&self) -> BTreeMap<Digest, Option<Digest>> {
        let rows = self.memory.store.rows();
        let heaps = rows.iter().filter(|(key, _)| key.table == Table::Heap);
        let parent = |value: &[u8]| {
            let end = value.iter().position(|byte| *byte == b'\n').unwrap();
            let row: Value = serde_json::from_slice(&value[..end]).unwrap();
            row["parent"].as_str().map(|parent| Digest::parse(parent).unwrap())
        };
        heaps.map(|(key, row)| (Digest::parse(&key.id).unwrap(), parent(&row.value))).collect()
    }

    fn row_count(&self, table: Table) -> usize {
        self.memory.store.rows().iter().filter(|(key, _)| key.table == table).count()
    }
}

impl Process {
    fn collect(&self) -> CollectionReport {
        self.block_on(self.service.collect_garbage(CollectionOptions::default())).unwrap()
    }

    /// Runs passes, with the grace period between them, until all unreferenced heaps are deleted.
    fn collect_all(&self, harness: &JsHarness) {
        self.collect();
        harness.advance_hours(25);
        self.collect();
    }

    /// Returns whether the heap can be read from storage. The engine verifies it.
    fn can_restore(&self, heap: Digest) -> bool {
        self.engine.forget();
        let key = heap.to_string();
        self.block_on(self.service.diff_heaps(&local_caller(), &key, &key)).is_ok()
    }
}

/// Returns a program that sets a global of its own and adds 1 to `n`.
fn increment_program(n: u64) -> Value {
    json!([{"set": [format!("v{n}"), n]}, {"add": ["n", 1]}])
}

#[test]
fn a_log_keeps_heaps_of_young_and_recent_entries_and_marks_the_others() {
    let mut harness = JsHarness::new();
    harness.retention = Retention { log_entries: 3, heaps: 10, ..Retention::default() };
    // Each heap is stored without a parent, so that none is kept by another.
    harness.settings.links = 1;
    let process = harness.process();
    process.open_session();
    let heaps: Vec<Digest> = (0..6)
        .map(|n| expect_completed(process.run(&logical_request("s0", increment_program(n)))).heap.unwrap())
        .collect();
    process.run_for_ms(50);
    let predicted = process
        .block_on(process.service.collect_garbage(CollectionOptions { dry_run: true, ..CollectionOptions::default() }))
        .unwrap();
    assert_eq!((predicted.condemned, predicted.rows.get("heap")), (3, None));
    assert!(
        harness.memory.store.rows().iter().all(|(_, row)| !String::from_utf8_lossy(&row.value).contains("condemned"))
    );
    assert_eq!(process.collect().condemned, 3);
    assert_eq!(process.collect().rows.get("heap"), None, "the grace period is not over");
    harness.advance_hours(25);
    let predicted = process
        .block_on(process.service.collect_garbage(CollectionOptions { dry_run: true, ..CollectionOptions::default() }))
        .unwrap();
    let report = process.collect();
    assert_eq!((predicted.rows.get("heap"), report.rows.get("heap")), (Some(&3), Some(&3)));
    assert!(report.heap_bytes > 0);
    let log =
        process.block_on(process.service.session_log(&local_caller(), &SessionTarget::Logical("s0".into()))).unwrap();
    assert_eq!(log.iter().map(|entry| entry.gone).collect::<Vec<_>>(), [true, true, true, false, false, false]);
    assert_eq!(log.iter().map(|entry| entry.index).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    assert!(heaps[3..].iter().all(|heap| process.can_restore(*heap)));
    // A deleted heap cannot be referred to again.
    assert_eq!(
        process.block_on(process.service.rewind_session(&local_caller(), "s0", 0)).unwrap_err().code(),
        "no_heap"
    );
    let fork = ForkRequest { session: "s0".into(), intent: "fork".into(), at: Some(1) };
    assert_eq!(process.block_on(process.service.fork_session(&local_caller(), &fork)).unwrap_err().code(), "no_heap");
    let on_deleted_heap = RunJsRequest { heap: Some(heaps[0].to_string()), ..script_request(json!([])) };
    assert!(expect_completed(process.run(&on_deleted_heap)).warning.unwrap().contains(&heaps[0].to_string()));
    // After ten days only the head is left.
    harness.advance_hours(11 * 24);
    process.collect_all(&harness);
    assert_eq!(harness.stored_heaps().into_keys().collect::<Vec<_>>(), [heaps[5]]);
    assert_eq!(process.run_to_value(&logical_request("s0", json!([{"get": "n"}]))), json!(6));
}

/// A caller that saw a heap just before it was condemned may rely on the full grace period, however long the pass
/// took.
#[test]
fn a_pass_longer_than_the_grace_period_still_grants_it_in_full() {
    let mut harness = JsHarness::new();
    harness.retention = Retention { log_entries: 1, grace_hours: 1, ..Retention::default() };
    let process = harness.process();
    process.open_session();
    expect_completed(process.run(&logical_request("s0", increment_program(1))));
    expect_completed(
        process.run(&RunJsRequest { heap: Some(String::new()), ..logical_request("s0", increment_program(2)) }),
    );
    let is_condemned = || {
        let rows = harness.memory.store.rows();
        rows.iter().any(|(_, row)| String::from_utf8_lossy(&row.value).contains("condemned"))
    };
    let collect = |pass: CollectionOptions| {
        let service = process.service.clone();
        async move { service.collect_garbage(pass).await.unwrap() }
    };
    process.block_on(async {
        let slow_pass = tokio::spawn(collect(CollectionOptions {
            pause: Duration::from_secs(2 * HOUR),
            ..CollectionOptions::default()
        }));
        let mut last_uncondemned = harness.time.now();
        while !collect(CollectionOptions { dry_run: true, ..CollectionOptions::default() })
            .await
            .rows
            .contains_key("heap")
        {
            if !is_condemned() {
                last_uncondemned = harness.time.now();
            }
            tokio::time::sleep(Duration::from_secs(HOUR / 6)).await;
        }
        assert!(harness.time.now().0 - last_uncondemned.0 >= HOUR as i64 * 1000, "the grace period is not over");
        assert_eq!(slow_pass.await.unwrap().condemned, 1);
    });
}

#[test]
fn runs_expire_with_their_output_and_a_run_without_a_session_keeps_its_heap_like_a_log() {
    let harness = JsHarness::new();
    let process = harness.process();
    let program = json!([{"print": "x".repeat(40_000)}, {"set": ["a", 1]}]);
    let execution = expect_completed(process.run(&script_request(program)));
    let tagged_request =
        RunJsRequest { tags: Some(Tags::from([("keep".into(), "me".into())])), ..script_request(increment_program(7)) };
    let tagged = expect_completed(process.run(&tagged_request)).heap.unwrap();
    harness.advance_hours(28 * 24);
    process.collect_all(&harness);
    assert!(process.can_restore(execution.heap.unwrap()));
    harness.advance_hours(2 * 24);
    let report = process.collect();
    assert_eq!((report.rows.get("execution"), report.rows.get("execution_output")), (Some(&2), Some(&3)), "{report:?}");
    process.collect_all(&harness);
    assert_eq!(harness.stored_heaps().into_keys().collect::<Vec<_>>(), [tagged], "a tagged heap does not expire");
    assert!(process.can_restore(tagged));
    process.block_on(process.service.delete_heap_tags(&local_caller(), &tagged.to_string(), None)).unwrap();
    process.collect_all(&harness);
    assert_eq!((harness.stored_heaps().len(), harness.row_count(Table::ExecutionOutput)), (0, 0));
}

#[test]
fn a_condemned_heap_that_is_used_again_is_retained_with_its_ancestors() {
    let mut harness = JsHarness::new();
    harness.retention = Retention { log_entries: 1, ..Retention::default() };
    let process = harness.process();
    process.open_session();
    let heaps: Vec<Digest> = (0..4)
        .map(|n| expect_completed(process.run(&logical_request("s0", increment_program(n)))).heap.unwrap())
        .collect();
    // The session starts fresh, so nothing refers to the four heaps any more.
    expect_completed(
        process.run(&RunJsRequest { heap: Some(String::new()), ..logical_request("s0", increment_program(9)) }),
    );
    assert_eq!(process.collect().condemned, 4);
    harness.advance_hours(25);
    // A condemned heap is used again just before it would be deleted: first by a tag, then by a run.
    process
        .block_on(process.service.set_heap_tags(
            &local_caller(),
            &heaps[3].to_string(),
            Tags::from([("a".into(), "b".into())]),
        ))
        .unwrap();
    assert_eq!(process.collect().rows.get("heap"), None);
    process.collect_all(&harness);
    assert!(heaps.iter().all(|heap| process.can_restore(*heap)));
    process.block_on(process.service.delete_heap_tags(&local_caller(), &heaps[3].to_string(), None)).unwrap();
    process.collect();
    harness.advance_hours(25);
    drop(process);
    let process = harness.process();
    let request = RunJsRequest {
        heap: Some(heaps[2].to_string()),
        ..unawaited_request("n", json!([timer_step(20_000), {"get": "n"}]))
    };
    let execution = process.run(&request).unwrap();
    process.collect();
    assert!(!harness.stored_heaps().contains_key(&heaps[3]));
    process.engine.forget();
    process.run_for_ms(25_000);
    assert_eq!(completed_value(&process.execution(&execution.id.to_string())), json!(3));
    process.collect_all(&harness);
    assert!(process.can_restore(process.execution(&execution.id.to_string()).heap.unwrap()));
}

#[test]
fn a_parked_run_keeps_its_heap_even_while_its_process_is_dead() {
    let mut harness = JsHarness::new();
    harness.retention = Retention { log_entries: 1, grace_hours: 1, ..Retention::default() };
    harness.settings.most_timeout_ms = 20 * HOUR * 1000;
    let process = harness.process();
    let start = expect_completed(process.run(&named_request("n", json!([{"set": ["kept", "x".repeat(70_000)]}]))))
        .heap
        .unwrap();
    let program = json!([{"add": ["n", 1]}, timer_step(HOUR * 1000), {"add": ["n", 1]}, timer_step(6 * HOUR * 1000), {"add": ["n", 1]}, {"get": "n"}]);
    let request = RunJsRequest {
        heap: Some(start.to_string()),
        timeout_ms: Some(20 * HOUR * 1000),
        wait_ms: Some(0),
        ..script_request(program)
    };
    let execution = process.run(&request).unwrap();
    expect_completed(process.run(&named_request("n", json!([{"set": ["other", 1]}]))));
    process.run_for_ms(10);
    for _ in 0..2 {
        harness.advance_hours(2);
        process.collect();
    }
    drop(process);
    let process = harness.process();
    process.collect();
    harness.advance_hours(2);
    process.collect();
    assert_eq!(process.resume_runs(), 1);
    process.run_for_ms(10 * HOUR * 1000);
    assert_eq!(completed_value(&process.execution(&execution.id.to_string())), json!(3));
    assert!(process.can_restore(process.execution(&execution.id.to_string()).heap.unwrap()));
}

#[test]
fn a_session_expires_with_its_log_and_running_scripts_counts_as_use() {
    let harness = JsHarness::new();
    let process = harness.process();
    process.open_session();
    expect_completed(process.run(&logical_request("s0", increment_program(1))));
    expect_completed(process.run(&named_request("n", increment_program(2))));
    harness.advance_hours(300 * 24);
    expect_completed(process.run(&logical_request("s0", increment_program(3))));
    expect_completed(process.run(&named_request("n", increment_program(4))));
    harness.advance_hours(300 * 24);
    process.collect_all(&harness);
    assert_eq!((harness.row_count(Table::JsSession), harness.row_count(Table::SessionLog)), (2, 4));
    assert_eq!(harness.stored_heaps().len(), 3, "the two heads and a parent of one are left");
    harness.advance_hours(70 * 24);
    process.collect_all(&harness);
    process.collect_all(&harness);
    assert_eq!(
        (harness.row_count(Table::JsSession), harness.row_count(Table::SessionLog), harness.stored_heaps().len()),
        (0, 0, 0)
    );
    // The reused name starts again at 0.
    expect_completed(process.run(&named_request("n", increment_program(5))));
    let log =
        process.block_on(process.service.session_log(&local_caller(), &SessionTarget::Named("n".into()))).unwrap();
    assert_eq!(log.iter().map(|entry| entry.index).collect::<Vec<_>>(), [0]);
}

#[test]
fn an_engine_stays_as_long_as_a_heap_needs_it() {
    let harness = JsHarness::new();
    let process = harness.process();
    let tagged_request =
        RunJsRequest { tags: Some(Tags::from([("keep".into(), "me".into())])), ..script_request(increment_program(1)) };
    let old_heap = expect_completed(process.run(&tagged_request)).heap.unwrap();
    drop(process);
    let process = harness.process_with(TinyScripts::build("a tiny engine of the next release"));
    expect_completed(process.run(&named_request("n", increment_program(2))));
    process.collect_all(&harness);
    process.collect_all(&harness);
    assert_eq!(harness.row_count(Table::Guest), 2);
    assert!(process.can_restore(old_heap));
    process.block_on(process.service.delete_heap_tags(&local_caller(), &old_heap.to_string(), None)).unwrap();
    harness.advance_hours(31 * 24);
    process.collect_all(&harness);
    process.collect_all(&harness);
    assert_eq!(
        (harness.row_count(Table::Guest), harness.memory.blobs.digests().len()),
        (1, 1),
        "the row and the program of the old engine are deleted"
    );
    expect_completed(process.run(&named_request("n", increment_program(3))));
}

/// The references to heaps, which the test tracks itself.
struct HeapModel {
    harness: JsHarness,
    /// The ids of all sessions, forks included.
    sessions: Vec<String>,
    /// All heaps that a run returned, with the value of `n` in each.
    heap_counts: BTreeMap<Digest, u64>,
    tagged: BTreeSet<Digest>,
    /// The heaps of runs outside of sessions, and the times of their runs.
    runs_outside: Vec<(Digest, Timestamp)>,
    /// The number of actions, which makes every heap unique.
    steps: u64,
}

impl HeapModel {
    /// Does one random thing: a run, a tag, a fork, a rewind, or some hours of waiting.
    fn act_at_random(&mut self, process: &Process, random: &mut DeterministicRandom) {
        let session = self.sessions[random.below(self.sessions.len())].clone();
        let heaps: Vec<Digest> = self.heap_counts.keys().copied().collect();
        let any_heap = (!heaps.is_empty()).then(|| heaps[random.below(heaps.len())]);
        self.steps += 1;
        let program = json!([{"set": [format!("v{}", self.steps % 5), self.steps]}, {"add": ["n", 1]}, {"get": "n"}]);
        match (random.below(12), any_heap) {
            (0..=4, _) => {
                let execution = expect_completed(process.run(&logical_request(&session, program)));
                self.heap_counts.insert(execution.heap.unwrap(), completed_value(&execution).as_u64().unwrap());
            }
            (5, Some(heap)) => {
                let execution = expect_completed(
                    process.run(&RunJsRequest { heap: Some(heap.to_string()), ..script_request(program) }),
                );
                let n = completed_value(&execution).as_u64().unwrap();
                assert_eq!(n, if execution.warning.is_some() { 1 } else { self.heap_counts[&heap] + 1 });
                self.heap_counts.insert(execution.heap.unwrap(), n);
                self.runs_outside.push((execution.heap.unwrap(), execution.ended.unwrap()));
            }
            (6, Some(heap)) => {
                let tags = Tags::from([("t".to_owned(), "1".to_owned())]);
                if process.block_on(process.service.set_heap_tags(&local_caller(), &heap.to_string(), tags)).is_ok() {
                    self.tagged.insert(heap);
                }
            }
            (7, _) => {
                if let Some(heap) = self.tagged.pop_first() {
                    process
                        .block_on(process.service.delete_heap_tags(&local_caller(), &heap.to_string(), None))
                        .unwrap();
                }
            }
            (8, _) if self.sessions.len() < 6 => {
                let fork = ForkRequest { session, intent: format!("fork {}", self.steps), at: None };
                let forked = process.block_on(process.service.fork_session(&local_caller(), &fork)).unwrap();
                self.sessions.push(forked.session.to_string());
            }
            (9, _) => {
                let log = process
                    .block_on(process.service.session_log(&local_caller(), &SessionTarget::Logical(session.clone())))
                    .unwrap();
                if !log.is_empty() {
                    let entry = &log[random.below(log.len())];
                    let rewound =
                        process.block_on(process.service.rewind_session(&local_caller(), &session, entry.index));
                    assert_eq!(rewound.is_err(), !self.harness.stored_heaps().contains_key(&entry.output_heap));
                }
            }
            (10, _) => self.harness.advance_hours(1 + random.below(40) as u64),
            _ => {}
        }
    }

    /// Returns the referenced heaps as the rules of retention define them, without using the collector.
    fn referenced_heaps(&self, process: &Process) -> BTreeSet<Digest> {
        let Retention { log_entries, heaps, .. } = self.harness.retention;
        let now = self.harness.time.now();
        let is_young = |at: Timestamp| now.0 - at.0 <= i64::from(heaps) * DAY as i64 * 1000;
        let runs_outside = self.runs_outside.iter().filter(|(_, at)| is_young(*at)).map(|(heap, _)| *heap);
        let mut roots: Vec<Digest> = self.tagged.iter().copied().chain(runs_outside).collect();
        for session in &self.sessions {
            let session = SessionTarget::Logical(session.clone());
            let lineage = process.block_on(process.service.session_lineage(&local_caller(), &session)).unwrap();
            roots.extend(lineage.head);
            let newest = lineage.nodes.iter().rev().take(log_entries as usize);
            roots.extend(newest.filter(|node| is_young(node.entry.timestamp)).map(|node| node.entry.output_heap));
        }
        let stored = self.harness.stored_heaps();
        let mut live = BTreeSet::new();
        while let Some(heap) = roots.pop() {
            assert!(stored.contains_key(&heap), "the referenced heap {heap} was deleted");
            if live.insert(heap) {
                roots.extend(stored[&heap]);
            }
        }
        live
    }

    /// Checks that all referenced heaps restore with their values, and returns them.
    fn check_referenced_heaps(&self, process: &Process) -> BTreeSet<Digest> {
        let live = self.referenced_heaps(process);
        for heap in &live {
            assert!(process.can_restore(*heap), "{heap} does not restore");
            if let Some(n) = self.heap_counts.get(heap) {
                let request = RunJsRequest {
                    heap: Some(heap.to_string()),
                    require_heap: true,
                    ..script_request(json!([{"get": "n"}]))
                };
                assert_eq!(process.run_to_value(&request), json!(n));
            }
        }
        live
    }
}

#[test]
fn after_random_actions_referenced_heaps_restore_and_all_others_are_collected() {
    for seed in 0..12 {
        let mut harness = JsHarness::new();
        harness.retention = Retention { log_entries: 3, heaps: 5, executions: 400, ..Retention::default() };
        harness.settings.links = 3 + seed as u32 % 4;
        let mut process = harness.process();
        process.open_session();
        let session = process.block_on(process.service.session_id(&local_caller(), "s0")).unwrap().to_string();
        let mut model = HeapModel {
            harness,
            sessions: vec![session],
            heap_counts: BTreeMap::new(),
            tagged: BTreeSet::new(),
            runs_outside: Vec::new(),
            steps: 0,
        };
        let mut random = DeterministicRandom(seed);
        for _ in 0..60 {
            for _ in 0..random.below(6) {
                model.act_at_random(&process, &mut random);
            }
            match random.below(4) {
                0 => drop(process.collect()),
                // A failed commit interrupts the pass like a killed process.
                1 => {
                    model.harness.memory.faults.fail(Operation::Commit, 1 + random.below(8) as u64, Fault::Unavailable);
                    let _ = process.block_on(process.service.collect_garbage(CollectionOptions::default()));
                    model.harness.memory.faults.heal();
                    process = model.harness.process();
                }
                _ => {}
            }
            model.referenced_heaps(&process);
        }
        process.run_for_ms(1_000);
        model.check_referenced_heaps(&process);
        // The checks run scripts outside of sessions, whose heaps must expire as well.
        model.harness.advance_hours(6 * 24);
        process.collect_all(&model.harness);
        process.collect_all(&model.harness);
        let live = model.check_referenced_heaps(&process);
        let unreferenced: BTreeSet<Digest> =
            model.harness.stored_heaps().into_keys().filter(|heap| !live.contains(heap)).collect();
        let from_checks: BTreeSet<Digest> =
            unreferenced.iter().copied().filter(|heap| !model.heap_counts.contains_key(heap)).collect();
        assert_eq!(unreferenced, from_checks, "seed {seed}: an unreferenced heap was not deleted");
    }
}

#[test]
fn a_pass_interrupted_at_any_commit_leaves_no_dangling_reference() {
    for nth in 1..20 {
        let mut harness = JsHarness::new();
        harness.retention = Retention { log_entries: 2, ..Retention::default() };
        let process = harness.process();
        process.open_session();
        for n in 0..8 {
            expect_completed(process.run(&logical_request("s0", increment_program(n))));
        }
        expect_completed(
            process.run(&RunJsRequest { heap: Some(String::new()), ..logical_request("s0", increment_program(20)) }),
        );
        expect_completed(process.run(&logical_request("s0", increment_program(21))));
        for hours in [0, 25] {
            harness.advance_hours(hours);
            harness.memory.faults.fail(Operation::Commit, nth, Fault::Unavailable);
            let _ = process.block_on(process.service.collect_garbage(CollectionOptions::default()));
            harness.memory.faults.heal();
            let stored = harness.stored_heaps();
            for heap in stored.keys() {
                assert!(process.can_restore(*heap), "{nth}, {hours}: an ancestor of {heap} was deleted");
            }
        }
        let other = harness.process();
        other.collect_all(&harness);
        other.collect_all(&harness);
        assert_eq!(harness.stored_heaps().len(), 2, "{nth}");
        assert_eq!(other.run_to_value(&logical_request("s0", json!([{"get": "n"}]))), json!(2));
        assert_eq!(
            other
                .execution(&expect_completed(other.run(&logical_request("s0", increment_program(1)))).id.to_string())
                .state,
            ExecutionState::Completed
        );
    }
}

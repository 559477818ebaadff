//! `run_js`: what a run starts from, its states, its place in the queue, its limits.

use base::{Digest, TenantId};
use serde_json::json;
use session::{ExecutionState, JsError, JsSettings, OutputRequest, RunJsRequest, SessionTarget, Tags};

use crate::harness;
use crate::js_harness::{JsHarness, Process, code, completed, later, local, logical, named, timer, value};

#[test]
fn a_run_returns_its_value_and_a_heap_that_another_run_can_start_from() {
    let house = JsHarness::new();
    let p = house.process();
    let first = completed(p.run(&code(json!([{"set": ["x", 1]}, {"print": "hello\n"}, {"add": ["x", 1]}]))));
    assert_eq!(value(&first), json!(2));
    assert_eq!((first.input_heap, first.session.clone(), first.warning.clone()), (None, None, None));
    let heap = first.heap.unwrap().to_string();
    let next = completed(p.run(&RunJsRequest { heap: Some(heap.clone()), ..code(json!([{"add": ["x", 10]}])) }));
    assert_eq!((value(&next), next.input_heap), (json!(12), first.heap));
    // The first heap is unchanged.
    p.engine.forget();
    let again = completed(p.run(&RunJsRequest { heap: Some(heap), ..code(json!([{"get": "x"}])) }));
    assert_eq!(value(&again), json!(2));
    let fresh = completed(p.run(&code(json!([{"get": "x"}]))));
    assert_eq!(value(&fresh), json!(null));
    assert!(fresh.started.is_some() && fresh.ended.is_some());
}

#[test]
fn a_missing_heap_starts_fresh_with_a_warning_or_is_an_error() {
    let house = JsHarness::new();
    let p = house.process();
    let unknown = Digest::of(b"nothing").to_string();
    let asked = RunJsRequest { heap: Some(unknown.clone()), ..code(json!([{"get": "x"}])) };
    let ran = completed(p.run(&asked));
    assert!(ran.warning.clone().unwrap().contains(&unknown) && ran.input_heap.is_none());
    // Asking for the execution repeats the warning.
    assert_eq!(p.execution(&ran.id.to_string()).warning, ran.warning);
    let refused = p.run(&RunJsRequest { require_heap: true, ..asked }).unwrap_err();
    assert_eq!(refused.code(), "no_heap");
    for bad in ["x", &unknown.to_uppercase(), &unknown[1..], "../../etc/passwd"] {
        let refused = p.run(&RunJsRequest { heap: Some(bad.to_owned()), ..code(json!([])) }).unwrap_err();
        assert_eq!(refused.code(), "bad_heap", "{bad}");
    }
}

#[test]
fn a_logical_session_continues_from_its_head_and_a_named_one_starts_fresh() {
    let house = JsHarness::new();
    let p = house.process();
    p.block(harness::open(&p.service));
    let add = json!([{"add": ["n", 1]}]);
    for n in 1..=3 {
        assert_eq!(value(&completed(p.run(&logical("s0", add.clone())))), json!(n));
    }
    let fresh = RunJsRequest { heap: Some(String::new()), ..logical("s0", add.clone()) };
    assert_eq!(value(&completed(p.run(&fresh))), json!(1));
    let log = p.block(p.service.session_log(&local(), &SessionTarget::Logical("s0".into()))).unwrap();
    assert_eq!(log.iter().map(|entry| entry.index).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!((log[0].input_heap, log[1].input_heap), (None, Some(log[0].output_heap)));
    assert_eq!((log[2].code.as_str(), log[3].input_heap), (add.to_string().as_str(), None));

    for _ in 0..2 {
        assert_eq!(value(&completed(p.run(&named("agent", add.clone())))), json!(1));
    }
    // A name that looks like a session's id is not that session.
    let id = p.block(p.service.js_sessions(&local())).unwrap().into_iter().find(|name| name != "agent").unwrap();
    completed(p.run(&named(&id, add.clone())));
    let log = p.block(p.service.session_log(&local(), &SessionTarget::Logical("s0".into()))).unwrap();
    assert_eq!(log.len(), 4);

    let house = JsHarness { settings: JsSettings { resume_named_sessions: true, ..JsSettings::default() }, ..house };
    let p = house.process();
    assert_eq!(value(&completed(p.run(&named("agent", add)))), json!(2));
}

#[test]
fn a_failed_run_is_not_logged_and_does_not_move_the_head() {
    let house = JsHarness::new();
    let p = house.process();
    p.block(harness::open(&p.service));
    completed(p.run(&logical("s0", json!([{"set": ["x", 1]}]))));
    let threw = p.run(&logical("s0", json!([{"set": ["x", 2]}, {"print": "so far\n"}, {"throw": "no"}]))).unwrap();
    assert_eq!((threw.state, threw.heap), (ExecutionState::Failed, None));
    let error = threw.error.unwrap();
    assert_eq!((error.name.as_str(), error.message.as_str()), ("Error", "no"));
    assert!(error.stack.contains(":1"));
    let page = p.block(p.service.execution_output(&local(), &threw.id.to_string(), &OutputRequest::default())).unwrap();
    assert_eq!(page.data, "so far\n");
    let grown = p.run(&logical("s0", json!(["grow"]))).unwrap();
    assert_eq!(grown.state, ExecutionState::Failed);
    assert!(grown.error.unwrap().message.contains("memory"));
    let never = p.run(&logical("s0", json!(["never"]))).unwrap();
    assert!(never.error.unwrap().message.contains("nothing will settle"));
    let refused = p.run(&RunJsRequest { code: "type x".into(), ..logical("s0", json!([])) }).unwrap();
    assert_eq!((refused.state, refused.error.unwrap().name.as_str()), (ExecutionState::Failed, "SyntaxError"));
    let late = RunJsRequest { timeout_ms: Some(50), ..logical("s0", json!([{"spin": 500}])) };
    assert_eq!(p.run(&late).unwrap().state, ExecutionState::TimedOut);
    assert_eq!(value(&completed(p.run(&logical("s0", json!([{"get": "x"}]))))), json!(1));
    let log = p.block(p.service.session_log(&local(), &SessionTarget::Logical("s0".into()))).unwrap();
    assert_eq!(log.len(), 2);
}

#[test]
fn an_idle_await_ends_at_its_deadline_and_timers_fire_in_order() {
    let house = JsHarness::new();
    let p = house.process();
    let late = RunJsRequest { timeout_ms: Some(1_000), ..code(json!([timer(60_000)])) };
    let ran = p.run(&late).unwrap();
    assert_eq!((ran.state, ran.error.unwrap().name.as_str()), (ExecutionState::TimedOut, "TimeoutError"));
    assert_eq!(ran.ended.unwrap().0 - ran.started.unwrap().0, 1_000);
    let ran = completed(p.run(&code(json!([timer(20), {"set": ["x", 1]}, timer(30), {"get": "x"}]))));
    assert_eq!((value(&ran), ran.ended.unwrap().0 - ran.started.unwrap().0), (json!(1), 50));
}

#[test]
fn a_run_longer_than_its_callers_wait_can_be_queried_later() {
    let house = JsHarness::new();
    let p = house.process();
    let ran = p
        .run(&RunJsRequest { wait_ms: Some(100), ..code(json!([timer(5_000), {"set": ["x", 1]}, {"get": "x"}])) })
        .unwrap();
    assert_eq!((ran.state, ran.heap, ran.ended), (ExecutionState::Running, None, None));
    p.rest(6_000);
    assert_eq!(value(&p.execution(&ran.id.to_string())), json!(1));
}

#[test]
fn runs_of_a_session_are_sequential_and_other_sessions_run_concurrently() {
    let house = JsHarness::new();
    let p = house.process();
    p.block(harness::open(&p.service));
    let first = p
        .run(&RunJsRequest { wait_ms: Some(10), ..logical("s0", json!([{"hold": "a"}, {"set": ["order", ["one"]]}])) })
        .unwrap();
    let second = p.run(&RunJsRequest { wait_ms: Some(10), ..logical("s0", json!([{"get": "order"}])) }).unwrap();
    let third = p
        .run(&RunJsRequest { wait_ms: Some(10), heap: Some(String::new()), ..logical("s0", json!([{"get": "order"}])) })
        .unwrap();
    assert_eq!(
        (first.state, second.state, third.state),
        (ExecutionState::Running, ExecutionState::Queued, ExecutionState::Queued)
    );
    assert_eq!((second.started, third.started), (None, None));
    // Other sessions, and runs without a session, do not wait.
    assert_eq!(completed(p.run(&named("other", json!([])))).state, ExecutionState::Completed);
    let held = p.run(&later("another", json!([{"hold": "b"}]))).unwrap();
    completed(p.run(&code(json!([]))));
    assert!(p.engine.most_at_once() >= 3);
    p.engine.release("a");
    p.engine.release("b");
    p.rest(500);
    let [first, second, third, held] =
        [first, second, third, held].map(|execution| p.execution(&execution.id.to_string()));
    assert_eq!((value(&second), value(&third), held.state), (json!(["one"]), json!(null), ExecutionState::Completed));
    assert!(first.ended <= second.started && second.ended <= third.started);
    let log = p.block(p.service.session_log(&local(), &SessionTarget::Logical("s0".into()))).unwrap();
    assert_eq!(
        log.iter().map(|entry| entry.output_heap).collect::<Vec<_>>(),
        [first, second, third].map(|e| e.heap.unwrap())
    );
}

/// The ten seconds are the run's own: time that other runs had the processor does not count.
#[test]
fn a_deadline_does_not_count_time_that_other_runs_had_the_processor() {
    let house = JsHarness { settings: JsSettings { at_once: 1, ..JsSettings::default() }, ..JsHarness::new() };
    let p = house.process();
    let hog = p.run(&later("hog", json!([{"spin": 20_000}, {"add": ["n", 1]}, {"get": "n"}]))).unwrap();
    let asked = RunJsRequest { timeout_ms: Some(10_000), ..later("quick", json!([{"add": ["n", 1]}, {"get": "n"}])) };
    let quick = p.run(&asked).unwrap();
    p.rest(25_000);
    assert_eq!(value(&p.execution(&hog.id.to_string())), json!(1));
    assert_eq!(value(&p.execution(&quick.id.to_string())), json!(1), "it waited for longer than it may run");
    let slow = RunJsRequest { timeout_ms: Some(10_000), ..later("slow", json!([{"spin": 20_000}])) };
    let slow = p.run(&slow).unwrap();
    p.rest(25_000);
    assert_eq!(p.execution(&slow.id.to_string()).state, ExecutionState::TimedOut);
}

#[test]
fn a_full_queue_refuses_a_run_and_stores_nothing() {
    let house = JsHarness {
        settings: JsSettings { queue: 2, runs: 3, at_once: 4, ..JsSettings::default() },
        ..JsHarness::new()
    };
    let p = house.process();
    let held = || later("q", json!([{"hold": "a"}]));
    p.run(&held()).unwrap();
    p.run(&held()).unwrap();
    let refused = p.run(&held()).unwrap_err();
    assert!(refused.code() == "busy" && refused.to_string().contains("this session has 2"), "{refused}");
    p.run(&later("r", json!([{"hold": "a"}]))).unwrap();
    let refused = p.run(&code(json!([]))).unwrap_err();
    assert!(refused.code() == "busy" && refused.to_string().contains("this server has 3"), "{refused}");
    assert_eq!(p.block(p.service.executions(&local(), None, 100)).unwrap().len(), 3);
    p.engine.release("a");
    p.rest(500);
    completed(p.run(&named("q", json!([]))));
}

#[test]
fn a_cancelled_run_never_completes_and_a_completed_one_is_never_cancelled() {
    let house = JsHarness::new();
    let p = house.process();
    let cancel = |id: &base::ExecutionId| p.block(p.service.cancel_execution(&local(), &id.to_string()));
    // Cancelled while it computes, while it waits, and while it queues.
    let busy = p.run(&later("a", json!([{"spin": 20_000}, {"set": ["x", 1]}]))).unwrap();
    let queued = p.run(&later("a", json!([{"set": ["x", 2]}]))).unwrap();
    let idle = p.run(&later("b", json!([timer(20_000)]))).unwrap();
    p.rest(10);
    for id in [&queued.id, &busy.id, &idle.id] {
        cancel(id).unwrap();
        assert_eq!(p.execution(&id.to_string()).state, ExecutionState::Cancelled);
    }
    p.rest(30_000);
    for id in [&queued.id, &busy.id, &idle.id] {
        assert_eq!(p.execution(&id.to_string()).state, ExecutionState::Cancelled);
        assert!(matches!(cancel(id).unwrap_err(), session::Error::Js(JsError::Ended { state: "cancelled", .. })));
    }
    assert!(p.block(p.service.session_log(&local(), &SessionTarget::Named("a".into()))).unwrap().is_empty());
    let done = completed(p.run(&named("a", json!([]))));
    assert!(matches!(cancel(&done.id).unwrap_err(), session::Error::Js(JsError::Ended { state: "completed", .. })));
    assert_eq!(p.execution(&done.id.to_string()).state, ExecutionState::Completed);
}

#[test]
fn output_is_paged_by_line_and_byte_without_splitting_a_character() {
    let house = JsHarness::new();
    let p = house.process();
    let line = |n: usize| format!("{n:05} é€😀 {}\n", "x".repeat(40));
    let text: String = (0..2_000).map(line).collect();
    let (half, rest) = text.split_at(60_001 + (0..4).find(|n| text.is_char_boundary(60_001 + n)).unwrap());
    let ran = completed(p.run(&code(json!([{"print": half}, timer(1), {"print": rest}, {"print": "the end"}]))));
    let whole = format!("{text}the end");
    let id = ran.id.to_string();
    assert_eq!((ran.output_bytes, ran.output_lines), (whole.len() as u64, 2_001));
    let read = |asked: OutputRequest| p.block(p.service.execution_output(&local(), &id, &asked)).unwrap();
    for limit in [1, 7, 1_000, 30_000, 1_000_000] {
        let (mut seen, mut at) = (String::new(), if limit < 10 { whole.len() as u64 - 300 } else { 0 });
        seen.push_str(&whole[..at as usize]);
        loop {
            let page =
                read(OutputRequest { byte_offset: Some(at), byte_limit: Some(limit), ..OutputRequest::default() });
            assert!(page.next_byte_offset > at);
            (seen, at) = (seen + &page.data, page.next_byte_offset);
            if !page.has_more {
                break;
            }
        }
        assert_eq!(seen, whole, "{limit}");
    }
    let (mut seen, mut at) = (String::new(), 0);
    loop {
        let page = read(OutputRequest { line_offset: Some(at), line_limit: Some(300), ..OutputRequest::default() });
        assert!(page.data.ends_with('\n') || !page.has_more);
        (seen, at) = (seen + &page.data, page.next_line_offset);
        if !page.has_more {
            break;
        }
    }
    assert_eq!((seen, at), (whole.clone(), 2_001));
    let page = read(OutputRequest { line_offset: Some(1_999), line_limit: Some(1), ..OutputRequest::default() });
    assert_eq!((page.data, page.next_line_offset), (line(1_999), 2_000));
    let page = read(OutputRequest { line_offset: Some(9_999), ..OutputRequest::default() });
    assert_eq!((page.data.as_str(), page.has_more), ("", false));
    let both = OutputRequest { line_offset: Some(1), byte_offset: Some(1), ..OutputRequest::default() };
    assert_eq!(p.block(p.service.execution_output(&local(), &id, &both)).unwrap_err().code(), "bad_arguments");
}

#[test]
fn output_beyond_the_limit_is_counted_and_dropped() {
    let house = JsHarness { settings: JsSettings { output_bytes: 100, ..JsSettings::default() }, ..JsHarness::new() };
    let p = house.process();
    let ran = completed(p.run(&code(json!([{"print": "a".repeat(80)}, timer(1), {"print": "b".repeat(80)}]))));
    let page = p.block(p.service.execution_output(&local(), &ran.id.to_string(), &OutputRequest::default())).unwrap();
    assert_eq!((page.total_bytes, page.dropped_bytes, page.data.matches('b').count()), (100, 60, 20));
}

#[test]
fn tags_of_a_run_replace_those_of_its_heap_and_can_be_searched() {
    let house = JsHarness::new();
    let p = house.process();
    let tags = |pairs: &[(&str, &str)]| -> Tags { pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect() };
    let run = |given: &[(&str, &str)]| {
        completed(p.run(&RunJsRequest { tags: Some(tags(given)), ..code(json!([{"set": ["x", 1]}])) }))
    };
    let heap = run(&[("env", "test"), ("model", "v1")]).heap.unwrap().to_string();
    let same = run(&[("env", "live")]).heap.unwrap().to_string();
    assert_eq!(heap, same);
    let of = |heap: &str| p.block(p.service.heap_tags(&local(), heap)).unwrap();
    assert_eq!(of(&heap), tags(&[("env", "live")]));
    // A run without tags leaves existing tags.
    completed(p.run(&code(json!([{"set": ["x", 1]}]))));
    assert_eq!(of(&heap), tags(&[("env", "live")]));
    let find = |filter: &[(&str, &str)]| p.block(p.service.heaps_by_tags(&local(), &tags(filter))).unwrap().len();
    completed(
        p.run(&RunJsRequest { tags: Some(tags(&[("env", "live"), ("a", "b")])), ..code(json!([{"set": ["x", 2]}])) }),
    );
    assert_eq!(
        (find(&[]), find(&[("env", "live")]), find(&[("env", "live"), ("a", "b")]), find(&[("env", "x")])),
        (2, 2, 1, 0)
    );
    p.block(p.service.delete_heap_tags(&local(), &heap, Some(&["env".to_owned()]))).unwrap();
    assert_eq!((of(&heap), find(&[])), (Tags::new(), 1));
    let unknown = Digest::of(b"unknown").to_string();
    let refused = p.block(p.service.set_heap_tags(&local(), &unknown, tags(&[("a", "b")]))).unwrap_err();
    assert_eq!(refused.code(), "no_heap");
    assert_eq!(of(&unknown), Tags::new());
}

#[test]
fn headers_are_visible_to_code_and_never_stored() {
    let house = JsHarness::new();
    let p = house.process();
    let headers = [("x-mcp-user".to_owned(), "secret-ish".to_owned())].into();
    let ran = completed(p.run(&RunJsRequest { headers, ..code(json!(["headers"])) }));
    assert_eq!(value(&ran), json!({"x-mcp-user": "secret-ish"}));
    let rows = house.house.store.rows();
    let held = rows.iter().filter(|(key, row)| {
        key.table != ports::store::Table::Execution && row.value.windows(10).any(|part| part == b"secret-ish")
    });
    assert_eq!(held.count(), 0);
}

#[test]
fn a_query_about_a_run_can_wait_for_its_end() {
    let house = JsHarness::new();
    let p = house.process();
    let ran = p.run(&later("agent", json!([timer(1_000), {"set": ["x", 5]}, {"get": "x"}]))).unwrap();
    let id = ran.id.to_string();
    let within = |p: &Process, ms| p.block(p.service.wait_for_execution(&local(), &id, ms)).unwrap();
    assert_eq!(within(&p, 0).state, ExecutionState::Running);
    assert_eq!(within(&p, 300).state, ExecutionState::Running);
    let other = house.process();
    assert_eq!(within(&other, 250).state, ExecutionState::Running, "it goes on elsewhere");
    assert_eq!(value(&within(&p, 60_000)), json!(5));
    assert_eq!(value(&within(&other, 60_000)), json!(5));
    let unknown = p.block(p.service.wait_for_execution(&local(), "nope", 60_000)).unwrap_err();
    assert_eq!(unknown.code(), "no_execution");
}

#[test]
fn no_data_of_one_tenant_is_visible_to_another() {
    let house = JsHarness::new();
    let p = house.process();
    p.block(harness::open(&p.service));
    let tags = [("a".to_owned(), "b".to_owned())].into();
    let mine = completed(
        p.run(&RunJsRequest { tags: Some(tags), ..logical("s0", json!([{"set": ["x", 1]}, {"print": "p"}])) }),
    );
    completed(p.run(&named("agent", json!([]))));
    let open = p.run(&later("agent", json!([timer(1_000)]))).unwrap();
    let other = harness::caller("other", "a");
    let (id, heap) = (mine.id.to_string(), mine.heap.unwrap().to_string());
    p.block(async {
        let s = &p.service;
        let code_of = |error: session::Error| error.code();
        assert_eq!(s.execution(&other, &id).await.map_err(code_of).unwrap_err(), "no_execution");
        assert_eq!(
            s.cancel_execution(&other, &open.id.to_string()).await.map_err(code_of).unwrap_err(),
            "no_execution"
        );
        let output = s.execution_output(&other, &id, &OutputRequest::default()).await;
        assert_eq!(output.map_err(code_of).unwrap_err(), "no_execution");
        assert!(s.executions(&other, None, 10).await.unwrap().is_empty());
        assert!(s.js_sessions(&other).await.unwrap().is_empty());
        assert!(s.session_log(&other, &SessionTarget::Named("agent".into())).await.unwrap().is_empty());
        assert!(s.heap_tags(&other, &heap).await.unwrap().is_empty());
        assert!(s.heaps_by_tags(&other, &Tags::new()).await.unwrap().is_empty());
        assert!(s.heaps(&other, None, 10).await.unwrap().is_empty());
        assert_eq!(s.heap_info(&other, &heap).await.map_err(code_of).unwrap_err(), "no_heap");
        assert_eq!(s.diff_heaps(&other, &heap, &heap).await.map_err(code_of).unwrap_err(), "no_heap");
        assert_eq!(s.export_heap(&other, &heap).await.map_err(code_of).unwrap_err(), "no_heap");
        assert_eq!(s.delete_heap_tags(&other, &heap, None).await.map_err(code_of).unwrap_err(), "no_heap");
        // The engine has the heap in memory, but the other tenant may not use it.
        let asked = RunJsRequest { heap: Some(heap.clone()), require_heap: true, ..code(json!([{"get": "x"}])) };
        assert_eq!(s.run_js(&other, &asked).await.map_err(code_of).unwrap_err(), "no_heap");
        let ran = s.run_js(&other, &RunJsRequest { require_heap: false, ..asked }).await.unwrap();
        assert_eq!((value(&ran), ran.warning.is_some()), (json!(null), true));
        assert_eq!(s.resume_js(&[TenantId::parse("other").unwrap()]).await.unwrap(), 0);
    });
}

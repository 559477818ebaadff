//! `run_js`: the heap that a run starts from, its states, its output, the queues, and the limits.

use base::{Digest, TenantId};
use serde_json::json;
use session::{ExecutionState, JsError, JsSettings, ListRequest, OutputRequest, RunJsRequest, SessionTarget, Tags};

use crate::harness;
use crate::js_harness::{
    JsHarness, Process, completed_value, expect_completed, local_caller, logical_request, named_request,
    script_request, timer_step, unawaited_request,
};

#[test]
fn a_run_returns_its_value_and_a_heap_that_another_run_can_start_from() {
    let harness = JsHarness::new();
    let process = harness.process();
    let first = expect_completed(
        process.run(&script_request(json!([{"set": ["x", 1]}, {"print": "hello\n"}, {"add": ["x", 1]}]))),
    );
    assert_eq!(completed_value(&first), json!(2));
    assert_eq!((first.input_heap, first.session.clone(), first.warning.clone()), (None, None, None));
    let heap = first.heap.unwrap().to_string();
    let next = expect_completed(
        process.run(&RunJsRequest { heap: Some(heap.clone()), ..script_request(json!([{"add": ["x", 10]}])) }),
    );
    assert_eq!((completed_value(&next), next.input_heap), (json!(12), first.heap));
    // The first heap is unchanged.
    process.engine.forget();
    let unchanged =
        expect_completed(process.run(&RunJsRequest { heap: Some(heap), ..script_request(json!([{"get": "x"}])) }));
    assert_eq!(completed_value(&unchanged), json!(2));
    let fresh = expect_completed(process.run(&script_request(json!([{"get": "x"}]))));
    assert_eq!(completed_value(&fresh), json!(null));
    assert!(fresh.started.is_some() && fresh.ended.is_some());
}

#[test]
fn a_missing_heap_starts_fresh_with_a_warning_or_is_an_error() {
    let harness = JsHarness::new();
    let process = harness.process();
    let unknown = Digest::of(b"nothing").to_string();
    let request = RunJsRequest { heap: Some(unknown.clone()), ..script_request(json!([{"get": "x"}])) };
    let execution = expect_completed(process.run(&request));
    assert!(execution.warning.clone().unwrap().contains(&unknown) && execution.input_heap.is_none());
    // Asking for the execution repeats the warning.
    assert_eq!(process.execution(&execution.id.to_string()).warning, execution.warning);
    let refused = process.run(&RunJsRequest { require_heap: true, ..request }).unwrap_err();
    assert_eq!(refused.code(), "no_heap");
    for bad in ["x", &unknown.to_uppercase(), &unknown[1..], "../../etc/passwd"] {
        let refused =
            process.run(&RunJsRequest { heap: Some(bad.to_owned()), ..script_request(json!([])) }).unwrap_err();
        assert_eq!(refused.code(), "bad_heap", "{bad}");
    }
}

#[test]
fn a_logical_session_continues_from_its_head_and_a_named_one_starts_fresh() {
    let harness = JsHarness::new();
    let process = harness.process();
    process.open_session();
    let increment = json!([{"add": ["n", 1]}]);
    for n in 1..=3 {
        assert_eq!(process.run_to_value(&logical_request("s0", increment.clone())), json!(n));
    }
    let fresh = RunJsRequest { heap: Some(String::new()), ..logical_request("s0", increment.clone()) };
    assert_eq!(process.run_to_value(&fresh), json!(1));
    let log =
        process.block_on(process.service.session_log(&local_caller(), &SessionTarget::Logical("s0".into()))).unwrap();
    assert_eq!(log.iter().map(|entry| entry.index).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!((log[0].input_heap, log[1].input_heap), (None, Some(log[0].output_heap)));
    assert_eq!((log[2].code.as_str(), log[3].input_heap), (increment.to_string().as_str(), None));

    for _ in 0..2 {
        assert_eq!(process.run_to_value(&named_request("agent", increment.clone())), json!(1));
    }
    // A name that looks like a session's id is not that session.
    let id = process
        .block_on(process.service.js_sessions(&local_caller(), &ListRequest::default()))
        .unwrap()
        .rows
        .into_iter()
        .find(|name| name != "agent")
        .unwrap();
    expect_completed(process.run(&named_request(&id, increment.clone())));
    let log =
        process.block_on(process.service.session_log(&local_caller(), &SessionTarget::Logical("s0".into()))).unwrap();
    assert_eq!(log.len(), 4);

    let harness =
        JsHarness { settings: JsSettings { resume_named_sessions: true, ..JsSettings::default() }, ..harness };
    let process = harness.process();
    assert_eq!(process.run_to_value(&named_request("agent", increment)), json!(2));
}

#[test]
fn a_failed_run_is_not_logged_and_does_not_move_the_head() {
    let harness = JsHarness::new();
    let process = harness.process();
    process.open_session();
    expect_completed(process.run(&logical_request("s0", json!([{"set": ["x", 1]}]))));
    let failed_run = process
        .run(&logical_request("s0", json!([{"set": ["x", 2]}, {"print": "so far\n"}, {"throw": "no"}])))
        .unwrap();
    assert_eq!((failed_run.state, failed_run.heap), (ExecutionState::Failed, None));
    let error = failed_run.error.unwrap();
    assert_eq!((error.name.as_str(), error.message.as_str()), ("Error", "no"));
    assert!(error.stack.contains(":1"));
    let page = process
        .block_on(process.service.execution_output(
            &local_caller(),
            &failed_run.id.to_string(),
            &OutputRequest::default(),
        ))
        .unwrap();
    assert_eq!(page.data, "so far\n");
    let out_of_memory = process.run(&logical_request("s0", json!(["grow"]))).unwrap();
    assert_eq!(out_of_memory.state, ExecutionState::Failed);
    assert!(out_of_memory.error.unwrap().message.contains("memory"));
    let unsettled = process.run(&logical_request("s0", json!(["never"]))).unwrap();
    assert!(unsettled.error.unwrap().message.contains("nothing will settle"));
    let refused = process.run(&RunJsRequest { code: "type x".into(), ..logical_request("s0", json!([])) }).unwrap();
    assert_eq!((refused.state, refused.error.unwrap().name.as_str()), (ExecutionState::Failed, "SyntaxError"));
    let timed_out = RunJsRequest { timeout_ms: Some(50), ..logical_request("s0", json!([{"spin": 500}])) };
    assert_eq!(process.run(&timed_out).unwrap().state, ExecutionState::TimedOut);
    assert_eq!(process.run_to_value(&logical_request("s0", json!([{"get": "x"}]))), json!(1));
    let log =
        process.block_on(process.service.session_log(&local_caller(), &SessionTarget::Logical("s0".into()))).unwrap();
    assert_eq!(log.len(), 2);
}

#[test]
fn an_idle_await_ends_at_its_deadline_and_timers_fire_in_order() {
    let harness = JsHarness::new();
    let process = harness.process();
    let timed_out = RunJsRequest { timeout_ms: Some(1_000), ..script_request(json!([timer_step(60_000)])) };
    let execution = process.run(&timed_out).unwrap();
    assert_eq!((execution.state, execution.error.unwrap().name.as_str()), (ExecutionState::TimedOut, "TimeoutError"));
    assert_eq!(execution.ended.unwrap().0 - execution.started.unwrap().0, 1_000);
    let execution = expect_completed(
        process.run(&script_request(json!([timer_step(20), {"set": ["x", 1]}, timer_step(30), {"get": "x"}]))),
    );
    assert_eq!(
        (completed_value(&execution), execution.ended.unwrap().0 - execution.started.unwrap().0),
        (json!(1), 50)
    );
}

#[test]
fn a_run_longer_than_its_callers_wait_can_be_queried_later() {
    let harness = JsHarness::new();
    let process = harness.process();
    let execution = process
        .run(&RunJsRequest {
            wait_ms: Some(100),
            ..script_request(json!([timer_step(5_000), {"set": ["x", 1]}, {"get": "x"}]))
        })
        .unwrap();
    assert_eq!((execution.state, execution.heap, execution.ended), (ExecutionState::Running, None, None));
    process.run_for_ms(6_000);
    assert_eq!(completed_value(&process.execution(&execution.id.to_string())), json!(1));
}

#[test]
fn runs_of_a_session_are_sequential_and_other_sessions_run_concurrently() {
    let harness = JsHarness::new();
    let process = harness.process();
    process.open_session();
    let first = process
        .run(&RunJsRequest {
            wait_ms: Some(10),
            ..logical_request("s0", json!([{"hold": "a"}, {"set": ["order", ["one"]]}]))
        })
        .unwrap();
    let second =
        process.run(&RunJsRequest { wait_ms: Some(10), ..logical_request("s0", json!([{"get": "order"}])) }).unwrap();
    let third = process
        .run(&RunJsRequest {
            wait_ms: Some(10),
            heap: Some(String::new()),
            ..logical_request("s0", json!([{"get": "order"}]))
        })
        .unwrap();
    assert_eq!(
        (first.state, second.state, third.state),
        (ExecutionState::Running, ExecutionState::Queued, ExecutionState::Queued)
    );
    assert_eq!((second.started, third.started), (None, None));
    // Other sessions, and runs without a session, do not wait.
    assert_eq!(expect_completed(process.run(&named_request("other", json!([])))).state, ExecutionState::Completed);
    let blocked = process.run(&unawaited_request("another", json!([{"hold": "b"}]))).unwrap();
    expect_completed(process.run(&script_request(json!([]))));
    assert!(process.engine.most_at_once() >= 3);
    process.engine.release("a");
    process.engine.release("b");
    process.run_for_ms(500);
    let [first, second, third, blocked] =
        [first, second, third, blocked].map(|execution| process.execution(&execution.id.to_string()));
    assert_eq!(
        (completed_value(&second), completed_value(&third), blocked.state),
        (json!(["one"]), json!(null), ExecutionState::Completed)
    );
    assert!(first.ended <= second.started && second.ended <= third.started);
    let log =
        process.block_on(process.service.session_log(&local_caller(), &SessionTarget::Logical("s0".into()))).unwrap();
    assert_eq!(
        log.iter().map(|entry| entry.output_heap).collect::<Vec<_>>(),
        [first, second, third].map(|e| e.heap.unwrap())
    );
}

#[test]
fn a_deadline_does_not_count_time_that_other_runs_had_the_processor() {
    let harness = JsHarness { settings: JsSettings { at_once: 1, ..JsSettings::default() }, ..JsHarness::new() };
    let process = harness.process();
    let hog =
        process.run(&unawaited_request("hog", json!([{"spin": 20_000}, {"add": ["n", 1]}, {"get": "n"}]))).unwrap();
    let request = RunJsRequest {
        timeout_ms: Some(10_000),
        ..unawaited_request("quick", json!([{"add": ["n", 1]}, {"get": "n"}]))
    };
    let quick = process.run(&request).unwrap();
    process.run_for_ms(25_000);
    assert_eq!(completed_value(&process.execution(&hog.id.to_string())), json!(1));
    assert_eq!(
        completed_value(&process.execution(&quick.id.to_string())),
        json!(1),
        "the time limit is shorter than its wait"
    );
    let slow = RunJsRequest { timeout_ms: Some(10_000), ..unawaited_request("slow", json!([{"spin": 20_000}])) };
    let slow = process.run(&slow).unwrap();
    process.run_for_ms(25_000);
    assert_eq!(process.execution(&slow.id.to_string()).state, ExecutionState::TimedOut);
}

#[test]
fn a_full_queue_refuses_a_run_and_stores_nothing() {
    let harness = JsHarness {
        settings: JsSettings { queue: 2, runs: 3, at_once: 4, ..JsSettings::default() },
        ..JsHarness::new()
    };
    let process = harness.process();
    let blocking = || unawaited_request("q", json!([{"hold": "a"}]));
    process.run(&blocking()).unwrap();
    process.run(&blocking()).unwrap();
    let refused = process.run(&blocking()).unwrap_err();
    assert!(refused.code() == "busy" && refused.to_string().contains("this session has 2"), "{refused}");
    process.run(&unawaited_request("r", json!([{"hold": "a"}]))).unwrap();
    let refused = process.run(&script_request(json!([]))).unwrap_err();
    assert!(refused.code() == "busy" && refused.to_string().contains("this server has 3"), "{refused}");
    assert_eq!(process.block_on(process.service.executions(&local_caller(), None, 100)).unwrap().len(), 3);
    process.engine.release("a");
    process.run_for_ms(500);
    expect_completed(process.run(&named_request("q", json!([]))));
}

#[test]
fn a_cancelled_run_never_completes_and_a_completed_one_is_never_cancelled() {
    let harness = JsHarness::new();
    let process = harness.process();
    let cancel =
        |id: &base::ExecutionId| process.block_on(process.service.cancel_execution(&local_caller(), &id.to_string()));
    // One run is cancelled while it computes, one while it is queued, and one while it waits.
    let computing = process.run(&unawaited_request("a", json!([{"spin": 20_000}, {"set": ["x", 1]}]))).unwrap();
    let queued = process.run(&unawaited_request("a", json!([{"set": ["x", 2]}]))).unwrap();
    let waiting = process.run(&unawaited_request("b", json!([timer_step(20_000)]))).unwrap();
    process.run_for_ms(10);
    for id in [&queued.id, &computing.id, &waiting.id] {
        cancel(id).unwrap();
        assert_eq!(process.execution(&id.to_string()).state, ExecutionState::Cancelled);
    }
    process.run_for_ms(30_000);
    for id in [&queued.id, &computing.id, &waiting.id] {
        assert_eq!(process.execution(&id.to_string()).state, ExecutionState::Cancelled);
        assert!(matches!(cancel(id).unwrap_err(), session::Error::Js(JsError::Ended { state: "cancelled", .. })));
    }
    assert!(
        process
            .block_on(process.service.session_log(&local_caller(), &SessionTarget::Named("a".into())))
            .unwrap()
            .is_empty()
    );
    let done = expect_completed(process.run(&named_request("a", json!([]))));
    assert!(matches!(cancel(&done.id).unwrap_err(), session::Error::Js(JsError::Ended { state: "completed", .. })));
    assert_eq!(process.execution(&done.id.to_string()).state, ExecutionState::Completed);
}

#[test]
fn output_is_paged_by_line_and_byte_without_splitting_a_character() {
    let harness = JsHarness::new();
    let process = harness.process();
    let line = |n: usize| format!("{n:05} é€😀 {}\n", "x".repeat(40));
    let text: String = (0..2_000).map(line).collect();
    let (first_half, second_half) = text.split_at(60_001 + (0..4).find(|n| text.is_char_boundary(60_001 + n)).unwrap());
    let execution = expect_completed(process.run(&script_request(
        json!([{"print": first_half}, timer_step(1), {"print": second_half}, {"print": "the end"}]),
    )));
    let expected = format!("{text}the end");
    let id = execution.id.to_string();
    assert_eq!((execution.output_bytes, execution.output_lines), (expected.len() as u64, 2_001));
    let read = |request: OutputRequest| {
        process.block_on(process.service.execution_output(&local_caller(), &id, &request)).unwrap()
    };
    for limit in [1, 7, 1_000, 30_000, 1_000_000] {
        // Reading everything in pieces of a few bytes would take too long.
        let mut offset = if limit < 10 { expected.len() as u64 - 300 } else { 0 };
        let mut output = expected[..offset as usize].to_owned();
        loop {
            let page =
                read(OutputRequest { byte_offset: Some(offset), byte_limit: Some(limit), ..OutputRequest::default() });
            assert!(page.next_byte_offset > offset);
            output.push_str(&page.data);
            offset = page.next_byte_offset;
            if !page.has_more {
                break;
            }
        }
        assert_eq!(output, expected, "{limit}");
    }
    let mut output = String::new();
    let mut offset = 0;
    loop {
        let page = read(OutputRequest { line_offset: Some(offset), line_limit: Some(300), ..OutputRequest::default() });
        assert!(page.data.ends_with('\n') || !page.has_more);
        output.push_str(&page.data);
        offset = page.next_line_offset;
        if !page.has_more {
            break;
        }
    }
    assert_eq!((output, offset), (expected.clone(), 2_001));
    let page = read(OutputRequest { line_offset: Some(1_999), line_limit: Some(1), ..OutputRequest::default() });
    assert_eq!((page.data, page.next_line_offset), (line(1_999), 2_000));
    let page = read(OutputRequest { line_offset: Some(9_999), ..OutputRequest::default() });
    assert_eq!((page.data.as_str(), page.has_more), ("", false));
    let both = OutputRequest { line_offset: Some(1), byte_offset: Some(1), ..OutputRequest::default() };
    assert_eq!(
        process.block_on(process.service.execution_output(&local_caller(), &id, &both)).unwrap_err().code(),
        "bad_arguments"
    );
}

#[test]
fn output_beyond_the_limit_is_counted_and_dropped() {
    let harness = JsHarness { settings: JsSettings { output_bytes: 100, ..JsSettings::default() }, ..JsHarness::new() };
    let process = harness.process();
    let execution = expect_completed(
        process.run(&script_request(json!([{"print": "a".repeat(80)}, timer_step(1), {"print": "b".repeat(80)}]))),
    );
    let page = process
        .block_on(process.service.execution_output(
            &local_caller(),
            &execution.id.to_string(),
            &OutputRequest::default(),
        ))
        .unwrap();
    assert_eq!((page.total_bytes, page.dropped_bytes, page.data.matches('b').count()), (100, 60, 20));
}

#[test]
fn tags_of_a_run_replace_those_of_its_heap_and_can_be_searched() {
    let harness = JsHarness::new();
    let process = harness.process();
    let tags = |pairs: &[(&str, &str)]| -> Tags { pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect() };
    let run_with_tags = |given: &[(&str, &str)]| {
        expect_completed(
            process.run(&RunJsRequest { tags: Some(tags(given)), ..script_request(json!([{"set": ["x", 1]}])) }),
        )
    };
    let heap = run_with_tags(&[("env", "test"), ("model", "v1")]).heap.unwrap().to_string();
    let same_heap = run_with_tags(&[("env", "live")]).heap.unwrap().to_string();
    assert_eq!(heap, same_heap);
    let tags_of = |heap: &str| process.block_on(process.service.heap_tags(&local_caller(), heap)).unwrap();
    assert_eq!(tags_of(&heap), tags(&[("env", "live")]));
    // A run without tags leaves existing tags.
    expect_completed(process.run(&script_request(json!([{"set": ["x", 1]}]))));
    assert_eq!(tags_of(&heap), tags(&[("env", "live")]));
    let count_by_tags = |filter: &[(&str, &str)]| {
        process
            .block_on(process.service.heaps_by_tags(&local_caller(), &tags(filter), &ListRequest::default()))
            .unwrap()
            .rows
            .len()
    };
    expect_completed(process.run(&RunJsRequest {
        tags: Some(tags(&[("env", "live"), ("a", "b")])),
        ..script_request(json!([{"set": ["x", 2]}]))
    }));
    assert_eq!(
        (
            count_by_tags(&[]),
            count_by_tags(&[("env", "live")]),
            count_by_tags(&[("env", "live"), ("a", "b")]),
            count_by_tags(&[("env", "x")])
        ),
        (2, 2, 1, 0)
    );
    process.block_on(process.service.delete_heap_tags(&local_caller(), &heap, Some(&["env".to_owned()]))).unwrap();
    assert_eq!((tags_of(&heap), count_by_tags(&[])), (Tags::new(), 1));
    let unknown = Digest::of(b"unknown").to_string();
    let refused =
        process.block_on(process.service.set_heap_tags(&local_caller(), &unknown, tags(&[("a", "b")]))).unwrap_err();
    assert_eq!(refused.code(), "no_heap");
    assert_eq!(tags_of(&unknown), Tags::new());
}

#[test]
fn headers_are_visible_to_code_and_never_stored() {
    let harness = JsHarness::new();
    let process = harness.process();
    let headers = [("x-mcp-user".to_owned(), "secret-ish".to_owned())].into();
    let execution = expect_completed(process.run(&RunJsRequest { headers, ..script_request(json!(["headers"])) }));
    assert_eq!(completed_value(&execution), json!({"x-mcp-user": "secret-ish"}));
    let rows = harness.memory.store.rows();
    let rows_with_header = rows.iter().filter(|(key, row)| {
        key.table != ports::store::Table::Execution && row.value.windows(10).any(|part| part == b"secret-ish")
    });
    assert_eq!(rows_with_header.count(), 0);
}

#[test]
fn a_query_about_a_run_can_wait_for_its_end() {
    let harness = JsHarness::new();
    let process = harness.process();
    let execution =
        process.run(&unawaited_request("agent", json!([timer_step(1_000), {"set": ["x", 5]}, {"get": "x"}]))).unwrap();
    let id = execution.id.to_string();
    let state_within =
        |process: &Process, ms| process.block_on(process.service.wait_for_execution(&local_caller(), &id, ms)).unwrap();
    assert_eq!(state_within(&process, 0).state, ExecutionState::Running);
    assert_eq!(state_within(&process, 300).state, ExecutionState::Running);
    let other = harness.process();
    assert_eq!(state_within(&other, 250).state, ExecutionState::Running, "the run continues in the other process");
    assert_eq!(completed_value(&state_within(&process, 60_000)), json!(5));
    assert_eq!(completed_value(&state_within(&other, 60_000)), json!(5));
    let unknown = process.block_on(process.service.wait_for_execution(&local_caller(), "nope", 60_000)).unwrap_err();
    assert_eq!(unknown.code(), "no_execution");
}

#[test]
fn no_data_of_one_tenant_is_visible_to_another() {
    let harness = JsHarness::new();
    let process = harness.process();
    process.open_session();
    let tags = [("a".to_owned(), "b".to_owned())].into();
    let own_run =
        expect_completed(process.run(&RunJsRequest {
            tags: Some(tags),
            ..logical_request("s0", json!([{"set": ["x", 1]}, {"print": "p"}]))
        }));
    expect_completed(process.run(&named_request("agent", json!([]))));
    let running = process.run(&unawaited_request("agent", json!([timer_step(1_000)]))).unwrap();
    let other = harness::caller("other", "a");
    let id = own_run.id.to_string();
    let heap = own_run.heap.unwrap().to_string();
    process.block_on(async {
        let service = &process.service;
        let code_of = |error: session::Error| error.code();
        assert_eq!(service.execution(&other, &id).await.map_err(code_of).unwrap_err(), "no_execution");
        assert_eq!(
            service.cancel_execution(&other, &running.id.to_string()).await.map_err(code_of).unwrap_err(),
            "no_execution"
        );
        let output = service.execution_output(&other, &id, &OutputRequest::default()).await;
        assert_eq!(output.map_err(code_of).unwrap_err(), "no_execution");
        assert!(service.executions(&other, None, 10).await.unwrap().is_empty());
        assert!(service.js_sessions(&other, &ListRequest::default()).await.unwrap().rows.is_empty());
        assert!(service.session_log(&other, &SessionTarget::Named("agent".into())).await.unwrap().is_empty());
        assert!(service.heap_tags(&other, &heap).await.unwrap().is_empty());
        assert!(service.heaps_by_tags(&other, &Tags::new(), &ListRequest::default()).await.unwrap().rows.is_empty());
        assert!(service.heaps(&other, None, 10).await.unwrap().is_empty());
        assert_eq!(service.heap_info(&other, &heap).await.map_err(code_of).unwrap_err(), "no_heap");
        assert_eq!(service.diff_heaps(&other, &heap, &heap).await.map_err(code_of).unwrap_err(), "no_heap");
        assert_eq!(service.export_heap(&other, &heap).await.map_err(code_of).unwrap_err(), "no_heap");
        assert_eq!(service.delete_heap_tags(&other, &heap, None).await.map_err(code_of).unwrap_err(), "no_heap");
        // The engine has the heap in memory, but the other tenant may not use it.
        let request =
            RunJsRequest { heap: Some(heap.clone()), require_heap: true, ..script_request(json!([{"get": "x"}])) };
        assert_eq!(service.run_js(&other, &request).await.map_err(code_of).unwrap_err(), "no_heap");
        let execution = service.run_js(&other, &RunJsRequest { require_heap: false, ..request }).await.unwrap();
        assert_eq!((completed_value(&execution), execution.warning.is_some()), (json!(null), true));
        assert_eq!(service.resume_js(&[TenantId::parse("other").unwrap()]).await.unwrap(), 0);
    });
}

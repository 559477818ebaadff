//! Page handles: a cut list continues where it stopped, for its own session, as often as requested.

use base::{Limits, Response};
use serde_json::json;
use session::{PageHandle, RunRequest, RunResult};
use testkit::upstream::Rule;

use crate::harness::{
    self, Harness, caller, expect_finished, local_caller, open_session, open_session_as, program_request,
};

/// Returns a harness whose API lists this many projects in pages of the requested size.
fn harness_with_projects(count: usize) -> Harness {
    let harness = Harness::with_working_api();
    harness.upstream.add(Rule::get("/api/projects").answers(move |call| {
        let number = |name: &str| {
            let parameter =
                call.request.query.iter().find(|(n, _)| n == name).and_then(|(_, v)| v.parse::<usize>().ok());
            parameter.unwrap_or(1)
        };
        let page = number("page");
        let size = number("per_page");
        let rows = (0..count).skip((page - 1) * size).take(size).map(|n| json!({"key": format!("P{n:03}")}));
        let body = json!({"data": rows.collect::<Vec<_>>(), "total": count});
        Ok(Response { status: 200, headers: Vec::new(), body: body.to_string().into_bytes() })
    }));
    harness
}

fn project_keys(result: &RunResult) -> Vec<String> {
    let rows = &result.outcome.returns[0].result.as_ref().unwrap().rows;
    rows.iter().map(|row| row["key"].as_str().unwrap().to_owned()).collect()
}

fn expected_keys(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| format!("P{n:03}")).collect()
}

fn row_limit(rows: usize) -> Limits {
    Limits { rows, ..Limits::default() }
}

#[tokio::test]
async fn a_cut_list_continues_to_its_end_without_gaps_or_repetitions() {
    for (count, rows) in [(250, 100), (250, 70), (7, 3), (7, 1), (100, 100), (101, 100), (0, 3)] {
        let harness = harness_with_projects(count);
        let service = harness.service_with(row_limit(rows));
        open_session(&service).await;
        let mut result = expect_finished(service.run(&local_caller(), &program_request("Project[key]")).await);
        let mut read = project_keys(&result);
        while let [PageHandle { label, handle, unapplied_steps: None }] = result.pages.as_slice() {
            assert_eq!((label.as_str(), project_keys(&result).len()), ("result", rows));
            let program = format!("page({handle})");
            result = expect_finished(service.run(&local_caller(), &program_request(&program)).await);
            assert_ne!(
                project_keys(&result),
                Vec::<String>::new(),
                "{count}/{rows}: a page handle leads to at least one row"
            );
            read.extend(project_keys(&result));
        }
        assert_eq!(read, expected_keys(0..count), "{count} in pages of {rows}");
    }
}

#[tokio::test]
async fn a_page_handle_returns_the_same_rows_each_time() {
    let harness = harness_with_projects(10);
    let service = harness.service_with(row_limit(4));
    open_session(&service).await;
    let first =
        expect_finished(service.run(&local_caller(), &program_request("Project[key], Project[key, name]")).await);
    assert_eq!(first.pages.iter().map(|page| page.handle.as_str()).collect::<Vec<_>>(), ["s0_pg1", "s0_pg2"]);
    for service in [service.clone(), service, harness.service_with(row_limit(4))] {
        let repeated = expect_finished(service.run(&local_caller(), &program_request("page(s0_pg1)")).await);
        assert_eq!(project_keys(&repeated), expected_keys(4..8));
        let smaller = expect_finished(service.run(&local_caller(), &program_request("page(s0_pg1, limit=2)")).await);
        assert_eq!(project_keys(&smaller), expected_keys(4..6));
    }
    // Another connection's slot for the same session has the same pages under its own prefix.
    let other = caller("local", "b");
    let service = harness.service_with(row_limit(4));
    open_session_as(&service, &other, "something else").await;
    open_session_as(&service, &other, "task").await;
    let request = RunRequest { session: "s1".into(), ..program_request("page(s1_pg1)") };
    assert_eq!(project_keys(&expect_finished(service.run(&other, &request).await)), expected_keys(4..8));
}

#[tokio::test]
async fn foreign_and_unknown_page_handles_are_refused() {
    let harness = harness_with_projects(10);
    let service = harness.service_with(row_limit(4));
    open_session(&service).await;
    open_session_as(&service, &local_caller(), "another task").await;
    expect_finished(service.run(&local_caller(), &program_request("Project[key]")).await);
    let before = harness.upstream.calls().len();
    let foreign = RunRequest { session: "s1".into(), ..program_request("page(s0_pg1)") };
    let refused = service.run(&local_caller(), &foreign).await.unwrap_err();
    let message = format!("{refused} {refused:?}");
    assert!(message.contains("s1_pg1"), "{message}");
    for unknown in ["page(s0_pg2)", "page(s0_pg0)", "page(s0_pg99999999999999999999999)"] {
        let refused = service.run(&local_caller(), &program_request(unknown)).await.unwrap_err();
        assert!(matches!(refused.code(), "no_handle" | "bad_program"), "{unknown}: {refused}");
    }
    let stranger = caller("acme", "a");
    open_session_as(&service, &stranger, "task").await;
    assert_eq!(service.run(&stranger, &program_request("page(s0_pg1)")).await.unwrap_err().code(), "no_handle");
    assert_eq!(harness.upstream.calls().len(), before, "no request was sent to the API");
}

#[tokio::test]
async fn a_replay_names_the_page_handles_of_the_first_run() {
    let harness = harness_with_projects(10);
    let service = harness.service_with(row_limit(4));
    open_session(&service).await;
    let program = format!("{}, Project[key]", harness::OPEN_THREE_TICKETS);
    let commit = harness::plan_commit(&service, &program).await;
    let first = expect_finished(service.run(&local_caller(), &harness::commit_request(&commit)).await);
    let repeated = expect_finished(service.run(&local_caller(), &harness::commit_request(&commit)).await);
    assert_eq!((repeated.replayed, first.pages.len()), (true, 1));
    assert_eq!(repeated.pages, first.pages);
}

#[tokio::test]
async fn the_rest_of_a_list_keeps_its_columns_and_names_unapplied_steps() {
    let harness = harness_with_projects(10);
    let service = harness.service_with(row_limit(4));
    open_session(&service).await;
    let plain = expect_finished(service.run(&local_caller(), &program_request("Project[key]")).await);
    assert_eq!(plain.pages[0].unapplied_steps, None);
    let rest = expect_finished(service.run(&local_caller(), &program_request("page(s0_pg1)")).await);
    assert_eq!((&rest.outcome.returns[0].columns, rest.pages.len()), (&vec!["key".to_owned()], 1));
    let last = expect_finished(
        service.run(&local_caller(), &program_request(&format!("page({})", rest.pages[0].handle))).await,
    );
    assert_eq!(
        (&last.outcome.returns[0].columns, project_keys(&last)),
        (&vec!["key".to_owned()], expected_keys(8..10))
    );
    let sorted = expect_finished(service.run(&local_caller(), &program_request("Project.sort(key, desc)[key]")).await);
    assert_eq!(sorted.pages[0].unapplied_steps.as_deref(), Some("sort"));
}

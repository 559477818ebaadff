//! Page handles: a cut list continues where it stopped, for its own session, as often as requested.

use base::{Limits, Response};
use serde_json::json;
use session::{PageHandle, RunRequest, RunResult};
use testkit::upstream::Rule;

use crate::harness::{self, Harness, caller, finished, me, open, open_as, program_of};

/// A list of projects, in pages of the requested size.
fn with_projects(all: usize) -> Harness {
    let house = Harness::working();
    house.upstream.add(Rule::get("/api/projects").answers(move |call| {
        let number = |name: &str| {
            let found = call.request.query.iter().find(|(n, _)| n == name).and_then(|(_, v)| v.parse::<usize>().ok());
            found.unwrap_or(1)
        };
        let (page, size) = (number("page"), number("per_page"));
        let rows = (0..all).skip((page - 1) * size).take(size).map(|n| json!({"key": format!("P{n:03}")}));
        let body = json!({"data": rows.collect::<Vec<_>>(), "total": all});
        Ok(Response { status: 200, headers: Vec::new(), body: body.to_string().into_bytes() })
    }));
    house
}

fn keys(ran: &RunResult) -> Vec<String> {
    let rows = &ran.outcome.returns[0].result.as_ref().unwrap().rows;
    rows.iter().map(|row| row["key"].as_str().unwrap().to_owned()).collect()
}

fn expected(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| format!("P{n:03}")).collect()
}

fn limits(rows: usize) -> Limits {
    Limits { rows, ..Limits::default() }
}

#[tokio::test]
async fn a_cut_list_continues_to_its_end_without_gaps_or_repetitions() {
    for (all, rows) in [(250, 100), (250, 70), (7, 3), (7, 1), (100, 100), (101, 100), (0, 3)] {
        let house = with_projects(all);
        let service = house.service_with(limits(rows));
        open(&service).await;
        let mut ran = finished(service.run(&me(), &program_of("Project[key]")).await);
        let mut read = keys(&ran);
        while let [PageHandle { label, handle, unapplied_steps: None }] = ran.pages.as_slice() {
            assert_eq!((label.as_str(), keys(&ran).len()), ("result", rows));
            let program = format!("page({handle})");
            ran = finished(service.run(&me(), &program_of(&program)).await);
            assert_ne!(keys(&ran), Vec::<String>::new(), "{all}/{rows}: a handle stands for rows that are there");
            read.extend(keys(&ran));
        }
        assert_eq!(read, expected(0..all), "{all} in pieces of {rows}");
    }
}

#[tokio::test]
async fn a_page_handle_returns_the_same_rows_each_time() {
    let house = with_projects(10);
    let service = house.service_with(limits(4));
    open(&service).await;
    let first = finished(service.run(&me(), &program_of("Project[key], Project[key, name]")).await);
    assert_eq!(first.pages.iter().map(|more| more.handle.as_str()).collect::<Vec<_>>(), ["s0_pg1", "s0_pg2"]);
    for service in [service.clone(), service, house.service_with(limits(4))] {
        let again = finished(service.run(&me(), &program_of("page(s0_pg1)")).await);
        assert_eq!(keys(&again), expected(4..8));
        let smaller = finished(service.run(&me(), &program_of("page(s0_pg1, limit=2)")).await);
        assert_eq!(keys(&smaller), expected(4..6));
    }
    // Another connection's slot for the same session has the same pages under its own prefix.
    let other = caller("local", "b");
    let service = house.service_with(limits(4));
    open_as(&service, &other, "something else").await;
    open_as(&service, &other, "task").await;
    let request = RunRequest { session: "s1".into(), ..program_of("page(s1_pg1)") };
    assert_eq!(keys(&finished(service.run(&other, &request).await)), expected(4..8));
}

#[tokio::test]
async fn foreign_and_unknown_page_handles_are_refused() {
    let house = with_projects(10);
    let service = house.service_with(limits(4));
    open(&service).await;
    open_as(&service, &me(), "another task").await;
    finished(service.run(&me(), &program_of("Project[key]")).await);
    let before = house.upstream.calls().len();
    let foreign = RunRequest { session: "s1".into(), ..program_of("page(s0_pg1)") };
    let refused = service.run(&me(), &foreign).await.unwrap_err();
    let said = format!("{refused} {refused:?}");
    assert!(said.contains("s1_pg1"), "{said}");
    for unknown in ["page(s0_pg2)", "page(s0_pg0)", "page(s0_pg99999999999999999999999)"] {
        let refused = service.run(&me(), &program_of(unknown)).await.unwrap_err();
        assert!(matches!(refused.code(), "no_handle" | "bad_program"), "{unknown}: {refused}");
    }
    let stranger = caller("acme", "a");
    open_as(&service, &stranger, "task").await;
    assert_eq!(service.run(&stranger, &program_of("page(s0_pg1)")).await.unwrap_err().code(), "no_handle");
    assert_eq!(house.upstream.calls().len(), before, "nothing was asked of the API");
}

#[tokio::test]
async fn a_replay_names_the_page_handles_of_the_first_run() {
    let house = with_projects(10);
    let service = house.service_with(limits(4));
    open(&service).await;
    let program = format!("{}, Project[key]", harness::THREE);
    let commit = harness::plan(&service, &program).await;
    let first = finished(service.run(&me(), &harness::commit_of(&commit)).await);
    let again = finished(service.run(&me(), &harness::commit_of(&commit)).await);
    assert_eq!((again.replayed, first.pages.len()), (true, 1));
    assert_eq!(again.pages, first.pages);
}

#[tokio::test]
async fn the_rest_of_a_list_keeps_its_columns_and_names_unapplied_steps() {
    let house = with_projects(10);
    let service = house.service_with(limits(4));
    open(&service).await;
    let plain = finished(service.run(&me(), &program_of("Project[key]")).await);
    assert_eq!(plain.pages[0].unapplied_steps, None);
    let rest = finished(service.run(&me(), &program_of("page(s0_pg1)")).await);
    assert_eq!((&rest.outcome.returns[0].columns, rest.pages.len()), (&vec!["key".to_owned()], 1));
    let last = finished(service.run(&me(), &program_of(&format!("page({})", rest.pages[0].handle))).await);
    assert_eq!((&last.outcome.returns[0].columns, keys(&last)), (&vec!["key".to_owned()], expected(8..10)));
    let sorted = finished(service.run(&me(), &program_of("Project.sort(key, desc)[key]")).await);
    assert_eq!(sorted.pages[0].unapplied_steps.as_deref(), Some("sort"));
}

//! Retention on in-memory ports: execute sessions, results, handles, claims, blobs, and whole sessions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use access::Caller;
use base::{Digest, Limits, TenantId};
use catalog::Registry;
use ports::store::{Batch, Expect, Key, Table};
use ports::{Blobs, Store};
use serde_json::json;
use session::{CollectionOptions, OpenRequest, PlanRequest, RunAnswer, RunRequest, SeedRequest, TaughtTable};
use testkit::upstream::Rule;

use crate::harness::{self, Harness, MemoryService};

const DAY: u64 = 24 * 60 * 60;

impl MemoryService {
    pub fn with_demo() -> Self {
        Self::with_demo_and_limits(Limits::default())
    }

    pub fn with_demo_and_limits(limits: Limits) -> Self {
        let fixture = Self::with_registry(Arc::new(Registry::new([harness::catalog()]).unwrap()), limits);
        fixture.upstream.add(Rule::get("/api/projects/OPS").json(200, json!({"key": "OPS", "name": "Operations"})));
        fixture
    }

    pub fn advance_days(&self, days: u64) {
        self.clock.advance(Duration::from_secs(days * DAY));
        self.blobs.age(Duration::from_secs(days * DAY));
    }

    async fn open(&self, intent: &str) -> session::OpenedSession {
        let seeds = vec![SeedRequest::all("demo", "Project"), SeedRequest::all("demo", "Comment")];
        self.service.open(&local_caller(), &OpenRequest::new(intent, seeds)).await.unwrap()
    }

    async fn run(&self, program: &str) -> Arc<session::RunResult> {
        let request = RunRequest { session: "s0".into(), program: Some(program.to_owned()), ..RunRequest::default() };
        match self.service.run(&local_caller(), &request).await.unwrap() {
            RunAnswer::Finished(result) => result,
            RunAnswer::Running(_) => panic!("the run takes longer than the inline time"),
        }
    }

    /// Makes a dry pass and then a real one, which must delete what the dry pass reported.
    async fn collect(&self) -> session::CollectionReport {
        let before = self.store.rows();
        let predicted = self
            .service
            .collect_garbage(CollectionOptions { dry_run: true, ..CollectionOptions::default() })
            .await
            .unwrap();
        assert_eq!(self.store.rows(), before, "a dry pass changes nothing");
        let report = self.service.collect_garbage(CollectionOptions::default()).await.unwrap();
        assert_eq!(
            (&predicted.rows, predicted.blobs, predicted.blob_bytes),
            (&report.rows, report.blobs, report.blob_bytes)
        );
        report
    }

    /// Returns the names of all tables that have rows.
    fn tables_with_rows(&self) -> BTreeSet<&'static str> {
        self.store.rows().iter().map(|(key, _)| key.table.name()).collect()
    }
}

fn local_caller() -> Caller {
    Caller::local()
}

fn plan_request(program: &str) -> PlanRequest {
    PlanRequest { session: "s0".to_owned(), program: program.to_owned() }
}

#[tokio::test]
async fn an_execute_session_expires_after_thirty_idle_days_and_the_error_says_so() {
    let fixture = MemoryService::with_demo();
    let first = fixture.open("task").await;
    fixture.advance_days(29);
    assert_eq!(fixture.collect().await.rows.len(), 0);
    fixture.service.plan(&local_caller(), &plan_request("Project")).await.unwrap();
    fixture.advance_days(29);
    fixture.collect().await;
    assert!(
        matches!(fixture.open("task").await.taught, TaughtTable::Unchanged { .. }),
        "a session in use does not expire"
    );
    fixture.advance_days(31);
    let report = fixture.collect().await;
    assert_eq!(report.rows.get("execute_session"), Some(&1), "{report:?}");
    assert!(report.blobs >= 1, "no session pins its catalog any more: {report:?}");
    assert_eq!(
        fixture.service.plan(&local_caller(), &plan_request("Project")).await.unwrap_err().code(),
        "expired_session"
    );
    let reopened = fixture.open("task").await;
    assert_eq!((reopened.session, reopened.slot, reopened.reused), (first.session, first.slot, false));
    assert_eq!(reopened.continuity.previous_execute, Some(first.execute));
    assert!(reopened.continuity.new_symbol_space && !reopened.continuity.refreshed);
    fixture.service.plan(&local_caller(), &plan_request("Project")).await.unwrap();
}

#[tokio::test]
async fn results_plans_and_handles_expire_after_seven_days_unless_pinned() {
    let fixture = MemoryService::with_demo();
    fixture.open("task").await;
    fixture.upstream.add(Rule::get("/api/projects").json(200, json!({"items": [{"key": "OPS"}], "next": "2"})));
    let first = fixture.run("Project(\"OPS\")").await;
    let second = fixture.run("Project(\"OPS\")").await;
    fixture.service.plan(&local_caller(), &plan_request("Project")).await.unwrap();
    fixture.service.pin_artifact(&local_caller(), "plasm://session/s0/r/2", true).await.unwrap();
    let count = fixture.blobs.digests().len();
    fixture.advance_days(6);
    assert_eq!(fixture.collect().await.rows.len(), 0);
    fixture.advance_days(2);
    let report = fixture.collect().await;
    assert_eq!(report.rows, [("artifact", 1), ("plan", 1), ("run", 1), ("run_id", 1)].into(), "{report:?}");
    assert_eq!(
        (report.blobs, fixture.blobs.digests().len()),
        (0, count),
        "the results are small, so they are not blobs"
    );
    for uri in ["plasm://session/s0/r/1", "plasm://session/s0/p/1"] {
        let error = fixture.service.resource(&local_caller(), uri).await.unwrap_err();
        assert_eq!(error.code(), "expired_handle");
        assert!(error.to_string().contains("7 days") && error.to_string().contains("again"), "{error}");
    }
    assert_eq!(
        fixture.service.resource(&local_caller(), "plasm://session/s0/r/3").await.unwrap_err().code(),
        "no_artifact"
    );
    assert_eq!(fixture.service.artifact(&local_caller(), "plasm://session/s0/r/2").await.unwrap().run, second.run);
    assert_ne!(first.run, second.run);
    assert_eq!(fixture.run("Project(\"OPS\")").await.number, 3, "numbers are not reused");
    fixture.service.pin_artifact(&local_caller(), "plasm://session/s0/r/2", false).await.unwrap();
    assert_eq!(fixture.collect().await.rows.get("run"), Some(&1));
}

#[tokio::test]
async fn a_used_commit_outlives_its_result_so_that_no_effect_happens_twice() {
    let harness = Harness::with_working_api();
    let service = harness.service();
    harness::open_session(&service).await;
    let error = service
        .run(&harness::local_caller(), &harness::program_request(harness::OPEN_THREE_TICKETS))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "review_needed");
    let commit = RunRequest { session: "s0".into(), plan_commit_ref: Some("pc0".into()), ..RunRequest::default() };
    harness::expect_finished(service.run(&harness::local_caller(), &commit).await);
    let sent = harness.sent_bodies().len();
    harness.clock.advance(Duration::from_secs(8 * DAY));
    let report = service.collect_garbage(CollectionOptions::default()).await.unwrap();
    assert_eq!(
        (report.rows.get("run"), report.rows.get("receipt"), report.rows.get("plan_commit")),
        (Some(&1), Some(&3), None)
    );
    assert_eq!(service.run(&harness::local_caller(), &commit).await.unwrap_err().code(), "expired_handle");
    harness.clock.advance(Duration::from_secs(90 * DAY));
    let report = service.collect_garbage(CollectionOptions::default()).await.unwrap();
    assert_eq!(report.rows.get("plan_commit"), Some(&1));
    harness::open_session(&service).await;
    assert_eq!(service.run(&harness::local_caller(), &commit).await.unwrap_err().code(), "expired_commit");
    assert_eq!(harness.sent_bodies().len(), sent, "no effect was repeated");
}

#[tokio::test]
async fn an_unused_commit_is_refused_as_expired_after_its_row_was_deleted() {
    let fixture = MemoryService::with_demo();
    fixture.open("task").await;
    let key = Key::new(&local_caller().tenant, Table::LogicalSession, fixture.open("task").await.session.to_string());
    let row = fixture.store.get(&key).await.unwrap().unwrap();
    let mut logical: serde_json::Value = serde_json::from_slice(&row.value).unwrap();
    logical["commits"] = json!(3);
    fixture.store.commit(Batch::default().put(key, logical.to_string().into_bytes(), Expect::Any)).await.unwrap();
    let run = async |commit: &str| {
        let commit = Some(commit.to_owned());
        let request = RunRequest { session: "s0".into(), plan_commit_ref: commit, ..RunRequest::default() };
        fixture.service.run(&local_caller(), &request).await.unwrap_err().code()
    };
    assert_eq!(run("pc2").await, "expired_commit");
    assert_eq!(run("pc3").await, "no_commit");
}

#[tokio::test]
async fn an_unreferenced_blob_is_deleted_only_after_the_grace_period() {
    let fixture = MemoryService::with_demo();
    fixture.open("task").await;
    let orphan = fixture.blobs.put(b"nobody's").await.unwrap();
    assert_eq!(fixture.collect().await.blobs, 0, "the row that names it may be stored later");
    fixture.advance_days(2);
    fixture.blobs.put(b"nobody's").await.unwrap();
    assert_eq!(fixture.collect().await.blobs, 0, "a second write makes the blob young");
    fixture.advance_days(2);
    let report = fixture.collect().await;
    assert_eq!((report.blobs, report.blob_bytes, report.kept_blobs), (1, 8, 1));
    assert!(!fixture.blobs.digests().contains(&orphan));
    fixture.service.plan(&local_caller(), &plan_request("Project")).await.unwrap();
}

#[tokio::test]
async fn a_digest_in_any_row_of_any_tenant_keeps_its_blob() {
    let fixture = MemoryService::with_demo();
    let other = TenantId::parse("other").unwrap();
    let mut referenced_blobs = Vec::new();
    for (n, table) in Table::ALL.into_iter().enumerate() {
        let digest = fixture.blobs.put(format!("blob {n}").as_bytes()).await.unwrap();
        let value = json!({"unknown": {"to": [format!("x:{digest}")]}}).to_string().into_bytes();
        let id = format!("anything/{n}");
        fixture.store.commit(Batch::default().put(Key::new(&other, table, id), value, Expect::Any)).await.unwrap();
        referenced_blobs.push(digest);
    }
    fixture.advance_days(3);
    assert_eq!(fixture.collect().await.blobs, 0);
    assert_eq!(
        fixture.blobs.digests().into_iter().collect::<BTreeSet<Digest>>(),
        referenced_blobs.into_iter().collect()
    );
}

#[tokio::test]
async fn removing_a_session_deletes_all_of_its_rows_and_no_others() {
    let fixture = MemoryService::with_demo();
    fixture.open("task").await;
    fixture.run("Project(\"OPS\")").await;
    fixture.service.plan(&local_caller(), &plan_request("Project")).await.unwrap();
    let other_session = fixture.open("another").await;
    let listed = fixture.service.list_sessions(&local_caller(), 1_000).await.unwrap().0;
    assert_eq!(listed.len(), 2);
    let other = Caller { tenant: TenantId::parse("other").unwrap(), ..local_caller() };
    assert_eq!(fixture.service.remove_session(&other, "task").await.unwrap_err().code(), "bad_ref");
    fixture.service.remove_session(&local_caller(), "task").await.unwrap();
    assert_eq!(fixture.tables_with_rows(), ["connection", "execute_session", "intent", "logical_session"].into());
    assert_eq!(fixture.service.plan(&local_caller(), &plan_request("Project")).await.unwrap_err().code(), "no_session");
    assert_eq!(
        fixture.service.session_view(&local_caller(), "another").await.unwrap().logical_session_id,
        other_session.session
    );
    let reopened = fixture.open("task").await;
    assert!(reopened.continuity.new_symbol_space && reopened.continuity.previous_execute.is_none(), "a new session");
    assert_eq!(reopened.slot.to_string(), "s2");
}

#[tokio::test]
async fn rows_left_by_a_crash_during_removal_are_collected() {
    let fixture = MemoryService::with_demo();
    let opened = fixture.open("task").await;
    fixture.run("Project(\"OPS\")").await;
    let key = Key::new(&local_caller().tenant, Table::LogicalSession, opened.session.to_string());
    fixture.store.commit(Batch::default().delete(key, Expect::Any)).await.unwrap();
    fixture.advance_days(31);
    fixture.collect().await;
    assert_eq!(
        fixture.tables_with_rows(),
        ["connection", "intent"].into(),
        "only rows that find the session again are left"
    );
    assert_eq!(fixture.blobs.digests().len(), 0);
    let reopened = fixture.open("task").await;
    assert_eq!(reopened.session, opened.session);
}

#[tokio::test]
async fn an_unused_transport_expires() {
    let fixture = MemoryService::with_demo();
    let caller = local_caller();
    fixture.service.store_transport(&caller, "old", b"{\"a\":1}".to_vec()).await.unwrap();
    assert_eq!(fixture.service.transport(&caller, "old").await.unwrap().unwrap(), b"{\"a\":1}");
    fixture.advance_days(20);
    fixture.service.store_transport(&caller, "new", b"{}".to_vec()).await.unwrap();
    fixture.advance_days(20);
    assert_eq!(fixture.collect().await.rows, [("transport", 1)].into());
    assert_eq!(fixture.service.transport(&caller, "old").await.unwrap(), None);
    assert!(fixture.service.transport(&caller, "new").await.unwrap().is_some());
}

#[tokio::test]
async fn a_large_result_is_a_blob_and_expires_with_its_run() {
    let fixture = MemoryService::with_demo_and_limits(Limits { row_bytes: 0, ..Limits::default() });
    fixture.open("task").await;
    let before = fixture.blobs.digests().len();
    fixture.run("Project(\"OPS\")").await;
    assert_eq!(fixture.blobs.digests().len(), before + 1);
    fixture.advance_days(8);
    let report = fixture.collect().await;
    assert_eq!((report.blobs, fixture.blobs.digests().len()), (1, before), "{report:?}");
}

#[tokio::test]
async fn a_small_damaged_result_is_reported() {
    let fixture = MemoryService::with_demo();
    fixture.open("task").await;
    fixture.run("Project(\"OPS\")").await;
    let (key, _) = fixture.store.rows().into_iter().find(|(key, _)| key.table.name() == "artifact").unwrap();
    fixture
        .store
        .commit(ports::store::Batch::default().put(key, b"{}".to_vec(), ports::store::Expect::Any))
        .await
        .unwrap();
    let error = fixture.service.artifact(&local_caller(), "plasm://session/s0/r/1").await.unwrap_err();
    assert_eq!(error.code(), "lost_artifact");
}

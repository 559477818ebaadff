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

use crate::harness::{self, Harness};
use crate::memory_service::MemoryService;

const DAY: u64 = 24 * 60 * 60;

impl MemoryService {
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        let world = Self::of(Arc::new(Registry::new([harness::catalog()]).unwrap()), limits);
        world.upstream.add(Rule::get("/api/projects/OPS").json(200, json!({"key": "OPS", "name": "Operations"})));
        world
    }

    fn days_pass(&self, days: u64) {
        self.clock.advance(Duration::from_secs(days * DAY));
        self.blobs.age(Duration::from_secs(days * DAY));
    }

    async fn open(&self, intent: &str) -> session::OpenedSession {
        let seeds = vec![SeedRequest::all("demo", "Project"), SeedRequest::all("demo", "Comment")];
        self.service.open(&me(), &OpenRequest::new(intent, seeds)).await.unwrap()
    }

    async fn run(&self, program: &str) -> Arc<session::RunResult> {
        let request = RunRequest { session: "s0".into(), program: Some(program.to_owned()), ..RunRequest::default() };
        match self.service.run(&me(), &request).await.unwrap() {
            RunAnswer::Finished(ran) => ran,
            RunAnswer::Running(_) => panic!("it takes too long"),
        }
    }

    /// A dry run followed by a real pass, which must delete what the dry run reported.
    async fn collect(&self) -> session::CollectionReport {
        let before = self.store.rows();
        let said = self
            .service
            .collect_garbage(CollectionOptions { dry_run: true, ..CollectionOptions::default() })
            .await
            .unwrap();
        assert_eq!(self.store.rows(), before, "a dry pass changes nothing");
        let done = self.service.collect_garbage(CollectionOptions::default()).await.unwrap();
        assert_eq!((&said.rows, said.blobs, said.blob_bytes), (&done.rows, done.blobs, done.blob_bytes));
        done
    }

    fn tables(&self) -> BTreeSet<&'static str> {
        self.store.rows().iter().map(|(key, _)| key.table.name()).collect()
    }
}

fn me() -> Caller {
    Caller::local()
}

fn plan(program: &str) -> PlanRequest {
    PlanRequest { session: "s0".to_owned(), program: program.to_owned() }
}

#[tokio::test]
async fn an_execute_session_expires_after_thirty_idle_days_and_the_error_says_so() {
    let world = MemoryService::new();
    let first = world.open("task").await;
    world.days_pass(29);
    assert_eq!(world.collect().await.rows.len(), 0);
    world.service.plan(&me(), &plan("Project")).await.unwrap();
    world.days_pass(29);
    world.collect().await;
    assert!(matches!(world.open("task").await.taught, TaughtTable::Unchanged { .. }), "what is used stays");
    world.days_pass(31);
    let gone = world.collect().await;
    assert_eq!(gone.rows.get("execute_session"), Some(&1), "{gone:?}");
    assert!(gone.blobs >= 1, "its catalog is nobody's any more: {gone:?}");
    assert_eq!(world.service.plan(&me(), &plan("Project")).await.unwrap_err().code(), "expired_session");
    let again = world.open("task").await;
    assert_eq!((again.session, again.slot, again.reused), (first.session, first.slot, false));
    assert_eq!(again.continuity.previous_execute, Some(first.execute));
    assert!(again.continuity.new_symbol_space && !again.continuity.refreshed);
    world.service.plan(&me(), &plan("Project")).await.unwrap();
}

#[tokio::test]
async fn results_plans_and_handles_expire_after_seven_days_unless_pinned() {
    let world = MemoryService::new();
    world.open("task").await;
    world.upstream.add(Rule::get("/api/projects").json(200, json!({"items": [{"key": "OPS"}], "next": "2"})));
    let (first, second) = (world.run("Project(\"OPS\")").await, world.run("Project(\"OPS\")").await);
    world.service.plan(&me(), &plan("Project")).await.unwrap();
    world.service.pin_artifact(&me(), "plasm://session/s0/r/2", true).await.unwrap();
    let count = world.blobs.digests().len();
    world.days_pass(6);
    assert_eq!(world.collect().await.rows.len(), 0);
    world.days_pass(2);
    let gone = world.collect().await;
    assert_eq!(gone.rows, [("artifact", 1), ("plan", 1), ("run", 1), ("run_id", 1)].into(), "{gone:?}");
    assert_eq!((gone.blobs, world.blobs.digests().len()), (0, count), "the results were small");
    for uri in ["plasm://session/s0/r/1", "plasm://session/s0/p/1"] {
        let error = world.service.resource(&me(), uri).await.unwrap_err();
        assert_eq!(error.code(), "expired_handle");
        assert!(error.to_string().contains("7 days") && error.to_string().contains("again"), "{error}");
    }
    assert_eq!(world.service.resource(&me(), "plasm://session/s0/r/3").await.unwrap_err().code(), "no_artifact");
    assert_eq!(world.service.artifact(&me(), "plasm://session/s0/r/2").await.unwrap().run, second.run);
    assert_ne!(first.run, second.run);
    assert_eq!(world.run("Project(\"OPS\")").await.number, 3, "numbers are not used again");
    world.service.pin_artifact(&me(), "plasm://session/s0/r/2", false).await.unwrap();
    assert_eq!(world.collect().await.rows.get("run"), Some(&1));
}

#[tokio::test]
async fn a_claim_outlives_the_result_so_that_nothing_runs_twice() {
    let house = Harness::working();
    let service = house.service();
    harness::open(&service).await;
    let error = service.run(&harness::me(), &harness::program_of(harness::THREE)).await.unwrap_err();
    assert_eq!(error.code(), "review_needed");
    let commit = RunRequest { session: "s0".into(), plan_commit_ref: Some("pc0".into()), ..RunRequest::default() };
    harness::finished(service.run(&harness::me(), &commit).await);
    let sent = house.sent().len();
    house.clock.advance(Duration::from_secs(8 * DAY));
    let gone = service.collect_garbage(CollectionOptions::default()).await.unwrap();
    assert_eq!(
        (gone.rows.get("run"), gone.rows.get("receipt"), gone.rows.get("plan_commit")),
        (Some(&1), Some(&3), None)
    );
    assert_eq!(service.run(&harness::me(), &commit).await.unwrap_err().code(), "expired_handle");
    house.clock.advance(Duration::from_secs(90 * DAY));
    let gone = service.collect_garbage(CollectionOptions::default()).await.unwrap();
    assert_eq!(gone.rows.get("plan_commit"), Some(&1));
    harness::open(&service).await;
    assert_eq!(service.run(&harness::me(), &commit).await.unwrap_err().code(), "expired_commit");
    assert_eq!(house.sent().len(), sent, "nothing was done again");
}

#[tokio::test]
async fn an_unused_commit_is_refused_as_expired_after_its_row_was_deleted() {
    let world = MemoryService::new();
    world.open("task").await;
    let key = Key::new(&me().tenant, Table::LogicalSession, world.open("task").await.session.to_string());
    let row = world.store.get(&key).await.unwrap().unwrap();
    let mut logical: serde_json::Value = serde_json::from_slice(&row.value).unwrap();
    logical["commits"] = json!(3);
    world.store.commit(Batch::default().put(key, logical.to_string().into_bytes(), Expect::Any)).await.unwrap();
    let run = async |commit: &str| {
        let commit = Some(commit.to_owned());
        let request = RunRequest { session: "s0".into(), plan_commit_ref: commit, ..RunRequest::default() };
        world.service.run(&me(), &request).await.unwrap_err().code()
    };
    assert_eq!(run("pc2").await, "expired_commit");
    assert_eq!(run("pc3").await, "no_commit");
}

#[tokio::test]
async fn an_unreferenced_blob_is_deleted_only_after_the_grace_period() {
    let world = MemoryService::new();
    world.open("task").await;
    let orphan = world.blobs.put(b"nobody's").await.unwrap();
    assert_eq!(world.collect().await.blobs, 0, "its row may be on its way");
    world.days_pass(2);
    world.blobs.put(b"nobody's").await.unwrap();
    assert_eq!(world.collect().await.blobs, 0, "put again, it is young again");
    world.days_pass(2);
    let gone = world.collect().await;
    assert_eq!((gone.blobs, gone.blob_bytes, gone.kept_blobs), (1, 8, 1));
    assert!(!world.blobs.digests().contains(&orphan));
    world.service.plan(&me(), &plan("Project")).await.unwrap();
}

#[tokio::test]
async fn a_digest_in_any_row_of_any_tenant_keeps_its_blob() {
    let world = MemoryService::new();
    let other = TenantId::parse("other").unwrap();
    let mut kept = Vec::new();
    for (n, table) in Table::ALL.into_iter().enumerate() {
        let digest = world.blobs.put(format!("blob {n}").as_bytes()).await.unwrap();
        let value = json!({"unknown": {"to": [format!("x:{digest}")]}}).to_string().into_bytes();
        let id = format!("anything/{n}");
        world.store.commit(Batch::default().put(Key::new(&other, table, id), value, Expect::Any)).await.unwrap();
        kept.push(digest);
    }
    world.days_pass(3);
    assert_eq!(world.collect().await.blobs, 0);
    assert_eq!(world.blobs.digests().into_iter().collect::<BTreeSet<Digest>>(), kept.into_iter().collect());
}

#[tokio::test]
async fn removing_a_session_deletes_all_of_its_rows_and_no_others() {
    let world = MemoryService::new();
    world.open("task").await;
    world.run("Project(\"OPS\")").await;
    world.service.plan(&me(), &plan("Project")).await.unwrap();
    let kept = world.open("another").await;
    let listed = world.service.list_sessions(&me()).await.unwrap();
    assert_eq!(listed.len(), 2);
    let other = Caller { tenant: TenantId::parse("other").unwrap(), ..me() };
    assert_eq!(world.service.remove_session(&other, "task").await.unwrap_err().code(), "bad_ref");
    world.service.remove_session(&me(), "task").await.unwrap();
    assert_eq!(world.tables(), ["connection", "execute_session", "intent", "logical_session"].into());
    assert_eq!(world.service.plan(&me(), &plan("Project")).await.unwrap_err().code(), "no_session");
    assert_eq!(world.service.session_view(&me(), "another").await.unwrap().logical_session_id, kept.session);
    let again = world.open("task").await;
    assert!(again.continuity.new_symbol_space && again.continuity.previous_execute.is_none(), "a new session");
    assert_eq!(again.slot.to_string(), "s2");
}

#[tokio::test]
async fn rows_left_by_a_crash_during_removal_are_collected() {
    let world = MemoryService::new();
    let opened = world.open("task").await;
    world.run("Project(\"OPS\")").await;
    let key = Key::new(&me().tenant, Table::LogicalSession, opened.session.to_string());
    world.store.commit(Batch::default().delete(key, Expect::Any)).await.unwrap();
    world.days_pass(31);
    world.collect().await;
    assert_eq!(world.tables(), ["connection", "intent"].into(), "only what leads to it");
    assert_eq!(world.blobs.digests().len(), 0);
    let again = world.open("task").await;
    assert_eq!(again.session, opened.session);
}

#[tokio::test]
async fn an_unused_transport_expires() {
    let world = MemoryService::new();
    let tenant = me().tenant;
    world.service.store_transport(&tenant, "old", b"{\"a\":1}".to_vec()).await.unwrap();
    assert_eq!(world.service.transport(&tenant, "old").await.unwrap().unwrap(), b"{\"a\":1}");
    world.days_pass(20);
    world.service.store_transport(&tenant, "new", b"{}".to_vec()).await.unwrap();
    world.days_pass(20);
    assert_eq!(world.collect().await.rows, [("transport", 1)].into());
    assert_eq!(world.service.transport(&tenant, "old").await.unwrap(), None);
    assert!(world.service.transport(&tenant, "new").await.unwrap().is_some());
}

#[tokio::test]
async fn a_large_result_is_a_blob_and_expires_with_its_run() {
    let world = MemoryService::with(Limits { row_bytes: 0, ..Limits::default() });
    world.open("task").await;
    let before = world.blobs.digests().len();
    world.run("Project(\"OPS\")").await;
    assert_eq!(world.blobs.digests().len(), before + 1);
    world.days_pass(8);
    let gone = world.collect().await;
    assert_eq!((gone.blobs, world.blobs.digests().len()), (1, before), "{gone:?}");
}

#[tokio::test]
async fn a_small_damaged_result_is_reported() {
    let world = MemoryService::new();
    world.open("task").await;
    world.run("Project(\"OPS\")").await;
    let (key, _) = world.store.rows().into_iter().find(|(key, _)| key.table.name() == "artifact").unwrap();
    world
        .store
        .commit(ports::store::Batch::default().put(key, b"{}".to_vec(), ports::store::Expect::Any))
        .await
        .unwrap();
    let error = world.service.artifact(&me(), "plasm://session/s0/r/1").await.unwrap_err();
    assert_eq!(error.code(), "lost_artifact");
}

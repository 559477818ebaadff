//! Sessions on in-memory ports: idempotent opens, races, faults, tenants, stale bindings, pinned catalogs.

use std::collections::BTreeSet;
use std::sync::Arc;

use access::{Caller, Identity};
use base::{Limits, Principal, TenantId, Timestamp};
use catalog::Registry;
use ports::Store;
use ports::store::{Batch, Expect, Key, Range, Table};
use serde_json::json;
use session::{Error, OpenRequest, PlanRequest, Ports, RunRequest, SeedRequest, Service, TaughtTable};
use testkit::faults::{Fault, Faults, FaultyBlobs, FaultyStore, Operation};
use testkit::memory::{CountingEntropy, ManualClock, MemoryBlobs, MemoryStore};
use testkit::upstream::{Rule, ScriptedUpstream};

use crate::harness::taught_table;

/// A process on in-memory storage that can outlive it.
struct TestProcess {
    service: Arc<Service>,
    store: Arc<MemoryStore>,
    blobs: Arc<MemoryBlobs>,
    upstream: Arc<ScriptedUpstream>,
    /// The failures of this process's storage.
    faults: Faults,
}

fn demo_catalog(version: u32) -> Arc<catalog::Catalog> {
    let text = include_str!("../../../../catalogs/demo.yaml").replace("version: 1", &format!("version: {version}"));
    Arc::new(catalog::read("demo.yaml", &text).unwrap())
}

fn start_process() -> TestProcess {
    start_process_on(Arc::new(MemoryStore::new()), Arc::new(MemoryBlobs::new()), demo_catalog(1))
}

/// Starts a process on the storage of an earlier one.
fn start_process_on(store: Arc<MemoryStore>, blobs: Arc<MemoryBlobs>, catalog: Arc<catalog::Catalog>) -> TestProcess {
    let faults = Faults::new();
    let upstream = Arc::new(ScriptedUpstream::new());
    let ports = Ports {
        store: Arc::new(FaultyStore::new(store.clone(), &faults)),
        blobs: Arc::new(FaultyBlobs::new(blobs.clone(), &faults)),
        upstream: upstream.clone(),
        clock: Arc::new(ManualClock::at(Timestamp(0))),
        entropy: Arc::new(CountingEntropy::new()),
    };
    // Results are blobs here, so that a blob can be damaged.
    let limits = Limits { row_bytes: 0, ..Limits::default() };
    let service = Arc::new(Service::new(ports, Registry::new([catalog]).unwrap(), limits));
    TestProcess { service, store, blobs, upstream, faults }
}

fn caller(tenant: &str, connection: &str) -> Caller {
    let identity = Identity { tenant: TenantId::parse(tenant).unwrap(), principal: Principal::local() };
    identity.caller(Some(connection.to_owned()))
}

fn open_request(intent: &str, entities: &[&str]) -> OpenRequest {
    let seeds = entities.iter().map(|e| SeedRequest::all("demo", e)).collect();
    OpenRequest::new(intent, seeds)
}

fn run_request(program: &str) -> RunRequest {
    RunRequest { session: "s0".to_owned(), program: Some(program.to_owned()), ..RunRequest::default() }
}

fn project_rule() -> Rule {
    Rule::get("/api/projects/OPS").json(200, json!({"key": "OPS", "name": "Operations"}))
}

/// A process caches the slots of a caller for a second.
#[tokio::test]
async fn cached_slots_are_separate_by_tenant_and_include_new_ones_at_once() {
    let first_process = start_process();
    let other = start_process_on(first_process.store.clone(), first_process.blobs.clone(), demo_catalog(1));
    let caller_of = |tenant: &str| {
        Identity { tenant: TenantId::parse(tenant).unwrap(), principal: Principal::local() }.caller(None)
    };
    let acme = caller_of("acme");
    let globex = caller_of("globex");
    // Returns whether the slot's session was taught the entity of the program, which tells the sessions apart.
    let plan_in_slot = async |process: &TestProcess, caller: &Caller, slot: &str, program: &str| {
        let request = PlanRequest { session: slot.to_owned(), program: program.to_owned() };
        process.service.plan(caller, &request).await.map(|_| ()).map_err(|error| error.code())
    };
    first_process.service.open(&acme, &open_request("first", &["Project"])).await.unwrap();
    for _ in 0..3 {
        let before = first_process.faults.calls(Operation::Get);
        assert_eq!(plan_in_slot(&first_process, &acme, "s0", "Project").await, Ok(()));
        assert!(first_process.faults.calls(Operation::Get) > before, "only the slots are cached");
        assert_eq!(plan_in_slot(&first_process, &globex, "s0", "Project").await, Err("unknown_slot"));
        assert_eq!(plan_in_slot(&first_process, &acme, "s1", "Person").await, Err("unknown_slot"));
    }
    assert_eq!(other.service.open(&acme, &open_request("second", &["Person"])).await.unwrap().slot.to_string(), "s1");
    assert_eq!(plan_in_slot(&first_process, &acme, "s1", "Person").await, Ok(()));
    other.service.open(&globex, &open_request("third", &["Person"])).await.unwrap();
    assert_eq!(plan_in_slot(&first_process, &globex, "s0", "Person").await, Ok(()));
    assert_eq!(plan_in_slot(&first_process, &acme, "s0", "Project").await, Ok(()));
    let reads_for_plan = async |slot: &str| {
        let before = first_process.faults.calls(Operation::Get);
        plan_in_slot(&first_process, &acme, slot, "Project").await.unwrap();
        first_process.faults.calls(Operation::Get) - before
    };
    let id = first_process.service.open(&acme, &open_request("first", &["Project"])).await.unwrap().session.to_string();
    assert!(reads_for_plan("s0").await < reads_for_plan(&id).await);
}

#[tokio::test]
async fn the_same_intent_is_the_same_session_from_any_connection() {
    let process = start_process();
    let first = process.service.open(&caller("local", "a"), &open_request("task", &["Ticket"])).await.unwrap();
    assert!(first.continuity.new_symbol_space && taught_table(&first).contains("e1\tTicket"));
    let reopened = process.service.open(&caller("local", "b"), &open_request("task", &["Ticket"])).await.unwrap();
    assert_eq!(reopened.session, first.session);
    assert_eq!(reopened.taught, TaughtTable::Unchanged { entities: 1 });
    assert_eq!((reopened.revision, reopened.continuity.new_symbol_space), (1, false));
    let other = process.service.open(&caller("local", "a"), &open_request("another task", &["Ticket"])).await.unwrap();
    assert_ne!(other.session, first.session);
    assert_eq!((first.slot.to_string(), other.slot.to_string()), ("s0".into(), "s1".into()));
}

#[tokio::test]
async fn an_expansion_teaches_only_new_entities_and_a_replay_teaches_all() {
    let process = start_process();
    let user = caller("local", "a");
    process.service.open(&user, &open_request("task", &["Ticket"])).await.unwrap();
    let more = process.service.open(&user, &open_request("task", &["Person", "Ticket"])).await.unwrap();
    assert!(!taught_table(&more).contains("# Write a program") && taught_table(&more).contains("e2\tPerson"));
    assert_eq!(more.revision, 2);
    let replayed = OpenRequest { replay: true, ..open_request("task", &["Ticket"]) };
    let all = process.service.open(&user, &replayed).await.unwrap();
    assert!(
        taught_table(&all).contains("# Write a program") && taught_table(&all).contains("## Expanded capabilities")
    );
    assert_eq!(all.revision, 2, "a replay teaches nothing new");
}

#[tokio::test]
async fn an_unknown_seed_changes_nothing() {
    let process = start_process();
    let user = caller("local", "a");
    for bad in [open_request("task", &["Ticket", "Tikcet"]), open_request("", &["Ticket"]), open_request("task", &[])] {
        process.service.open(&user, &bad).await.unwrap_err();
    }
    let foreign = SeedRequest::all("nope", "Ticket");
    let request = OpenRequest { seeds: vec![foreign], ..open_request("task", &["Ticket"]) };
    assert_eq!(process.service.open(&user, &request).await.unwrap_err().code(), "unknown_seed");
    assert_eq!(process.store.rows(), vec![]);
}

#[tokio::test]
async fn concurrent_opens_of_one_session_all_take_effect() {
    let process = start_process();
    let entities = ["Ticket", "Person", "Project", "Comment"];
    let opens = (0..32).map(|n| {
        let service = process.service.clone();
        tokio::spawn(async move {
            let user = caller("local", &format!("c{}", n % 8));
            service.open(&user, &open_request("task", &[entities[n % 4]])).await.unwrap()
        })
    });
    let mut sessions = BTreeSet::new();
    for opened in opens.collect::<Vec<_>>() {
        sessions.insert(opened.await.unwrap().session);
    }
    assert_eq!(sessions.len(), 1, "one intent, one session");
    let replayed = OpenRequest { replay: true, ..open_request("task", &["Ticket"]) };
    let all = process.service.open(&caller("local", "c0"), &replayed).await.unwrap();
    assert_eq!(all.revision, 4, "each entity was taught by exactly one call");
    for symbol in ["e1", "e2", "e3", "e4"] {
        let lines = taught_table(&all)
            .lines()
            .filter(|l| l.starts_with(&format!("{symbol}\t")) || l.starts_with(&format!("{symbol}{{")))
            .count();
        assert!(lines >= 1, "{symbol} is taught\n{}", taught_table(&all));
    }
}

#[tokio::test]
async fn tenants_do_not_see_each_other() {
    let process = start_process();
    let acme = caller("acme", "a");
    let other = caller("other", "a");
    let acme_session = process.service.open(&acme, &open_request("task", &["Project"])).await.unwrap();
    let other_session = process.service.open(&other, &open_request("task", &["Project"])).await.unwrap();
    assert_ne!(acme_session.session, other_session.session);
    process.upstream.add(project_rule());
    process.service.run(&acme, &run_request("Project(\"OPS\")")).await.unwrap();
    let plan = PlanRequest { session: acme_session.session.to_string(), program: "Project".to_owned() };
    assert_eq!(process.service.plan(&other, &plan).await.unwrap_err().code(), "no_session");
    let uri = format!("plasm://session/{}/r/1", acme_session.session);
    assert_eq!(process.service.artifact(&other, &uri).await.unwrap_err().code(), "no_session");
    assert_eq!(process.service.artifact(&other, "plasm://session/s0/r/1").await.unwrap_err().code(), "no_artifact");
    process.service.artifact(&acme, &uri).await.unwrap();
}

#[tokio::test]
async fn an_invalid_reference_gets_an_error_that_says_what_to_do() {
    let process = start_process();
    let user = caller("local", "a");
    let plan = async |session: &str| {
        let request = PlanRequest { session: session.to_owned(), program: "Project".to_owned() };
        process.service.plan(&user, &request).await.unwrap_err().code()
    };
    assert_eq!(plan("s0").await, "unknown_slot");
    assert_eq!(plan("../../x").await, "bad_ref");
    assert_eq!(plan("").await, "bad_ref");
    assert_eq!(plan("00000000-0000-4000-8000-000000000000").await, "no_session");
    for bad in ["", "plasm://session/s0/r/x", "plasm://session/s0", "file:///etc/passwd", "plasm://session/s0/r/1"] {
        process.service.artifact(&user, bad).await.unwrap_err();
    }
}

#[tokio::test]
async fn a_lost_execute_session_is_replaced_and_reported() {
    let process = start_process();
    let user = caller("local", "a");
    let first = process.service.open(&user, &open_request("task", &["Ticket"])).await.unwrap();
    let range = Range {
        tenant: user.tenant.clone(),
        table: Table::ExecuteSession,
        prefix: String::new(),
        after: None,
        limit: 9,
    };
    for (id, _) in process.store.scan(&range).await.unwrap() {
        let key = Key::new(&user.tenant, Table::ExecuteSession, id);
        process.store.commit(Batch::default().delete(key, Expect::Any)).await.unwrap();
    }
    let plan = PlanRequest { session: "s0".to_owned(), program: "Ticket".to_owned() };
    assert_eq!(process.service.plan(&user, &plan).await.unwrap_err().code(), "expired_session");
    let reopened = process.service.open(&user, &open_request("task", &["Person"])).await.unwrap();
    assert_eq!((reopened.session, reopened.slot), (first.session, first.slot));
    assert!(reopened.continuity.new_symbol_space && reopened.continuity.previous_execute.is_some());
    assert!(taught_table(&reopened).contains("e1\tPerson"), "symbols start again");
}

#[tokio::test]
async fn a_session_keeps_the_catalog_it_pinned() {
    let old = start_process();
    let user = caller("local", "a");
    old.service.open(&user, &open_request("task", &["Project"])).await.unwrap();
    let new = start_process_on(old.store.clone(), old.blobs.clone(), demo_catalog(2));
    let opened = new.service.open(&user, &open_request("task", &["Project"])).await.unwrap();
    assert_eq!(opened.taught, TaughtTable::Unchanged { entities: 1 });
    let plan = PlanRequest { session: "s0".to_owned(), program: "Project".to_owned() };
    let planned = new.service.plan(&user, &plan).await.unwrap();
    assert_eq!(planned.plan.catalogs[0].1, demo_catalog(1).digest(), "a program uses the pinned version");
    let fresh = new.service.open(&user, &open_request("a new task", &["Project"])).await.unwrap();
    assert_ne!(fresh.session, opened.session);
    new.blobs.damage(&demo_catalog(1).digest());
    let restarted = start_process_on(new.store.clone(), new.blobs.clone(), demo_catalog(2));
    assert!(
        restarted.service.plan(&user, &plan).await.unwrap_err().is_fault(),
        "a damaged pin is an error, not another catalog"
    );
}

#[tokio::test]
async fn every_fault_is_an_error_and_leaves_no_partial_state() {
    for operation in [Operation::Get, Operation::Commit, Operation::PutBlob] {
        for fault in [Fault::Unavailable, Fault::Full, Fault::LostAfter] {
            for nth in 1..=6 {
                let process = start_process();
                let user = caller("local", "a");
                process.faults.fail(operation, nth, fault);
                let first = process.service.open(&user, &open_request("task", &["Ticket"])).await;
                process.faults.heal();
                let reopened = process.service.open(&user, &open_request("task", &["Ticket"])).await.unwrap();
                let context = format!("{operation:?} {fault:?} {nth}");
                assert_eq!(reopened.slot.to_string(), "s0", "{context}");
                assert_eq!(reopened.revision, 1, "{context}: the wave is stored once");
                if first.is_ok() {
                    assert_eq!(
                        reopened.taught,
                        TaughtTable::Unchanged { entities: 1 },
                        "{context}: an answered wave is stored"
                    );
                }
                process
                    .service
                    .plan(&user, &PlanRequest { session: "s0".into(), program: "Ticket".into() })
                    .await
                    .unwrap();
            }
        }
    }
}

#[tokio::test]
async fn a_run_is_answered_only_when_its_artifact_is_stored() {
    for (operation, fault) in [
        (Operation::PutBlob, Fault::Full),
        (Operation::Commit, Fault::Unavailable),
        (Operation::Commit, Fault::Conflict),
    ] {
        let process = start_process();
        let user = caller("local", "a");
        process.upstream.add(project_rule());
        process.service.open(&user, &open_request("task", &["Project"])).await.unwrap();
        match fault {
            Fault::Conflict => process.faults.fail(operation, 1, fault),
            _ => process.faults.fail_always(operation, fault),
        }
        match process.service.run(&user, &run_request("Project(\"OPS\")")).await {
            // A lost race is retried and succeeds.
            Ok(result) => assert_eq!((fault, result.finished().unwrap().number), (Fault::Conflict, 1)),
            Err(error) => assert!(error.is_fault() && fault != Fault::Conflict, "{error}"),
        }
        process.faults.heal();
        let result = process.service.run(&user, &run_request("Project(\"OPS\")")).await.unwrap().finished().unwrap();
        let artifact =
            process.service.artifact(&user, &format!("plasm://session/s0/r/{}", result.number)).await.unwrap();
        assert_eq!((artifact.run, artifact.returns[0].rows.len()), (result.run, 1));
    }
}

#[tokio::test]
async fn concurrent_runs_get_distinct_numbers() {
    let process = start_process();
    let user = caller("local", "a");
    process.upstream.add(project_rule());
    process.service.open(&user, &open_request("task", &["Project"])).await.unwrap();
    let runs: Vec<_> = (0..24)
        .map(|_| {
            let service = process.service.clone();
            let user = user.clone();
            tokio::spawn(async move {
                service.run(&user, &run_request("Project(\"OPS\")")).await.unwrap().finished().unwrap().number
            })
        })
        .collect();
    let mut numbers = BTreeSet::new();
    for run in runs {
        numbers.insert(run.await.unwrap());
    }
    assert_eq!(numbers, (1..=24).collect());
}

#[tokio::test]
async fn a_damaged_artifact_is_reported() {
    let process = start_process();
    let user = caller("local", "a");
    process.upstream.add(project_rule());
    process.service.open(&user, &open_request("task", &["Project"])).await.unwrap();
    process.service.run(&user, &run_request("Project(\"OPS\")")).await.unwrap();
    for digest in process.blobs.digests() {
        if digest != demo_catalog(1).digest() {
            process.blobs.damage(&digest);
        }
    }
    let error = process.service.artifact(&user, "plasm://session/s0/r/1").await.unwrap_err();
    assert!(matches!(error, Error::LostArtifact(_)), "{error}");
}

#[tokio::test]
async fn a_session_without_a_transport_keeps_its_slots_by_principal() {
    let process = start_process();
    let principal = || Caller::local();
    process.service.open(&principal(), &open_request("task", &["Project"])).await.unwrap();
    let restarted = start_process_on(process.store.clone(), process.blobs.clone(), demo_catalog(1));
    let plan = PlanRequest { session: "s0".to_owned(), program: "Project".to_owned() };
    restarted.service.plan(&principal(), &plan).await.unwrap();
}

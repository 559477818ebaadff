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

use crate::memory_service::table;

struct MemoryService {
    service: Arc<Service>,
    store: Arc<MemoryStore>,
    blobs: Arc<MemoryBlobs>,
    upstream: Arc<ScriptedUpstream>,
    faults: Faults,
}

fn demo(version: u32) -> Arc<catalog::Catalog> {
    let text = include_str!("../../../../catalogs/demo.yaml").replace("version: 1", &format!("version: {version}"));
    Arc::new(catalog::read("demo.yaml", &text).unwrap())
}

fn world() -> MemoryService {
    world_on(Arc::new(MemoryStore::new()), Arc::new(MemoryBlobs::new()), demo(1))
}

/// A process that starts on the storage of an earlier one.
fn world_on(store: Arc<MemoryStore>, blobs: Arc<MemoryBlobs>, catalog: Arc<catalog::Catalog>) -> MemoryService {
    let (faults, upstream) = (Faults::new(), Arc::new(ScriptedUpstream::new()));
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
    MemoryService { service, store, blobs, upstream, faults }
}

fn caller(tenant: &str, connection: &str) -> Caller {
    let identity = Identity { tenant: TenantId::parse(tenant).unwrap(), principal: Principal::local() };
    identity.caller(Some(connection.to_owned()))
}

fn open(intent: &str, entities: &[&str]) -> OpenRequest {
    let seeds = entities.iter().map(|e| SeedRequest::all("demo", e)).collect();
    OpenRequest::new(intent, seeds)
}

fn run(program: &str) -> RunRequest {
    RunRequest { session: "s0".to_owned(), program: Some(program.to_owned()), ..RunRequest::default() }
}

fn ops() -> Rule {
    Rule::get("/api/projects/OPS").json(200, json!({"key": "OPS", "name": "Operations"}))
}

/// Slots are cached for a second.
#[tokio::test]
async fn cached_slots_are_separate_by_tenant_and_include_new_ones_at_once() {
    let one = world();
    let other = world_on(one.store.clone(), one.blobs.clone(), demo(1));
    let of = |tenant: &str| {
        Identity { tenant: TenantId::parse(tenant).unwrap(), principal: Principal::local() }.caller(None)
    };
    let (acme, globex) = (of("acme"), of("globex"));
    // The taught tables distinguish the sessions.
    let knows = async |world: &MemoryService, caller: &Caller, slot: &str, program: &str| {
        let request = PlanRequest { session: slot.to_owned(), program: program.to_owned() };
        world.service.plan(caller, &request).await.map(|_| ()).map_err(|error| error.code())
    };
    one.service.open(&acme, &open("first", &["Project"])).await.unwrap();
    for _ in 0..3 {
        let before = one.faults.calls(Operation::Get);
        assert_eq!(knows(&one, &acme, "s0", "Project").await, Ok(()));
        assert!(one.faults.calls(Operation::Get) > before, "only the slots are remembered");
        assert_eq!(knows(&one, &globex, "s0", "Project").await, Err("unknown_slot"));
        assert_eq!(knows(&one, &acme, "s1", "Person").await, Err("unknown_slot"));
    }
    assert_eq!(other.service.open(&acme, &open("second", &["Person"])).await.unwrap().slot.to_string(), "s1");
    assert_eq!(knows(&one, &acme, "s1", "Person").await, Ok(()));
    other.service.open(&globex, &open("third", &["Person"])).await.unwrap();
    assert_eq!(knows(&one, &globex, "s0", "Person").await, Ok(()));
    assert_eq!(knows(&one, &acme, "s0", "Project").await, Ok(()));
    let remembered = async |slot: &str| {
        let before = one.faults.calls(Operation::Get);
        knows(&one, &acme, slot, "Project").await.unwrap();
        one.faults.calls(Operation::Get) - before
    };
    let id = one.service.open(&acme, &open("first", &["Project"])).await.unwrap().session.to_string();
    assert!(remembered("s0").await < remembered(&id).await);
}

#[tokio::test]
async fn the_same_intent_is_the_same_session_from_any_connection() {
    let world = world();
    let first = world.service.open(&caller("local", "a"), &open("task", &["Ticket"])).await.unwrap();
    assert!(first.continuity.new_symbol_space && table(&first).contains("e1\tTicket"));
    let again = world.service.open(&caller("local", "b"), &open("task", &["Ticket"])).await.unwrap();
    assert_eq!(again.session, first.session);
    assert_eq!(again.taught, TaughtTable::Unchanged { entities: 1 });
    assert_eq!((again.revision, again.continuity.new_symbol_space), (1, false));
    let other = world.service.open(&caller("local", "a"), &open("another task", &["Ticket"])).await.unwrap();
    assert_ne!(other.session, first.session);
    assert_eq!((first.slot.to_string(), other.slot.to_string()), ("s0".into(), "s1".into()));
}

#[tokio::test]
async fn an_expansion_teaches_only_what_is_new_and_replay_all() {
    let world = world();
    let me = caller("local", "a");
    world.service.open(&me, &open("task", &["Ticket"])).await.unwrap();
    let more = world.service.open(&me, &open("task", &["Person", "Ticket"])).await.unwrap();
    assert!(!table(&more).contains("# Write a program") && table(&more).contains("e2\tPerson"));
    assert_eq!(more.revision, 2);
    let replayed = OpenRequest { replay: true, ..open("task", &["Ticket"]) };
    let all = world.service.open(&me, &replayed).await.unwrap();
    assert!(table(&all).contains("# Write a program") && table(&all).contains("## Expanded capabilities"));
    assert_eq!(all.revision, 2, "a replay teaches nothing new");
}

#[tokio::test]
async fn an_unknown_seed_changes_nothing() {
    let world = world();
    let me = caller("local", "a");
    for bad in [open("task", &["Ticket", "Tikcet"]), open("", &["Ticket"]), open("task", &[])] {
        world.service.open(&me, &bad).await.unwrap_err();
    }
    let foreign = SeedRequest::all("nope", "Ticket");
    let request = OpenRequest { seeds: vec![foreign], ..open("task", &["Ticket"]) };
    assert_eq!(world.service.open(&me, &request).await.unwrap_err().code(), "unknown_seed");
    assert_eq!(world.store.rows(), vec![]);
}

#[tokio::test]
async fn concurrent_opens_of_one_session_all_take_effect() {
    let world = world();
    let entities = ["Ticket", "Person", "Project", "Comment"];
    let opens = (0..32).map(|n| {
        let service = world.service.clone();
        tokio::spawn(async move {
            let me = caller("local", &format!("c{}", n % 8));
            service.open(&me, &open("task", &[entities[n % 4]])).await.unwrap()
        })
    });
    let mut sessions = BTreeSet::new();
    for opened in opens.collect::<Vec<_>>() {
        sessions.insert(opened.await.unwrap().session);
    }
    assert_eq!(sessions.len(), 1, "one intent, one session");
    let replayed = OpenRequest { replay: true, ..open("task", &["Ticket"]) };
    let all = world.service.open(&caller("local", "c0"), &replayed).await.unwrap();
    assert_eq!(all.revision, 4, "each entity was taught by exactly one call");
    for symbol in ["e1", "e2", "e3", "e4"] {
        let lines = table(&all)
            .lines()
            .filter(|l| l.starts_with(&format!("{symbol}\t")) || l.starts_with(&format!("{symbol}{{")))
            .count();
        assert!(lines >= 1, "{symbol} is taught\n{}", table(&all));
    }
}

#[tokio::test]
async fn tenants_do_not_see_each_other() {
    let world = world();
    let (acme, other) = (caller("acme", "a"), caller("other", "a"));
    let mine = world.service.open(&acme, &open("task", &["Project"])).await.unwrap();
    let theirs = world.service.open(&other, &open("task", &["Project"])).await.unwrap();
    assert_ne!(mine.session, theirs.session);
    world.upstream.add(ops());
    world.service.run(&acme, &run("Project(\"OPS\")")).await.unwrap();
    let plan = PlanRequest { session: mine.session.to_string(), program: "Project".to_owned() };
    assert_eq!(world.service.plan(&other, &plan).await.unwrap_err().code(), "no_session");
    let uri = format!("plasm://session/{}/r/1", mine.session);
    assert_eq!(world.service.artifact(&other, &uri).await.unwrap_err().code(), "no_session");
    assert_eq!(world.service.artifact(&other, "plasm://session/s0/r/1").await.unwrap_err().code(), "no_artifact");
    world.service.artifact(&acme, &uri).await.unwrap();
}

#[tokio::test]
async fn an_invalid_reference_gets_an_error_that_says_what_to_do() {
    let world = world();
    let me = caller("local", "a");
    let plan = async |session: &str| {
        let request = PlanRequest { session: session.to_owned(), program: "Project".to_owned() };
        world.service.plan(&me, &request).await.unwrap_err().code()
    };
    assert_eq!(plan("s0").await, "unknown_slot");
    assert_eq!(plan("../../x").await, "bad_ref");
    assert_eq!(plan("").await, "bad_ref");
    assert_eq!(plan("00000000-0000-4000-8000-000000000000").await, "no_session");
    for bad in ["", "plasm://session/s0/r/x", "plasm://session/s0", "file:///etc/passwd", "plasm://session/s0/r/1"] {
        world.service.artifact(&me, bad).await.unwrap_err();
    }
}

#[tokio::test]
async fn a_lost_execute_session_is_replaced_and_reported() {
    let world = world();
    let me = caller("local", "a");
    let first = world.service.open(&me, &open("task", &["Ticket"])).await.unwrap();
    let range =
        Range { tenant: me.tenant.clone(), table: Table::ExecuteSession, prefix: String::new(), after: None, limit: 9 };
    for (id, _) in world.store.scan(&range).await.unwrap() {
        let gone = Key::new(&me.tenant, Table::ExecuteSession, id);
        world.store.commit(Batch::default().delete(gone, Expect::Any)).await.unwrap();
    }
    let plan = PlanRequest { session: "s0".to_owned(), program: "Ticket".to_owned() };
    assert_eq!(world.service.plan(&me, &plan).await.unwrap_err().code(), "expired_session");
    let again = world.service.open(&me, &open("task", &["Person"])).await.unwrap();
    assert_eq!((again.session, again.slot), (first.session, first.slot));
    assert!(again.continuity.new_symbol_space && again.continuity.previous_execute.is_some());
    assert!(table(&again).contains("e1\tPerson"), "symbols start again");
}

#[tokio::test]
async fn a_session_keeps_the_catalog_it_pinned() {
    let old = world();
    let me = caller("local", "a");
    old.service.open(&me, &open("task", &["Project"])).await.unwrap();
    let new = world_on(old.store.clone(), old.blobs.clone(), demo(2));
    let opened = new.service.open(&me, &open("task", &["Project"])).await.unwrap();
    assert_eq!(opened.taught, TaughtTable::Unchanged { entities: 1 });
    let plan = PlanRequest { session: "s0".to_owned(), program: "Project".to_owned() };
    let planned = new.service.plan(&me, &plan).await.unwrap();
    assert_eq!(planned.plan.catalogs[0].1, demo(1).digest(), "the pinned version is the one it runs on");
    let fresh = new.service.open(&me, &open("a new task", &["Project"])).await.unwrap();
    assert_ne!(fresh.session, opened.session);
    new.blobs.damage(&demo(1).digest());
    let restarted = world_on(new.store.clone(), new.blobs.clone(), demo(2));
    assert!(
        restarted.service.plan(&me, &plan).await.unwrap_err().is_fault(),
        "a damaged pin is an error, not another catalog"
    );
}

#[tokio::test]
async fn every_fault_is_an_error_and_leaves_no_partial_state() {
    for operation in [Operation::Get, Operation::Commit, Operation::PutBlob] {
        for fault in [Fault::Unavailable, Fault::Full, Fault::LostAfter] {
            for nth in 1..=6 {
                let world = world();
                let me = caller("local", "a");
                world.faults.fail(operation, nth, fault);
                let first = world.service.open(&me, &open("task", &["Ticket"])).await;
                world.faults.heal();
                let again = world.service.open(&me, &open("task", &["Ticket"])).await.unwrap();
                let name = format!("{operation:?} {fault:?} {nth}");
                assert_eq!(again.slot.to_string(), "s0", "{name}");
                assert_eq!(again.revision, 1, "{name}: the wave is there once");
                if first.is_ok() {
                    assert_eq!(
                        again.taught,
                        TaughtTable::Unchanged { entities: 1 },
                        "{name}: what was answered is stored"
                    );
                }
                world.service.plan(&me, &PlanRequest { session: "s0".into(), program: "Ticket".into() }).await.unwrap();
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
        let world = world();
        let me = caller("local", "a");
        world.upstream.add(ops());
        world.service.open(&me, &open("task", &["Project"])).await.unwrap();
        match fault {
            Fault::Conflict => world.faults.fail(operation, 1, fault),
            _ => world.faults.fail_always(operation, fault),
        }
        match world.service.run(&me, &run("Project(\"OPS\")")).await {
            // A lost race is retried and succeeds.
            Ok(ran) => assert_eq!((fault, ran.finished().unwrap().number), (Fault::Conflict, 1)),
            Err(error) => assert!(error.is_fault() && fault != Fault::Conflict, "{error}"),
        }
        world.faults.heal();
        let ran = world.service.run(&me, &run("Project(\"OPS\")")).await.unwrap().finished().unwrap();
        let artifact = world.service.artifact(&me, &format!("plasm://session/s0/r/{}", ran.number)).await.unwrap();
        assert_eq!((artifact.run, artifact.returns[0].rows.len()), (ran.run, 1));
    }
}

#[tokio::test]
async fn concurrent_runs_get_distinct_numbers() {
    let world = world();
    let me = caller("local", "a");
    world.upstream.add(ops());
    world.service.open(&me, &open("task", &["Project"])).await.unwrap();
    let runs: Vec<_> = (0..24)
        .map(|_| {
            let (service, me) = (world.service.clone(), me.clone());
            tokio::spawn(
                async move { service.run(&me, &run("Project(\"OPS\")")).await.unwrap().finished().unwrap().number },
            )
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
    let world = world();
    let me = caller("local", "a");
    world.upstream.add(ops());
    world.service.open(&me, &open("task", &["Project"])).await.unwrap();
    world.service.run(&me, &run("Project(\"OPS\")")).await.unwrap();
    for digest in world.blobs.digests() {
        if digest != demo(1).digest() {
            world.blobs.damage(&digest);
        }
    }
    let error = world.service.artifact(&me, "plasm://session/s0/r/1").await.unwrap_err();
    assert!(matches!(error, Error::LostArtifact(_)), "{error}");
}

#[tokio::test]
async fn a_session_without_a_transport_keeps_its_slots_by_principal() {
    let world = world();
    let me = || Caller::local();
    world.service.open(&me(), &open("task", &["Project"])).await.unwrap();
    let restarted = world_on(world.store.clone(), world.blobs.clone(), demo(1));
    let plan = PlanRequest { session: "s0".to_owned(), program: "Project".to_owned() };
    restarted.service.plan(&me(), &plan).await.unwrap();
}

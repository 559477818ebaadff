//! The life of a session on in-memory ports: when two opens share a session, what happens to a lost or refreshed
//! execute session, and that concurrent callers leave one session without gaps.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use access::{Caller, Connection, Identity};
use base::{Digest, Limits, Principal, TenantId};
use catalog::{Catalog, Registry};
use ports::Store;
use ports::store::{Batch, Expect, Key, Range, Table};
use serde_json::{Value, json};
use session::{OpenRequest, PlanRequest, Ports, Resource, RunRequest, SeedRequest, Service, TaughtTable};
use testkit::memory::CountingEntropy;
use testkit::upstream::Rule;

use crate::memory_service::{MemoryService, table};

/// `entities` entities with one list each; version 2 has another field.
fn tracker(id: &str, version: u32, entities: usize) -> Arc<Catalog> {
    let more = if version > 1 { ", extra: string" } else { "" };
    let names: Vec<String> = (0..entities).map(|n| format!("Thing{n}")).collect();
    let entity = |name: &String| format!("  {name}: {{about: a thing, key: [id], fields: {{id: string{more}}}}}\n");
    let list = |name: &String| {
        let wire = name.to_lowercase();
        format!("  list_{wire}: {{query: {name}, http: GET /{wire}, rows: data}}\n")
    };
    let (entities, lists): (String, String) = (names.iter().map(entity).collect(), names.iter().map(list).collect());
    let text = format!(
        "catalog: {id}\nversion: {version}\ntitle: T\naliases: [{id}-alias]\norigin: http://x.localhost\nentities:\n{entities}capabilities:\n{lists}"
    );
    Arc::new(catalog::read("tracker.yaml", &text).unwrap())
}

fn registry(catalogs: Vec<Arc<Catalog>>) -> Arc<Registry> {
    Arc::new(Registry::new(catalogs).unwrap())
}

fn world(catalogs: Vec<Arc<Catalog>>) -> MemoryService {
    MemoryService::of(registry(catalogs), Limits::default())
}

fn me() -> Caller {
    Caller::local()
}

fn open(intent: &str, seeds: &[(&str, &str)]) -> OpenRequest {
    OpenRequest::new(intent, seeds.iter().map(|(api, entity)| SeedRequest::all(api, entity)).collect())
}

fn refresh(intent: &str, seeds: &[(&str, &str)]) -> OpenRequest {
    OpenRequest { refresh: true, ..open(intent, seeds) }
}

async fn rows(world: &MemoryService, table: Table) -> Vec<(String, Value)> {
    let range = Range { tenant: TenantId::local(), table, prefix: String::new(), after: None, limit: 1_000 };
    let rows = world.store.scan(&range).await.unwrap();
    rows.into_iter().map(|(id, row)| (id, serde_json::from_slice(&row.value).unwrap())).collect()
}

#[tokio::test]
async fn the_reuse_key_is_stored_with_the_execute_session() {
    let (a, b) = (tracker("aaa", 1, 3), tracker("bbb", 1, 2));
    let world = world(vec![b.clone(), a.clone()]);
    let seeds = [("bbb", "Thing1"), ("aaa", "Thing2"), ("aaa-alias", "Thing0"), ("aaa", "Thing2")];
    let opened = world.service.open(&me(), &open("task", &seeds)).await.unwrap();
    assert!(!opened.reused);
    let stored = rows(&world, Table::ExecuteSession).await;
    let expected = json!({
        "tenant_scope": "local", "entry_id": "aaa", "catalog_digest": a.digest(), "entities": ["Thing0", "Thing2"],
        "principal": null, "engine_generation": lang::VERSION, "logical_session_id": opened.session,
    });
    assert_eq!(stored[0].1["key"], expected);
    for symbol in ["e1\taaa:Thing0", "e2\taaa:Thing2", "e3\tbbb:Thing1"] {
        assert!(table(&opened).contains(symbol), "{}", table(&opened));
    }
    let mut turned = seeds;
    turned.reverse();
    let again = world.service.open(&me(), &open("task", &turned)).await.unwrap();
    assert!(again.reused && again.execute == opened.execute);
    assert_eq!(again.taught, TaughtTable::Unchanged { entities: 3 }, "all catalogs at once: one line");
    assert_eq!(again.continuity, session::Continuity::default());
}

#[tokio::test]
async fn an_open_without_an_intent_is_found_by_its_key() {
    let world = world(vec![tracker("aaa", 1, 3)]);
    let seeds = |names: &[&str]| names.iter().map(|n| SeedRequest::all("aaa", n)).collect::<Vec<_>>();
    let first = world.service.open_unnamed(&me(), seeds(&["Thing1", "Thing0"])).await.unwrap();
    let same = world.service.open_unnamed(&me(), seeds(&["Thing0", "Thing1"])).await.unwrap();
    assert_eq!((same.reused, &same.execute), (true, &first.execute));
    let other = world.service.open_unnamed(&me(), seeds(&["Thing0"])).await.unwrap();
    assert!(!other.reused && other.session != first.session);
    world.service.offer(registry(vec![tracker("aaa", 2, 3)]));
    let newer = world.service.open_unnamed(&me(), seeds(&["Thing1", "Thing0"])).await.unwrap();
    assert!(!newer.reused && newer.session != first.session, "another catalog is another key");
}

#[tokio::test]
async fn a_principal_with_own_credentials_is_part_of_the_key() {
    let world = world(vec![tracker("aaa", 1, 1)]);
    let caller =
        |name: &str| Identity { tenant: TenantId::local(), principal: Principal::parse(name).unwrap() }.caller(None);
    let seeds = || vec![SeedRequest::all("aaa", "Thing0")];
    let ada = world.service.open_unnamed(&caller("ada"), seeds()).await.unwrap();
    assert!(world.service.open_unnamed(&caller("bob"), seeds()).await.unwrap().execute == ada.execute);
    let ports = Ports {
        store: world.store.clone(),
        blobs: world.blobs.clone(),
        upstream: world.upstream.clone(),
        clock: world.clock.clone(),
        entropy: Arc::new(CountingEntropy::new()),
    };
    let delegated = Service::new(ports, registry(vec![tracker("aaa", 1, 1)]), Limits::default()).with_delegated(true);
    let ada = delegated.open_unnamed(&caller("ada"), seeds()).await.unwrap();
    assert!(delegated.open_unnamed(&caller("bob"), seeds()).await.unwrap().execute != ada.execute);
    assert!(delegated.open_unnamed(&caller("ada"), seeds()).await.unwrap().execute == ada.execute);
}

#[tokio::test]
async fn an_unreadable_execute_session_is_replaced_and_reported() {
    let catalog = tracker("aaa", 1, 2);
    for damage in ["row", "pin"] {
        let world = world(vec![catalog.clone()]);
        let first = world.service.open(&me(), &open("task", &[("aaa", "Thing1")])).await.unwrap();
        world.service.offer(registry(vec![tracker("aaa", 2, 2)]));
        if damage == "row" {
            let key = Key::new(&me().tenant, Table::ExecuteSession, first.execute.session_id.to_string());
            world.store.commit(Batch::default().put(key, b"{\"half".to_vec(), Expect::Any)).await.unwrap();
        } else {
            world.blobs.damage(&catalog.digest());
        }
        let plan = PlanRequest { session: "s0".to_owned(), program: "Thing1".to_owned() };
        let error = world.service.plan(&me(), &plan).await.unwrap_err();
        assert!(error.is_fault() && error.to_string().contains("call plasm_context with the same intent"), "{error}");
        let again = world.service.open(&me(), &open("task", &[("aaa", "Thing0")])).await.unwrap();
        assert_eq!((again.session, again.slot, again.reused), (first.session, first.slot, false), "{damage}");
        assert!(again.continuity.new_symbol_space && !again.continuity.refreshed);
        assert_eq!(again.continuity.previous_execute.as_ref(), Some(&first.execute));
        assert!(table(&again).contains("e1\tThing0") && table(&again).contains("extra"), "on what is offered now");
        let steady = world.service.open(&me(), &open("task", &[("aaa", "Thing0")])).await.unwrap();
        assert_eq!(steady.continuity, session::Continuity::default(), "said once");
    }
}

#[tokio::test]
async fn a_newer_catalog_is_announced_once_and_adopted_on_request() {
    let world = world(vec![tracker("aaa", 1, 3), tracker("bbb", 1, 1)]);
    let seeds = [("aaa", "Thing1"), ("bbb", "Thing0")];
    let first = world.service.open(&me(), &open("task", &seeds)).await.unwrap();
    assert_eq!(first.catalog_updates, []);
    world.service.open(&me(), &open("task", &[("aaa", "Thing0")])).await.unwrap();
    world.service.offer(registry(vec![tracker("aaa", 2, 2), tracker("bbb", 1, 1)]));
    let told = world.service.open(&me(), &open("task", &seeds)).await.unwrap();
    assert_eq!(
        told.catalog_updates.iter().map(|n| (n.api.as_str(), n.pinned, n.offered)).collect::<Vec<_>>(),
        [("aaa", 1, 2)]
    );
    assert!(told.reused && !told.continuity.new_symbol_space);
    for _ in 0..2 {
        assert_eq!(world.service.open(&me(), &open("task", &seeds)).await.unwrap().catalog_updates, [], "once");
    }
    let moved = world.service.open(&me(), &refresh("task", &[("bbb", "Thing0")])).await.unwrap();
    assert_eq!((moved.session, moved.slot, moved.revision), (first.session, first.slot, 1));
    assert!(moved.continuity.new_symbol_space && moved.continuity.refreshed && moved.execute != first.execute);
    assert_eq!(moved.continuity.previous_execute, None, "nothing was lost");
    let all = table(&moved);
    assert!(
        all.contains("e1\taaa:Thing0") && all.contains("e2\taaa:Thing1") && all.contains("e3\tbbb:Thing0"),
        "{all}"
    );
    assert!(all.contains("extra") && all.contains("# Write a program"), "the whole table of the new space: {all}");
    let plan = PlanRequest { session: "s0".to_owned(), program: "e2".to_owned() };
    let planned = world.service.plan(&me(), &plan).await.unwrap();
    assert_eq!(planned.plan.catalogs[0].1, tracker("aaa", 2, 2).digest());
}

#[tokio::test]
async fn a_refresh_drops_missing_entities_and_refuses_missing_seeds() {
    let world = world(vec![tracker("aaa", 1, 3)]);
    world.service.open(&me(), &open("task", &[("aaa", "Thing2"), ("aaa", "Thing0")])).await.unwrap();
    world.service.offer(registry(vec![tracker("aaa", 2, 2)]));
    let error = world.service.open(&me(), &refresh("task", &[("aaa", "Thing2")])).await.unwrap_err();
    assert_eq!(error.code(), "unknown_seed");
    let kept = world.service.open(&me(), &open("task", &[("aaa", "Thing2")])).await.unwrap();
    assert!(kept.reused, "a refused refresh changes nothing");
    let moved = world.service.open(&me(), &refresh("task", &[("aaa", "Thing1")])).await.unwrap();
    assert!(table(&moved).contains("e2\tThing1") && !table(&moved).contains("Thing2"), "{}", table(&moved));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_callers_leave_one_session_without_gaps() {
    let world = world(vec![tracker("aaa", 1, 200)]);
    let opens = (0..200).map(|n| {
        let service = world.service.clone();
        tokio::spawn(async move {
            let caller = Caller { connection: Connection::Transport(format!("c{}", n % 16)), ..me() };
            service.open(&caller, &open("task", &[("aaa", &format!("Thing{n}"))])).await.unwrap()
        })
    });
    let mut sessions = BTreeSet::new();
    let mut revisions = BTreeSet::new();
    for opened in opens.collect::<Vec<_>>() {
        let opened = opened.await.unwrap();
        sessions.insert(opened.session);
        revisions.insert(opened.revision);
    }
    assert_eq!((sessions.len(), revisions), (1, (1..=200).collect()), "each call is one wave of one session");
    let replay = OpenRequest { replay: true, ..open("task", &[("aaa", "Thing0")]) };
    let all = world.service.open(&me(), &replay).await.unwrap();
    let taught: BTreeSet<String> = table(&all).lines().filter_map(|l| Some(l.split_once('\t')?.0.to_owned())).collect();
    for n in 1..=200 {
        assert!(taught.contains(&format!("e{n}")), "e{n} is missing");
    }
    assert!(!taught.contains("e201"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_sessions_of_one_principal_get_slots_without_gaps() {
    let world = world(vec![tracker("aaa", 1, 1)]);
    let opens = (0..200).map(|n| {
        let service = world.service.clone();
        let request = open(&format!("task {n}"), &[("aaa", "Thing0")]);
        tokio::spawn(async move { service.open(&me(), &request).await.unwrap().slot.0 })
    });
    let mut slots = BTreeSet::new();
    for slot in opens.collect::<Vec<_>>() {
        slots.insert(slot.await.unwrap());
    }
    assert_eq!(slots, (0..200).collect());
}

#[tokio::test]
async fn every_form_of_a_uri_leads_only_to_results_of_its_tenant() {
    let world = world(vec![tracker("aaa", 1, 2)]);
    world.upstream.add(Rule::get("/thing0").json(200, json!({"data": [{"id": "x"}, {"id": "y"}]})));
    world.upstream.add(Rule::get("/thing1").json(200, json!({"data": [{"id": "z"}]})));
    let opened = world.service.open(&me(), &open("task", &[("aaa", "Thing0"), ("aaa", "Thing1")])).await.unwrap();
    let program = "a = Thing0\nb = Thing1\na, b".to_owned();
    let plan = PlanRequest { session: "s0".to_owned(), program: program.clone() };
    assert_eq!(world.service.plan(&me(), &plan).await.unwrap().number, Some(1));
    assert_eq!(world.service.plan(&me(), &plan).await.unwrap().number, Some(2));
    let run = RunRequest { session: "s0".to_owned(), program: Some(program.clone()), ..RunRequest::default() };
    let ran = world.service.run(&me(), &run).await.unwrap().finished().unwrap();
    let execute = &opened.execute;
    let canonical = format!("plasm://execute/{}/{}/run/{}", execute.prompt_hash, execute.session_id, ran.run);
    let forms =
        ["plasm://session/s0/r/1".to_owned(), format!("plasm://session/{}/r/1", opened.session), canonical.clone()];
    for uri in &forms {
        let artifact = world.service.artifact(&me(), uri).await.unwrap();
        assert_eq!((artifact.run, artifact.returns.len()), (ran.run, 2), "{uri}");
        let one = world.service.artifact(&me(), &format!("{uri}#b")).await.unwrap();
        assert_eq!((one.returns.len(), one.returns[0].label.as_str()), (1, "b"), "{uri}");
        assert_eq!(world.service.artifact(&me(), &format!("{uri}#c")).await.unwrap_err().code(), "no_artifact");
    }
    let Resource::Plan(shown) = world.service.resource(&me(), "plasm://session/s0/p/2").await.unwrap() else {
        panic!("a plan")
    };
    assert_eq!((shown.program, shown.digest), (program, ran.plan));
    let other = Caller { tenant: TenantId::parse("other").unwrap(), ..me() };
    let plan_uri = format!("plasm://session/{}/p/1", opened.session);
    for uri in forms.iter().chain([&plan_uri]) {
        let error = world.service.resource(&other, uri).await.unwrap_err();
        assert!(["no_session", "unknown_slot", "no_artifact"].contains(&error.code()), "{uri}: {error}");
    }
    let wrong = canonical.replace(&execute.prompt_hash.to_string(), &Digest::of(b"other").to_string());
    for uri in [&wrong, "plasm://session/s0/p/3", "plasm://session/s0/p/0", "plasm://session/s0/r/2", "plasm://r/1"] {
        assert_eq!(world.service.resource(&me(), uri).await.unwrap_err().code(), "no_artifact", "{uri}");
    }
    let listed = world.service.list_runs(&me()).await.unwrap();
    assert_eq!(listed.iter().map(|l| l.uri.as_str()).collect::<Vec<_>>(), ["plasm://session/s0/r/1"]);
    assert_eq!(world.service.list_runs(&other).await.unwrap().len(), 0);
}

#[tokio::test]
async fn runs_without_an_intent_are_numbered_by_principal() {
    let world = world(vec![tracker("aaa", 1, 2)]);
    world.upstream.add(Rule::get("/thing0").json(200, json!({"data": [{"id": "x"}]})).times(4));
    let first = world.service.open_unnamed(&me(), vec![SeedRequest::all("aaa", "Thing0")]).await.unwrap();
    let seeds = vec![SeedRequest::all("aaa", "Thing0"), SeedRequest::all("aaa", "Thing1")];
    let second = world.service.open_unnamed(&me(), seeds).await.unwrap();
    let mut runs = Vec::new();
    for session in [first.session, second.session, first.session] {
        let program = Some("Thing0".to_owned());
        let request = RunRequest { session: session.to_string(), program, ..RunRequest::default() };
        runs.push(world.service.run(&me(), &request).await.unwrap().finished().unwrap().run);
    }
    for (number, run) in (1..).zip(&runs) {
        assert_eq!(world.service.artifact(&me(), &format!("plasm://r/{number}")).await.unwrap().run, *run);
    }
    let ada = Identity { tenant: TenantId::local(), principal: Principal::parse("ada").unwrap() }.caller(None);
    assert_eq!(world.service.artifact(&ada, "plasm://r/1").await.unwrap_err().code(), "no_artifact");
}

#[tokio::test]
async fn an_unchanged_session_is_written_once_an_hour() {
    let world = world(vec![tracker("aaa", 1, 1)]);
    let request = open("task", &[("aaa", "Thing0")]);
    let opened = world.service.open(&me(), &request).await.unwrap();
    let used = async || rows(&world, Table::LogicalSession).await[0].1["used"].as_i64().unwrap();
    let first = used().await;
    for (minutes, later) in [(0, 0), (59, 0), (2, 61), (30, 61), (31, 122)] {
        world.clock.advance(Duration::from_secs(minutes * 60));
        let again = world.service.open(&me(), &request).await.unwrap();
        assert_eq!((again.taught, again.slot), (TaughtTable::Unchanged { entities: 1 }, opened.slot));
        assert_eq!((used().await - first) / 60_000, later);
    }
    // Another connection gets a slot of its own, even if the session is unchanged.
    let other = Caller { connection: Connection::Transport("t".to_owned()), ..me() };
    world.service.open(&other, &open("another", &[("aaa", "Thing0")])).await.unwrap();
    assert_eq!(world.service.open(&other, &request).await.unwrap().slot.to_string(), "s1");
}

//! The life of a session on in-memory ports: reuse, refreshes, lost execute sessions, URIs of results, and concurrent
//! callers.

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

use crate::harness::{MemoryService, taught_table};

/// Returns a catalog with this many entities and a list of each. Version 2 has another field.
fn tracker(id: &str, version: u32, entities: usize) -> Arc<Catalog> {
    let extra_field = if version > 1 { ", extra: string" } else { "" };
    let names: Vec<String> = (0..entities).map(|n| format!("Thing{n}")).collect();
    let entity =
        |name: &String| format!("  {name}: {{about: a thing, key: [id], fields: {{id: string{extra_field}}}}}\n");
    let list = |name: &String| {
        let path = name.to_lowercase();
        format!("  list_{path}: {{query: {name}, http: GET /{path}, rows: data}}\n")
    };
    let entities: String = names.iter().map(entity).collect();
    let lists: String = names.iter().map(list).collect();
    let text = format!(
        "catalog: {id}\nversion: {version}\ntitle: T\naliases: [{id}-alias]\norigin: http://x.localhost\nentities:\n{entities}capabilities:\n{lists}"
    );
    Arc::new(catalog::read("tracker.yaml", &text).unwrap())
}

fn registry(catalogs: Vec<Arc<Catalog>>) -> Arc<Registry> {
    Arc::new(Registry::new(catalogs).unwrap())
}

fn service_with_catalogs(catalogs: Vec<Arc<Catalog>>) -> MemoryService {
    MemoryService::with_registry(registry(catalogs), Limits::default())
}

fn local_caller() -> Caller {
    Caller::local()
}

fn open_request(intent: &str, seeds: &[(&str, &str)]) -> OpenRequest {
    OpenRequest::new(intent, seeds.iter().map(|(api, entity)| SeedRequest::all(api, entity)).collect())
}

fn refresh_request(intent: &str, seeds: &[(&str, &str)]) -> OpenRequest {
    OpenRequest { refresh: true, ..open_request(intent, seeds) }
}

async fn stored_rows(fixture: &MemoryService, table: Table) -> Vec<(String, Value)> {
    let range = Range { tenant: TenantId::local(), table, prefix: String::new(), after: None, limit: 1_000 };
    let rows = fixture.store.scan(&range).await.unwrap();
    rows.into_iter().map(|(id, row)| (id, serde_json::from_slice(&row.value).unwrap())).collect()
}

#[tokio::test]
async fn the_reuse_key_is_stored_with_the_execute_session() {
    let a = tracker("aaa", 1, 3);
    let b = tracker("bbb", 1, 2);
    let fixture = service_with_catalogs(vec![b.clone(), a.clone()]);
    let seeds = [("bbb", "Thing1"), ("aaa", "Thing2"), ("aaa-alias", "Thing0"), ("aaa", "Thing2")];
    let opened = fixture.service.open(&local_caller(), &open_request("task", &seeds)).await.unwrap();
    assert!(!opened.reused);
    let stored = stored_rows(&fixture, Table::ExecuteSession).await;
    let expected = json!({
        "tenant_scope": "local", "entry_id": "aaa", "catalog_digest": a.digest(), "entities": ["Thing0", "Thing2"],
        "principal": null, "engine_generation": lang::VERSION, "logical_session_id": opened.session,
    });
    assert_eq!(stored[0].1["key"], expected);
    for symbol in ["e1\taaa:Thing0", "e2\taaa:Thing2", "e3\tbbb:Thing1"] {
        assert!(taught_table(&opened).contains(symbol), "{}", taught_table(&opened));
    }
    let mut reversed_seeds = seeds;
    reversed_seeds.reverse();
    let reopened = fixture.service.open(&local_caller(), &open_request("task", &reversed_seeds)).await.unwrap();
    assert!(reopened.reused && reopened.execute == opened.execute);
    assert_eq!(reopened.taught, TaughtTable::Unchanged { entities: 3 }, "one line for all catalogs");
    assert_eq!(reopened.continuity, session::Continuity::default());
}

#[tokio::test]
async fn an_open_without_an_intent_is_found_by_its_key() {
    let fixture = service_with_catalogs(vec![tracker("aaa", 1, 3)]);
    let seeds = |names: &[&str]| names.iter().map(|n| SeedRequest::all("aaa", n)).collect::<Vec<_>>();
    let first = fixture.service.open_unnamed(&local_caller(), seeds(&["Thing1", "Thing0"])).await.unwrap();
    let same = fixture.service.open_unnamed(&local_caller(), seeds(&["Thing0", "Thing1"])).await.unwrap();
    assert_eq!((same.reused, &same.execute), (true, &first.execute));
    let other = fixture.service.open_unnamed(&local_caller(), seeds(&["Thing0"])).await.unwrap();
    assert!(!other.reused && other.session != first.session);
    fixture.service.offer(registry(vec![tracker("aaa", 2, 3)]));
    let after_reload = fixture.service.open_unnamed(&local_caller(), seeds(&["Thing1", "Thing0"])).await.unwrap();
    assert!(!after_reload.reused && after_reload.session != first.session, "another catalog is another key");
}

#[tokio::test]
async fn a_principal_with_own_credentials_is_part_of_the_key() {
    let fixture = service_with_catalogs(vec![tracker("aaa", 1, 1)]);
    let caller =
        |name: &str| Identity { tenant: TenantId::local(), principal: Principal::parse(name).unwrap() }.caller(None);
    let seeds = || vec![SeedRequest::all("aaa", "Thing0")];
    let ada = fixture.service.open_unnamed(&caller("ada"), seeds()).await.unwrap();
    assert!(fixture.service.open_unnamed(&caller("bob"), seeds()).await.unwrap().execute == ada.execute);
    let ports = Ports {
        store: fixture.store.clone(),
        blobs: fixture.blobs.clone(),
        upstream: fixture.upstream.clone(),
        clock: fixture.clock.clone(),
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
        let fixture = service_with_catalogs(vec![catalog.clone()]);
        let first = fixture.service.open(&local_caller(), &open_request("task", &[("aaa", "Thing1")])).await.unwrap();
        fixture.service.offer(registry(vec![tracker("aaa", 2, 2)]));
        if damage == "row" {
            let key = Key::new(&local_caller().tenant, Table::ExecuteSession, first.execute.session_id.to_string());
            fixture.store.commit(Batch::default().put(key, b"{\"half".to_vec(), Expect::Any)).await.unwrap();
        } else {
            fixture.blobs.damage(&catalog.digest());
        }
        let plan = PlanRequest { session: "s0".to_owned(), program: "Thing1".to_owned() };
        let error = fixture.service.plan(&local_caller(), &plan).await.unwrap_err();
        assert!(error.is_fault() && error.to_string().contains("call plasm_context with the same intent"), "{error}");
        let reopened =
            fixture.service.open(&local_caller(), &open_request("task", &[("aaa", "Thing0")])).await.unwrap();
        assert_eq!((reopened.session, reopened.slot, reopened.reused), (first.session, first.slot, false), "{damage}");
        assert!(reopened.continuity.new_symbol_space && !reopened.continuity.refreshed);
        assert_eq!(reopened.continuity.previous_execute.as_ref(), Some(&first.execute));
        assert!(
            taught_table(&reopened).contains("e1\tThing0") && taught_table(&reopened).contains("extra"),
            "the new space uses the offered catalog"
        );
        let unchanged =
            fixture.service.open(&local_caller(), &open_request("task", &[("aaa", "Thing0")])).await.unwrap();
        assert_eq!(unchanged.continuity, session::Continuity::default(), "the loss is reported once");
    }
}

#[tokio::test]
async fn a_newer_catalog_is_announced_once_and_adopted_on_request() {
    let fixture = service_with_catalogs(vec![tracker("aaa", 1, 3), tracker("bbb", 1, 1)]);
    let seeds = [("aaa", "Thing1"), ("bbb", "Thing0")];
    let first = fixture.service.open(&local_caller(), &open_request("task", &seeds)).await.unwrap();
    assert_eq!(first.catalog_updates, []);
    fixture.service.open(&local_caller(), &open_request("task", &[("aaa", "Thing0")])).await.unwrap();
    fixture.service.offer(registry(vec![tracker("aaa", 2, 2), tracker("bbb", 1, 1)]));
    let announced = fixture.service.open(&local_caller(), &open_request("task", &seeds)).await.unwrap();
    assert_eq!(
        announced
            .catalog_updates
            .iter()
            .map(|update| (update.api.as_str(), update.pinned, update.offered))
            .collect::<Vec<_>>(),
        [("aaa", 1, 2)]
    );
    assert!(announced.reused && !announced.continuity.new_symbol_space);
    for _ in 0..2 {
        assert_eq!(
            fixture.service.open(&local_caller(), &open_request("task", &seeds)).await.unwrap().catalog_updates,
            [],
            "an update is announced once"
        );
    }
    let refreshed =
        fixture.service.open(&local_caller(), &refresh_request("task", &[("bbb", "Thing0")])).await.unwrap();
    assert_eq!((refreshed.session, refreshed.slot, refreshed.revision), (first.session, first.slot, 1));
    assert!(
        refreshed.continuity.new_symbol_space && refreshed.continuity.refreshed && refreshed.execute != first.execute
    );
    assert_eq!(refreshed.continuity.previous_execute, None, "nothing was lost");
    let all = taught_table(&refreshed);
    assert!(
        all.contains("e1\taaa:Thing0") && all.contains("e2\taaa:Thing1") && all.contains("e3\tbbb:Thing0"),
        "{all}"
    );
    assert!(all.contains("extra") && all.contains("# Write a program"), "the whole table of the new space: {all}");
    let plan = PlanRequest { session: "s0".to_owned(), program: "e2".to_owned() };
    let planned = fixture.service.plan(&local_caller(), &plan).await.unwrap();
    assert_eq!(planned.plan.catalogs[0].1, tracker("aaa", 2, 2).digest());
}

#[tokio::test]
async fn a_refresh_drops_missing_entities_and_refuses_missing_seeds() {
    let fixture = service_with_catalogs(vec![tracker("aaa", 1, 3)]);
    fixture
        .service
        .open(&local_caller(), &open_request("task", &[("aaa", "Thing2"), ("aaa", "Thing0")]))
        .await
        .unwrap();
    fixture.service.offer(registry(vec![tracker("aaa", 2, 2)]));
    let error =
        fixture.service.open(&local_caller(), &refresh_request("task", &[("aaa", "Thing2")])).await.unwrap_err();
    assert_eq!(error.code(), "unknown_seed");
    let unchanged = fixture.service.open(&local_caller(), &open_request("task", &[("aaa", "Thing2")])).await.unwrap();
    assert!(unchanged.reused, "a refused refresh changes nothing");
    let refreshed =
        fixture.service.open(&local_caller(), &refresh_request("task", &[("aaa", "Thing1")])).await.unwrap();
    assert!(
        taught_table(&refreshed).contains("e2\tThing1") && !taught_table(&refreshed).contains("Thing2"),
        "{}",
        taught_table(&refreshed)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_callers_leave_one_session_without_gaps() {
    let fixture = service_with_catalogs(vec![tracker("aaa", 1, 200)]);
    let opens = (0..200).map(|n| {
        let service = fixture.service.clone();
        tokio::spawn(async move {
            let caller = Caller { connection: Connection::Transport(format!("c{}", n % 16)), ..local_caller() };
            service.open(&caller, &open_request("task", &[("aaa", &format!("Thing{n}"))])).await.unwrap()
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
    let replay = OpenRequest { replay: true, ..open_request("task", &[("aaa", "Thing0")]) };
    let all = fixture.service.open(&local_caller(), &replay).await.unwrap();
    let taught: BTreeSet<String> =
        taught_table(&all).lines().filter_map(|l| Some(l.split_once('\t')?.0.to_owned())).collect();
    for n in 1..=200 {
        assert!(taught.contains(&format!("e{n}")), "e{n} is missing");
    }
    assert!(!taught.contains("e201"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_sessions_of_one_principal_get_slots_without_gaps() {
    let fixture = service_with_catalogs(vec![tracker("aaa", 1, 1)]);
    let opens = (0..200).map(|n| {
        let service = fixture.service.clone();
        let request = open_request(&format!("task {n}"), &[("aaa", "Thing0")]);
        tokio::spawn(async move { service.open(&local_caller(), &request).await.unwrap().slot.0 })
    });
    let mut slots = BTreeSet::new();
    for slot in opens.collect::<Vec<_>>() {
        slots.insert(slot.await.unwrap());
    }
    assert_eq!(slots, (0..200).collect());
}

#[tokio::test]
async fn every_form_of_a_uri_leads_only_to_results_of_its_tenant() {
    let fixture = service_with_catalogs(vec![tracker("aaa", 1, 2)]);
    fixture.upstream.add(Rule::get("/thing0").json(200, json!({"data": [{"id": "x"}, {"id": "y"}]})));
    fixture.upstream.add(Rule::get("/thing1").json(200, json!({"data": [{"id": "z"}]})));
    let opened = fixture
        .service
        .open(&local_caller(), &open_request("task", &[("aaa", "Thing0"), ("aaa", "Thing1")]))
        .await
        .unwrap();
    let program = "a = Thing0\nb = Thing1\na, b".to_owned();
    let plan = PlanRequest { session: "s0".to_owned(), program: program.clone() };
    assert_eq!(fixture.service.plan(&local_caller(), &plan).await.unwrap().number, Some(1));
    assert_eq!(fixture.service.plan(&local_caller(), &plan).await.unwrap().number, Some(2));
    let run = RunRequest { session: "s0".to_owned(), program: Some(program.clone()), ..RunRequest::default() };
    let result = fixture.service.run(&local_caller(), &run).await.unwrap().finished().unwrap();
    let execute = &opened.execute;
    let canonical = format!("plasm://execute/{}/{}/run/{}", execute.prompt_hash, execute.session_id, result.run);
    let forms =
        ["plasm://session/s0/r/1".to_owned(), format!("plasm://session/{}/r/1", opened.session), canonical.clone()];
    for uri in &forms {
        let artifact = fixture.service.artifact(&local_caller(), uri).await.unwrap();
        assert_eq!((artifact.run, artifact.returns.len()), (result.run, 2), "{uri}");
        let one = fixture.service.artifact(&local_caller(), &format!("{uri}#b")).await.unwrap();
        assert_eq!((one.returns.len(), one.returns[0].label.as_str()), (1, "b"), "{uri}");
        assert_eq!(
            fixture.service.artifact(&local_caller(), &format!("{uri}#c")).await.unwrap_err().code(),
            "no_artifact"
        );
    }
    let Resource::Plan(shown) = fixture.service.resource(&local_caller(), "plasm://session/s0/p/2").await.unwrap()
    else {
        panic!("a plan")
    };
    assert_eq!((shown.program, shown.digest), (program, result.plan));
    let other = Caller { tenant: TenantId::parse("other").unwrap(), ..local_caller() };
    let plan_uri = format!("plasm://session/{}/p/1", opened.session);
    for uri in forms.iter().chain([&plan_uri]) {
        let error = fixture.service.resource(&other, uri).await.unwrap_err();
        assert!(["no_session", "unknown_slot", "no_artifact"].contains(&error.code()), "{uri}: {error}");
    }
    let other_hash = canonical.replace(&execute.prompt_hash.to_string(), &Digest::of(b"other").to_string());
    for uri in
        [&other_hash, "plasm://session/s0/p/3", "plasm://session/s0/p/0", "plasm://session/s0/r/2", "plasm://r/1"]
    {
        assert_eq!(fixture.service.resource(&local_caller(), uri).await.unwrap_err().code(), "no_artifact", "{uri}");
    }
    let listed = fixture.service.list_runs(&local_caller()).await.unwrap();
    assert_eq!(listed.iter().map(|l| l.uri.as_str()).collect::<Vec<_>>(), ["plasm://session/s0/r/1"]);
    assert_eq!(fixture.service.list_runs(&other).await.unwrap().len(), 0);
}

#[tokio::test]
async fn runs_without_an_intent_are_numbered_by_principal() {
    let fixture = service_with_catalogs(vec![tracker("aaa", 1, 2)]);
    fixture.upstream.add(Rule::get("/thing0").json(200, json!({"data": [{"id": "x"}]})).times(4));
    let first = fixture.service.open_unnamed(&local_caller(), vec![SeedRequest::all("aaa", "Thing0")]).await.unwrap();
    let seeds = vec![SeedRequest::all("aaa", "Thing0"), SeedRequest::all("aaa", "Thing1")];
    let second = fixture.service.open_unnamed(&local_caller(), seeds).await.unwrap();
    let mut runs = Vec::new();
    for session in [first.session, second.session, first.session] {
        let program = Some("Thing0".to_owned());
        let request = RunRequest { session: session.to_string(), program, ..RunRequest::default() };
        runs.push(fixture.service.run(&local_caller(), &request).await.unwrap().finished().unwrap().run);
    }
    for (number, run) in (1..).zip(&runs) {
        assert_eq!(fixture.service.artifact(&local_caller(), &format!("plasm://r/{number}")).await.unwrap().run, *run);
    }
    let ada = Identity { tenant: TenantId::local(), principal: Principal::parse("ada").unwrap() }.caller(None);
    assert_eq!(fixture.service.artifact(&ada, "plasm://r/1").await.unwrap_err().code(), "no_artifact");
}

#[tokio::test]
async fn an_unchanged_session_is_written_once_an_hour() {
    let fixture = service_with_catalogs(vec![tracker("aaa", 1, 1)]);
    let request = open_request("task", &[("aaa", "Thing0")]);
    let opened = fixture.service.open(&local_caller(), &request).await.unwrap();
    let last_use = async || stored_rows(&fixture, Table::LogicalSession).await[0].1["used"].as_i64().unwrap();
    let first_use = last_use().await;
    for (minutes, stored_minutes) in [(0, 0), (59, 0), (2, 61), (30, 61), (31, 122)] {
        fixture.clock.advance(Duration::from_secs(minutes * 60));
        let reopened = fixture.service.open(&local_caller(), &request).await.unwrap();
        assert_eq!((reopened.taught, reopened.slot), (TaughtTable::Unchanged { entities: 1 }, opened.slot));
        assert_eq!((last_use().await - first_use) / 60_000, stored_minutes);
    }
    // Another connection gets a slot of its own, even if the session is unchanged.
    let other = Caller { connection: Connection::Transport("t".to_owned()), ..local_caller() };
    fixture.service.open(&other, &open_request("another", &[("aaa", "Thing0")])).await.unwrap();
    assert_eq!(fixture.service.open(&other, &request).await.unwrap().slot.to_string(), "s1");
}

//! Sessions during catalog reloads, on in-memory ports: a session keeps its pinned catalogs, a new one gets the
//! newest, and one call uses one registry.

use std::sync::Arc;

use access::{Caller, Identity};
use base::{Digest, Limits};
use catalog::{Catalog, Registry};
use session::{OpenRequest, OpenedSession, PlanRequest, SeedRequest, Service, TaughtTable};

use crate::harness::{MemoryService, taught_table};

/// Returns a catalog with the entities `A` and `B`. Version 2 has another field and calls another path. The first of
/// `names` is the catalog's id, and the rest are its aliases.
fn tracker(names: &str, version: u32) -> Arc<Catalog> {
    let (id, aliases) = names.split_once(' ').unwrap_or((names, ""));
    let extra_field = if version > 1 { ", extra: string" } else { "" };
    let entity = |name: &str| format!("  {name}: {{about: a thing, key: [id], fields: {{id: string{extra_field}}}}}\n");
    let list = |name: &str| format!("  list_{name}: {{query: {name}, http: GET /v{version}/{name}, rows: data}}\n");
    let text = format!(
        "catalog: {id}\nversion: {version}\ntitle: T\naliases: [{aliases}]\norigin: http://x.localhost\nentities:\n{}{}capabilities:\n{}{}",
        entity("A"),
        entity("B"),
        list("A"),
        list("B")
    );
    Arc::new(catalog::read("tracker.yaml", &text).unwrap())
}

fn registry<const N: usize>(catalogs: [Arc<Catalog>; N]) -> Arc<Registry> {
    Arc::new(Registry::new(catalogs).unwrap())
}

fn service_with_registry(registry: Arc<Registry>) -> Arc<Service> {
    MemoryService::with_registry(registry, Limits::default()).service
}

fn local_caller() -> Caller {
    Identity::local().caller(Some("a".to_owned()))
}

fn open_request(intent: &str, seeds: &[(&str, &str)]) -> OpenRequest {
    let seeds = seeds.iter().map(|(api, entity)| SeedRequest::all(api, entity));
    OpenRequest::new(intent, seeds.collect())
}

/// Returns the digests of the catalogs that a program uses in this session, and the digest of its plan.
async fn pinned_catalogs(service: &Service, opened: &OpenedSession, program: &str) -> (Vec<Digest>, Digest) {
    let plan = PlanRequest { session: opened.session.to_string(), program: program.to_owned() };
    let planned = service.plan(&local_caller(), &plan).await.unwrap();
    (planned.plan.catalogs.iter().map(|(_, digest)| *digest).collect(), planned.plan.digest)
}

#[tokio::test]
async fn an_old_session_keeps_its_version_and_a_new_one_gets_the_newest() {
    let v1 = tracker("tracker", 1);
    let v2 = tracker("tracker", 2);
    let service = service_with_registry(registry([v1.clone()]));
    let old = service.open(&local_caller(), &open_request("old", &[("tracker", "A")])).await.unwrap();
    let before = pinned_catalogs(&service, &old, "e1").await;
    service.offer(registry([v2.clone()]));
    assert_eq!(pinned_catalogs(&service, &old, "e1").await, before, "the program keeps its meaning");
    let reopened = service.open(&local_caller(), &open_request("old", &[("tracker", "A")])).await.unwrap();
    assert_eq!(reopened.taught, TaughtTable::Unchanged { entities: 1 });
    let new = service.open(&local_caller(), &open_request("new", &[("tracker", "A")])).await.unwrap();
    assert!(taught_table(&new).contains("extra") && !taught_table(&old).contains("extra"));
    assert_eq!(pinned_catalogs(&service, &new, "e1").await.0, [v2.digest()]);
    // A later wave uses the session's pinned version.
    let wave = service.open(&local_caller(), &open_request("old", &[("tracker", "B")])).await.unwrap();
    assert!(taught_table(&wave).contains("e2\tB") && !taught_table(&wave).contains("extra"), "{}", taught_table(&wave));
    assert_eq!(pinned_catalogs(&service, &wave, "e2").await.0, [v1.digest()]);
}

#[tokio::test]
async fn a_withdrawn_catalog_still_serves_sessions_that_pinned_it() {
    let v1 = tracker("tracker tickets", 1);
    let service = service_with_registry(registry([v1.clone()]));
    let old = service.open(&local_caller(), &open_request("old", &[("tracker", "A")])).await.unwrap();
    service.offer(registry([]));
    assert_eq!(pinned_catalogs(&service, &old, "e1").await.0, [v1.digest()]);
    for name in ["tracker", "tickets"] {
        let refused = service.open(&local_caller(), &open_request("new", &[(name, "A")])).await.unwrap_err();
        assert_eq!(refused.code(), "unknown_seed", "{name}");
    }
    let wave = service.open(&local_caller(), &open_request("old", &[("tickets", "B")])).await.unwrap();
    assert!(taught_table(&wave).contains("e2\tB"), "a session finds its catalogs by alias too");
}

#[tokio::test]
async fn an_alias_keeps_its_meaning_in_an_old_session() {
    let old_catalog = tracker("tracker tickets", 1);
    let new_catalog = tracker("helpdesk tickets", 2);
    let service = service_with_registry(registry([old_catalog.clone()]));
    let old = service.open(&local_caller(), &open_request("old", &[("tickets", "A")])).await.unwrap();
    service.offer(registry([tracker("tracker", 2), new_catalog.clone()]));
    let wave = service.open(&local_caller(), &open_request("old", &[("tickets", "B")])).await.unwrap();
    assert_eq!(
        (wave.session, pinned_catalogs(&service, &wave, "e2").await.0),
        (old.session, vec![old_catalog.digest()])
    );
    let new = service.open(&local_caller(), &open_request("new", &[("tickets", "A")])).await.unwrap();
    assert_eq!(pinned_catalogs(&service, &new, "e1").await.0, [new_catalog.digest()]);
    // A new alias of a pinned catalog leads to the pinned version.
    service.offer(registry([tracker("tracker issues", 2)]));
    let wave = service.open(&local_caller(), &open_request("old", &[("issues", "A")])).await.unwrap();
    assert_eq!(wave.taught, TaughtTable::Unchanged { entities: 2 });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_call_uses_one_registry() {
    let both_catalogs = |version| [tracker("one", version), tracker("two", version)];
    let first = registry(both_catalogs(1));
    let second = registry(both_catalogs(2));
    let service = service_with_registry(first.clone());
    let reloads = tokio::spawn({
        let service = service.clone();
        async move {
            for n in 0..2_000 {
                service.offer(if n % 2 == 0 { second.clone() } else { first.clone() });
                tokio::task::yield_now().await;
            }
        }
    });
    for n in 0..60 {
        let opened = service
            .open(&local_caller(), &open_request(&format!("task {n}"), &[("one", "A"), ("two", "B")]))
            .await
            .unwrap();
        let (mut pinned, _) = pinned_catalogs(&service, &opened, "e1, e2").await;
        pinned.sort_unstable();
        let digests_of = |version| {
            let mut digests = both_catalogs(version).map(|c| c.digest());
            digests.sort_unstable();
            digests.to_vec()
        };
        assert!(pinned == digests_of(1) || pinned == digests_of(2), "the versions are mixed: {pinned:?}");
    }
    reloads.await.unwrap();
}

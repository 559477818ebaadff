//! Sessions during catalog reloads, on in-memory ports: a session keeps its pinned catalogs, a new one gets the
//! newest, and one call uses one registry.

use std::sync::Arc;

use access::{Caller, Identity};
use base::{Digest, Limits};
use catalog::{Catalog, Registry};
use session::{OpenRequest, OpenedSession, PlanRequest, SeedRequest, Service, TaughtTable};

use crate::memory_service::{MemoryService, table};

/// Entities `A` and `B`; version 2 has another field and calls another path.
fn tracker(names: &str, version: u32) -> Arc<Catalog> {
    let (id, aliases) = names.split_once(' ').unwrap_or((names, ""));
    let more = if version > 1 { ", extra: string" } else { "" };
    let entity = |name: &str| format!("  {name}: {{about: a thing, key: [id], fields: {{id: string{more}}}}}\n");
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

fn service(registry: Arc<Registry>) -> Arc<Service> {
    MemoryService::of(registry, Limits::default()).service
}

fn me() -> Caller {
    Identity::local().caller(Some("a".to_owned()))
}

fn open(intent: &str, seeds: &[(&str, &str)]) -> OpenRequest {
    let seeds = seeds.iter().map(|(api, entity)| SeedRequest::all(api, entity));
    OpenRequest::new(intent, seeds.collect())
}

/// The catalog versions of a program in this session, and its plan's digest.
async fn pins(service: &Service, opened: &OpenedSession, program: &str) -> (Vec<Digest>, Digest) {
    let plan = PlanRequest { session: opened.session.to_string(), program: program.to_owned() };
    let planned = service.plan(&me(), &plan).await.unwrap();
    (planned.plan.catalogs.iter().map(|(_, digest)| *digest).collect(), planned.plan.digest)
}

#[tokio::test]
async fn an_old_session_keeps_its_version_and_a_new_one_gets_the_newest() {
    let (v1, v2) = (tracker("tracker", 1), tracker("tracker", 2));
    let service = service(registry([v1.clone()]));
    let old = service.open(&me(), &open("old", &[("tracker", "A")])).await.unwrap();
    let before = pins(&service, &old, "e1").await;
    service.offer(registry([v2.clone()]));
    assert_eq!(pins(&service, &old, "e1").await, before, "the same program means the same");
    let again = service.open(&me(), &open("old", &[("tracker", "A")])).await.unwrap();
    assert_eq!(again.taught, TaughtTable::Unchanged { entities: 1 });
    let new = service.open(&me(), &open("new", &[("tracker", "A")])).await.unwrap();
    assert!(table(&new).contains("extra") && !table(&old).contains("extra"));
    assert_eq!(pins(&service, &new, "e1").await.0, [v2.digest()]);
    // A later wave uses the session's pinned version.
    let wave = service.open(&me(), &open("old", &[("tracker", "B")])).await.unwrap();
    assert!(table(&wave).contains("e2\tB") && !table(&wave).contains("extra"), "{}", table(&wave));
    assert_eq!(pins(&service, &wave, "e2").await.0, [v1.digest()]);
}

#[tokio::test]
async fn a_withdrawn_catalog_still_serves_sessions_that_pinned_it() {
    let v1 = tracker("tracker tickets", 1);
    let service = service(registry([v1.clone()]));
    let old = service.open(&me(), &open("old", &[("tracker", "A")])).await.unwrap();
    service.offer(registry([]));
    assert_eq!(pins(&service, &old, "e1").await.0, [v1.digest()]);
    for name in ["tracker", "tickets"] {
        let refused = service.open(&me(), &open("new", &[(name, "A")])).await.unwrap_err();
        assert_eq!(refused.code(), "unknown_seed", "{name}");
    }
    let wave = service.open(&me(), &open("old", &[("tickets", "B")])).await.unwrap();
    assert!(table(&wave).contains("e2\tB"), "the session knows its catalogs by their aliases too");
}

#[tokio::test]
async fn an_alias_keeps_its_meaning_in_an_old_session() {
    let (mine, theirs) = (tracker("tracker tickets", 1), tracker("helpdesk tickets", 2));
    let service = service(registry([mine.clone()]));
    let old = service.open(&me(), &open("old", &[("tickets", "A")])).await.unwrap();
    service.offer(registry([tracker("tracker", 2), theirs.clone()]));
    let wave = service.open(&me(), &open("old", &[("tickets", "B")])).await.unwrap();
    assert_eq!((wave.session, pins(&service, &wave, "e2").await.0), (old.session, vec![mine.digest()]));
    let new = service.open(&me(), &open("new", &[("tickets", "A")])).await.unwrap();
    assert_eq!(pins(&service, &new, "e1").await.0, [theirs.digest()]);
    // A new alias of a pinned catalog leads to the pinned version.
    service.offer(registry([tracker("tracker issues", 2)]));
    let wave = service.open(&me(), &open("old", &[("issues", "A")])).await.unwrap();
    assert_eq!(wave.taught, TaughtTable::Unchanged { entities: 2 });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_call_uses_one_registry() {
    let pair = |version| [tracker("one", version), tracker("two", version)];
    let (first, second) = (registry(pair(1)), registry(pair(2)));
    let service = service(first.clone());
    let swapping = tokio::spawn({
        let service = service.clone();
        async move {
            for n in 0..2_000 {
                service.offer(if n % 2 == 0 { second.clone() } else { first.clone() });
                tokio::task::yield_now().await;
            }
        }
    });
    for n in 0..60 {
        let opened = service.open(&me(), &open(&format!("task {n}"), &[("one", "A"), ("two", "B")])).await.unwrap();
        let (mut pinned, _) = pins(&service, &opened, "e1, e2").await;
        pinned.sort_unstable();
        let of = |version| {
            let mut digests = pair(version).map(|c| c.digest());
            digests.sort_unstable();
            digests.to_vec()
        };
        assert!(pinned == of(1) || pinned == of(2), "one version with another: {pinned:?}");
    }
    swapping.await.unwrap();
}

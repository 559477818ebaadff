//! Discovery through the service: the current registry under all of its names, and errors for bad requests.

use std::sync::Arc;

use access::{Caller, Identity};
use base::Limits;
use catalog::{Catalog, Registry};
use session::{ApiAccess, DiscoverRequest, Error, Service};

use crate::memory_service::MemoryService;

fn read(text: &str) -> Arc<Catalog> {
    Arc::new(catalog::read("shipped.yaml", text).unwrap())
}

fn demo(about: &str) -> Arc<Catalog> {
    read(&include_str!("../../../../catalogs/demo.yaml").replace("a unit of work in a project", about))
}

fn github() -> Arc<Catalog> {
    read(include_str!("../../../../catalogs/github.yaml"))
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

fn ask(intent: &str, apis: &[&str]) -> DiscoverRequest {
    let apis = apis.iter().map(|api| (*api).to_owned()).collect();
    DiscoverRequest { intent: intent.to_owned(), apis, limit: None }
}

fn rows(service: &Service, request: &DiscoverRequest) -> Vec<String> {
    let found = service.discover(&me(), request).unwrap().result;
    found.rows.iter().map(|hit| format!("{}:{}", hit.api, hit.entity)).collect()
}

#[test]
fn discovery_finds_what_the_registry_offers() {
    let service = service(registry([demo("a unit of work"), github()]));
    let request = ask("the zeppelins", &[]);
    assert_eq!(rows(&service, &request), Vec::<String>::new());
    service.offer(registry([demo("a zeppelin"), github()]));
    assert_eq!(rows(&service, &request).first().map(String::as_str), Some("demo:Ticket"));
    service.offer(registry([github()]));
    assert_eq!(rows(&service, &request), Vec::<String>::new());
    assert!(rows(&service, &ask("tickets", &[])).iter().all(|row| row.starts_with("github:")));
}

#[test]
fn discovery_accepts_ids_and_aliases() {
    let service = service(registry([demo("a unit of work"), github()]));
    for name in ["github", "gh"] {
        let found = rows(&service, &ask("comments", &[name]));
        assert_eq!(found.first().map(String::as_str), Some("github:Comment"), "{name}");
        assert!(found.iter().all(|row| row.starts_with("github:")), "{name}: {found:?}");
    }
    let refused = service.discover(&me(), &ask("comments", &["gihub"])).unwrap_err();
    assert_eq!(refused.code(), "unknown_seed");
    assert!(refused.to_string().contains("github"), "{refused}");
}

#[test]
fn discovery_refuses_empty_and_overlong_intents() {
    let service = service(registry([github()]));
    assert!(matches!(service.discover(&me(), &ask(" \n", &[])), Err(Error::NoIntent)));
    let long = "x".repeat(Limits::default().intent_bytes + 1);
    assert!(matches!(service.discover(&me(), &ask(&long, &[])), Err(Error::IntentTooLong { .. })));
    let nothing = service.discover(&me(), &ask("zeppelins", &[])).unwrap();
    assert!(nothing.result.rows.is_empty());
    assert_eq!(nothing.apis.len(), 1, "who finds nothing is told what there is");
}

#[tokio::test]
async fn the_registry_list_shows_missing_secrets() {
    let service = service(registry([demo("a unit of work"), github()]));
    let all = service.list_registry(&me(), None).await;
    let ids: Vec<&str> = all.iter().map(|one| one.catalog.id.as_str()).collect();
    assert_eq!(ids, ["demo", "github"]);
    assert_eq!(all[0].access, ApiAccess::Open);
    let some = service.list_registry(&me(), Some("workflow GIT")).await;
    assert_eq!(some.len(), 1, "an entity and the title of GitHub");
    assert!(service.list_registry(&me(), Some("workflow demo")).await.is_empty());
    assert_eq!(service.find_api(&me(), "gh").await.unwrap().catalog.id.as_str(), "github");
    assert!(service.find_api(&me(), "nope").await.is_none());
}

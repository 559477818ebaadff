//! Discovery through the service: the current registry under all of its names, and errors for bad requests.

use std::sync::Arc;

use access::{Caller, Identity};
use base::Limits;
use catalog::{Catalog, Registry};
use session::{ApiAccess, DiscoverRequest, Error, Service};

use crate::harness::MemoryService;

fn read_catalog(text: &str) -> Arc<Catalog> {
    Arc::new(catalog::read("shipped.yaml", text).unwrap())
}

/// Returns the demo catalog with another description of its ticket.
fn demo_with_ticket_about(about: &str) -> Arc<Catalog> {
    read_catalog(&include_str!("../../../../catalogs/demo.yaml").replace("a unit of work in a project", about))
}

fn github_catalog() -> Arc<Catalog> {
    read_catalog(include_str!("../../../../catalogs/github.yaml"))
}

fn registry<const N: usize>(catalogs: [Arc<Catalog>; N]) -> Arc<Registry> {
    Arc::new(Registry::new(catalogs).unwrap())
}

fn service(registry: Arc<Registry>) -> Arc<Service> {
    MemoryService::with_registry(registry, Limits::default()).service
}

fn local_caller() -> Caller {
    Identity::local().caller(Some("a".to_owned()))
}

fn discover_request(intent: &str, apis: &[&str]) -> DiscoverRequest {
    let apis = apis.iter().map(|api| (*api).to_owned()).collect();
    DiscoverRequest { intent: intent.to_owned(), apis, limit: None }
}

fn found_entities(service: &Service, request: &DiscoverRequest) -> Vec<String> {
    let found = service.discover(&local_caller(), request).unwrap().result;
    found.rows.iter().map(|hit| format!("{}:{}", hit.api, hit.entity)).collect()
}

#[test]
fn discovery_finds_what_the_registry_offers() {
    let service = service(registry([demo_with_ticket_about("a unit of work"), github_catalog()]));
    let request = discover_request("the zeppelins", &[]);
    assert_eq!(found_entities(&service, &request), Vec::<String>::new());
    service.offer(registry([demo_with_ticket_about("a zeppelin"), github_catalog()]));
    assert_eq!(found_entities(&service, &request).first().map(String::as_str), Some("demo:Ticket"));
    service.offer(registry([github_catalog()]));
    assert_eq!(found_entities(&service, &request), Vec::<String>::new());
    assert!(found_entities(&service, &discover_request("tickets", &[])).iter().all(|row| row.starts_with("github:")));
}

#[test]
fn discovery_accepts_ids_and_aliases() {
    let service = service(registry([demo_with_ticket_about("a unit of work"), github_catalog()]));
    for name in ["github", "gh"] {
        let entities = found_entities(&service, &discover_request("comments", &[name]));
        assert_eq!(entities.first().map(String::as_str), Some("github:Comment"), "{name}");
        assert!(entities.iter().all(|row| row.starts_with("github:")), "{name}: {entities:?}");
    }
    let refused = service.discover(&local_caller(), &discover_request("comments", &["gihub"])).unwrap_err();
    assert_eq!(refused.code(), "unknown_seed");
    assert!(refused.to_string().contains("github"), "{refused}");
}

#[test]
fn discovery_refuses_empty_and_overlong_intents() {
    let service = service(registry([github_catalog()]));
    assert!(matches!(service.discover(&local_caller(), &discover_request(" \n", &[])), Err(Error::NoIntent)));
    let overlong = "x".repeat(Limits::default().intent_bytes + 1);
    assert!(matches!(
        service.discover(&local_caller(), &discover_request(&overlong, &[])),
        Err(Error::IntentTooLong { .. })
    ));
    let empty_answer = service.discover(&local_caller(), &discover_request("zeppelins", &[])).unwrap();
    assert!(empty_answer.result.rows.is_empty());
    assert_eq!(empty_answer.apis.len(), 1, "an answer without rows lists the APIs");
}

#[tokio::test]
async fn the_registry_list_shows_missing_secrets() {
    let service = service(registry([demo_with_ticket_about("a unit of work"), github_catalog()]));
    let all = service.list_registry(&local_caller(), None).await;
    let ids: Vec<&str> = all.iter().map(|api| api.catalog.id.as_str()).collect();
    assert_eq!(ids, ["demo", "github"]);
    assert_eq!(all[0].access, ApiAccess::Open);
    let matching = service.list_registry(&local_caller(), Some("workflow GIT")).await;
    assert_eq!(matching.len(), 1, "the words are an entity and the title of GitHub");
    assert!(service.list_registry(&local_caller(), Some("workflow demo")).await.is_empty());
    assert_eq!(service.find_api(&local_caller(), "gh").await.unwrap().catalog.id.as_str(), "github");
    assert!(service.find_api(&local_caller(), "nope").await.is_none());
}

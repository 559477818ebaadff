//! Forbidden parts of a catalog appear not to exist: they are not found, taught, planned or run. Two APIs with an
//! entity of the same name are kept apart up to the call.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::Tenants;
use base::{Limits, TenantId};
use catalog::{Catalog, Permissions, Registry};
use serde_json::json;
use session::{DiscoverRequest, Error, OpenRequest, OpenedSession, PlanRequest, SeedRequest, Service, TaughtTable};
use testkit::upstream::Rule;

use crate::harness::{self, Harness, caller, finished, forced, me, program_of};

fn demo() -> Arc<Catalog> {
    Arc::new(catalog::read("demo.yaml", include_str!("../../../../catalogs/demo.yaml")).unwrap())
}

/// Returns the demo's catalog under another name and origin.
fn other() -> Arc<Catalog> {
    let text = include_str!("../../../../catalogs/demo.yaml").replace("catalog: demo", "catalog: other");
    let text = text.replace("http://demo.localhost/api", "http://other.localhost/other");
    Arc::new(catalog::read("other.yaml", &text).unwrap())
}

fn service(house: &Harness, allow: Permissions) -> Arc<Service> {
    let tenants = Tenants::new(BTreeMap::from([(TenantId::local(), allow)]));
    let registry = Registry::new([demo(), other()]).unwrap();
    Arc::new(Service::new(house.ports(), registry, Limits::default()).with_tenants(tenants))
}

async fn open(service: &Service, seeds: &[(&str, &str)]) -> Result<OpenedSession, Error> {
    let seeds = seeds.iter().map(|(api, entity)| SeedRequest::all(api, entity)).collect();
    service.open(&me(), &OpenRequest::new("close and delete tickets", seeds)).await
}

fn table(opened: &OpenedSession) -> &str {
    match &opened.taught {
        TaughtTable::Text(text) => text,
        TaughtTable::Unchanged { .. } => "",
    }
}

async fn mistakes(service: &Service, program: &str) -> Vec<String> {
    let request = PlanRequest { session: "s0".to_owned(), program: program.to_owned() };
    match service.plan(&me(), &request).await {
        Err(Error::Program { diagnostics, .. }) => {
            diagnostics.iter().map(|d| format!("{} {}", d.code, d.message)).collect()
        }
        other => panic!("{program}: {other:?}"),
    }
}

#[tokio::test]
async fn forbidden_capabilities_appear_not_to_exist() {
    let house = Harness::working();
    let service = service(&house, Permissions::new(Some(&["demo"]), Some(&["demo:ticket_*"]), true));
    // Discovery does not find it.
    let found = |intent: &str| {
        let request = DiscoverRequest { intent: intent.to_owned(), ..DiscoverRequest::default() };
        let found = service.discover(&me(), &request).unwrap().result;
        found.rows.iter().map(|hit| format!("{}:{}", hit.api, hit.entity)).collect::<Vec<_>>()
    };
    assert_eq!(found("tickets"), ["demo:Ticket"]);
    assert!(found("comments of people on projects").iter().all(|hit| hit == "demo:Ticket"));
    let listed = service.list_registry(&me(), None).await;
    assert_eq!(listed.iter().map(|l| l.catalog.id.as_str()).collect::<Vec<_>>(), ["demo"]);
    assert!(service.find_api(&me(), "other").await.is_none());
    // Teaching refuses it.
    for (api, entity) in [("other", "Ticket"), ("demo", "Comment"), ("demo", "Person")] {
        let error = open(&service, &[("demo", "Ticket"), (api, entity)]).await.unwrap_err();
        assert_eq!(error.code(), "unknown_seed", "{api}:{entity}");
        assert!(!error.to_string().contains("Comment |"), "{error}");
    }
    let opened = open(&service, &[("demo", "Ticket")]).await.unwrap();
    assert!(!table(&opened).contains(".m1") && !table(&opened).contains("close"), "{}", table(&opened));
    // Planning gives the same message as for a name that does not exist.
    let close = mistakes(&service, "Ticket(project=\"OPS\", number=1).close(note=\"x\")").await;
    let never = mistakes(&service, "Ticket(project=\"OPS\", number=1).clsoe(note=\"x\")").await;
    assert_eq!(close[0].replace("close", "clsoe"), never[0]);
    for program in ["Person", "other:Ticket", "Comment"] {
        let said = mistakes(&service, program).await.join("\n");
        assert!(said.starts_with("E0202 no entity or name"), "{said}");
    }
    // Running is refused.
    let error = service.run(&me(), &forced("Ticket(project=\"OPS\", number=1).close(note=\"x\")")).await.unwrap_err();
    assert_eq!(error.code(), "bad_program");
    assert_eq!(house.upstream.calls().len(), 0);
}

/// A session keeps its symbols when its tenant loses a right, and they work again when the right is restored.
#[tokio::test]
async fn a_revoked_right_disappears_from_existing_sessions() {
    let house = Harness::working();
    house.upstream.add(Rule::get("/api/people").json(200, json!({"people": []})));
    let free = service(&house, Permissions::default());
    let opened = open(&free, &[("demo", "Ticket"), ("demo", "Person"), ("other", "Ticket")]).await.unwrap();
    assert!(table(&opened).contains("e3\tother:Ticket"));
    let commit = free
        .plan(&me(), &PlanRequest { session: "s0".to_owned(), program: CLOSE.to_owned() })
        .await
        .unwrap()
        .commit
        .unwrap();
    let bound = service(&house, Permissions::new(Some(&["demo"]), None, true));
    assert!(mistakes(&bound, CLOSE).await[0].starts_with("E0210"));
    assert!(mistakes(&bound, "e3").await[0].starts_with("E0202"));
    let error = bound.run(&me(), &harness::commit_of(&commit)).await.unwrap_err();
    assert_eq!(error.code(), "bad_program", "a plan that was shown before is no way around it: {error}");
    assert_eq!(house.upstream.calls().len(), 0);
    // A replay shows the remaining symbols unchanged.
    let seeds = vec![SeedRequest::all("demo", "Ticket")];
    let replay = OpenRequest { replay: true, ..OpenRequest::new("close and delete tickets", seeds) };
    let again = bound.open(&me(), &replay).await.unwrap();
    assert!(table(&again).contains("e2\tdemo:Ticket") && !table(&again).contains("other:Ticket"), "{}", table(&again));
    assert!(!table(&again).contains("close") && table(&again).contains("# Write a program"), "{}", table(&again));
    // More can still be taught, and the pinned catalog stays.
    let more = open(&bound, &[("demo", "Project")]).await.unwrap();
    assert!(table(&more).contains("e4\tdemo:Project"), "{}", table(&more));
    let free = service(&house, Permissions::default());
    let request = PlanRequest { session: "s0".to_owned(), program: "e3, e2, e4".to_owned() };
    free.plan(&me(), &request).await.unwrap();
    free.plan(&me(), &PlanRequest { program: CLOSE.to_owned(), ..request }).await.unwrap();
    // Another tenant is not restricted.
    let theirs = caller("acme", "a");
    let seeds = vec![SeedRequest::all("other", "Ticket")];
    bound.open(&theirs, &OpenRequest::new("task", seeds)).await.unwrap();
}

const CLOSE: &str = "demo:Ticket(project=\"OPS\", number=1).close(note=\"x\")";

#[tokio::test]
async fn entities_with_the_same_name_are_distinguished_up_to_the_call() {
    let house = Harness::working();
    let person =
        |name: &str| json!({"id": "ada", "name": name, "email": "a@b", "team": "platform", "joined": "2024-01-01"});
    house.upstream.add(Rule::get("/api/people/ada").json(200, person("of demo")));
    house.upstream.add(Rule::get("/other/people/ada").json(200, person("of other")));
    let service = service(&house, Permissions::default());
    let opened = open(&service, &[("other", "Person"), ("demo", "Person")]).await.unwrap();
    assert!(table(&opened).contains("e1\tdemo:Person") && table(&opened).contains("e2\tother:Person"));
    let program = "a = e1(\"ada\")\nb = e2(\"ada\")\nc = demo:Person(\"ada\")\nd = other:Person(\"ada\")\na, b, c, d";
    let ran = finished(service.run(&me(), &program_of(program)).await);
    let names: Vec<String> = ran
        .outcome
        .returns
        .iter()
        .map(|r| r.result.as_ref().unwrap().rows[0]["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["of demo", "of other", "of demo", "of other"]);
    let said = mistakes(&service, "Person(\"ada\")").await;
    assert!(said[0].starts_with("E0203"), "{said:?}");
    let request = PlanRequest { session: "s0".to_owned(), program: "Person(\"ada\")".to_owned() };
    let Err(Error::Program { diagnostics, .. }) = service.plan(&me(), &request).await else { panic!() };
    assert_eq!(diagnostics[0].alternatives, ["demo:Person (e1)", "other:Person (e2)"]);
}

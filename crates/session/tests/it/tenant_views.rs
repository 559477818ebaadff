//! Forbidden parts of a catalog appear not to exist: they are not found, taught, planned or run. Two APIs with an
//! entity of the same name are kept apart up to the call.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::Tenants;
use base::{Limits, TenantId};
use catalog::{Catalog, Permissions, Registry};
use serde_json::json;
use session::{DiscoverRequest, Error, OpenRequest, OpenedSession, PlanRequest, SeedRequest, Service};
use testkit::upstream::Rule;

use crate::harness::{
    self, Harness, caller, expect_finished, forced_request, local_caller, program_request, taught_table,
};

const CLOSE_TICKET: &str = "demo:Ticket(project=\"OPS\", number=1).close(note=\"x\")";

fn demo_catalog() -> Arc<Catalog> {
    Arc::new(catalog::read("demo.yaml", include_str!("../../../../catalogs/demo.yaml")).unwrap())
}

/// Returns the demo catalog under another name and origin.
fn other_catalog() -> Arc<Catalog> {
    let text = include_str!("../../../../catalogs/demo.yaml").replace("catalog: demo", "catalog: other");
    let text = text.replace("http://demo.localhost/api", "http://other.localhost/other");
    Arc::new(catalog::read("other.yaml", &text).unwrap())
}

fn service_with_permissions(harness: &Harness, permissions: Permissions) -> Arc<Service> {
    let tenants = Tenants::new(BTreeMap::from([(TenantId::local(), permissions)]));
    let registry = Registry::new([demo_catalog(), other_catalog()]).unwrap();
    Arc::new(Service::new(harness.ports(), registry, Limits::default()).with_tenants(tenants))
}

async fn open(service: &Service, seeds: &[(&str, &str)]) -> Result<OpenedSession, Error> {
    let seeds = seeds.iter().map(|(api, entity)| SeedRequest::all(api, entity)).collect();
    service.open(&local_caller(), &OpenRequest::new("close and delete tickets", seeds)).await
}

/// Plans a program that must be refused, and returns the codes and texts of its diagnostics.
async fn plan_mistakes(service: &Service, program: &str) -> Vec<String> {
    let request = PlanRequest { session: "s0".to_owned(), program: program.to_owned() };
    match service.plan(&local_caller(), &request).await {
        Err(Error::Program { diagnostics, .. }) => {
            diagnostics.iter().map(|d| format!("{} {}", d.code, d.message)).collect()
        }
        other => panic!("{program}: {other:?}"),
    }
}

#[tokio::test]
async fn forbidden_capabilities_appear_not_to_exist() {
    let harness = Harness::with_working_api();
    let service = service_with_permissions(&harness, Permissions::new(Some(&["demo"]), Some(&["demo:ticket_*"]), true));
    // Discovery finds no forbidden entity or catalog.
    let discover = |intent: &str| {
        let request = DiscoverRequest { intent: intent.to_owned(), ..DiscoverRequest::default() };
        let found = service.discover(&local_caller(), &request).unwrap().result;
        found.rows.iter().map(|hit| format!("{}:{}", hit.api, hit.entity)).collect::<Vec<_>>()
    };
    assert_eq!(discover("tickets"), ["demo:Ticket"]);
    assert!(discover("comments of people on projects").iter().all(|hit| hit == "demo:Ticket"));
    let listed = service.list_registry(&local_caller(), None).await;
    assert_eq!(listed.iter().map(|l| l.catalog.id.as_str()).collect::<Vec<_>>(), ["demo"]);
    assert!(service.find_api(&local_caller(), "other").await.is_none());
    // A forbidden seed is unknown, and no forbidden capability is taught.
    for (api, entity) in [("other", "Ticket"), ("demo", "Comment"), ("demo", "Person")] {
        let error = open(&service, &[("demo", "Ticket"), (api, entity)]).await.unwrap_err();
        assert_eq!(error.code(), "unknown_seed", "{api}:{entity}");
        assert!(!error.to_string().contains("Comment |"), "{error}");
    }
    let opened = open(&service, &[("demo", "Ticket")]).await.unwrap();
    assert!(
        !taught_table(&opened).contains(".m1") && !taught_table(&opened).contains("close"),
        "{}",
        taught_table(&opened)
    );
    // Planning gives the same message as for a name that does not exist.
    let close = plan_mistakes(&service, "Ticket(project=\"OPS\", number=1).close(note=\"x\")").await;
    let misspelled = plan_mistakes(&service, "Ticket(project=\"OPS\", number=1).clsoe(note=\"x\")").await;
    assert_eq!(close[0].replace("close", "clsoe"), misspelled[0]);
    for program in ["Person", "other:Ticket", "Comment"] {
        let mistakes = plan_mistakes(&service, program).await.join("\n");
        assert!(mistakes.starts_with("E0202 no entity or name"), "{mistakes}");
    }
    // A forced run is refused.
    let error = service
        .run(&local_caller(), &forced_request("Ticket(project=\"OPS\", number=1).close(note=\"x\")"))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "bad_program");
    assert_eq!(harness.upstream.calls().len(), 0);
}

/// A session keeps its symbols when its tenant loses a right, and they work again when the right is restored.
#[tokio::test]
async fn a_revoked_right_disappears_from_existing_sessions() {
    let harness = Harness::with_working_api();
    harness.upstream.add(Rule::get("/api/people").json(200, json!({"people": []})));
    let unrestricted = service_with_permissions(&harness, Permissions::default());
    let opened = open(&unrestricted, &[("demo", "Ticket"), ("demo", "Person"), ("other", "Ticket")]).await.unwrap();
    assert!(taught_table(&opened).contains("e3\tother:Ticket"));
    let commit = unrestricted
        .plan(&local_caller(), &PlanRequest { session: "s0".to_owned(), program: CLOSE_TICKET.to_owned() })
        .await
        .unwrap()
        .commit
        .unwrap();
    let restricted = service_with_permissions(&harness, Permissions::new(Some(&["demo"]), None, true));
    assert!(plan_mistakes(&restricted, CLOSE_TICKET).await[0].starts_with("E0210"));
    assert!(plan_mistakes(&restricted, "e3").await[0].starts_with("E0202"));
    let error = restricted.run(&local_caller(), &harness::commit_request(&commit)).await.unwrap_err();
    assert_eq!(error.code(), "bad_program", "an earlier plan does not bypass the permissions: {error}");
    assert_eq!(harness.upstream.calls().len(), 0);
    // A replay shows the remaining symbols unchanged.
    let seeds = vec![SeedRequest::all("demo", "Ticket")];
    let replay = OpenRequest { replay: true, ..OpenRequest::new("close and delete tickets", seeds) };
    let replayed = restricted.open(&local_caller(), &replay).await.unwrap();
    assert!(
        taught_table(&replayed).contains("e2\tdemo:Ticket") && !taught_table(&replayed).contains("other:Ticket"),
        "{}",
        taught_table(&replayed)
    );
    assert!(
        !taught_table(&replayed).contains("close") && taught_table(&replayed).contains("# Write a program"),
        "{}",
        taught_table(&replayed)
    );
    // Other entities of the pinned catalog can still be taught.
    let more = open(&restricted, &[("demo", "Project")]).await.unwrap();
    assert!(taught_table(&more).contains("e4\tdemo:Project"), "{}", taught_table(&more));
    let unrestricted = service_with_permissions(&harness, Permissions::default());
    let request = PlanRequest { session: "s0".to_owned(), program: "e3, e2, e4".to_owned() };
    unrestricted.plan(&local_caller(), &request).await.unwrap();
    unrestricted.plan(&local_caller(), &PlanRequest { program: CLOSE_TICKET.to_owned(), ..request }).await.unwrap();
    // Another tenant is not restricted.
    let acme_caller = caller("acme", "a");
    let seeds = vec![SeedRequest::all("other", "Ticket")];
    restricted.open(&acme_caller, &OpenRequest::new("task", seeds)).await.unwrap();
}

#[tokio::test]
async fn entities_with_the_same_name_are_distinguished_up_to_the_call() {
    let harness = Harness::with_working_api();
    let person =
        |name: &str| json!({"id": "ada", "name": name, "email": "a@b", "team": "platform", "joined": "2024-01-01"});
    harness.upstream.add(Rule::get("/api/people/ada").json(200, person("of demo")));
    harness.upstream.add(Rule::get("/other/people/ada").json(200, person("of other")));
    let service = service_with_permissions(&harness, Permissions::default());
    let opened = open(&service, &[("other", "Person"), ("demo", "Person")]).await.unwrap();
    assert!(taught_table(&opened).contains("e1\tdemo:Person") && taught_table(&opened).contains("e2\tother:Person"));
    let program = "a = e1(\"ada\")\nb = e2(\"ada\")\nc = demo:Person(\"ada\")\nd = other:Person(\"ada\")\na, b, c, d";
    let result = expect_finished(service.run(&local_caller(), &program_request(program)).await);
    let names: Vec<String> = result
        .outcome
        .returns
        .iter()
        .map(|r| r.result.as_ref().unwrap().rows[0]["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["of demo", "of other", "of demo", "of other"]);
    let mistakes = plan_mistakes(&service, "Person(\"ada\")").await;
    assert!(mistakes[0].starts_with("E0203"), "{mistakes:?}");
    let request = PlanRequest { session: "s0".to_owned(), program: "Person(\"ada\")".to_owned() };
    let Err(Error::Program { diagnostics, .. }) = service.plan(&local_caller(), &request).await else { panic!() };
    assert_eq!(diagnostics[0].alternatives, ["demo:Person (e1)", "other:Person (e2)"]);
}

//! Tests of the routes that read: paging, filters, search, single items, and refusals with their messages.

use std::collections::BTreeSet;

use serde_json::Value;
use testkit::raw_http::RawClient;
use tokio::net::TcpListener;

use crate::served::{Served, world};

/// Checks the status and the code of a refusal, and returns its message.
async fn refusal(served: &Served, target: &str, status: u16, code: &str) -> String {
    let reply = served.ask(&format!("GET {target}"), &[], b"").await;
    assert_eq!(reply.header("content-type"), Some("application/json"), "{target}");
    assert_eq!(reply.status, status, "{target}: {}", reply.text());
    assert_eq!(reply.error_code(), code, "{target}");
    reply.json()["error"]["message"].as_str().unwrap().to_owned()
}

/// Reads every page of a list, and checks the page number and the total of each page.
async fn read_all(served: &Served, list: &str, per_page: u64) -> Vec<Value> {
    let mut items = Vec::new();
    for page in 1.. {
        let joint = if list.contains('?') { '&' } else { '?' };
        let answer = served.get(&format!("{list}{joint}page={page}&per_page={per_page}")).await;
        let data = answer["data"].as_array().unwrap().clone();
        assert_eq!((&answer["page"], &answer["per_page"]), (&page.into(), &per_page.into()));
        let is_last = page * per_page >= answer["total"].as_u64().unwrap();
        assert!(is_last || data.len() as u64 == per_page);
        items.extend(data);
        if is_last {
            assert_eq!(items.len() as u64, answer["total"].as_u64().unwrap());
            break;
        }
    }
    let distinct: BTreeSet<String> = items.iter().map(Value::to_string).collect();
    assert_eq!(distinct.len(), items.len(), "{list} repeats an item");
    items
}

async fn total(served: &Served, list: &str) -> u64 {
    served.get(list).await["total"].as_u64().unwrap()
}

#[tokio::test]
async fn the_pages_of_a_list_give_every_item_once() {
    let served = Served::start().await;
    let world = world();
    let all = serde_json::to_value(&world).unwrap();
    for (list, field) in [("projects", "projects"), ("people", "people"), ("tickets", "tickets")] {
        for per_page in [7, 20, 100] {
            let items = read_all(&served, &format!("/api/{list}"), per_page).await;
            assert_eq!(Value::Array(items), all[field]);
        }
    }
    let mut comments = 0;
    for ticket in world.tickets.iter().filter(|ticket| ticket.project == "OPS") {
        let list = format!("/api/projects/OPS/tickets/{}/comments", ticket.number);
        comments += read_all(&served, &list, 10).await.len();
    }
    assert_eq!(comments, world.comments.iter().filter(|comment| comment.ticket.project == "OPS").count());
}

#[tokio::test]
async fn page_parameters_have_defaults_and_bounds() {
    let served = Served::start().await;
    let first = served.get("/api/tickets").await;
    assert_eq!((&first["page"], &first["per_page"], &first["total"]), (&1.into(), &20.into(), &321.into()));
    assert_eq!(first["data"].as_array().unwrap().len(), 20);
    let clamped = served.get("/api/projects/OPS/tickets?per_page=1000").await;
    assert_eq!((&clamped["per_page"], &clamped["total"]), (&100.into(), &118.into()));
    assert_eq!(clamped["data"].as_array().unwrap().len(), 100);
    for page in ["17", "99999", "18446744073709551615"] {
        let past = served.get(&format!("/api/tickets?page={page}")).await;
        assert_eq!((past["data"].as_array().unwrap().len() == 1, &past["total"]), (page == "17", &321.into()));
    }
    for name in ["page", "per_page"] {
        for value in ["0", "-1", "1.5", "x", "", "%2B1", "99999999999999999999"] {
            let message = refusal(&served, &format!("/api/tickets?{name}={value}"), 400, "bad_request").await;
            assert!(message.contains(&format!("`{name}`")), "{message}");
        }
    }
}

#[tokio::test]
async fn an_item_must_pass_every_filter() {
    let served = Served::start().await;
    let world = world();
    let expect = |test: &dyn Fn(&demo::Ticket) -> bool| world.tickets.iter().filter(|t| test(t)).count() as u64;
    let owned = |ticket: &demo::Ticket, id: &str| ticket.owner.as_ref().is_some_and(|owner| owner.id == id);
    let cases: [(&str, u64); 9] = [
        ("/api/tickets?state=doing", expect(&|t| t.state == demo::State::Doing)),
        ("/api/tickets?priority=1", expect(&|t| t.priority == 1)),
        ("/api/tickets?owner=ada", expect(&|t| owned(t, "ada"))),
        ("/api/tickets?owner=zo%C3%AB&project=OPS", expect(&|t| owned(t, "zoë") && t.project == "OPS")),
        ("/api/tickets?label=good+first%20issue", expect(&|t| t.labels.contains(&"good first issue".into()))),
        ("/api/tickets?label=r%26d", expect(&|t| t.labels.contains(&"r&d".into()))),
        ("/api/tickets?label=c%2B%2B", expect(&|t| t.labels.contains(&"c++".into()))),
        ("/api/projects/WEB/tickets?state=open", expect(&|t| t.project == "WEB" && t.state == demo::State::Open)),
        ("/api/people/ada/tickets?state=done", expect(&|t| owned(t, "ada") && t.state == demo::State::Done)),
    ];
    for (list, count) in cases {
        assert!(count > 0, "{list} should find something");
        assert_eq!(total(&served, list).await, count, "{list}");
    }
    let joined = read_all(&served, "/api/projects/OPS/tickets?state=done&priority=4&owner=hana&label=bug", 3).await;
    assert_eq!(joined.len(), 4);
    for ticket in joined {
        assert_eq!((&ticket["state"], &ticket["priority"]), (&"done".into(), &4.into()));
        assert_eq!((&ticket["project"], &ticket["owner"]["id"]), (&"OPS".into(), &"hana".into()));
        assert!(ticket["labels"].as_array().unwrap().contains(&"bug".into()));
    }
    let security = read_all(&served, "/api/people?team=security", 3).await;
    assert_eq!(security.len(), 4);
    for nothing in ["project=NOPE", "project=ops", "owner=nobody", "owner=yuki", "label=nope"] {
        assert_eq!(total(&served, &format!("/api/tickets?{nothing}")).await, 0, "{nothing}");
    }
    assert_eq!(total(&served, "/api/people/yuki/tickets").await, 0);
}

#[tokio::test]
async fn a_search_needs_every_word_in_any_case() {
    let served = Served::start().await;
    let hits = read_all(&served, "/api/search/tickets?q=BACKUP%20Unknown", 5).await;
    assert!(!hits.is_empty());
    for ticket in &hits {
        let text = format!("{} {}", ticket["title"], ticket["body"]).to_lowercase();
        assert!(text.contains("backup") && text.contains("unknown"), "{text}");
    }
    assert!(total(&served, "/api/search/tickets?q=m%C3%9CNCHEN").await > 0);
    assert_eq!(total(&served, "/api/search/tickets?q=backup+xyzzy").await, 0);
    for empty in ["", "?q=", "?q=%20+"] {
        let message = refusal(&served, &format!("/api/search/tickets{empty}"), 400, "bad_request").await;
        assert!(message.contains("`q`"), "{message}");
    }
}

#[tokio::test]
async fn one_item_has_the_shape_of_the_list() {
    let served = Served::start().await;
    let world = world();
    let project = served.get("/api/projects/%4F%50S").await;
    assert_eq!(project, serde_json::to_value(world.project("OPS")).unwrap());
    let person = served.get("/api/people/zo%C3%AB").await;
    assert_eq!(person, serde_json::to_value(world.person("zoë")).unwrap());
    let ticket = served.get("/api/projects/OPS/tickets/42").await;
    assert_eq!(ticket, serde_json::to_value(world.ticket("OPS", 42)).unwrap());
}

#[tokio::test]
async fn an_item_or_route_that_does_not_exist_is_a_404() {
    let served = Served::start().await;
    for (target, named) in [
        ("/api/projects/NOPE", "`NOPE`"),
        ("/api/projects/a%2Fb%20c", "`a/b c`"),
        ("/api/projects/NOPE/tickets", "`NOPE`"),
        ("/api/projects/NOPE/tickets/1", "`NOPE`"),
        ("/api/projects/OPS/tickets/119", "119"),
        ("/api/projects/OPS/tickets/119/comments", "119"),
        ("/api/people/nobody", "`nobody`"),
        ("/api/people/nobody/tickets", "`nobody`"),
        ("/", "/"),
        ("/api/nothing", "/api/nothing"),
        ("/api/projects/OPS/nothing", "/api/projects/OPS/nothing"),
    ] {
        let message = refusal(&served, target, 404, "not_found").await;
        assert!(message.contains(named), "{target}: {message}");
    }
}

#[tokio::test]
async fn a_bad_query_is_a_400_that_names_what_is_allowed() {
    let served = Served::start().await;
    for (target, message) in [
        (
            "/api/tickets?statuz=open",
            "unknown parameter `statuz`; allowed: project, state, priority, owner, label, page, per_page",
        ),
        ("/api/people?state=open", "unknown parameter `state`; allowed: team, page, per_page"),
        ("/api/people/ada/tickets?owner=ada", "unknown parameter `owner`; allowed: state, page, per_page"),
        (
            "/api/projects/OPS/tickets?project=WEB",
            "unknown parameter `project`; allowed: state, priority, owner, label, page, per_page",
        ),
        ("/api/projects/OPS?page=1", "unknown parameter `page`; this route takes none"),
        ("/api/tickets?state=open&state=done", "parameter `state` is given more than once"),
        ("/api/tickets?state=Open", "`state` cannot be `Open`; allowed: open, doing, done"),
        ("/api/people?team=sales", "`team` cannot be `sales`; allowed: platform, product, support, security"),
        ("/api/tickets?priority=6", "`priority` cannot be `6`; it must be an integer from 1 to 5"),
        ("/api/tickets?priority=high", "`priority` cannot be `high`; it must be an integer from 1 to 5"),
        ("/api/projects/OPS/tickets/first", "`number` cannot be `first`; it must be a positive integer"),
    ] {
        assert_eq!(refusal(&served, target, 400, "bad_request").await, message, "{target}");
    }
    let message = refusal(&served, "/api/projects/%FF", 400, "bad_request").await;
    assert!(message.starts_with("the path cannot be read: "), "{message}");
}

#[tokio::test]
async fn another_method_is_a_405_that_names_the_allowed_ones() {
    let served = Served::start().await;
    for method in ["POST", "DELETE"] {
        let reply = served.ask(&format!("{method} /api/tickets"), &[], b"").await;
        assert_eq!((reply.status, reply.error_code().as_str()), (405, "method_not_allowed"));
        assert_eq!(reply.header("content-type"), Some("application/json"));
        assert_eq!(reply.header("allow"), Some("GET,HEAD"));
    }
}

#[tokio::test]
async fn the_former_store_answers_that_it_is_gone() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = RawClient { address: listener.local_addr().unwrap() };
    tokio::spawn(demo::serve(listener, std::future::pending()));
    for target in ["GET /graphql", "POST /graphql"] {
        let reply = client.ask(target, &[("content-type", "application/json")], b"{\"query\": \"{me{id}}\"}").await;
        assert_eq!((reply.status, reply.error_code()), (410, "api_gone".to_owned()), "{target}");
        assert!(reply.text().contains("open a session with the catalog `demo`"), "{}", reply.text());
    }
}

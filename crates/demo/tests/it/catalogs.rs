//! The shipped catalogs of this API, each capability called as a session would: what they say is what is served.

use std::collections::BTreeSet;

use base::{Payload, Response};
use catalog::{
    Args, BindInput, Capability, Catalog, DecodeInput, Decoded, NextPage, PagePosition, PageRequest, RequestedPage,
    Row, bind, decode,
};
use serde_json::{Value, json};

use super::served::Served;

struct Caller {
    served: Served,
    catalog: Catalog,
    called: BTreeSet<String>,
    /// What a program would have asked for; everything when it did not say.
    fields: Option<Vec<String>>,
}

impl Caller {
    async fn start(file: &str) -> Caller {
        let text = std::fs::read_to_string(format!("../../catalogs/{file}")).unwrap();
        let catalog = catalog::read(file, &text).unwrap();
        Caller { served: Served::start().await, catalog, called: BTreeSet::new(), fields: None }
    }

    /// All rows of a capability, over all pages.
    async fn call(&mut self, name: &str, args: Value) -> Vec<Row> {
        self.called.insert(name.to_owned());
        let capability = self.catalog.capability(name).unwrap();
        let args: Args = serde_json::from_value(args).unwrap();
        let mut page = capability.paging.as_ref().map(|_| PageRequest { at: PagePosition::First, size: 50 });
        let mut rows = Vec::new();
        loop {
            let decoded = self.once(capability, &args, page.as_ref(), rows.len()).await;
            rows.extend(decoded.rows);
            match (decoded.next, &mut page) {
                (NextPage::At(at), Some(page)) => page.at = at,
                (after, _) => {
                    assert_eq!(after, NextPage::End, "{name}");
                    return rows;
                }
            }
        }
    }

    async fn once(&self, capability: &Capability, args: &Args, page: Option<&PageRequest>, seen: usize) -> Decoded {
        let once = format!("{}-1", capability.name);
        let ask = BindInput { args, page, fields: self.fields.as_deref(), idempotency_key: Some(&once) };
        let request = bind(&self.catalog, capability, &ask).unwrap();
        let pairs: Vec<String> =
            request.query.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let target = format!("{} {}?{}", request.method.as_str(), request.path, pairs.join("&"));
        let mut headers: Vec<(&str, &str)> = request.headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let body = match &request.body {
            Some(Payload::Json { value, .. }) => value.to_string(),
            _ => String::new(),
        };
        headers.extend((!body.is_empty()).then_some(super::served::JSON));
        let reply = self.served.ask(&target, &headers, body.as_bytes()).await;
        assert!((200..300).contains(&reply.status), "{target}: {}", reply.text());
        let response = Response { status: reply.status, headers: Vec::new(), body: reply.body };
        let asked = page.map(|page| RequestedPage { page, rows_before: seen });
        let answer =
            DecodeInput { response: &response, args, page: asked, max_depth: 64, window: catalog::RowWindow::ALL };
        decode(&self.catalog, capability, &answer).unwrap()
    }

    fn has_called_everything(&self) {
        let all: BTreeSet<String> = self.catalog.capabilities.keys().cloned().collect();
        assert_eq!(self.called, all);
    }
}

fn encoded(text: &str) -> String {
    text.replace('%', "%25").replace('&', "%26").replace(' ', "%20")
}

#[tokio::test]
async fn the_tracker_is_what_its_catalog_says() {
    let mut api = Caller::start("demo.yaml").await;
    let projects = api.call("project_list", json!({})).await;
    let project = projects[0]["key"].clone();
    assert_eq!(api.call("project_get", json!({"key": project})).await, std::slice::from_ref(&projects[0]));
    let people = api.call("person_list", json!({"team": "platform"})).await;
    let person = people[0]["id"].clone();
    assert_eq!(api.call("person_get", json!({"id": person})).await, std::slice::from_ref(&people[0]));
    assert_eq!(api.call("ticket_list", json!({})).await.len(), 321);
    assert!(!api.call("ticket_search", json!({"q": "the"})).await.is_empty());

    let new =
        json!({"project": project, "title": "Disk full", "labels": ["r&d"], "owner": person, "due": "2026-05-01"});
    let opened = api.call("ticket_open", new).await.remove(0);
    assert_eq!((&opened["owner"], &opened["state"]), (&person, &json!("open")));
    let key = json!({"project": opened["project"], "number": opened["number"]});
    let with = |more: Value| {
        let mut args = key.as_object().unwrap().clone();
        args.extend(more.as_object().unwrap().clone());
        Value::Object(args)
    };
    assert_eq!(api.call("ticket_get", key.clone()).await, [opened]);
    assert_eq!(api.call("ticket_update", with(json!({"priority": 1}))).await[0]["priority"], 1);
    let said = api.call("comment_add", json!({"ticket": key, "text": "On it.", "author": person})).await;
    assert_eq!(api.call("ticket_close", with(json!({"note": "Bought a disk."}))).await[0]["state"], "done");
    assert_eq!(api.call("ticket_reopen", key.clone()).await[0]["state"], "open");
    let comments = api.call("comment_list", json!({"ticket": key})).await;
    assert!(comments.len() == 2 && comments.contains(&said[0]), "{comments:?}");
    assert_eq!(api.call("ticket_delete", key).await, Vec::<Row>::new());
    api.has_called_everything();
}

#[tokio::test]
async fn the_store_is_what_its_catalog_says() {
    let mut api = Caller::start("demo-store.yaml").await;
    let me = api.call("viewer", json!({})).await.remove(0);
    assert_eq!(api.call("customer_get", json!({"id": me["id"]})).await, std::slice::from_ref(&me));
    assert_eq!(api.call("product_list", json!({})).await.len(), 60);
    let toys = api.call("product_list", json!({"category": "TOYS"})).await;
    let toy = toys.iter().find(|p| p["stock"].as_u64() > Some(2)).unwrap().clone();
    assert_eq!(api.call("product_get", json!({"id": toy["id"]})).await, std::slice::from_ref(&toy));
    assert_eq!(api.call("order_list", json!({})).await.len(), 90);
    let lines = json!([{"product": toy["id"], "quantity": 2}]);
    let order = api.call("order_create", json!({"lines": lines, "note": "Ring twice."})).await.remove(0);
    assert_eq!(order["customer"], me["id"]);
    assert_eq!(api.call("order_get", json!({"id": order["id"]})).await, std::slice::from_ref(&order));
    api.fields = Some(vec!["lines".to_owned()]);
    let lines = &api.call("order_get", json!({"id": order["id"]})).await[0]["lines"];
    assert_eq!((&lines[0]["id"], &lines[0]["product"], &lines[0]["quantity"]), (&order["id"], &toy["id"], &json!(2)));
    api.fields = None;
    let cancelled = api.call("order_cancel", json!({"id": order["id"], "reason": "Changed my mind"})).await;
    assert_eq!(cancelled[0]["status"], "CANCELLED");
    let mine = api.call("order_list", json!({"customer": me["id"], "status": "CANCELLED"})).await;
    assert!(mine.iter().any(|o| o["id"] == order["id"]));
    api.has_called_everything();
}

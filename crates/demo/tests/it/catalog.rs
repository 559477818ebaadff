//! Tests every capability of the shipped catalog `demo` on a served demo API.

use catalog::Row;
use serde_json::{Value, json};

use crate::caller::Caller;

#[tokio::test]
async fn every_capability_of_the_catalog_is_served() {
    let mut api = Caller::start("../../catalogs/demo.yaml").await;
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
    let comment = api.call("comment_add", json!({"ticket": key, "text": "On it.", "author": person})).await;
    assert_eq!(api.call("ticket_close", with(json!({"note": "Bought a disk."}))).await[0]["state"], "done");
    assert_eq!(api.call("ticket_reopen", key.clone()).await[0]["state"], "open");
    let comments = api.call("comment_list", json!({"ticket": key})).await;
    assert!(comments.len() == 2 && comments.contains(&comment[0]), "{comments:?}");
    assert_eq!(api.call("ticket_delete", key).await, Vec::<Row>::new());
    api.assert_all_called();
}

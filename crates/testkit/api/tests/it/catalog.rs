//! Tests every capability of the catalog `tests/catalogs/demo-store.yaml` on the store of the test API.

use serde_json::json;

use crate::caller::Caller;

#[tokio::test]
async fn every_capability_of_the_store_is_served() {
    let mut api = Caller::start("../../../tests/catalogs/demo-store.yaml").await;
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
    api.assert_all_called();
}

//! Tests of the store over GraphQL: operations of every form, mistakes, limits, and mutations that are applied once.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use testkit::raw_http::{JSON, RawReply};

use crate::served::Served;

async fn post(served: &Served, query: &str, variables: Value) -> RawReply {
    served.send("POST /graphql", &json!({"query": query, "variables": variables})).await
}

async fn ask(served: &Served, query: &str, variables: Value) -> Value {
    let reply = post(served, query, variables).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")), "{}", reply.text());
    reply.json()
}

async fn data(served: &Served, query: &str) -> Value {
    let answer = ask(served, query, json!({})).await;
    assert!(answer.get("errors").is_none(), "{query}: {answer}");
    answer["data"].clone()
}

/// Returns the code and the message of the first error of a request that was not executed.
async fn refused(served: &Served, query: &str, variables: Value) -> (String, String) {
    let answer = ask(served, query, variables).await;
    assert!(answer.get("data").is_none(), "{query}: {answer}");
    let error = &answer["errors"][0];
    (error["extensions"]["code"].as_str().unwrap().to_owned(), error["message"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn aliases_fragments_variables_and_nesting() {
    let served = Served::start().await;
    let query = "
        query Q($id: ID!, $with: Boolean!, $status: OrderStatus = DELIVERED) {
            first: product(id: \"p-001\") { ...P }
            other: product(id: $id) { ...P category @include(if: $with) stock @skip(if: $with) }
            missing: product(id: \"nope\") { id }
            orders(first: 1, status: $status) {
                totalCount
                nodes { __typename status customer { id orders(first: 1) { nodes { lines { quantity product { name } } } } } }
            }
            viewer { id name ... on Person { email } }
        }
        fragment P on Product { id name price priceCents ... { tags } }";
    let answer = ask(&served, query, json!({"id": "p-002", "with": true})).await;
    assert!(answer.get("errors").is_none(), "{answer}");
    let data = &answer["data"];
    assert_eq!(
        (&data["first"]["id"], &data["other"]["id"], &data["missing"]),
        (&"p-001".into(), &"p-002".into(), &Value::Null)
    );
    let keys: Vec<&String> = data["other"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["id", "name", "price", "priceCents", "tags", "category"]);
    let cents = data["first"]["priceCents"].as_f64().unwrap();
    assert_eq!(data["first"]["price"].as_f64().unwrap(), cents / 100.0);
    let order = &data["orders"]["nodes"][0];
    assert_eq!((&order["__typename"], &order["status"]), (&"Order".into(), &"DELIVERED".into()));
    assert!(order["customer"]["orders"]["nodes"][0]["lines"][0]["product"]["name"].is_string());
    assert_eq!(data["viewer"], json!({"id": "ada", "name": "Ada Okafor", "email": "ada@example.com"}));
    let answer =
        ask(&served, "query($s: OrderStatus) { orders(status: $s) { totalCount } }", json!({"s": "CANCELLED"})).await;
    let cancelled = answer["data"]["orders"]["totalCount"].as_u64().unwrap();
    assert!((1..30).contains(&cancelled), "{answer}");
}

#[tokio::test]
async fn the_store_has_sixty_products_and_ninety_orders() {
    let served = Served::start().await;
    let all = data(&served, "{ products { id category } orders { totalCount } }").await;
    assert_eq!((all["products"].as_array().unwrap().len(), &all["orders"]["totalCount"]), (60, &90.into()));
    let some = data(&served, "{ products(category: TOYS, limit: 5, offset: 10) { category } }").await;
    assert_eq!(some["products"], json!([{"category": "TOYS"}, {"category": "TOYS"}]));
    let mixed = data(&served, "{ search(text: \"KE\") { __typename ... on Product { name } ... on Person { email } } node(id: \"o-0001\") { id ... on Order { totalCents } } }").await;
    let kinds: BTreeSet<&str> =
        mixed["search"].as_array().unwrap().iter().map(|one| one["__typename"].as_str().unwrap()).collect();
    assert!(kinds.contains("Product"), "{mixed}");
    assert!(mixed["node"]["totalCents"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn connections_walk_both_ways() {
    let served = Served::start().await;
    let query = "query($n: Int, $after: String) { orders(first: $n, after: $after) {
        edges { cursor node { id } } nodes { id } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }";
    for (size, pages) in [(json!(null), 5), (json!(7), 13), (json!(1000), 1)] {
        let (mut found, mut after, mut walked) = (Vec::new(), Value::Null, 0);
        loop {
            let answer = ask(&served, query, json!({"n": size, "after": after})).await;
            let orders = &answer["data"]["orders"];
            let info = &orders["pageInfo"];
            found.extend(orders["edges"].as_array().unwrap().iter().map(|edge| edge["node"]["id"].clone()));
            assert_eq!(info["hasPreviousPage"], walked > 0);
            walked += 1;
            if info["hasNextPage"] == false {
                break;
            }
            after = info["endCursor"].clone();
        }
        let distinct: BTreeSet<String> = found.iter().map(Value::to_string).collect();
        assert_eq!((found.len(), distinct.len(), walked), (90, 90, pages));
        assert!(found.is_sorted_by_key(Value::to_string));
    }
    let query = "query($before: String) { orders(last: 40, before: $before) { nodes { id } pageInfo { hasPreviousPage startCursor } } }";
    let (mut count, mut before) = (0, Value::Null);
    loop {
        let answer = ask(&served, query, json!({"before": before})).await;
        let orders = &answer["data"]["orders"];
        count += orders["nodes"].as_array().unwrap().len();
        if orders["pageInfo"]["hasPreviousPage"] == false {
            break;
        }
        before = orders["pageInfo"]["startCursor"].clone();
    }
    assert_eq!(count, 90);
}

#[tokio::test]
async fn a_field_that_fails_has_its_path() {
    let served = Served::start().await;
    let answer = ask(&served, "{ a: orders(status: CANCELLED, first: 2) { nodes { id invoice } } o: order(id: \"o-9\") { id } viewer { id } }", json!({})).await;
    assert_eq!((&answer["data"]["o"], &answer["data"]["viewer"]["id"]), (&Value::Null, &"ada".into()));
    assert!(answer["data"]["a"]["nodes"][1]["id"].is_string() && answer["data"]["a"]["nodes"][1]["invoice"].is_null());
    let errors = answer["errors"].as_array().unwrap();
    let seen: Vec<(&Value, &Value)> =
        errors.iter().map(|error| (&error["path"], &error["extensions"]["code"])).collect();
    assert_eq!(
        seen,
        [
            (&json!(["a", "nodes", 0, "invoice"]), &"FORBIDDEN".into()),
            (&json!(["a", "nodes", 1, "invoice"]), &"FORBIDDEN".into()),
            (&json!(["o"]), &"NOT_FOUND".into()),
        ]
    );
    assert_eq!(errors[2]["locations"][0]["line"], 1);
    // Neither the type of the failed field nor that of the viewer allows null, so `data` is null.
    let answer = ask(&served, "{ viewer { id orders(after: \"zzz\") { totalCount } } }", json!({})).await;
    assert_eq!((&answer["data"], &answer["errors"][0]["path"]), (&Value::Null, &json!(["viewer", "orders"])));
    assert_eq!(answer["errors"][0]["extensions"]["code"], "BAD_USER_INPUT");
}

#[tokio::test]
async fn a_wrong_operation_is_refused_before_it_runs() {
    let served = Served::start().await;
    let validation = "GRAPHQL_VALIDATION_FAILED";
    for (query, code, part) in [
        ("{ products { id", "GRAPHQL_PARSE_FAILED", "expected"),
        ("", "GRAPHQL_PARSE_FAILED", "expected"),
        ("{ nope }", validation, "Unknown field \"nope\" on type \"Query\""),
        ("{ viewer { id { x } } }", validation, "has no subfields"),
        ("{ viewer }", validation, "must have a selection of subfields"),
        ("{ product { id } }", validation, "argument \"id\" of type \"Query\" is required"),
        ("{ product(id: null) { id } }", validation, "expected type \"ID\""),
        ("{ product(id: 1.5) { id } }", validation, "expected type \"ID\""),
        ("{ product(nope: 1, id: 1) { id } }", validation, "Unknown argument \"nope\""),
        ("{ products(category: CARS) { id } }", validation, "does not contain the value \"CARS\""),
        ("{ product(id: $x) { id } }", validation, "Variable \"$x\" is not defined"),
        ("query($x: Person) { viewer { id } }", validation, "cannot be of non-input type \"Person\""),
        ("{ ...F }", validation, "Unknown fragment: \"F\""),
        ("{ ...F } fragment F on Query { ...F }", validation, "contains itself"),
        ("{ viewer { ... on Product { id } } }", validation, "\"Person\" can never be of type \"Product\""),
        ("{ viewer { ... on Nope { id } } }", validation, "Unknown type \"Nope\""),
        ("{ viewer @upper { id } }", validation, "Unknown directive \"upper\""),
        ("{ viewer @skip { id } }", validation, "argument \"if\" of type \"Boolean!\" is required"),
        ("{ viewer @skip(if: $x) { id } }", validation, "Variable \"$x\" is not defined"),
        ("query($x: Int) { viewer { id } }", validation, "Variable \"$x\" is not used"),
        ("{ viewer { id } } fragment F on Person { id }", validation, "Fragment \"F\" is never used"),
        ("{ orders(first: 1, first: 2) { totalCount } }", validation, "only be one argument named \"first\""),
        ("{ a: viewer { id } a: products { id } }", validation, "alias"),
        ("subscription { viewer { id } }", validation, "not configured for subscriptions"),
        (
            "mutation { createOrder(input: {lines: [{quantity: 1}]}) { replayed } }",
            validation,
            "field \"product\" of type \"ID!\" is required",
        ),
        ("query A { viewer { id } } query B { viewer { id } }", "OPERATION_RESOLUTION_FAILURE", "operationName"),
    ] {
        let (actual, message) = refused(&served, query, json!({})).await;
        assert_eq!(actual, code, "{query}: {message}");
        assert!(message.contains(part), "{query}: {message}");
    }
    let needs = "query($id: ID!) { product(id: $id) { id } }";
    for variables in [json!({}), json!({"id": null}), json!({"id": [1, 2]}), json!({"id": {"a": 1}})] {
        assert_eq!(refused(&served, needs, variables).await.0, "BAD_USER_INPUT");
    }
    let two = json!({"query": "query A { viewer { id } } query B { viewer { name } }", "operationName": "B"});
    assert_eq!(served.send("POST /graphql", &two).await.json()["data"]["viewer"], json!({"name": "Ada Okafor"}));
    for (body, headers, status) in
        [(&b"{"[..], &[JSON][..], 400), (b"{}", &[JSON], 400), (b"{ viewer { id } }", &[], 415)]
    {
        assert_eq!(served.ask("POST /graphql", headers, body).await.status, status);
    }
    let accept = [JSON, ("Accept", "application/graphql-response+json")];
    let reply = served.ask("POST /graphql", &accept, b"{\"query\": \"{ nope }\"}").await;
    assert_eq!((reply.status, reply.header("content-type")), (400, Some("application/graphql-response+json")));
}

/// The GraphQL specification refuses these operations, but async-graphql executes them.
#[tokio::test]
async fn some_mistakes_are_not_refused() {
    let served = Served::start().await;
    for query in [
        "{ products(category: \"TOYS\") { id } }",
        "{ viewer { id ... on Person { id: name } } }",
        "{ viewer { id ...F } } fragment F on Node { id: __typename }",
    ] {
        data(&served, query).await;
    }
    let answer = ask(&served, "query($x: Int) { product(id: $x) { id } }", json!({})).await;
    assert_eq!((&answer["data"]["product"], answer["errors"].as_array().unwrap().len()), (&Value::Null, 1));
}

#[tokio::test]
async fn an_operation_has_a_bound() {
    let served = Served::start().await;
    let mut query = "id".to_owned();
    for _ in 0..12 {
        query = format!("orders(first: 100) {{ nodes {{ customer {{ {query} }} }} }}");
    }
    let answer = ask(&served, &format!("{{ {query} }}"), json!({})).await;
    assert_eq!(answer["errors"].as_array().unwrap().len(), 1);
    assert_eq!(answer["errors"][0]["extensions"]["code"], "QUERY_TOO_COMPLEX");
    let mut deep = "id".to_owned();
    for _ in 0..20 {
        deep = format!("orders(first: 1) {{ nodes {{ customer {{ {deep} }} }} }}");
    }
    let deeper = format!(
        "orders(first: 1) {{ nodes {{ customer {{ orders(first: 1) {{ nodes {{ id customer {{ {deep} }} }} }} }} }} }}"
    );
    assert_eq!(refused(&served, &format!("{{ {deeper} }}"), json!({})).await.0, "GRAPHQL_PARSE_FAILED");
    // The JSON reader has a limit for nesting, which the answer exceeds, so the test reads the answer as text.
    let reply = post(&served, &format!("{{ {deep} }}"), json!({})).await;
    assert!(
        reply.status == 200 && reply.text().starts_with("{\"data\":{\"orders\"") && !reply.text().contains("errors")
    );
    let wide = "id ".repeat(20_000);
    assert_eq!(data(&served, &format!("{{ viewer {{ {wide} }} }}")).await["viewer"], json!({"id": "ada"}));
    let long = format!("{{ viewer {{ {wide} {wide} }} }}");
    assert_eq!(refused(&served, &long, json!({})).await.0, "GRAPHQL_PARSE_FAILED");
    // Twelve fragments that each spread the next one twice expand to 4,096 selections, and forty to a number beyond the bound.
    let doubled = |count: usize| -> String {
        let fragment = |at| format!("fragment F{at} on Query {{ ...F{next} ...F{next} }} ", next = at + 1);
        let fragments: String = (0..count).map(fragment).collect();
        format!("{{ ...F0 }} {fragments} fragment F{count} on Query {{ viewer {{ id }} }}")
    };
    let answer = ask(&served, &doubled(12), json!({})).await;
    assert_eq!(answer["data"]["viewer"]["id"], "ada");
    assert_eq!(refused(&served, &doubled(40), json!({})).await.0, "QUERY_TOO_COMPLEX");
}

#[tokio::test]
async fn orders_are_placed_and_cancelled() {
    let served = Served::start().await;
    let stock = async || data(&served, "{ product(id: \"p-004\") { stock priceCents } }").await["product"].clone();
    let before = stock().await;
    let create = "mutation($input: CreateOrderInput!) { createOrder(input: $input) {
        clientMutationId replayed order { id status totalCents placedAt customer { id } lines { quantity unitPriceCents } } } }";
    let input = json!({"lines": [{"product": "p-004", "quantity": 2}], "customer": "zoë", "clientMutationId": "m-1"});
    let answer = ask(&served, create, json!({"input": input})).await;
    let payload = &answer["data"]["createOrder"];
    assert_eq!((&payload["clientMutationId"], &payload["replayed"]), (&"m-1".into(), &false.into()), "{answer}");
    let order = &payload["order"];
    assert_eq!(
        (&order["id"], &order["status"], &order["customer"]["id"]),
        (&"o-0091".into(), &"PENDING".into(), &"zoë".into())
    );
    assert_eq!(order["totalCents"].as_u64(), before["priceCents"].as_u64().map(|cents| cents * 2));
    assert_eq!(stock().await["stock"].as_u64(), before["stock"].as_u64().map(|stock| stock - 2));

    let cancel = "mutation { cancelOrder(input: {id: \"o-0091\", reason: \"No.\"}) { order { status note } } }";
    assert_eq!(data(&served, cancel).await["cancelOrder"]["order"], json!({"status": "CANCELLED", "note": "No."}));
    assert_eq!(stock().await, before);
    let again = ask(&served, cancel, json!({})).await;
    assert_eq!(
        (&again["data"]["cancelOrder"], &again["errors"][0]["extensions"]["code"]),
        (&Value::Null, &"CONFLICT".into())
    );

    for (input, code) in [
        (json!({"lines": []}), "BAD_USER_INPUT"),
        (json!({"lines": [{"product": "nope"}]}), "BAD_USER_INPUT"),
        (json!({"lines": [{"product": "p-004", "quantity": 0}]}), "BAD_USER_INPUT"),
        (json!({"lines": [{"product": "p-004", "quantity": 999}]}), "OUT_OF_STOCK"),
        (json!({"lines": [{"product": "p-004"}], "customer": "nobody"}), "BAD_USER_INPUT"),
        (json!({"lines": [{"product": "p-004"}, {"product": "p-004"}]}), "BAD_USER_INPUT"),
    ] {
        let answer = ask(&served, create, json!({"input": input})).await;
        assert_eq!(
            (&answer["errors"][0]["extensions"]["code"], &answer["errors"][0]["path"]),
            (&code.into(), &json!(["createOrder"]))
        );
    }
    let effects = served.effects().await;
    assert_eq!(effects.len(), 2);
    assert_eq!(
        (&effects[0]["path"], &effects[0]["key"], &effects[0]["method"]),
        (&"/graphql".into(), &"m-1".into(), &"POST".into())
    );
}

#[tokio::test]
async fn a_client_mutation_id_makes_two_mutations_one_effect() {
    let served = Served::start().await;
    let create = |quantity: u64| {
        format!(
            "mutation {{ createOrder(input: {{lines: [{{product: \"p-004\", quantity: {quantity}}}], clientMutationId: \"same\"}}) {{ replayed order {{ id }} }} }}"
        )
    };
    let once = create(1);
    let (a, b) = tokio::join!(post(&served, &once, json!({})), post(&served, &once, json!({})));
    let payloads = [a.json()["data"]["createOrder"].clone(), b.json()["data"]["createOrder"].clone()];
    assert_eq!(payloads.iter().filter(|payload| payload["replayed"] == true).count(), 1);
    assert!(payloads.iter().all(|payload| payload["order"]["id"] == "o-0091"));
    let other = ask(&served, &create(2), json!({})).await;
    assert_eq!(other["errors"][0]["extensions"]["code"], "IDEMPOTENCY_MISMATCH");
    assert_eq!(served.effects().await.len(), 1);
    // Two mutations in one request are two effects.
    let both = data(&served, "mutation { a: createOrder(input: {lines: {product: \"p-004\"}}) { order { id } } b: cancelOrder(input: {id: \"o-0092\"}) { order { id status } } }").await;
    assert_eq!((&both["a"]["order"]["id"], &both["b"]["order"]["status"]), (&"o-0092".into(), &"CANCELLED".into()));
    assert_eq!(served.effects().await.len(), 3);
    served.ask("POST /control/reset", &[], b"").await;
    assert_eq!(data(&served, "{ orders { totalCount } }").await["orders"]["totalCount"], 90);
}

#[tokio::test]
async fn the_schema_is_shown_as_text_and_by_introspection() {
    let served = Served::start().await;
    let sdl = served.ask("GET /graphql/schema", &[], b"").await;
    assert_eq!((sdl.status, sdl.header("content-type")), (200, Some("text/plain; charset=utf-8")));
    assert!(sdl.text().contains("type Mutation {\n  createOrder(input: CreateOrderInput!): CreateOrderPayload\n"));
    assert_eq!(sdl.text(), include_str!("schema.graphql"), "the schema is that of the file, which a reviewer reads");
    let shown = data(
        &served,
        "{ __schema { queryType { name } mutationType { name } subscriptionType { name } directives { name args { name } }
            types { kind name fields(includeDeprecated: true) { name isDeprecated args { name defaultValue type { kind name ofType { name } } }
            type { kind name ofType { kind name ofType { kind name ofType { kind name } } } } }
            inputFields { name } interfaces { name } enumValues { name } possibleTypes { name } } }
          __type(name: \"Product\") { fields { name } } }",
    )
    .await;
    let schema = &shown["__schema"];
    assert_eq!(
        (&schema["queryType"]["name"], &schema["mutationType"]["name"], &schema["subscriptionType"]),
        (&"Query".into(), &"Mutation".into(), &Value::Null)
    );
    let of = |name: &str| schema["types"].as_array().unwrap().iter().find(|one| one["name"] == name).cloned().unwrap();
    let product = of("Product");
    let sku = product["fields"].as_array().unwrap().iter().find(|field| field["name"] == "sku").cloned().unwrap();
    assert_eq!(sku["isDeprecated"], true);
    assert!(shown["__type"]["fields"].as_array().unwrap().iter().all(|field| field["name"] != "sku"));
    let tags = product["fields"].as_array().unwrap().iter().find(|field| field["name"] == "tags").cloned().unwrap();
    let nested = json!({"kind": "NON_NULL", "name": null, "ofType": {"kind": "LIST", "name": null, "ofType": {"kind": "NON_NULL", "name": null, "ofType": {"kind": "SCALAR", "name": "String"}}}});
    assert_eq!(tags["type"], nested);
    assert_eq!(of("Node")["possibleTypes"], json!([{"name": "Product"}, {"name": "Person"}, {"name": "Order"}]));
    assert_eq!(of("Category")["enumValues"].as_array().unwrap().len(), 5);
    assert_eq!(of("OrderLineInput")["inputFields"], json!([{"name": "product"}, {"name": "quantity"}]));
    assert_eq!(
        of("Query")["fields"][1]["args"][1],
        json!({"name": "limit", "defaultValue": "100", "type": {"kind": "SCALAR", "name": "Int", "ofType": null}})
    );
}

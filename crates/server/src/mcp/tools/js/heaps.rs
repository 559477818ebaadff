//! `get_heap_tags`, `set_heap_tags`, `delete_heap_tags`, `query_heaps_by_tags`, `diff_heaps`.
//! Invariant: a heap of another tenant is one that is not there.

use std::collections::BTreeMap;

use access::Caller;
use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use session::Service;

use super::super::{Answer, Name, arguments, describe, schema};
use super::done;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OfHeap {
    heap: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Set {
    heap: String,
    tags: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Delete {
    heap: String,
    /// Comma-separated; else all.
    #[serde(default)]
    keys: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Query {
    tags: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Diff {
    a: String,
    b: String,
}

pub fn tool(name: Name) -> Option<Tool> {
    Some(match name {
        Name::GetHeapTags => describe(name, "Heap tags", "Tags of a heap.", schema::of::<OfHeap>(), true),
        Name::SetHeapTags => describe(name, "Tag a heap", "Replace all tags.", schema::of::<Set>(), false),
        Name::DeleteHeapTags => describe(name, "Untag a heap", "Remove tags.", schema::of::<Delete>(), false),
        Name::QueryHeapsByTags => {
            describe(name, "Find heaps", "Heaps with all these tags.", schema::of::<Query>(), true)
        }
        Name::DiffHeaps => {
            describe(name, "Compare heaps", "Globals that two heaps differ in.", schema::of::<Diff>(), true)
        }
        _ => return None,
    })
}

pub async fn get_tags(service: &Service, caller: &Caller, given: JsonObject) -> Answer {
    let given: OfHeap = match arguments(Name::GetHeapTags, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    match service.heap_tags(caller, &given.heap).await {
        Ok(tags) => Answer::structured(json!({"tags": tags}), None),
        Err(error) => Answer::failed(&error),
    }
}

pub async fn set_tags(service: &Service, caller: &Caller, given: JsonObject) -> Answer {
    let given: Set = match arguments(Name::SetHeapTags, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    done(service.set_heap_tags(caller, &given.heap, given.tags).await)
}

pub async fn delete_tags(service: &Service, caller: &Caller, given: JsonObject) -> Answer {
    let given: Delete = match arguments(Name::DeleteHeapTags, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    let keys = given.keys.map(|keys| keys.split(',').map(|key| key.trim().to_owned()).collect::<Vec<_>>());
    done(service.delete_heap_tags(caller, &given.heap, keys.as_deref()).await)
}

pub async fn query(service: &Service, caller: &Caller, given: JsonObject) -> Answer {
    let given: Query = match arguments(Name::QueryHeapsByTags, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    match service.heaps_by_tags(caller, &given.tags).await {
        Ok(found) => {
            let results: Vec<Value> = found.iter().map(|(heap, tags)| json!({"heap": heap, "tags": tags})).collect();
            Answer::structured(json!({"results": results}), None)
        }
        Err(error) => Answer::failed(&error),
    }
}

pub async fn diff(service: &Service, caller: &Caller, given: JsonObject) -> Answer {
    let given: Diff = match arguments(Name::DiffHeaps, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    match service.diff_heaps(caller, &given.a, &given.b).await {
        Ok(diff) => Answer::structured(json!(diff), None),
        Err(error) => Answer::failed(&error),
    }
}

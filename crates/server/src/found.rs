//! What discovery found and what the registry holds, as JSON: the same over MCP, HTTP and the command line.
//! Invariant: no field says more than the text of the same answer.

use catalog::{Capability, Catalog};
use serde_json::{Value, json};
use session::{ApiAccess, ApiListing, DiscoveryAnswer};
use teach::discovery::{Decision, Hit, Recommendation};

pub fn rows(discovered: &DiscoveryAnswer) -> Value {
    let found = &discovered.found;
    json!({"rows": hits(&found.rows), "shown": found.rows.len(), "omitted": found.omitted})
}

/// A decision, and what to seed or to choose from; where nothing was found, the APIs there are.
pub fn decision(typed: &Recommendation, discovered: &DiscoveryAnswer) -> Value {
    let mut value = json!({"decision": typed.decision, "options": hits(&typed.options), "omitted": typed.omitted});
    if typed.decision == Decision::NoMatch {
        value["apis"] = discovered.apis.iter().map(|catalog| catalog.id.to_string()).collect();
    }
    value
}

fn hits(hits: &[Hit]) -> Value {
    hits.iter().map(|hit| json!({"api": hit.api, "entity": hit.entity, "description": hit.description})).collect()
}

pub fn listed(listed: &ApiListing) -> Value {
    let catalog = &listed.catalog;
    json!({
        "id": catalog.id,
        "title": catalog.title,
        "version": catalog.version,
        "aliases": catalog.aliases,
        "digest": catalog.digest(),
        "entities": catalog.offered().map(|e| &e.name).collect::<Vec<_>>(),
        "capabilities": catalog.capabilities.len(),
        "auth": auth(&listed.access),
    })
}

/// With what each entity is and what can be done with it.
pub fn registered(one: &ApiListing) -> Value {
    let catalog = &one.catalog;
    let mut value = listed(one);
    value["origin"] = json!(catalog.origin);
    value["entities"] = catalog.offered().map(|e| entity(catalog, e)).collect();
    value
}

fn entity(catalog: &Catalog, entity: &catalog::Entity) -> Value {
    let capability = |c: &Capability| json!({"name": c.name, "kind": c.kind, "about": c.about});
    let relation = |r: &catalog::Relation| json!({"name": r.name, "target": r.target, "many": r.many});
    json!({
        "name": entity.name,
        "about": entity.about,
        "key": entity.key,
        "fields": entity.fields.keys().collect::<Vec<_>>(),
        "relations": entity.relations.values().map(relation).collect::<Vec<_>>(),
        "capabilities":
            catalog.capabilities_of(&entity.name).map(capability).collect::<Vec<_>>(),
    })
}

fn auth(access: &ApiAccess) -> Value {
    match access {
        ApiAccess::Open => json!({"state": "open"}),
        ApiAccess::Signed => json!({"state": "signed"}),
        ApiAccess::Anonymous(names) => json!({"state": "anonymous", "not_set": names}),
        ApiAccess::Lacking(names) => json!({"state": "lacking", "not_set": names}),
    }
}

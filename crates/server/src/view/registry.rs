//! Discovery results and registry entries.

use catalog::{Capability, Catalog, Relation};
use schemars::JsonSchema;
use serde::Serialize;
use session::{ApiAccess, ApiListing, DiscoveryAnswer};
use teach::discovery::{Decision, Hit, Recommendation};

/// The entities that match an intent, the best first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DiscoveredRows {
    rows: Vec<DiscoveredEntity>,
    shown: usize,
    /// The number of matches beyond the limit.
    omitted: usize,
}

/// One entity that matches an intent. `api` and `entity` are what a seed needs.
#[derive(Debug, Serialize, JsonSchema)]
struct DiscoveredEntity {
    api: String,
    entity: String,
    description: String,
}

impl DiscoveredRows {
    pub fn new(answer: &DiscoveryAnswer) -> Self {
        let result = &answer.result;
        Self { rows: entities(&result.rows), shown: result.rows.len(), omitted: result.omitted }
    }
}

/// The next step that discovery recommends, with the entities to seed or to choose from.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DiscoveryDecision {
    #[schemars(with = "String")]
    decision: Decision,
    options: Vec<DiscoveredEntity>,
    omitted: usize,
    /// The APIs that were searched, if nothing matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    apis: Option<Vec<String>>,
}

impl DiscoveryDecision {
    pub fn new(recommendation: &Recommendation, answer: &DiscoveryAnswer) -> Self {
        let apis = || answer.apis.iter().map(|catalog| catalog.id.to_string()).collect();
        Self {
            decision: recommendation.decision,
            options: entities(&recommendation.options),
            omitted: recommendation.omitted,
            apis: (recommendation.decision == Decision::NoMatch).then(apis),
        }
    }
}

fn entities(hits: &[Hit]) -> Vec<DiscoveredEntity> {
    let entity = |hit: &Hit| DiscoveredEntity {
        api: hit.api.to_string(),
        entity: hit.entity.to_string(),
        description: hit.description.clone(),
    };
    hits.iter().map(entity).collect()
}

/// An API in the registry's list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ApiSummary {
    id: String,
    title: String,
    version: u32,
    aliases: Vec<String>,
    /// The digest of the catalog. A session pins the catalog of this digest.
    digest: String,
    entities: Vec<String>,
    /// The number of capabilities.
    capabilities: usize,
    auth: ApiAuth,
}

/// An API with its entities and the operations of each.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ApiDescription {
    id: String,
    title: String,
    version: u32,
    aliases: Vec<String>,
    /// The digest of the catalog. A session pins the catalog of this digest.
    digest: String,
    entities: Vec<EntityDescription>,
    /// The number of capabilities.
    capabilities: usize,
    auth: ApiAuth,
    /// The origin to which requests are sent.
    origin: String,
}

/// The credentials with which requests to an API would be sent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
enum ApiAuth {
    /// The API needs no credential.
    Open,
    /// All secrets are set.
    Signed,
    /// Some secrets are not set. The API answers some calls without them.
    Anonymous { not_set: Vec<String> },
    /// Some secrets are not set, and every call fails without them.
    Lacking { not_set: Vec<String> },
}

impl ApiAuth {
    fn new(access: &ApiAccess) -> Self {
        match access {
            ApiAccess::Open => Self::Open,
            ApiAccess::Signed => Self::Signed,
            ApiAccess::Anonymous(names) => Self::Anonymous { not_set: names.clone() },
            ApiAccess::Lacking(names) => Self::Lacking { not_set: names.clone() },
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct EntityDescription {
    name: String,
    about: String,
    /// The fields that identify one entity.
    key: Vec<String>,
    fields: Vec<String>,
    relations: Vec<RelationDescription>,
    capabilities: Vec<CapabilityDescription>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct RelationDescription {
    name: String,
    target: String,
    /// Whether the relation leads to several entities.
    many: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CapabilityDescription {
    name: String,
    #[schemars(with = "String")]
    kind: catalog::Kind,
    about: String,
}

impl ApiSummary {
    pub fn new(listing: &ApiListing) -> Self {
        let catalog = &listing.catalog;
        Self {
            id: catalog.id.to_string(),
            title: catalog.title.clone(),
            version: catalog.version,
            aliases: aliases(catalog),
            digest: catalog.digest().to_string(),
            entities: catalog.offered().map(|entity| entity.name.to_string()).collect(),
            capabilities: catalog.capabilities.len(),
            auth: ApiAuth::new(&listing.access),
        }
    }
}

impl ApiDescription {
    pub fn new(listing: &ApiListing) -> Self {
        let catalog = &listing.catalog;
        Self {
            id: catalog.id.to_string(),
            title: catalog.title.clone(),
            version: catalog.version,
            aliases: aliases(catalog),
            digest: catalog.digest().to_string(),
            entities: catalog.offered().map(|entity| EntityDescription::new(catalog, entity)).collect(),
            capabilities: catalog.capabilities.len(),
            auth: ApiAuth::new(&listing.access),
            origin: catalog.origin.to_string(),
        }
    }
}

fn aliases(catalog: &Catalog) -> Vec<String> {
    catalog.aliases.iter().map(ToString::to_string).collect()
}

impl EntityDescription {
    fn new(catalog: &Catalog, entity: &catalog::Entity) -> Self {
        let relation = |relation: &Relation| RelationDescription {
            name: relation.name.to_string(),
            target: relation.target.to_string(),
            many: relation.many,
        };
        let capability = |capability: &Capability| CapabilityDescription {
            name: capability.name.to_string(),
            kind: capability.kind,
            about: capability.about.clone(),
        };
        Self {
            name: entity.name.to_string(),
            about: entity.about.clone(),
            key: entity.key.iter().map(ToString::to_string).collect(),
            fields: entity.fields.keys().map(ToString::to_string).collect(),
            relations: entity.relations.values().map(relation).collect(),
            capabilities: catalog.capabilities_of(&entity.name).map(capability).collect(),
        }
    }
}

//! `list_registry`: the available APIs, and whether they can be called.
//! Invariant: a secret is reported only by its name and whether it is set.

use std::sync::Arc;

use access::Caller;
use catalog::Catalog;

use crate::service::Service;

/// An API in the registry's list.
#[derive(Debug)]
pub struct ApiListing {
    /// The catalog, as the caller's tenant sees it.
    pub catalog: Arc<Catalog>,
    /// Whether the API can be called with the secrets that are set.
    pub access: ApiAccess,
}

/// The credentials with which calls to an API would be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiAccess {
    /// The API asks for no credential.
    Open,
    /// All its secrets are set.
    Signed,
    /// These secrets are not set, but the API answers some calls without them.
    Anonymous(Vec<String>),
    /// These secrets are not set, so every call fails.
    Lacking(Vec<String>),
}

impl Service {
    /// Returns the APIs that the caller may use, in the order of their ids. With a query, those whose id, title or
    /// entities contain each of its words.
    pub async fn list_registry(&self, caller: &Caller, query: Option<&str>) -> Vec<ApiListing> {
        let words: Vec<String> = query.unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
        let mut listed = Vec::new();
        for catalog in self.registry_for(&caller.tenant).iter() {
            if words.iter().all(|word| mentions(catalog, word)) {
                listed.push(ApiListing { access: self.access(caller, catalog).await, catalog: catalog.clone() });
            }
        }
        listed
    }

    /// Returns one API by id or alias.
    pub async fn find_api(&self, caller: &Caller, name: &str) -> Option<ApiListing> {
        let catalog = self.registry_for(&caller.tenant).get(name)?.clone();
        Some(ApiListing { access: self.access(caller, &catalog).await, catalog })
    }

    /// Returns the credentials with which this caller's calls to an API would be sent.
    async fn access(&self, caller: &Caller, catalog: &Catalog) -> ApiAccess {
        let Some(auth) = &catalog.auth else { return ApiAccess::Open };
        match self.ports.upstream.missing_secrets(&caller.tenant, &catalog.origin, auth).await {
            lacking if lacking.is_empty() => ApiAccess::Signed,
            lacking if catalog.anonymous => ApiAccess::Anonymous(lacking),
            lacking => ApiAccess::Lacking(lacking),
        }
    }
}

/// Returns whether the catalog's names contain a word, which must be in lower case.
fn mentions(catalog: &Catalog, word: &str) -> bool {
    let ids = std::iter::once(&catalog.id).chain(&catalog.aliases).map(|id| id.as_str());
    let mut names = ids.chain([catalog.title.as_str()]).chain(catalog.offered().map(|entity| entity.name.as_str()));
    names.any(|name| name.to_lowercase().contains(word))
}

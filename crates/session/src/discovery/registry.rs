//! `list_registry`: the APIs there are, and whether they can be called.
//! Invariant: of a secret only its name and that it is missing are said.

use std::sync::Arc;

use catalog::Catalog;

use crate::service::Service;
use access::Caller;

#[derive(Debug)]
pub struct Listed {
    pub catalog: Arc<Catalog>,
    pub access: Access,
}

/// What calls to an API would be sent with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// It asks for no credential.
    Open,
    /// All its secrets are set.
    Signed,
    /// These are not set; the API answers some calls without.
    Anonymous(Vec<String>),
    /// These are not set, so every call fails.
    Lacking(Vec<String>),
}

impl Service {
    /// The APIs that the caller may use, in the order of their ids; with a query, those whose id, title or entities have each
    /// of its words.
    pub async fn list_registry(&self, caller: &Caller, query: Option<&str>) -> Vec<Listed> {
        let words: Vec<String> = query.unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
        let mut listed = Vec::new();
        for catalog in self.registry_for(&caller.tenant).iter() {
            if words.iter().all(|word| speaks_of(catalog, word)) {
                listed.push(Listed { access: self.access(caller, catalog).await, catalog: catalog.clone() });
            }
        }
        listed
    }

    /// One of them, by id or alias.
    pub async fn registered(&self, caller: &Caller, name: &str) -> Option<Listed> {
        let catalog = self.registry_for(&caller.tenant).get(name)?.clone();
        Some(Listed { access: self.access(caller, &catalog).await, catalog })
    }

    async fn access(&self, caller: &Caller, catalog: &Catalog) -> Access {
        let Some(auth) = &catalog.auth else { return Access::Open };
        match self.ports.upstream.lacking(&caller.tenant, auth).await {
            lacking if lacking.is_empty() => Access::Signed,
            lacking if catalog.anonymous => Access::Anonymous(lacking),
            lacking => Access::Lacking(lacking),
        }
    }
}

fn speaks_of(catalog: &Catalog, word: &str) -> bool {
    let ids = std::iter::once(&catalog.id).chain(&catalog.aliases).map(|id| id.as_str());
    let mut names = ids.chain([catalog.title.as_str()]).chain(catalog.offered().map(|e| e.name.as_str()));
    names.any(|name| name.to_lowercase().contains(word))
}

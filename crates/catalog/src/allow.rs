//! What a tenant may use, and a catalog as that tenant sees it.
//! Invariant: this is the only permission check. Discovery, teaching, checking and running all look at the view, in which
//! what is not allowed is not there; so nothing can name it, and nobody is told that it exists.

use std::sync::Arc;

use serde::Deserialize;
use wildmatch::WildMatch;

use crate::model::{Capability, Catalog, Via};

/// As the settings write it. A list that is left out allows all.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Allow {
    /// Ids of catalogs; `*` stands for any characters.
    catalogs: Option<Vec<Pattern>>,
    /// `catalog:capability`, or the name alone for every catalog's.
    capabilities: Option<Vec<Pattern>>,
    /// Nothing that changes something.
    read_only: bool,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "String")]
struct Pattern {
    text: WildMatch,
    qualified: bool,
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        Self { text: WildMatch::new(&text), qualified: text.contains(':') }
    }
}

impl Allow {
    pub fn new(catalogs: Option<&[&str]>, capabilities: Option<&[&str]>, read_only: bool) -> Self {
        let patterns = |list: &[&str]| list.iter().map(|text| Pattern::from((*text).to_owned())).collect();
        Self { catalogs: catalogs.map(patterns), capabilities: capabilities.map(patterns), read_only }
    }

    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }

    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    pub fn permits(&self, catalog: &Catalog, capability: &Capability) -> bool {
        if self.read_only && !capability.kind.is_read() {
            return false;
        }
        let id = catalog.id.as_str();
        if self.catalogs.as_ref().is_some_and(|list| !list.iter().any(|p| p.text.matches(id))) {
            return false;
        }
        let Some(capabilities) = &self.capabilities else { return true };
        let full = format!("{id}:{}", capability.name);
        capabilities.iter().any(|p| p.text.matches(if p.qualified { &full } else { &capability.name }))
    }

    /// The catalog without what may not be used; `None` when nothing is left. It keeps the digest of the whole.
    pub fn view(&self, catalog: &Arc<Catalog>) -> Option<Arc<Catalog>> {
        if catalog.capabilities.values().all(|c| self.permits(catalog, c)) {
            return Some(catalog.clone());
        }
        let mut seen = Catalog::clone(catalog);
        seen.capabilities.retain(|_, c| self.permits(catalog, c));
        if seen.capabilities.is_empty() {
            return None;
        }
        let left = |name: &str| seen.capabilities.contains_key(name);
        let mut relations: Vec<(String, String)> = Vec::new();
        for entity in seen.entities.values() {
            for relation in entity.relations.values() {
                let followed = match &relation.via {
                    Via::Call { capability, .. } => left(capability),
                    Via::Key { .. } => seen.get_of(&relation.target).is_some(),
                    Via::Embedded { .. } => true,
                };
                if !followed {
                    relations.push((entity.name.clone(), relation.name.clone()));
                }
            }
        }
        for (entity, relation) in relations {
            if let Some(entity) = seen.entities.get_mut(&entity) {
                entity.relations.shift_remove(&relation);
            }
        }
        forget(&mut seen);
        seen.hidden = hidden(catalog, &seen);
        Some(Arc::new(seen))
    }
}

/// No capability or entity that is left names one that is gone.
fn forget(seen: &mut Catalog) {
    let names: Vec<String> = seen.capabilities.keys().cloned().collect();
    let gone = |name: &Option<String>| name.as_ref().is_some_and(|name| !names.contains(name));
    for effect in seen.capabilities.values_mut().filter_map(|c| c.effect.as_mut()) {
        if gone(&effect.undo) {
            effect.undo = None;
        }
        if gone(&effect.probe.as_ref().map(|p| p.capability.clone())) {
            effect.probe = None;
        }
    }
    for entity in seen.entities.values_mut() {
        if gone(&entity.primary_read) {
            entity.primary_read = None;
        }
    }
}

/// Entities that had something to call and have nothing left. They stay in the model, because references to them are still
/// read by their keys; they cannot be seeded or found.
fn hidden(whole: &Catalog, seen: &Catalog) -> Vec<String> {
    let reached = |catalog: &Catalog, name: &str| {
        catalog.capabilities.values().any(|c| c.entity == name)
            || catalog.entities.values().any(|e| e.relations.values().any(|r| r.target == name))
    };
    let lost = |name: &&String| reached(whole, name) && !reached(seen, name);
    whole.entities.keys().filter(lost).cloned().collect()
}

#[cfg(test)]
mod tests {
    // why: a failed expectation is the test's own failure.
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn demo() -> Arc<Catalog> {
        Arc::new(crate::read("demo.yaml", include_str!("../../../catalogs/demo.yaml")).unwrap())
    }

    #[test]
    fn everything_is_the_same_catalog() {
        let demo = demo();
        assert!(Arc::ptr_eq(&Allow::default().view(&demo).unwrap(), &demo));
    }

    #[test]
    fn read_only_leaves_reads_and_the_digest() {
        let demo = demo();
        let seen = Allow::new(None, None, true).view(&demo).unwrap();
        assert!(seen.capabilities.values().all(|c| c.kind.is_read()));
        assert!(seen.capability("ticket_list").is_some() && seen.capability("ticket_close").is_none());
        assert_eq!(seen.digest(), demo.digest());
    }

    #[test]
    fn what_leads_to_something_gone_is_gone() {
        let demo = demo();
        let seen = Allow::new(None, Some(&["demo:ticket_*", "person_*"]), false).view(&demo).unwrap();
        assert!(
            !seen.entity("Ticket").unwrap().relations.contains_key("comments"),
            "comments are read by comment_list"
        );
        assert!(seen.entity("Ticket").unwrap().relations.contains_key("owner"));
        assert!(!seen.offers("Comment") && !seen.offers("Project") && seen.offers("Ticket") && seen.offers("Person"));
        for capability in seen.capabilities.values() {
            let effect = capability.effect.clone().unwrap_or_default();
            let named = effect.undo.into_iter().chain(effect.probe.map(|p| p.capability));
            assert!(named.into_iter().all(|name| seen.capability(&name).is_some()), "{}", capability.name);
        }
    }

    #[test]
    fn a_catalog_of_which_nothing_is_left_is_not_there() {
        let demo = demo();
        assert!(Allow::new(Some(&["git*"]), None, false).view(&demo).is_none());
        assert!(Allow::new(Some(&["de*"]), None, false).view(&demo).is_some());
        assert!(Allow::new(None, Some(&["other:*"]), false).view(&demo).is_none());
    }
}

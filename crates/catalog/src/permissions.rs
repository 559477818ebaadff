//! The permissions of a tenant, and the tenant view: a copy of a catalog with only the parts that the tenant may use.
//! Invariant: making the view is the only permission check. Discovery, teaching, checking and running all use the
//! view. A program therefore cannot name a part that the view lacks, and no answer reveals that the part exists.

use std::sync::Arc;

use serde::Deserialize;
use wildmatch::WildMatch;

use crate::model::{Capability, Catalog, Via};

/// The parts of the catalogs that a tenant may use, in the form of the settings. A missing list allows everything.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Permissions {
    /// Patterns for the ids of the allowed catalogs. `*` in a pattern matches any characters.
    catalogs: Option<Vec<Pattern>>,
    /// Patterns for the allowed capabilities: `catalog:capability`, or the capability's name in any catalog.
    capabilities: Option<Vec<Pattern>>,
    /// Whether only capabilities that read are allowed.
    read_only: bool,
}

/// One pattern of a permission list.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "String")]
struct Pattern {
    text: WildMatch,
    /// Whether the pattern contains a catalog's name. Such a pattern is compared with `catalog:capability`.
    qualified: bool,
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        Self { text: WildMatch::new(&text), qualified: text.contains(':') }
    }
}

impl Permissions {
    /// Makes permissions from patterns. `None` allows every catalog, or every capability.
    pub fn new(catalogs: Option<&[&str]>, capabilities: Option<&[&str]>, read_only: bool) -> Self {
        let patterns = |list: &[&str]| list.iter().map(|text| Pattern::from((*text).to_owned())).collect();
        Self { catalogs: catalogs.map(patterns), capabilities: capabilities.map(patterns), read_only }
    }

    /// Returns whether everything is allowed.
    pub fn is_unrestricted(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether only reads are allowed.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Returns whether the tenant may call this capability.
    pub fn permits(&self, catalog: &Catalog, capability: &Capability) -> bool {
        if self.read_only && !capability.kind.is_read() {
            return false;
        }
        let id = catalog.id.as_str();
        if self.catalogs.as_ref().is_some_and(|list| !list.iter().any(|p| p.text.matches(id))) {
            return false;
        }
        let Some(capabilities) = &self.capabilities else { return true };
        let full_name = format!("{id}:{}", capability.name);
        capabilities.iter().any(|p| p.text.matches(if p.qualified { &full_name } else { &capability.name }))
    }

    /// Returns the tenant view of a catalog, or `None` if the tenant may use no capability. The view has the digest
    /// of the whole catalog, because sessions store the whole catalog.
    pub fn view(&self, catalog: &Arc<Catalog>) -> Option<Arc<Catalog>> {
        if catalog.capabilities.values().all(|c| self.permits(catalog, c)) {
            return Some(catalog.clone());
        }
        let mut view = Catalog::clone(catalog);
        view.capabilities.retain(|_, c| self.permits(catalog, c));
        if view.capabilities.is_empty() {
            return None;
        }
        remove_unfollowable_relations(&mut view);
        remove_dangling_names(&mut view);
        view.hidden_entities = find_entities_to_hide(catalog, &view);
        Some(Arc::new(view))
    }
}

/// Removes relations that need a capability that the view lacks.
fn remove_unfollowable_relations(view: &mut Catalog) {
    let mut unfollowable: Vec<(String, String)> = Vec::new();
    for entity in view.entities.values() {
        for relation in entity.relations.values() {
            let is_followable = match &relation.via {
                Via::Call { capability, .. } => view.capabilities.contains_key(capability),
                Via::Key { .. } => view.get_of(&relation.target).is_some(),
                Via::Embedded { .. } => true,
            };
            if !is_followable {
                unfollowable.push((entity.name.clone(), relation.name.clone()));
            }
        }
    }
    for (entity, relation) in unfollowable {
        if let Some(entity) = view.entities.get_mut(&entity) {
            entity.relations.shift_remove(&relation);
        }
    }
}

/// Removes references to capabilities that the view lacks: undos, probes and primary reads.
fn remove_dangling_names(view: &mut Catalog) {
    let names: Vec<String> = view.capabilities.keys().cloned().collect();
    let is_dangling = |name: &Option<String>| name.as_ref().is_some_and(|name| !names.contains(name));
    for effect in view.capabilities.values_mut().filter_map(|c| c.effect.as_mut()) {
        if is_dangling(&effect.undo) {
            effect.undo = None;
        }
        if is_dangling(&effect.probe.as_ref().map(|p| p.capability.clone())) {
            effect.probe = None;
        }
    }
    for entity in view.entities.values_mut() {
        if is_dangling(&entity.primary_read) {
            entity.primary_read = None;
        }
    }
}

/// Returns the entities that a program can reach in the whole catalog and cannot reach in the view. They stay in the
/// model, because fields that refer to them are decoded with their key. A caller cannot seed or discover them.
fn find_entities_to_hide(whole: &Catalog, view: &Catalog) -> Vec<String> {
    let is_reachable = |catalog: &Catalog, name: &str| {
        catalog.capabilities.values().any(|c| c.entity == name)
            || catalog.entities.values().any(|e| e.relations.values().any(|r| r.target == name))
    };
    let is_only_in_whole = |name: &&String| is_reachable(whole, name) && !is_reachable(view, name);
    whole.entities.keys().filter(is_only_in_whole).cloned().collect()
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
    fn a_view_without_restrictions_is_the_same_catalog() {
        let demo = demo();
        assert!(Arc::ptr_eq(&Permissions::default().view(&demo).unwrap(), &demo));
    }

    #[test]
    fn a_read_only_view_has_only_reads_and_keeps_the_digest() {
        let demo = demo();
        let view = Permissions::new(None, None, true).view(&demo).unwrap();
        assert!(view.capabilities.values().all(|c| c.kind.is_read()));
        assert!(view.capability("ticket_list").is_some() && view.capability("ticket_close").is_none());
        assert_eq!(view.digest(), demo.digest());
    }

    #[test]
    fn a_view_has_no_name_of_a_removed_capability() {
        let demo = demo();
        let view = Permissions::new(None, Some(&["demo:ticket_*", "person_*"]), false).view(&demo).unwrap();
        assert!(
            !view.entity("Ticket").unwrap().relations.contains_key("comments"),
            "comments are read by comment_list"
        );
        assert!(view.entity("Ticket").unwrap().relations.contains_key("owner"));
        assert!(!view.offers("Comment") && !view.offers("Project") && view.offers("Ticket") && view.offers("Person"));
        for capability in view.capabilities.values() {
            let effect = capability.effect.clone().unwrap_or_default();
            let named = effect.undo.into_iter().chain(effect.probe.map(|p| p.capability));
            assert!(named.into_iter().all(|name| view.capability(&name).is_some()), "{}", capability.name);
        }
    }

    #[test]
    fn a_catalog_without_allowed_capabilities_has_no_view() {
        let demo = demo();
        assert!(Permissions::new(Some(&["git*"]), None, false).view(&demo).is_none());
        assert!(Permissions::new(Some(&["de*"]), None, false).view(&demo).is_some());
        assert!(Permissions::new(None, Some(&["other:*"]), false).view(&demo).is_none());
    }
}

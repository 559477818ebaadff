//! The relations of a draft: from an entity to a list below its path, or to a list with a filter for the entity's key.
//! Invariant: the parent's key fills every required parameter of the list. Relation names differ from field names.

use std::collections::HashMap;

use catalog::Kind;
use catalog::raw::{Relation, SlotType};
use indexmap::IndexMap;

use super::{Mapper, PlannedCapability};
use crate::draft::{DraftCapability, DraftEntity};
use crate::names;

impl Mapper<'_, '_> {
    /// Adds the relations of all lists. `capabilities` has one element for each plan, `None` if the plan failed. `entities` has
    /// the same order as the mapper's entities.
    pub(super) fn add_relations(&self, entities: &mut [DraftEntity], capabilities: &[Option<DraftCapability>]) {
        for (plan, capability) in self.plans.iter().zip(capabilities) {
            let Some(list) = capability.as_ref().filter(|_| plan.kind == Kind::Query) else { continue };
            match self.parent_by_path(plan).or_else(|| self.parent_by_placeholder(plan)) {
                Some(parent) => self.add_relation_by_path(plan, list, parent, &mut entities[parent]),
                None => self.add_relations_by_filter(plan.entity, list, entities),
            }
        }
    }

    fn add_relation_by_path(
        &self,
        plan: &PlannedCapability,
        list: &DraftCapability,
        parent: usize,
        entity: &mut DraftEntity,
    ) {
        let key = &self.entities[parent].key;
        if plan.placeholder_names.len() < key.len() {
            return;
        }
        // The path starts with the parent's path, so its first placeholders are the parent's key.
        let filled: HashMap<&str, &str> = plan
            .placeholder_names
            .iter()
            .zip(key)
            .map(|(placeholder, part)| (placeholder.as_str(), part.name.as_str()))
            .collect();
        let mut required = list.raw.params.iter().filter(|(_, param)| param.required);
        if !required.all(|(name, _)| filled.contains_key(name.as_str())) {
            return;
        }
        let last_word = names::snake_case(self.endpoints[plan.endpoint].path.last_word());
        let Some(name) = free_name(entity, &[last_word, plural_name(list)]) else { return };
        // A catalog fills parameters with the name of a parent field by default, so only different names are written.
        let with = plan.placeholder_names.iter().zip(key).filter(|(placeholder, part)| **placeholder != part.name);
        let with = with.map(|(placeholder, part)| (placeholder.clone(), part.name.clone())).collect();
        entity.raw.relations.insert(name, relation(list, with));
    }

    /// Adds a relation for each filter of a list that takes the key of another entity: `invoices?customer=…`.
    fn add_relations_by_filter(&self, target: usize, list: &DraftCapability, entities: &mut [DraftEntity]) {
        if list.raw.params.values().any(|param| param.required) {
            return;
        }
        for (param_name, param) in &list.raw.params {
            let takes_key = matches!(&param.kind, SlotType::Named(name) if name != "boolean");
            let snake_name = names::snake_case(param_name);
            let entity_name = snake_name.strip_suffix("_id").unwrap_or(&snake_name);
            let Some(parent) = self.entity_by_name.get(entity_name).copied().filter(|at| *at != target && takes_key)
            else {
                continue;
            };
            let [part] = self.entities[parent].key.as_slice() else { continue };
            if !self.is_readable(&self.entities[parent]) {
                continue;
            }
            let Some(name) = free_name(&entities[parent], &[plural_name(list)]) else { continue };
            let with = IndexMap::from([(param_name.clone(), part.name.clone())]);
            entities[parent].raw.relations.insert(name, relation(list, with));
        }
    }

    /// Returns the entity with the longest home above the list's path, if its key consists of the placeholders of its home.
    fn parent_by_path(&self, plan: &PlannedCapability) -> Option<usize> {
        let keys = &self.endpoints[plan.endpoint].path.keys;
        let parent = (1..keys.len()).rev().find_map(|end| self.entity_by_home.get(&keys[..end].join("/"))).copied()?;
        let entity = &self.entities[parent];
        (entity.count_home_placeholders() > 0 && entity.count_home_placeholders() == entity.key.len()).then_some(parent)
    }

    /// Returns the entity whose name is the name of the path's only placeholder: `namespace` identifies a `Namespace`.
    fn parent_by_placeholder(&self, plan: &PlannedCapability) -> Option<usize> {
        let [placeholder] = plan.placeholder_names.as_slice() else { return None };
        let endings = ["_id", "_key", "_uuid", "_sid", "_slug"];
        let name = endings.iter().find_map(|end| placeholder.strip_suffix(end)).unwrap_or(placeholder);
        let parent = self.entity_by_name.get(name).copied()?;
        let entity = &self.entities[parent];
        (self.is_readable(entity) && entity.key.len() == 1 && parent != plan.entity).then_some(parent)
    }
}

fn relation(list: &DraftCapability, with: IndexMap<String, String>) -> Relation {
    Relation { many: Some(list.entity.clone()), by: Some(list.name.clone()), with, ..Relation::default() }
}

fn plural_name(list: &DraftCapability) -> String {
    names::plural(&names::snake_case(&list.entity))
}

/// Returns the first unused name among the candidates and the last candidate with `_list`. Fields and relations of the entity
/// share one namespace.
fn free_name(entity: &DraftEntity, candidates: &[String]) -> Option<String> {
    let with_list = candidates.last().map(|last| format!("{last}_list"));
    let names = candidates.iter().filter(|name| !name.is_empty()).chain(&with_list);
    let is_taken = |name: &String| entity.raw.fields.contains_key(name) || entity.raw.relations.contains_key(name);
    names.map(|name| names::relation_name(name)).find(|name| !is_taken(name))
}

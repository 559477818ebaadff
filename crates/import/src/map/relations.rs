//! Relations: a list whose path lies below the rows of an entity, or that takes the key of an entity as a filter.
//! Invariant: the parent's fields fill every required parameter of the list. No relation has the name of a field.

use std::collections::HashMap;

use catalog::Kind;
use catalog::raw::{Relation, SlotType};
use indexmap::IndexMap;

use super::{Mapper, PlannedCapability};
use crate::draft::{DraftCapability, DraftEntity};
use crate::names;

impl Mapper<'_, '_> {
    /// Adds a relation for each list that a row leads to. `capabilities` holds the capability of each plan, where it has one;
    /// `entities` are those of the mapper, in the same order.
    pub(super) fn add_relations(&self, entities: &mut [DraftEntity], capabilities: &[Option<DraftCapability>]) {
        for (plan, capability) in self.plans.iter().zip(capabilities) {
            let Some(list) = capability.as_ref().filter(|_| plan.kind == Kind::Query) else { continue };
            match self.parent_by_path(plan).or_else(|| self.parent_by_hole(plan)) {
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
        if plan.holes.len() < key.len() {
            return;
        }
        // The holes that lead to the parent come first in the path.
        let filled: HashMap<&str, &str> =
            plan.holes.iter().zip(key).map(|(hole, part)| (hole.as_str(), part.name.as_str())).collect();
        let mut required = list.raw.params.iter().filter(|(_, param)| param.required);
        if !required.all(|(name, _)| filled.contains_key(name.as_str())) {
            return;
        }
        let last_word = names::snake(self.endpoints[plan.endpoint].path.last_word());
        let Some(name) = free_name(entity, &[last_word, plural_name(list)]) else { return };
        // A parameter that has the name of the parent's field is filled without being written.
        let with = plan.holes.iter().zip(key).filter(|(hole, part)| **hole != part.name);
        let with = with.map(|(hole, part)| (hole.clone(), part.name.clone())).collect();
        entity.raw.relations.insert(name, relation(list, with));
    }

    /// Adds a relation for each filter of a list that takes the key of another entity: `invoices?customer=…`.
    fn add_relations_by_filter(&self, target: usize, list: &DraftCapability, entities: &mut [DraftEntity]) {
        if list.raw.params.values().any(|param| param.required) {
            return;
        }
        for (param_name, param) in &list.raw.params {
            let takes_key = matches!(&param.kind, SlotType::Named(name) if name != "boolean");
            let snake_name = names::snake(param_name);
            let entity_name = snake_name.strip_suffix("_id").unwrap_or(&snake_name);
            let Some(parent) = self.by_name.get(entity_name).copied().filter(|at| *at != target && takes_key) else {
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

    /// Returns the nearest entity above a list's path, if each part of its key comes from a hole of its home.
    fn parent_by_path(&self, plan: &PlannedCapability) -> Option<usize> {
        let keys = &self.endpoints[plan.endpoint].path.keys;
        let parent = (1..keys.len()).rev().find_map(|end| self.by_home.get(&keys[..end].join("/"))).copied()?;
        let entity = &self.entities[parent];
        (entity.home_holes() > 0 && entity.home_holes() == entity.key.len()).then_some(parent)
    }

    /// Returns the entity that the only hole of a path is named after: `namespace` means a `Namespace`.
    fn parent_by_hole(&self, plan: &PlannedCapability) -> Option<usize> {
        let [hole] = plan.holes.as_slice() else { return None };
        let endings = ["_id", "_key", "_uuid", "_sid", "_slug"];
        let name = endings.iter().find_map(|end| hole.strip_suffix(end)).unwrap_or(hole);
        let parent = self.by_name.get(name).copied()?;
        let entity = &self.entities[parent];
        (self.is_readable(entity) && entity.key.len() == 1 && parent != plan.entity).then_some(parent)
    }
}

fn relation(list: &DraftCapability, with: IndexMap<String, String>) -> Relation {
    Relation { many: Some(list.entity.clone()), by: Some(list.name.clone()), with, ..Relation::default() }
}

fn plural_name(list: &DraftCapability) -> String {
    names::plural(&names::snake(&list.entity))
}

/// Returns the first of these names, or the last with `_list`, that neither a field nor another relation has.
fn free_name(entity: &DraftEntity, candidates: &[String]) -> Option<String> {
    let with_list = candidates.last().map(|last| format!("{last}_list"));
    let names = candidates.iter().filter(|name| !name.is_empty()).chain(&with_list);
    let is_taken = |name: &String| entity.raw.fields.contains_key(name) || entity.raw.relations.contains_key(name);
    names.map(|name| names::relation(name)).find(|name| !is_taken(name))
}

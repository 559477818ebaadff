//! Relations: a list that lies under something is something's to follow.
//! Invariant: every required parameter of the list is filled from the parent's fields; a relation has a name no field has.

use std::collections::HashMap;

use catalog::Kind;

use super::Mapper;
use crate::api::path::Step;
use crate::draft::{Capability, Entity, Relation, Ty, Via};
use crate::names;

impl<'a> Mapper<'_, 'a> {
    /// `made` is the capability of each plan, where it has one.
    pub(super) fn relations(&self, entities: &mut [Entity], made: &[Option<Capability>]) {
        let place: HashMap<String, usize> = entities.iter().enumerate().map(|(at, e)| (e.name.clone(), at)).collect();
        for (plan, capability) in self.plans.iter().zip(made) {
            let Some(capability) = capability.as_ref().filter(|_| plan.kind == Kind::Query) else { continue };
            let path = &self.views[plan.view].path;
            let parent = self.parent(&path.keys).filter(|parent| self.leads(*parent));
            let Some(parent) = parent.or_else(|| self.named_parent(plan)) else {
                self.by_filter(plan.ent, capability, entities, &place);
                continue;
            };
            let ent = &self.ents[parent];
            // The parent's holes stand first in the path of what lies under it.
            let holes = plan.holes.iter().take(ent.parts.len());
            if holes.len() != ent.parts.len() {
                continue;
            }
            let filled: Vec<(String, String)> =
                holes.zip(&ent.parts).map(|(hole, part)| (hole.clone(), part.name.clone())).collect();
            let required = capability.params.iter().filter(|param| param.required);
            if !required.clone().all(|param| filled.iter().any(|(hole, _)| *hole == param.name)) {
                continue;
            }
            let Some(entity) = place.get(&ent.name).and_then(|at| entities.get_mut(*at)) else { continue };
            let own = path.steps.iter().rev().find_map(|step| match step {
                Step::Word(word) => Some(names::snake(word)),
                Step::Hole(_) => None,
            });
            let target = names::plural(&names::snake(&capability.entity));
            let Some(name) = free(entity, [own.unwrap_or_default(), target]) else { continue };
            let with = filled.into_iter().filter(|(hole, part)| hole != part).collect();
            let via = Via::By { capability: capability.name.clone(), with };
            entity.relations.push(Relation { name, many: true, target: capability.entity.clone(), via });
        }
    }

    /// A list that takes the key of another entity as a filter leads there from it: `invoices?customer=…`.
    fn by_filter(
        &self,
        target: usize,
        capability: &Capability,
        entities: &mut [Entity],
        place: &HashMap<String, usize>,
    ) {
        if capability.params.iter().any(|param| param.required) {
            return;
        }
        for param in capability.params.iter().filter(|param| matches!(&param.ty, Ty::Named(name) if name != "boolean"))
        {
            let short = names::snake(&param.name);
            let stem = short.strip_suffix("_id").unwrap_or(&short);
            let Some(parent) = self.by_name.get(stem).copied().filter(|parent| *parent != target) else { continue };
            let ent = &self.ents[parent];
            let readable = ent.home.as_ref().is_some_and(|home| self.readable.contains(&home.join("/")));
            let [part] = ent.parts.as_slice() else { continue };
            let Some(entity) = place.get(&ent.name).and_then(|at| entities.get_mut(*at)).filter(|_| readable) else {
                continue;
            };
            let own = names::plural(&names::snake(&capability.entity));
            let Some(name) = free(entity, [own.clone(), own]) else { continue };
            let via =
                Via::By { capability: capability.name.clone(), with: vec![(param.name.clone(), part.name.clone())] };
            entity.relations.push(Relation { name, many: true, target: capability.entity.clone(), via });
        }
    }

    /// The entity that the only hole of a path is named after: `namespace` of Namespace.
    fn named_parent(&self, plan: &super::Plan) -> Option<usize> {
        let [hole] = plan.holes.as_slice() else { return None };
        let stem =
            ["_id", "_key", "_uuid", "_sid", "_slug"].iter().find_map(|end| hole.strip_suffix(end)).unwrap_or(hole);
        let parent = self.by_name.get(stem).copied()?;
        let readable = self.ents[parent].home.as_ref().is_some_and(|home| self.readable.contains(&home.join("/")));
        (readable && self.ents[parent].parts.len() == 1 && parent != plan.ent).then_some(parent)
    }

    /// The entity that a path lies under, nearest first.
    fn parent(&self, keys: &[String]) -> Option<usize> {
        (1..keys.len()).rev().find_map(|end| self.by_home.get(&keys[..end].join("/"))).copied()
    }

    /// Whether rows of it can be had, each part of its key from a hole of its home.
    fn leads(&self, ent: usize) -> bool {
        let ent = &self.ents[ent];
        let holes = ent.home.iter().flatten().filter(|key| *key == "{}").count();
        holes > 0 && holes == ent.parts.len()
    }
}

/// The first of these names that neither a field nor another relation has.
fn free(entity: &Entity, names: [String; 2]) -> Option<String> {
    let taken = |name: &String| {
        entity.fields.iter().any(|field| field.name == *name) || entity.relations.iter().any(|r| r.name == *name)
    };
    let longer = format!("{}_list", names[1]);
    let names = names.into_iter().chain([longer]).filter(|name| !name.is_empty()).map(|name| names::relation(&name));
    names.into_iter().find(|name| !taken(name))
}

//! Resolves relations: the target entity of each relation, and the source of each parameter of the call that reads
//! the related rows.
//! Invariant: for every row of its parent entity, the related rows of a resolved relation can be read.

use base::similar_names;
use indexmap::IndexMap;

use super::{CatalogResolver, Mistake, TOP};
use crate::codes;
use crate::model::{Capability, Entity, Kind, Relation, Via};
use crate::read::raw;
use crate::read::spans::YamlPath;
use crate::types::Type;

/// A relation as the author wrote it, with the parts that are resolved first.
struct WrittenRelation<'a> {
    /// The path of the relation in the file.
    at: YamlPath<'a>,
    name: &'a str,
    parent: &'a Entity,
    /// The name of the entity of the related rows.
    target: &'a str,
    raw: &'a raw::Relation,
}

impl CatalogResolver<'_> {
    /// Resolves the relations of one entity. A relation with a mistake is left out.
    pub(super) fn resolve_relations(
        &mut self,
        parent: &str,
        raw: &raw::Entity,
        entities: &IndexMap<String, Entity>,
        capabilities: &IndexMap<String, Capability>,
    ) -> IndexMap<String, Relation> {
        let entities_at = TOP.key("entities");
        let parent_at = entities_at.key(parent);
        let relations_at = parent_at.key("relations");
        let mut relations = IndexMap::new();
        let Some(parent) = entities.get(parent) else { return relations };
        for (name, raw) in &raw.relations {
            let at = relations_at.key(name);
            let (target, many) = match (&raw.many, &raw.one) {
                (Some(target), None) => (target, true),
                (None, Some(target)) => (target, false),
                _ => {
                    let message =
                        format!("{}.{name} needs exactly one of `many: Entity` and `one: Entity`", parent.name);
                    self.report(Mistake::new(codes::SHAPE, at.on_key(), message));
                    continue;
                }
            };
            if !self.check_entity_name(&at.key(if many { "many" } else { "one" }), target) {
                continue;
            }
            let written = WrittenRelation { at, name, parent, target, raw };
            self.check_field_of_same_name(&written, many);
            if let Some(via) = self.resolve_via(&written, many, capabilities) {
                let relation =
                    Relation { name: name.clone(), target: target.clone(), many, about: raw.about.clone(), via };
                relations.insert(name.clone(), relation);
            }
        }
        relations
    }

    /// Reports a relation with the name of a field, because `.owner` in a program would mean both. The same name is
    /// allowed if the field is the reference that the relation follows.
    fn check_field_of_same_name(&mut self, written: &WrittenRelation<'_>, many: bool) {
        let Some(field) = written.parent.fields.get(written.name) else { return };
        let is_same_reference = match &field.kind {
            Type::Ref(target) => !many && target == written.target,
            Type::Array(item) => many && **item == Type::Ref(written.target.to_owned()),
            _ => false,
        };
        // A relation that follows this field is checked in `resolve_via_key`, which reports a field that is not a
        // reference to the target.
        let follows_field = written.raw.key.as_deref() == Some(written.name);
        if written.raw.embedded.is_some() || !(is_same_reference || follows_field) {
            let message =
                format!("{}.{} is a field too; give the relation another name", written.parent.name, written.name);
            self.report(Mistake::new(codes::NAME, written.at.on_key(), message));
        }
    }

    fn resolve_via(
        &mut self,
        written: &WrittenRelation<'_>,
        many: bool,
        capabilities: &IndexMap<String, Capability>,
    ) -> Option<Via> {
        let raw = written.raw;
        let via = match (&raw.by, &raw.key, &raw.embedded) {
            (Some(by), None, None) => return self.resolve_via_call(written, by, capabilities),
            (None, Some(field), None) => self.resolve_via_key(written, many, field, capabilities),
            (None, None, Some(path)) => Some(Via::Embedded { path: self.parse_data_path(&written.at.key("in"), path) }),
            _ => {
                let message = format!(
                    "{}.{} needs exactly one of `by: capability`, `key: field` and `in: path`",
                    written.parent.name, written.name
                );
                self.report(Mistake::new(codes::SHAPE, written.at.on_key(), message));
                None
            }
        };
        if !raw.with.is_empty() {
            let message = "`with` fills the parameters of a query; it goes with `by`";
            self.report(Mistake::new(codes::SHAPE, written.at.key("with").on_key(), message));
        }
        via
    }

    fn resolve_via_call(
        &mut self,
        written: &WrittenRelation<'_>,
        by: &str,
        capabilities: &IndexMap<String, Capability>,
    ) -> Option<Via> {
        let WrittenRelation { at, name, parent, target, raw } = written;
        let is_query_of_target = |c: &&Capability| c.kind == Kind::Query && c.entity == *target;
        let Some(capability) = capabilities.get(by).filter(is_query_of_target) else {
            // If the query exists but has a mistake, the mistake is reported already.
            let is_broken = self.raw.capabilities.get(by).is_some_and(|c| c.query.as_deref() == Some(*target));
            if !is_broken {
                let known =
                    similar_names(by, capabilities.values().filter(is_query_of_target).map(|c| c.name.as_str()));
                let message = format!("`{by}` is not a query of {target}");
                self.report(Mistake::new(codes::NAME, at.key("by").on_value(), message).with_alternatives(known));
            }
            return None;
        };
        let with = at.key("with");
        for (param, field) in &raw.with {
            if !capability.params.contains_key(param) {
                let known = similar_names(param, capability.params.keys().map(String::as_str));
                let message = format!("`{by}` has no parameter `{param}`");
                self.report(Mistake::new(codes::NAME, with.key(param).on_key(), message).with_alternatives(known));
            }
            self.check_field(&with.key(param), parent, field);
        }
        let mut fill = IndexMap::new();
        for param in capability.params.values() {
            // `Some(None)` means a reference to the parent row, as in `Via::Call`.
            let source = match raw.with.get(&param.name) {
                Some(field) => Some(Some(field.clone())),
                None if param.kind == Type::Ref(parent.name.clone()) => Some(None),
                None if parent.key.contains(&param.name) && param.required => Some(Some(param.name.clone())),
                None => None,
            };
            if let Some(source) = source {
                fill.insert(param.name.clone(), source);
            } else if param.required {
                let message = format!("{}.{name}: nothing fills `{}` of `{by}`", parent.name, param.name);
                let copy = format!("with: {{{}: {}}}", param.name, parent.key.first().map_or("field", String::as_str));
                self.report(Mistake::new(codes::MAPPING, at.key("by").on_value(), message).with_copy(copy));
            }
        }
        Some(Via::Call { capability: capability.name.clone(), fill })
    }

    fn resolve_via_key(
        &mut self,
        written: &WrittenRelation<'_>,
        many: bool,
        field: &str,
        capabilities: &IndexMap<String, Capability>,
    ) -> Option<Via> {
        let WrittenRelation { at, name, parent, target, .. } = written;
        let key_value = at.key("key").on_value();
        let full_name = format!("{}.{name}", parent.name);
        let refers_to_target = |kind: &Type| *kind == Type::Ref((*target).to_owned());
        if parent.fields.get(field).is_none_or(|f| !refers_to_target(&f.kind)) {
            let fitting = parent.fields.values().filter(|f| refers_to_target(&f.kind)).map(|f| f.name.clone());
            let message = format!("{full_name}: `{field}` is not a field `{{ref: {target}}}`");
            self.report(Mistake::new(codes::NAME, key_value, message).with_alternatives(fitting));
            return None;
        }
        if many {
            let message = format!("{full_name}: the reference in `{field}` leads to one row; write `one: {target}`");
            self.report(Mistake::new(codes::SHAPE, at.key("many").on_key(), message));
            return None;
        }
        let is_get = |c: &Capability| c.kind == Kind::Get && c.entity == *target;
        // If the get exists but has a mistake, the mistake is reported already.
        let is_written_get = |c: &raw::Capability| c.get.as_deref() == Some(*target);
        if !capabilities.values().any(is_get) && !self.raw.capabilities.values().any(is_written_get) {
            let message = format!("{full_name}: {target} has no `get` to follow the key with");
            self.report(Mistake::new(codes::MAPPING, key_value, message));
            return None;
        }
        Some(Via::Key { field: field.to_owned() })
    }
}

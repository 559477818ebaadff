//! Relations: where each leads, and what fills the call that follows it.
//! Invariant: a relation that comes out can be followed from any row of its parent.

use base::Diagnostic;
use indexmap::IndexMap;

use super::Cx;
use crate::codes;
use crate::model::{Capability, Entity, Kind, Relation, Via};
use crate::path::DataPath;
use crate::read::raw::{self, Text};
use crate::types::Type;

impl Cx<'_> {
    pub(super) fn relations(
        &mut self,
        parent: &str,
        raw: &raw::Entity,
        entities: &IndexMap<String, Entity>,
        capabilities: &IndexMap<String, Capability>,
    ) -> IndexMap<String, Relation> {
        let mut relations = IndexMap::new();
        for (name, relation) in &raw.relations {
            let (target, many) = match (&relation.many, &relation.one) {
                (Some(target), None) => (target, true),
                (None, Some(target)) => (target, false),
                _ => {
                    let message = format!("{parent}.{name} needs exactly one of `many: Entity` and `one: Entity`");
                    self.report(Diagnostic::error(codes::SHAPE, self.place_of_word(name), message));
                    continue;
                }
            };
            if !self.entity_name(target) {
                continue;
            }
            let Some(parent) = entities.get(parent) else { continue };
            let via = match (&relation.by, &relation.key, &relation.embedded) {
                (Some(by), None, None) => self.via_call(parent, (name, target, by), relation, capabilities),
                (None, Some(field), None) => self.via_key(parent, (name, target, field), capabilities),
                (None, None, Some(path)) => self.via_payload(parent, name, path),
                _ => {
                    let message = format!(
                        "{}.{name} needs exactly one of `by: capability`, `key: field` and `in: path`",
                        parent.name
                    );
                    self.report(Diagnostic::error(codes::SHAPE, self.place(target), message));
                    None
                }
            };
            if let Some(via) = via {
                let target = target.value.clone();
                let about = relation.about.clone();
                relations.insert(name.clone(), Relation { name: name.clone(), target, many, about, via });
            }
        }
        relations
    }

    fn via_call(
        &mut self,
        parent: &Entity,
        (name, target, by): (&str, &Text, &Text),
        relation: &raw::Relation,
        capabilities: &IndexMap<String, Capability>,
    ) -> Option<Via> {
        let place = self.place(by);
        let fits = |c: &&Capability| c.kind == Kind::Query && c.entity == target.value;
        let Some(capability) = capabilities.get(&by.value).filter(fits) else {
            let known: Vec<String> = capabilities.values().filter(fits).map(|c| c.name.clone()).collect();
            let message = format!("`{}` is not a query of {}", by.value, target.value);
            self.report(Diagnostic::error(codes::NAME, place, message).with_alternatives(known));
            return None;
        };
        let mut fill = IndexMap::new();
        for param in capability.params.values() {
            let named = relation.with.get(&param.name).map(|t| t.value.clone());
            let source = match named {
                Some(field) => Some(Some(field)),
                None if param.kind == Type::Ref(parent.name.clone()) => Some(None),
                None if parent.key.contains(&param.name) && param.required => Some(Some(param.name.clone())),
                None => None,
            };
            match source {
                Some(Some(field)) if !parent.fields.contains_key(&field) => {
                    let message = format!("{}.{name}: `{field}` is not a field of {}", parent.name, parent.name);
                    self.report(Diagnostic::error(codes::NAME, place, message));
                }
                Some(source) => {
                    fill.insert(param.name.clone(), source);
                }
                None if param.required => {
                    let message = format!("{}.{name}: nothing fills `{}` of `{}`", parent.name, param.name, by.value);
                    let copy =
                        format!("with: {{{}: {}}}", param.name, parent.key.first().map_or("field", String::as_str));
                    self.report(Diagnostic::error(codes::MAPPING, place, message).with_copy(copy));
                }
                None => {}
            }
        }
        Some(Via::Call { capability: capability.name.clone(), fill })
    }

    /// Embedded rows stand in the parent's row under the relation's name, so no field can have it.
    fn via_payload(&mut self, parent: &Entity, name: &str, path: &Text) -> Option<Via> {
        if parent.fields.contains_key(name) {
            let message = format!("{}.{name} is a field too; give the relation another name", parent.name);
            self.report(Diagnostic::error(codes::NAME, self.place(path), message));
            return None;
        }
        Some(Via::Embedded { path: DataPath::from(path.value.clone()) })
    }

    fn via_key(
        &mut self,
        parent: &Entity,
        (name, target, field): (&str, &Text, &Text),
        capabilities: &IndexMap<String, Capability>,
    ) -> Option<Via> {
        let place = self.place(field);
        if parent.fields.get(&field.value).is_none_or(|f| f.kind != Type::Ref(target.value.clone())) {
            let message =
                format!("{}.{name}: `{}` is not a field `{{ref: {}}}`", parent.name, field.value, target.value);
            self.report(Diagnostic::error(codes::NAME, place, message));
            return None;
        }
        if !capabilities.values().any(|c| c.kind == Kind::Get && c.entity == target.value) {
            let message = format!("{}.{name}: {} has no `get` to follow the key with", parent.name, target.value);
            self.report(Diagnostic::error(codes::MAPPING, place, message));
            return None;
        }
        Some(Via::Key { field: field.value.clone() })
    }
}

//! Relations: where each leads, and what fills the call that follows it.
//! Invariant: a relation that comes out can be followed from any row of its parent.

use base::similar_names;
use indexmap::IndexMap;

use super::{Cx, Mistake, TOP};
use crate::codes;
use crate::model::{Capability, Entity, Kind, Relation, Via};
use crate::read::places::At;
use crate::read::raw;
use crate::types::Type;

/// One relation as written, and where.
struct Written<'a> {
    at: At<'a>,
    name: &'a str,
    parent: &'a Entity,
    target: &'a str,
    raw: &'a raw::Relation,
}

impl Cx<'_> {
    pub(super) fn relations(
        &mut self,
        parent: &str,
        raw: &raw::Entity,
        entities: &IndexMap<String, Entity>,
        capabilities: &IndexMap<String, Capability>,
    ) -> IndexMap<String, Relation> {
        let all = TOP.key("entities");
        let at = all.key(parent);
        let all = at.key("relations");
        let mut relations = IndexMap::new();
        let Some(parent) = entities.get(parent) else { return relations };
        for (name, raw) in &raw.relations {
            let at = all.key(name);
            let (target, many) = match (&raw.many, &raw.one) {
                (Some(target), None) => (target, true),
                (None, Some(target)) => (target, false),
                _ => {
                    let message =
                        format!("{}.{name} needs exactly one of `many: Entity` and `one: Entity`", parent.name);
                    self.report(Mistake::new(codes::SHAPE, at.here(), message));
                    continue;
                }
            };
            if !self.entity_name(&at.key(if many { "many" } else { "one" }), target) {
                continue;
            }
            let written = Written { at, name, parent, target, raw };
            self.beside_a_field(&written, many);
            if let Some(via) = self.via(&written, many, capabilities) {
                let relation =
                    Relation { name: name.clone(), target: target.clone(), many, about: raw.about.clone(), via };
                relations.insert(name.clone(), relation);
            }
        }
        relations
    }

    /// `.owner` is the field and the relation at once, which is only one thing when the field is the reference itself.
    fn beside_a_field(&mut self, written: &Written<'_>, many: bool) {
        let Some(field) = written.parent.fields.get(written.name) else { return };
        let same = match &field.kind {
            Type::Ref(target) => !many && target == written.target,
            Type::Array(of) => many && **of == Type::Ref(written.target.to_owned()),
            _ => false,
        };
        // That the field is no such reference is said of the key.
        let by_it = written.raw.key.as_deref() == Some(written.name);
        if written.raw.embedded.is_some() || !(same || by_it) {
            let message =
                format!("{}.{} is a field too; give the relation another name", written.parent.name, written.name);
            self.report(Mistake::new(codes::NAME, written.at.here(), message));
        }
    }

    fn via(&mut self, written: &Written<'_>, many: bool, capabilities: &IndexMap<String, Capability>) -> Option<Via> {
        let raw = written.raw;
        let via = match (&raw.by, &raw.key, &raw.embedded) {
            (Some(by), None, None) => return self.via_call(written, by, capabilities),
            (None, Some(field), None) => self.via_key(written, many, field, capabilities),
            (None, None, Some(path)) => Some(Via::Embedded { path: self.data_path(&written.at.key("in"), path) }),
            _ => {
                let message = format!(
                    "{}.{} needs exactly one of `by: capability`, `key: field` and `in: path`",
                    written.parent.name, written.name
                );
                self.report(Mistake::new(codes::SHAPE, written.at.here(), message));
                None
            }
        };
        if !raw.with.is_empty() {
            let message = "`with` fills the parameters of a query; it goes with `by`";
            self.report(Mistake::new(codes::SHAPE, written.at.key("with").here(), message));
        }
        via
    }

    fn via_call(
        &mut self,
        written: &Written<'_>,
        by: &str,
        capabilities: &IndexMap<String, Capability>,
    ) -> Option<Via> {
        let Written { at, name, parent, target, raw } = written;
        let fits = |c: &&Capability| c.kind == Kind::Query && c.entity == *target;
        let Some(capability) = capabilities.get(by).filter(fits) else {
            // One that is there and has a mistake of its own says so itself.
            let broken = self.raw.capabilities.get(by).is_some_and(|c| c.query.as_deref() == Some(*target));
            if !broken {
                let known = similar_names(by, capabilities.values().filter(fits).map(|c| c.name.as_str()));
                let message = format!("`{by}` is not a query of {target}");
                self.report(Mistake::new(codes::NAME, at.key("by").value(), message).any_of(known));
            }
            return None;
        };
        let with = at.key("with");
        for (param, field) in &raw.with {
            if !capability.params.contains_key(param) {
                let known = similar_names(param, capability.params.keys().map(String::as_str));
                let message = format!("`{by}` has no parameter `{param}`");
                self.report(Mistake::new(codes::NAME, with.key(param).here(), message).any_of(known));
            }
            self.field_of(&with.key(param), parent, field);
        }
        let mut fill = IndexMap::new();
        for param in capability.params.values() {
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
                self.report(Mistake::new(codes::MAPPING, at.key("by").value(), message).write(copy));
            }
        }
        Some(Via::Call { capability: capability.name.clone(), fill })
    }

    fn via_key(
        &mut self,
        written: &Written<'_>,
        many: bool,
        field: &str,
        capabilities: &IndexMap<String, Capability>,
    ) -> Option<Via> {
        let Written { at, name, parent, target, .. } = written;
        let spot = at.key("key").value();
        let whole = format!("{}.{name}", parent.name);
        let refers = |kind: &Type| *kind == Type::Ref((*target).to_owned());
        if parent.fields.get(field).is_none_or(|f| !refers(&f.kind)) {
            let fitting = parent.fields.values().filter(|f| refers(&f.kind)).map(|f| f.name.clone());
            let message = format!("{whole}: `{field}` is not a field `{{ref: {target}}}`");
            self.report(Mistake::new(codes::NAME, spot, message).any_of(fitting));
            return None;
        }
        if many {
            let message = format!("{whole}: the reference in `{field}` leads to one row; write `one: {target}`");
            self.report(Mistake::new(codes::SHAPE, at.key("many").here(), message));
            return None;
        }
        let got = |c: &Capability| c.kind == Kind::Get && c.entity == *target;
        let meant = |c: &raw::Capability| c.get.as_deref() == Some(*target);
        if !capabilities.values().any(got) && !self.raw.capabilities.values().any(meant) {
            let message = format!("{whole}: {target} has no `get` to follow the key with");
            self.report(Mistake::new(codes::MAPPING, spot, message));
            return None;
        }
        Some(Via::Key { field: field.to_owned() })
    }
}

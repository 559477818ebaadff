//! Checks over the whole catalog: ambiguous capabilities, entities that nothing reads, and keys that refer to themselves.
//! Invariants: each expression of a program means one capability. Each entity of a valid catalog can be read, or has
//! an action that needs no instance. No key refers to itself.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;

use super::{CatalogResolver, Mistake, TOP};
use crate::codes;
use crate::model::{Capability, Entity, Kind, Via};
use crate::read::raw;
use crate::types::Type;

impl CatalogResolver<'_> {
    pub(super) fn check_whole_catalog(
        &mut self,
        entities: &IndexMap<String, Entity>,
        capabilities: &IndexMap<String, Capability>,
    ) {
        self.check_ambiguity(entities, capabilities);
        self.check_unreachable(entities, capabilities);
        self.check_key_cycles(entities);
    }

    fn check_ambiguity(&mut self, entities: &IndexMap<String, Entity>, capabilities: &IndexMap<String, Capability>) {
        let mut by_entity: HashMap<&str, Vec<&Capability>> = HashMap::new();
        for capability in capabilities.values() {
            by_entity.entry(&capability.entity).or_default().push(capability);
        }
        for name in entities.keys() {
            let of_entity = by_entity.get(name.as_str()).map(Vec::as_slice).unwrap_or_default();
            for kind in [Kind::Query, Kind::Search] {
                self.check_lists(name, of_entity.iter().filter(|c| c.kind == kind));
            }
            if let Some(raw) = self.raw.entities.get(name) {
                self.check_primary_read(name, raw, of_entity);
                self.check_method_names(raw, of_entity);
            }
        }
    }

    /// Reports two lists of one entity with the same required parameters, because `e1{}` could mean either of them.
    fn check_lists<'c>(&mut self, entity: &str, lists: impl Iterator<Item = &'c &'c Capability>) {
        let mut first_with: HashMap<Vec<&str>, &str> = HashMap::new();
        for list in lists {
            let text = list.text.as_deref();
            let mut required: Vec<&str> =
                list.required().map(|p| p.name.as_str()).filter(|p| Some(*p) != text).collect();
            required.sort_unstable();
            if let Some(first) = first_with.get(&required) {
                let message = format!(
                    "`{first}` and `{}` both list {entity} and need the same; make it one with optional filters",
                    list.name
                );
                let target = TOP.key("capabilities").key(&list.name).on_key();
                self.report(Mistake::new(codes::AMBIGUOUS, target, message));
            } else {
                first_with.insert(required, &list.name);
            }
        }
    }

    /// Reports two capabilities of one entity with the same method name, and names that a method cannot have.
    fn check_method_names(&mut self, raw: &raw::Entity, of_entity: &[&Capability]) {
        let mut first_with: HashMap<String, &str> = HashMap::new();
        let all = TOP.key("capabilities");
        let primary = raw.primary_read.as_deref();
        let has_several_gets = of_entity.iter().filter(|c| c.kind == Kind::Get).count() > 1;
        let is_method = |c: &Capability| match c.kind {
            Kind::Query | Kind::Search => false,
            Kind::Get => has_several_gets && primary != Some(c.name.as_str()),
            _ => true,
        };
        for capability in of_entity.iter().filter(|c| is_method(c)) {
            let at = all.key(&capability.name);
            let method = capability.method_name().replace('-', "_");
            self.check_postfix_name(&at, &method, "method");
            if let Some(first) = first_with.insert(method.clone(), &capability.name) {
                let message = format!("`{first}` and `{}` are both called `.{method}(…)`; rename one", capability.name);
                self.report(Mistake::new(codes::NAME, at.on_key(), message));
            }
        }
    }

    fn check_primary_read(&mut self, name: &str, raw: &raw::Entity, of_entity: &[&Capability]) {
        let gets: Vec<&str> = of_entity.iter().filter(|c| c.kind == Kind::Get).map(|c| c.name.as_str()).collect();
        let all = TOP.key("entities");
        let at = all.key(name);
        match &raw.primary_read {
            Some(primary) if !gets.contains(&primary.as_str()) => {
                let message = format!("`{primary}` is not a get of {name}");
                let known = gets.iter().map(|get| (*get).to_owned());
                let target = at.key("primary_read").on_value();
                self.report(Mistake::new(codes::NAME, target, message).with_alternatives(known));
            }
            None if gets.len() > 1 => {
                let message = format!("{name} has {} gets; say which one `{name}(key)` uses", gets.len());
                let copy = format!("primary_read: {}", gets[0]);
                self.report(Mistake::new(codes::AMBIGUOUS, at.on_key(), message).with_copy(copy));
            }
            _ => {}
        }
    }

    /// Reports entities that no capability and no relation reads.
    fn check_unreachable(&mut self, entities: &IndexMap<String, Entity>, capabilities: &IndexMap<String, Capability>) {
        let relations = entities.values().flat_map(|e| e.relations.values());
        let embedded = relations.filter(|r| matches!(r.via, Via::Embedded { .. })).map(|r| r.target.as_str());
        let read = capabilities.values().filter(|c| c.kind.is_read()).map(|c| c.entity.as_str());
        let returned = capabilities.values().filter(|c| c.gives_rows()).map(|c| c.returns.as_str());
        // An action without an instance needs no row. The entity of such an action is only the name before
        // `.method(…)`.
        let has_no_instance = |c: &&Capability| c.kind == Kind::Action && c.anchor.is_empty();
        let called = capabilities.values().filter(has_no_instance).map(|c| c.entity.as_str());
        let mut reached: HashSet<&str> = embedded.chain(read).chain(returned).chain(called).collect();
        // A capability or relation with a mistake is missing in `capabilities` and `entities`, but the author
        // intended it to read its entity, so this entity counts as read. If the name of the entity is wrong too, it
        // could be any entity, so no entity is reported.
        for (name, raw) in &self.raw.capabilities {
            if !capabilities.contains_key(name) {
                let intended =
                    [&raw.query, &raw.search, &raw.get, &raw.singleton, &raw.create, &raw.update, &raw.returns];
                let mut named = [&raw.delete, &raw.action].into_iter().chain(intended).flatten().peekable();
                if named.peek().is_none() || named.any(|name| !entities.contains_key(name)) {
                    return;
                }
                reached.extend(intended.into_iter().flatten().map(String::as_str));
            }
        }
        let relations = self.raw.entities.values().flat_map(|e| e.relations.values());
        let intended = relations.filter(|r| r.embedded.is_some()).flat_map(|r| r.many.iter().chain(&r.one));
        for name in intended {
            if !entities.contains_key(name) {
                return;
            }
            reached.insert(name);
        }
        for name in entities.keys().filter(|name| !reached.contains(name.as_str())) {
            let message =
                format!("nothing reads {name}; add a `query`, a `get` or a relation `in` another, or take it out");
            let target = TOP.key("entities").key(name).on_key();
            let copy = format!("{}_list: {{query: {name}, http: GET /…}}", name.to_ascii_lowercase());
            self.report(Mistake::new(codes::UNREACHABLE, target, message).with_copy(copy));
        }
    }

    /// Reports entities whose key refers to the entity itself, directly or through the keys of other entities.
    /// Writing down such a key would never end.
    fn check_key_cycles(&mut self, entities: &IndexMap<String, Entity>) {
        let referred_by_key = |name: &str| -> Vec<&str> {
            let Some(entity) = entities.get(name) else {
                return Vec::new();
            };
            let kinds = entity.key.iter().filter_map(|k| entity.fields.get(k)).map(|f| &f.kind);
            kinds.filter_map(|kind| if let Type::Ref(target) = kind { Some(target.as_str()) } else { None }).collect()
        };
        for name in entities.keys() {
            let mut visited: HashSet<&str> = HashSet::new();
            let mut pending = referred_by_key(name);
            while let Some(target) = pending.pop() {
                if target == name {
                    let message = format!("the key of {name} refers to {name} itself; give the key a plain type");
                    let key = TOP.key("entities").key(name).key("key").on_key();
                    self.report(Mistake::new(codes::MAPPING, key, message));
                    break;
                }
                if visited.insert(target) {
                    pending.extend(referred_by_key(target));
                }
            }
        }
    }
}

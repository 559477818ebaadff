//! What only shows over the whole catalog: entities nothing reads, keys that refer round to themselves.
//! Invariant: each entity of a valid catalog can be read or has something to call by itself, and its key can be written down.

use std::collections::HashSet;

use indexmap::IndexMap;

use super::{Cx, Mistake, TOP};
use crate::codes;
use crate::model::{Capability, Entity, Kind, Via};
use crate::types::Type;

impl Cx<'_> {
    /// A key whose parts refer round to their own entity could never be written down.
    pub(super) fn key_rings(&mut self, entities: &IndexMap<String, Entity>) {
        let next = |name: &str| -> Vec<&str> {
            let Some(entity) = entities.get(name) else {
                return Vec::new();
            };
            let kinds = entity.key.iter().filter_map(|k| entity.fields.get(k)).map(|f| &f.kind);
            kinds.filter_map(|kind| if let Type::Ref(target) = kind { Some(target.as_str()) } else { None }).collect()
        };
        for name in entities.keys() {
            let mut seen: HashSet<&str> = HashSet::new();
            let mut work = next(name);
            while let Some(at) = work.pop() {
                if at == name {
                    let message = format!("the key of {name} refers to {name} itself; give the key a plain type");
                    let spot = TOP.key("entities").key(name).key("key").here();
                    self.report(Mistake::new(codes::MAPPING, spot, message));
                    break;
                }
                if seen.insert(at) {
                    work.extend(next(at));
                }
            }
        }
    }

    pub(super) fn unreachable(
        &mut self,
        entities: &IndexMap<String, Entity>,
        capabilities: &IndexMap<String, Capability>,
    ) {
        let relations = entities.values().flat_map(|e| e.relations.values());
        let embedded = relations.filter(|r| matches!(r.via, Via::Embedded { .. })).map(|r| r.target.as_str());
        let read = capabilities.values().filter(|c| c.kind.is_read()).map(|c| c.entity.as_str());
        let given = capabilities.values().filter(|c| c.gives_rows()).map(|c| c.returns.as_str());
        // An action on nothing in particular needs no row: its entity is where it is found.
        let alone = |c: &&Capability| c.kind == Kind::Action && c.anchor.is_empty();
        let called = capabilities.values().filter(alone).map(|c| c.entity.as_str());
        let mut reached: HashSet<&str> = embedded.chain(read).chain(given).chain(called).collect();
        // What a capability or a relation with a mistake of its own was meant to read is not a mistake too.
        for (name, raw) in &self.raw.capabilities {
            if !capabilities.contains_key(name) {
                let meant = [&raw.query, &raw.search, &raw.get, &raw.singleton, &raw.create, &raw.update, &raw.returns];
                let mut named = [&raw.delete, &raw.action].into_iter().chain(meant).flatten().peekable();
                // Meant for nobody knows what.
                if named.peek().is_none() || named.any(|name| !entities.contains_key(name)) {
                    return;
                }
                reached.extend(meant.into_iter().flatten().map(String::as_str));
            }
        }
        let relations = self.raw.entities.values().flat_map(|e| e.relations.values());
        let meant = relations.filter(|r| r.embedded.is_some()).flat_map(|r| r.many.iter().chain(&r.one));
        for name in meant {
            if !entities.contains_key(name) {
                return;
            }
            reached.insert(name);
        }
        for name in entities.keys().filter(|name| !reached.contains(name.as_str())) {
            let message =
                format!("nothing reads {name}; add a `query`, a `get` or a relation `in` another, or take it out");
            let spot = TOP.key("entities").key(name).here();
            let copy = format!("{}_list: {{query: {name}, http: GET /…}}", name.to_ascii_lowercase());
            self.report(Mistake::new(codes::UNREACHABLE, spot, message).write(copy));
        }
    }
}

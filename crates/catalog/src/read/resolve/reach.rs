//! What only shows over the whole catalog: entities nothing reads, keys that refer round to themselves.
//! Invariant: each entity of a valid catalog can be read, and its key can be written down.

use base::Diagnostic;
use indexmap::IndexMap;

use super::Cx;
use crate::codes;
use crate::model::{Capability, Entity};
use crate::types::Type;

impl Cx<'_> {
    /// A key whose parts refer round to their own entity could never be written down.
    pub(super) fn key_rings(&mut self, entities: &IndexMap<String, Entity>) {
        let next = |name: &str| -> Vec<String> {
            let Some(entity) = entities.get(name) else {
                return Vec::new();
            };
            let kinds = entity.key.iter().filter_map(|k| entity.fields.get(k)).map(|f| &f.kind);
            kinds.filter_map(|kind| if let Type::Ref(target) = kind { Some(target.clone()) } else { None }).collect()
        };
        for name in entities.keys() {
            let mut seen: Vec<String> = Vec::new();
            let mut work = next(name);
            while let Some(at) = work.pop() {
                if &at == name {
                    let message = format!("the key of {name} refers to {name} itself; give the key a plain type");
                    self.report(Diagnostic::error(codes::MAPPING, self.place_of_word(name), message));
                    break;
                }
                if !seen.contains(&at) {
                    work.extend(next(&at));
                    seen.push(at);
                }
            }
        }
    }

    pub(super) fn unreachable(
        &mut self,
        entities: &IndexMap<String, Entity>,
        capabilities: &IndexMap<String, Capability>,
    ) {
        for name in entities.keys().filter(|name| !capabilities.values().any(|c| &c.entity == *name)) {
            let message = format!("nothing reads {name}; add a `query` or a `get`, or take it out");
            self.report(Diagnostic::error(codes::UNREACHABLE, self.place_of_word(name), message));
        }
    }
}

//! What only shows over the whole catalog: entities nothing reads, keys that refer round to themselves.
//! Invariant: each entity of a valid catalog can be read, and its key can be written down.

use std::collections::BTreeSet;

use base::{Diagnostic, Origin};
use indexmap::IndexMap;

use super::Cx;
use crate::codes;
use crate::model::{Capability, Entity, Via};
use crate::types::Type;

impl Cx<'_> {
    /// What a program could not write, or would take for a symbol, is no name.
    pub(super) fn names(&mut self) {
        let raw = self.raw;
        let slots = raw.entities.values().flat_map(|e| e.fields.keys().chain(e.relations.keys()));
        let params = raw.capabilities.values().flat_map(|c| c.params.keys());
        let all = raw.entities.keys().chain(slots).chain(raw.capabilities.keys()).chain(params);
        let bad: BTreeSet<&String> = all.filter(|name| !is_name(name)).collect();
        for name in bad {
            let message =
                format!("`{name}` cannot be a name; write letters, digits and `_`, and nothing like a symbol (`e1`)");
            self.report(Diagnostic::error(codes::NAME, self.place_of_word(name), message));
        }
    }

    /// A credential must not travel in the clear, except to this very machine.
    pub(super) fn insecure(&mut self, origin: Option<&(Origin, String)>) {
        let Some((origin, _)) = origin.filter(|_| self.raw.auth.is_some()) else { return };
        let Some(host) = origin.as_str().strip_prefix("http://") else { return };
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let here = name == "localhost" || name.ends_with(".localhost") || name.starts_with("127.") || name == "[::1]";
        if !here {
            let message = "credentials must not be sent over plain http; write `https://`";
            self.report(Diagnostic::error(codes::ORIGIN, self.place(&self.raw.origin), message));
        }
    }

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
        let embedded = |name: &String| {
            let relations = entities.values().flat_map(|e| e.relations.values());
            relations.into_iter().any(|r| &r.target == name && matches!(r.via, Via::Embedded { .. }))
        };
        let given = |name: &String| {
            capabilities
                .values()
                .any(|c| (&c.entity == name && c.kind.is_read()) || (&c.returns == name && c.gives_rows()))
        };
        for name in entities.keys().filter(|name| !given(name) && !embedded(name)) {
            let message =
                format!("nothing reads {name}; add a `query`, a `get` or a relation `in` another, or take it out");
            self.report(Diagnostic::error(codes::UNREACHABLE, self.place_of_word(name), message));
        }
    }
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    let starts = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let symbol =
        text.len() > 1 && text.starts_with(['e', 'm', 'p', 'r', 's']) && chars.clone().all(|c| c.is_ascii_digit());
    starts && !symbol && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

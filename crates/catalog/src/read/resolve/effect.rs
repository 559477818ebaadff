//! What makes a write safe: its idempotency, its probe, its undo.
//! Invariant: only writes and actions have an effect; a probe compares what both sides have.

use base::similar_names;
use indexmap::IndexMap;

use super::capability::Written;
use super::{Cx, Mistake, TOP};
use crate::codes;
use crate::model::{Body, Capability, Effect, Entity, Idempotency, Kind, Probe, Shape, Transport};
use crate::read::places::At;
use crate::read::raw;

impl Cx<'_> {
    pub(super) fn effect(&mut self, of: &Written<'_>, transport: &Transport) -> Option<Effect> {
        let raw = of.raw;
        if of.kind.is_read() {
            let keys = [
                ("idempotency", raw.idempotency.is_some()),
                ("probe", raw.probe.is_some()),
                ("undo", raw.undo.is_some()),
                ("effect", raw.effect.is_some()),
                ("concurrent", raw.concurrent),
            ];
            if let Some((key, _)) = keys.into_iter().find(|(_, given)| *given) {
                let message = format!("`{}` is a read; `{key}` belongs to a write", of.name);
                self.report(Mistake::new(codes::SHAPE, of.at.key(key).here(), message));
            }
            return None;
        }
        let query = if let Transport::Http(http) = transport { http.query.as_slice() } else { &[] };
        let idempotency = raw.idempotency.as_ref().map(|shape| self.once(of, shape, query));
        if let Some(Idempotency::Body(path)) = &idempotency {
            self.once_in_body(of, transport, path);
        }
        let probe = raw.probe.as_ref().and_then(|probe| {
            let ((Some(named), None) | (None, Some(named))) = (&probe.query, &probe.get) else {
                let message = format!("the probe of `{}` needs exactly one of `query` and `get`", of.name);
                self.report(Mistake::new(codes::SHAPE, of.at.key("probe").here(), message));
                return None;
            };
            Some(Probe { capability: named.clone(), fields: probe.fields.clone() })
        });
        Some(Effect {
            says: raw.effect.clone().unwrap_or_default(),
            idempotency,
            probe,
            undo: raw.undo.clone(),
            concurrent: raw.concurrent,
        })
    }

    /// The key needs a place in the body that nothing else has.
    fn once_in_body(&mut self, of: &Written<'_>, transport: &Transport, path: &str) {
        let first = path.split('.').next().unwrap_or_default();
        let message = match transport {
            Transport::Http(http) => match &http.body {
                Some(Body::Raw { .. }) => format!("`{}` sends bytes, which have no place for a key", of.name),
                Some(Body::Json { shape, .. } | Body::Form(shape)) if occupied(shape, path) => {
                    format!("`{}` sends something at `{path}` already; the key needs a place of its own", of.name)
                }
                Some(Body::Multipart(parts)) if parts.iter().any(|p| p.name == path) => {
                    format!("`{}` sends a part `{path}` already; the key needs one of its own", of.name)
                }
                _ => return,
            },
            Transport::Graphql(graphql)
                if graphql
                    .variables
                    .get(first)
                    .is_some_and(|shape| path.split_once('.').is_none_or(|(_, rest)| occupied(shape, rest))) =>
            {
                format!("`{}` fills `${first}` already; the key needs a variable of its own", of.name)
            }
            Transport::Graphql(_) => return,
        };
        self.report(Mistake::new(codes::MAPPING, of.at.key("idempotency").here(), message));
    }

    /// What only shows when all capabilities are known: probes, undos, primary reads, names that collide.
    pub(super) fn between(&mut self, entities: &IndexMap<String, Entity>, capabilities: &IndexMap<String, Capability>) {
        let all = TOP.key("capabilities");
        for capability in capabilities.values() {
            let Some(raw) = self.raw.capabilities.get(&capability.name) else { continue };
            let at = all.key(&capability.name);
            if let Some(raw) = &raw.probe {
                self.probe(&at.key("probe"), capability, raw, (entities, capabilities));
            }
            if let Some(undo) = &raw.undo {
                self.undo(&at.key("undo"), undo, capabilities);
            }
        }
        self.twins(entities, capabilities);
    }

    fn probe(
        &mut self,
        at: &At<'_>,
        capability: &Capability,
        raw: &raw::Probe,
        (entities, capabilities): (&IndexMap<String, Entity>, &IndexMap<String, Capability>),
    ) {
        let Some(probe) = capability.effect.as_ref().and_then(|effect| effect.probe.as_ref()) else { return };
        let kind = if raw.query.is_some() { Kind::Query } else { Kind::Get };
        let named = at.key(kind.word());
        if self.is_broken(&probe.capability, capabilities) {
            return;
        }
        let Some(read) = capabilities.get(&probe.capability).filter(|c| c.kind == kind) else {
            let known = capabilities.values().filter(|c| c.kind == kind).map(|c| c.name.as_str());
            let alternatives = similar_names(&probe.capability, known);
            let message = format!("`{}` is not a {} of this catalog", probe.capability, kind.word());
            self.report(Mistake::new(codes::NAME, named.value(), message).any_of(alternatives));
            return;
        };
        let known = |name: &String| capability.params.contains_key(name) || capability.anchor.contains(name);
        for param in read.required().filter(|p| !known(&p.name)) {
            let message =
                format!("`{}` cannot be asked by `{}`: nothing fills `{}`", read.name, capability.name, param.name);
            self.report(Mistake::new(codes::MAPPING, named.value(), message));
        }
        let fields = entities.get(&read.entity).map(|e| &e.fields);
        for (n, field) in raw.fields.iter().enumerate() {
            if !known(field) || !fields.is_some_and(|f| f.contains_key(field)) {
                let message =
                    format!("`{field}` must be a field of {} and a parameter of `{}`", read.entity, capability.name);
                self.report(Mistake::new(codes::NAME, at.key("match").item(n).value(), message));
            }
        }
    }

    /// There, with a mistake of its own: that is said there, and what leans on it is not wrong too.
    fn is_broken(&self, name: &str, capabilities: &IndexMap<String, Capability>) -> bool {
        self.raw.capabilities.contains_key(name) && !capabilities.contains_key(name)
    }

    fn undo(&mut self, at: &At<'_>, undo: &str, capabilities: &IndexMap<String, Capability>) {
        let fits = |c: &&Capability| !c.kind.is_read();
        if !self.is_broken(undo, capabilities) && capabilities.get(undo).filter(fits).is_none() {
            let alternatives = similar_names(undo, capabilities.values().filter(fits).map(|c| c.name.as_str()));
            let message = format!("`{undo}` is not a write of this catalog");
            self.report(Mistake::new(codes::NAME, at.value(), message).any_of(alternatives));
        }
    }
}

/// Whether a dotted path ends at, or leads through, something that the shape sends.
fn occupied(shape: &Shape, path: &str) -> bool {
    match shape {
        Shape::Object(parts) => {
            let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
            parts.get(first).is_some_and(|inner| rest.is_none_or(|rest| occupied(inner, rest)))
        }
        _ => true,
    }
}

//! Resolves the properties of a write: the idempotency key, the probe (the read that shows whether a lost write
//! happened) and the undo.
//! Invariant: only writes and actions have an effect. Each field that a probe compares is also a parameter of the
//! write.

use base::similar_names;
use indexmap::IndexMap;

use super::capability::WrittenCapability;
use super::{CatalogResolver, Mistake, TOP};
use crate::codes;
use crate::model::{Body, Capability, EffectProperties, Entity, Idempotency, Kind, Probe, Transport, ValueTemplate};
use crate::read::raw;
use crate::read::spans::YamlPath;

/// The seconds that `settles` can have: up to a day.
const SETTLES: std::ops::RangeInclusive<u32> = 1..=86_400;

impl CatalogResolver<'_> {
    /// Resolves the properties of a write. For a read, reports the keys that only a write can have.
    pub(super) fn resolve_effect(
        &mut self,
        written: &WrittenCapability<'_>,
        transport: &Transport,
    ) -> Option<EffectProperties> {
        let raw = written.raw;
        if written.kind.is_read() {
            let keys = [
                ("idempotency", raw.idempotency.is_some()),
                ("probe", raw.probe.is_some()),
                ("settles", raw.settles.is_some()),
                ("undo", raw.undo.is_some()),
                ("effect", raw.effect.is_some()),
                ("concurrent", raw.concurrent),
            ];
            if let Some((key, _)) = keys.into_iter().find(|(_, given)| *given) {
                let message = format!("`{}` is a read; `{key}` belongs to a write", written.name);
                self.report(Mistake::new(codes::SHAPE, written.at.key(key).on_key(), message));
            }
            return None;
        }
        let query = if let Transport::Http(http) = transport { http.query.as_slice() } else { &[] };
        let idempotency = raw.idempotency.as_ref().map(|shape| self.resolve_idempotency(written, shape, query));
        if let Some(Idempotency::Body(path)) = &idempotency {
            self.check_key_in_body(written, transport, path);
        }
        let probe = raw.probe.as_ref().and_then(|probe| {
            let ((Some(capability), None) | (None, Some(capability))) = (&probe.query, &probe.get) else {
                let message = format!("the probe of `{}` needs exactly one of `query` and `get`", written.name);
                self.report(Mistake::new(codes::SHAPE, written.at.key("probe").on_key(), message));
                return None;
            };
            Some(Probe { capability: capability.clone(), fields: probe.fields.clone() })
        });
        self.check_settles(written);
        Some(EffectProperties {
            summary: raw.effect.clone().unwrap_or_default(),
            idempotency,
            probe,
            undo: raw.undo.clone(),
            concurrent: raw.concurrent,
            settles: raw.settles,
        })
    }

    /// Reports a time after which nothing looks, or that is no sensible time.
    fn check_settles(&mut self, written: &WrittenCapability<'_>) {
        let Some(seconds) = written.raw.settles else { return };
        let message = if !SETTLES.contains(&seconds) {
            format!("`settles` of `{}` is in seconds, from {} to {}", written.name, SETTLES.start(), SETTLES.end())
        } else if written.raw.probe.is_none() {
            format!("`{}` has no `probe`, so nothing looks again after `settles`", written.name)
        } else {
            return;
        };
        self.report(Mistake::new(codes::SHAPE, written.at.key("settles").on_key(), message));
    }

    /// Reports an idempotency key whose path in the body or the variables has another value already.
    fn check_key_in_body(&mut self, written: &WrittenCapability<'_>, transport: &Transport, path: &str) {
        let first = path.split('.').next().unwrap_or_default();
        let message = match transport {
            Transport::Http(http) => match &http.body {
                Some(Body::Raw { .. }) => format!("`{}` sends bytes, which have no place for a key", written.name),
                Some(Body::Json { shape, .. } | Body::Form(shape)) if is_occupied(shape, path) => {
                    format!("`{}` sends something at `{path}` already; the key needs a place of its own", written.name)
                }
                Some(Body::Multipart(parts)) if parts.iter().any(|p| p.name == path) => {
                    format!("`{}` sends a part `{path}` already; the key needs one of its own", written.name)
                }
                _ => return,
            },
            Transport::Graphql(graphql)
                if graphql
                    .variables
                    .get(first)
                    .is_some_and(|shape| path.split_once('.').is_none_or(|(_, rest)| is_occupied(shape, rest))) =>
            {
                format!("`{}` fills `${first}` already; the key needs a variable of its own", written.name)
            }
            Transport::Graphql(_) => return,
        };
        self.report(Mistake::new(codes::MAPPING, written.at.key("idempotency").on_key(), message));
    }

    /// Checks the capabilities that probes and undos name, after all capabilities are resolved.
    pub(super) fn check_probes_and_undos(
        &mut self,
        entities: &IndexMap<String, Entity>,
        capabilities: &IndexMap<String, Capability>,
    ) {
        let all = TOP.key("capabilities");
        for capability in capabilities.values() {
            let Some(raw) = self.raw.capabilities.get(&capability.name) else { continue };
            let at = all.key(&capability.name);
            if let Some(raw) = &raw.probe {
                self.check_probe(&at.key("probe"), capability, raw, entities, capabilities);
            }
            if let Some(undo) = &raw.undo {
                self.check_undo(&at.key("undo"), undo, capabilities);
            }
        }
    }

    fn check_probe(
        &mut self,
        at: &YamlPath<'_>,
        capability: &Capability,
        raw: &raw::Probe,
        entities: &IndexMap<String, Entity>,
        capabilities: &IndexMap<String, Capability>,
    ) {
        let Some(probe) = capability.effect.as_ref().and_then(|effect| effect.probe.as_ref()) else { return };
        let kind = if raw.query.is_some() { Kind::Query } else { Kind::Get };
        let read_at = at.key(kind.word());
        if self.is_broken(&probe.capability, capabilities) {
            return;
        }
        let Some(read) = capabilities.get(&probe.capability).filter(|c| c.kind == kind) else {
            let known = capabilities.values().filter(|c| c.kind == kind).map(|c| c.name.as_str());
            let alternatives = similar_names(&probe.capability, known);
            let message = format!("`{}` is not a {} of this catalog", probe.capability, kind.word());
            self.report(Mistake::new(codes::NAME, read_at.on_value(), message).with_alternatives(alternatives));
            return;
        };
        let is_known = |name: &String| capability.params.contains_key(name) || capability.anchor.contains(name);
        for param in read.required().filter(|p| !is_known(&p.name)) {
            let message =
                format!("`{}` cannot be asked by `{}`: nothing fills `{}`", read.name, capability.name, param.name);
            self.report(Mistake::new(codes::MAPPING, read_at.on_value(), message));
        }
        let fields = entities.get(&read.entity).map(|e| &e.fields);
        for (n, field) in raw.fields.iter().enumerate() {
            if !is_known(field) || !fields.is_some_and(|f| f.contains_key(field)) {
                let message =
                    format!("`{field}` must be a field of {} and a parameter of `{}`", read.entity, capability.name);
                self.report(Mistake::new(codes::NAME, at.key("match").item(n).on_value(), message));
            }
        }
    }

    /// Returns whether the file has the capability, but with a mistake. This mistake is reported already, so
    /// references to the capability are not reported.
    fn is_broken(&self, name: &str, capabilities: &IndexMap<String, Capability>) -> bool {
        self.raw.capabilities.contains_key(name) && !capabilities.contains_key(name)
    }

    fn check_undo(&mut self, at: &YamlPath<'_>, undo: &str, capabilities: &IndexMap<String, Capability>) {
        let is_write = |c: &&Capability| !c.kind.is_read();
        if !self.is_broken(undo, capabilities) && capabilities.get(undo).filter(is_write).is_none() {
            let alternatives = similar_names(undo, capabilities.values().filter(is_write).map(|c| c.name.as_str()));
            let message = format!("`{undo}` is not a write of this catalog");
            self.report(Mistake::new(codes::NAME, at.on_value(), message).with_alternatives(alternatives));
        }
    }
}

/// Returns whether the body already has a value at a dotted path, or a value along the path that is no object.
fn is_occupied(body: &ValueTemplate, path: &str) -> bool {
    match body {
        ValueTemplate::Object(parts) => {
            let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
            parts.get(first).is_some_and(|inner| rest.is_none_or(|rest| is_occupied(inner, rest)))
        }
        _ => true,
    }
}

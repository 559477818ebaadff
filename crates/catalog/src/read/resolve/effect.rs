//! What makes a write safe: its idempotency, its probe, its undo. And names that must tell capabilities apart.
//! Invariant: only writes and actions have an effect; a probe compares what both sides have; one name means one method.

use base::{Diagnostic, near};
use indexmap::IndexMap;

use super::Cx;
use crate::codes;
use crate::model::{Body, Capability, Effect, Entity, Idempotency, Kind, Probe, Transport};
use crate::read::raw::{self, IdempotencyShape, Text};

impl Cx<'_> {
    pub(super) fn effect(&mut self, (name, kind): (&str, Kind), raw: &raw::Capability) -> Option<Effect> {
        let any = raw.idempotency.is_some()
            || raw.probe.is_some()
            || raw.undo.is_some()
            || raw.effect.is_some()
            || raw.concurrent;
        if kind.is_read() {
            if any {
                let message = format!(
                    "`{name}` is a read: `idempotency`, `probe`, `undo`, `effect` and `concurrent` belong to writes"
                );
                self.report(Diagnostic::error(codes::SHAPE, self.place_of_word(name), message));
            }
            return None;
        }
        let idempotency = raw.idempotency.as_ref().map(|shape| match shape {
            IdempotencyShape::Header(name) => {
                self.header_name(name);
                Idempotency::Header(name.clone())
            }
            IdempotencyShape::Query(name) => Idempotency::Query(name.clone()),
            IdempotencyShape::Body(name) => Idempotency::Body(name.clone()),
            IdempotencyShape::Natural => Idempotency::Natural,
        });
        let probe = raw.probe.as_ref().and_then(|probe| {
            let ((Some(named), None) | (None, Some(named))) = (&probe.query, &probe.get) else {
                let message = format!("the probe of `{name}` needs exactly one of `query` and `get`");
                self.report(Diagnostic::error(codes::SHAPE, self.place_of_word("probe"), message));
                return None;
            };
            let fields = probe.fields.iter().map(|f| f.value.clone()).collect();
            Some(Probe { capability: named.value.clone(), fields })
        });
        Some(Effect {
            says: raw.effect.clone().unwrap_or_default(),
            idempotency,
            probe,
            undo: raw.undo.as_ref().map(|undo| undo.value.clone()),
            concurrent: raw.concurrent,
        })
    }

    /// What only shows when all capabilities are known: probes, undos, primary reads, names that collide.
    pub(super) fn between(&mut self, entities: &IndexMap<String, Entity>, capabilities: &IndexMap<String, Capability>) {
        for capability in capabilities.values() {
            let Some(raw) = self.raw.capabilities.get(&capability.name) else { continue };
            if let (Some(raw), Some(effect)) = (&raw.probe, &capability.effect) {
                self.probe(capability, effect, raw, (entities, capabilities));
            }
            if let Some(undo) = &raw.undo {
                self.undo(undo, capabilities);
            }
            self.once_in_bytes(capability);
        }
        self.lists(entities, capabilities);
        self.methods(entities, capabilities);
        for (name, raw) in &self.raw.entities {
            self.primary_read(name, raw, capabilities);
        }
    }

    fn probe(
        &mut self,
        capability: &Capability,
        effect: &Effect,
        raw: &raw::Probe,
        (entities, capabilities): (&IndexMap<String, Entity>, &IndexMap<String, Capability>),
    ) {
        let (Some(named), Some(probe)) = (raw.query.as_ref().or(raw.get.as_ref()), &effect.probe) else { return };
        let kind = if raw.query.is_some() { Kind::Query } else { Kind::Get };
        let Some(read) = capabilities.get(&probe.capability).filter(|c| c.kind == kind) else {
            let known = capabilities.values().filter(|c| c.kind == kind).map(|c| c.name.as_str());
            let alternatives = near(&named.value, known);
            let message = format!("`{}` is not a {} of this catalog", named.value, kind.word());
            self.report(Diagnostic::error(codes::NAME, self.place(named), message).with_alternatives(alternatives));
            return;
        };
        let known = |name: &String| capability.params.contains_key(name) || capability.anchor.contains(name);
        for param in read.required().filter(|p| !known(&p.name)) {
            let message =
                format!("`{}` cannot be asked by `{}`: nothing fills `{}`", read.name, capability.name, param.name);
            self.report(Diagnostic::error(codes::MAPPING, self.place(named), message));
        }
        let fields = entities.get(&read.entity).map(|e| &e.fields);
        for field in &raw.fields {
            if !known(&field.value) || !fields.is_some_and(|f| f.contains_key(&field.value)) {
                let message = format!(
                    "`{}` must be a field of {} and a parameter of `{}`",
                    field.value, read.entity, capability.name
                );
                self.report(Diagnostic::error(codes::NAME, self.place(field), message));
            }
        }
    }

    fn undo(&mut self, undo: &Text, capabilities: &IndexMap<String, Capability>) {
        let fits = |c: &&Capability| !c.kind.is_read();
        if capabilities.get(&undo.value).filter(fits).is_none() {
            let known = capabilities.values().filter(fits).map(|c| c.name.as_str());
            let alternatives = near(&undo.value, known);
            let message = format!("`{}` is not a write of this catalog", undo.value);
            self.report(Diagnostic::error(codes::NAME, self.place(undo), message).with_alternatives(alternatives));
        }
    }

    fn once_in_bytes(&mut self, capability: &Capability) {
        let in_body = capability.effect.as_ref().is_some_and(|e| matches!(e.idempotency, Some(Idempotency::Body(_))));
        let bytes =
            matches!(&capability.transport, Transport::Http(http) if matches!(http.body, Some(Body::Raw { .. })));
        if in_body && bytes {
            let message = format!("`{}` sends bytes, which have no place for a key", capability.name);
            self.report(Diagnostic::error(codes::MAPPING, self.place_of_word(&capability.name), message));
        }
    }

    /// Two lists of one entity that ask for the same would leave it to chance which one `e1{}` means.
    fn lists(&mut self, entities: &IndexMap<String, Entity>, capabilities: &IndexMap<String, Capability>) {
        for entity in entities.keys() {
            for kind in [Kind::Query, Kind::Search] {
                let mut seen: Vec<(Vec<&str>, &str)> = Vec::new();
                for list in capabilities.values().filter(|c| c.kind == kind && &c.entity == entity) {
                    let text = list.text.as_deref();
                    let mut needs: Vec<&str> =
                        list.required().map(|p| p.name.as_str()).filter(|p| Some(*p) != text).collect();
                    needs.sort_unstable();
                    if let Some((_, first)) = seen.iter().find(|(other, _)| *other == needs) {
                        let message = format!(
                            "`{first}` and `{}` both list {entity} and need the same; make it one with optional filters",
                            list.name
                        );
                        self.report(Diagnostic::error(codes::TWO_LISTS, self.place_of_word(&list.name), message));
                    }
                    seen.push((needs, &list.name));
                }
            }
        }
    }

    fn methods(&mut self, entities: &IndexMap<String, Entity>, capabilities: &IndexMap<String, Capability>) {
        for entity in entities.values() {
            let mut seen: IndexMap<String, &str> = IndexMap::new();
            let mine = capabilities.values().filter(|c| c.entity == entity.name && !c.kind.is_list());
            for capability in mine.filter(|c| c.kind != Kind::Get) {
                let short = capability.method_name().replace('-', "_");
                if let Some(first) = seen.insert(short.clone(), &capability.name) {
                    let message = format!("`{first}` and `{}` are both called `.{short}(…)`", capability.name);
                    self.report(Diagnostic::error(codes::NAME, self.place_of_word(&capability.name), message));
                }
            }
        }
    }

    fn primary_read(&mut self, name: &str, raw: &raw::Entity, capabilities: &IndexMap<String, Capability>) {
        let gets: Vec<&str> = capabilities
            .values()
            .filter(|c| c.kind == Kind::Get && c.entity == name)
            .map(|c| c.name.as_str())
            .collect();
        match &raw.primary_read {
            Some(named) if !gets.contains(&named.value.as_str()) => {
                let alternatives = gets.iter().map(|g| (*g).to_owned());
                let message = format!("`{}` is not a get of {name}", named.value);
                self.report(Diagnostic::error(codes::NAME, self.place(named), message).with_alternatives(alternatives));
            }
            None if gets.len() > 1 => {
                let message = format!("{name} has {} gets; say which one `{name}(key)` uses", gets.len());
                let copy = format!("primary_read: {}", gets[0]);
                self.report(Diagnostic::error(codes::TWO_LISTS, self.place_of_word(name), message).with_copy(copy));
            }
            _ => {}
        }
    }
}

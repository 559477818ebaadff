//! Resolves capabilities: the kind, the entity, the parameters and the transport (HTTP or GraphQL) of each
//! capability.
//! Invariant: a capability has exactly one kind and one transport. Keys of another kind or transport are refused.

use indexmap::IndexMap;

use super::{CatalogResolver, Mistake, TOP};
use crate::codes;
use crate::model::{Capability, Entity, Kind, Param, Role, Transport};
use crate::read::raw;
use crate::read::spans::YamlPath;
use crate::types::{TextStyle, Type, Wire};

/// A capability as the author wrote it, with the parts that are resolved first.
#[derive(Clone, Copy)]
pub(super) struct WrittenCapability<'a> {
    /// The path of the capability in the file.
    pub at: YamlPath<'a>,
    pub name: &'a str,
    pub kind: Kind,
    pub raw: &'a raw::Capability,
    /// The entity to which the capability belongs.
    pub entity: &'a Entity,
}

impl CatalogResolver<'_> {
    /// Resolves a capability. Returns `None` after a mistake that makes the capability's meaning unclear, so that the
    /// checks of the whole catalog do not report a consequence of this mistake.
    pub(super) fn resolve_capability(
        &mut self,
        name: &str,
        raw: &raw::Capability,
        entities: &IndexMap<String, Entity>,
    ) -> Option<Capability> {
        let all = TOP.key("capabilities");
        let at = all.key(name);
        let (kind, entity) = self.resolve_kind(&at, name, raw)?;
        if !self.check_entity_name(&at.key(kind.word()), entity) {
            return None;
        }
        let written = WrittenCapability { at, name, kind, raw, entity: entities.get(entity)? };
        let params = self.resolve_params(&written);
        // If the key of the entity has a mistake, this mistake is reported already, and the mapping cannot be
        // compared with the key.
        if !has_valid_key(written.entity) {
            return None;
        }
        let transport = match (&raw.http, &raw.graphql) {
            (Some(text), None) => Transport::Http(self.resolve_http(&written, text)?),
            (None, Some(text)) => Transport::Graphql(self.resolve_graphql(&written, text, &params)?),
            _ => {
                let message = format!("`{name}` needs exactly one of `http` and `graphql`");
                self.report(Mistake::new(codes::SHAPE, at.on_key(), message).with_copy("http: GET /tickets"));
                return None;
            }
        };
        self.check_transport_keys(&written, &transport);
        let anchor = self.check_mapping(&written, &params, &transport, entities);
        let paging = match &raw.paging {
            Some(paging) => Some(self.resolve_paging(&written, paging, &transport)?),
            None => None,
        };
        let rows = self.resolve_rows(&written)?;
        let returns = self.resolve_returns(&written, entity)?;
        let gives = raw.gives.as_ref().map(|fields| self.resolve_given_fields(&written, fields));
        let effect = self.resolve_effect(&written, &transport);
        Some(Capability {
            name: name.to_owned(),
            kind,
            entity: entity.to_owned(),
            about: raw.about.clone(),
            words: raw.words.clone(),
            params,
            anchor,
            text: raw.text.clone(),
            transport,
            rows,
            returns,
            gives,
            paging,
            effect,
        })
    }

    fn resolve_kind<'r>(&mut self, at: &YamlPath<'_>, name: &str, raw: &'r raw::Capability) -> Option<(Kind, &'r str)> {
        let entities =
            [&raw.query, &raw.search, &raw.get, &raw.singleton, &raw.create, &raw.update, &raw.delete, &raw.action];
        let mut given = Kind::ALL.into_iter().zip(entities).filter_map(|(kind, text)| Some((kind, text.as_deref()?)));
        let first = given.next();
        let second = given.next();
        let (target, message) = match (first, second) {
            (Some(only), None) => return Some(only),
            (Some((first_kind, _)), Some((second_kind, _))) => {
                let message = format!(
                    "`{name}` is a {} and a {}; make it two capabilities",
                    first_kind.word(),
                    second_kind.word()
                );
                (at.key(second_kind.word()).on_key(), message)
            }
            _ => (at.on_key(), format!("`{name}` needs exactly one kind, with its entity")),
        };
        let kinds = Kind::ALL.map(|kind| format!("{}: Entity", kind.word()));
        let kinds = kinds.into_iter().filter(|_| first.is_none());
        self.report(Mistake::new(codes::SHAPE, target, message).with_alternatives(kinds));
        None
    }

    fn resolve_params(&mut self, written: &WrittenCapability<'_>) -> IndexMap<String, Param> {
        let mut params: IndexMap<String, Param> = IndexMap::new();
        // A get has the parts of the key as parameters, without a declaration in the file.
        if written.kind == Kind::Get {
            for field in written.entity.key_fields() {
                params.insert(field.name.clone(), required_param(&field.name, field.kind.clone(), field.wire));
            }
        }
        // The parameter for the words of a search also needs no declaration in the file.
        match (&written.raw.text, written.kind) {
            (Some(text), Kind::Search) => {
                let words = required_param(text, Type::String(TextStyle::Short), Wire::Plain);
                params.insert(text.clone(), words);
            }
            (None, Kind::Search) => {
                let message =
                    format!("`{}` is a search; `text: PARAM` says which parameter takes the words", written.name);
                self.report(Mistake::new(codes::SHAPE, written.at.on_key(), message).with_copy("text: q"));
            }
            (Some(_), _) => {
                let message = format!("`{}` is no search, so it has no `text`", written.name);
                self.report(Mistake::new(codes::SHAPE, written.at.key("text").on_key(), message));
            }
            (None, _) => {}
        }
        let all = written.at.key("params");
        for (param, slot) in &written.raw.params {
            let declared = self.resolve_param(&all.key(param), param, slot);
            params.insert(param.clone(), declared);
        }
        params
    }

    /// Reports a key that belongs to the other transport.
    fn check_transport_keys(&mut self, written: &WrittenCapability<'_>, transport: &Transport) {
        let raw = written.raw;
        let http_keys = [
            ("headers", !raw.headers.is_empty()),
            ("body", raw.body.is_some()),
            ("form", raw.form.is_some()),
            ("multipart", raw.multipart.is_some()),
            ("raw", raw.raw.is_some()),
            ("content_type", raw.content_type.is_some()),
        ];
        let (key, message) = match transport {
            Transport::Graphql(_) => {
                let Some((key, _)) = http_keys.into_iter().find(|(_, given)| *given) else { return };
                (key, format!("`{}` is GraphQL, so it has no `{key}`; write `variables`", written.name))
            }
            Transport::Http(_) if !raw.variables.is_empty() => {
                ("variables", format!("`{}` is not GraphQL, so it has no `variables`; write `body`", written.name))
            }
            Transport::Http(_) => return,
        };
        self.report(Mistake::new(codes::SHAPE, written.at.key(key).on_key(), message));
    }
}

fn required_param(name: &str, kind: Type, wire: Wire) -> Param {
    Param {
        name: name.to_owned(),
        kind,
        required: true,
        role: Role::Filter,
        about: String::new(),
        list: Default::default(),
        wire,
    }
}

/// Returns whether the entity has a key and every part of the key is a field.
pub(super) fn has_valid_key(entity: &Entity) -> bool {
    !entity.key.is_empty() && entity.key.iter().all(|part| entity.fields.contains_key(part))
}

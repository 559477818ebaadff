//! Capabilities: what each does, to what, with which parameters.
//! Invariant: exactly one kind and one transport; keys that belong to another of either are refused.

use indexmap::IndexMap;

use super::{Cx, Mistake, TOP};
use crate::codes;
use crate::model::{Capability, Entity, Kind, Param, Role, Transport};
use crate::read::places::At;
use crate::read::raw;
use crate::types::{TextStyle, Type, Wire};

/// One capability as written, and where.
#[derive(Clone, Copy)]
pub(super) struct Written<'a> {
    pub at: At<'a>,
    pub name: &'a str,
    pub kind: Kind,
    pub raw: &'a raw::Capability,
    pub target: &'a Entity,
}

impl Cx<'_> {
    pub(super) fn capability(
        &mut self,
        name: &str,
        raw: &raw::Capability,
        entities: &IndexMap<String, Entity>,
    ) -> Option<Capability> {
        let all = TOP.key("capabilities");
        let at = all.key(name);
        let (kind, entity) = self.kind(&at, name, raw)?;
        if !self.entity_name(&at.key(kind.word()), entity) {
            return None;
        }
        let of = Written { at, name, kind, raw, target: entities.get(entity)? };
        let params = self.params(&of);
        // Nothing can be held against a key that is wrong itself.
        if !is_keyed(of.target) {
            return None;
        }
        let transport = match (&raw.http, &raw.graphql) {
            (Some(text), None) => Transport::Http(self.http(&of, text)?),
            (None, Some(text)) => Transport::Graphql(self.graphql(&of, text, &params)?),
            _ => {
                let message = format!("`{name}` needs exactly one of `http` and `graphql`");
                self.report(Mistake::new(codes::SHAPE, at.here(), message).write("http: GET /tickets"));
                return None;
            }
        };
        self.misplaced(&of, &transport);
        let anchor = self.mapping(&of, &params, &transport, entities);
        let paging = match &raw.paging {
            Some(paging) => Some(self.paging(&of, paging, &transport)?),
            None => None,
        };
        let rows = self.rows(&of)?;
        let returns = self.returns(&of, entity)?;
        let gives = raw.gives.as_ref().map(|fields| self.gives(&of, fields));
        let effect = self.effect(&of, &transport);
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

    fn kind<'r>(&mut self, at: &At<'_>, name: &str, raw: &'r raw::Capability) -> Option<(Kind, &'r str)> {
        let named =
            [&raw.query, &raw.search, &raw.get, &raw.singleton, &raw.create, &raw.update, &raw.delete, &raw.action];
        let mut given = Kind::ALL.into_iter().zip(named).filter_map(|(kind, text)| Some((kind, text.as_deref()?)));
        let (first, second) = (given.next(), given.next());
        let (spot, message) = match (first, second) {
            (Some(only), None) => return Some(only),
            (Some((one, _)), Some((two, _))) => {
                let message = format!("`{name}` is a {} and a {}; make it two capabilities", one.word(), two.word());
                (at.key(two.word()).here(), message)
            }
            _ => (at.here(), format!("`{name}` needs exactly one kind, with its entity")),
        };
        let kinds = Kind::ALL.map(|kind| format!("{}: Entity", kind.word()));
        let kinds = kinds.into_iter().filter(|_| first.is_none());
        self.report(Mistake::new(codes::SHAPE, spot, message).any_of(kinds));
        None
    }

    fn params(&mut self, of: &Written<'_>) -> IndexMap<String, Param> {
        let mut params: IndexMap<String, Param> = IndexMap::new();
        // A get is asked for by key: the parts of the key are its parameters without being declared.
        if of.kind == Kind::Get {
            for field in of.target.key_fields() {
                params.insert(field.name.clone(), required(&field.name, field.kind.clone(), field.wire));
            }
        }
        // A search has its words without their being declared.
        match (&of.raw.text, of.kind) {
            (Some(text), Kind::Search) => {
                let words = required(text, Type::String(TextStyle::Short), Wire::Plain);
                params.insert(text.clone(), words);
            }
            (None, Kind::Search) => {
                let message = format!("`{}` is a search; `text: PARAM` says which parameter takes the words", of.name);
                self.report(Mistake::new(codes::SHAPE, of.at.here(), message).write("text: q"));
            }
            (Some(_), _) => {
                let message = format!("`{}` is no search, so it has no `text`", of.name);
                self.report(Mistake::new(codes::SHAPE, of.at.key("text").here(), message));
            }
            (None, _) => {}
        }
        let all = of.at.key("params");
        for (param, slot) in &of.raw.params {
            let declared = self.param(&all.key(param), param, slot);
            params.insert(param.clone(), declared);
        }
        params
    }

    /// Keys that say something about the other transport.
    fn misplaced(&mut self, of: &Written<'_>, transport: &Transport) {
        let raw = of.raw;
        let over_http = [
            ("headers", !raw.headers.is_empty()),
            ("body", raw.body.is_some()),
            ("form", raw.form.is_some()),
            ("multipart", raw.multipart.is_some()),
            ("raw", raw.raw.is_some()),
            ("content_type", raw.content_type.is_some()),
        ];
        let (key, message) = match transport {
            Transport::Graphql(_) => {
                let Some((key, _)) = over_http.into_iter().find(|(_, given)| *given) else { return };
                (key, format!("`{}` is GraphQL, so it has no `{key}`; write `variables`", of.name))
            }
            Transport::Http(_) if !raw.variables.is_empty() => {
                ("variables", format!("`{}` is not GraphQL, so it has no `variables`; write `body`", of.name))
            }
            Transport::Http(_) => return,
        };
        self.report(Mistake::new(codes::SHAPE, of.at.key(key).here(), message));
    }
}

fn required(name: &str, kind: Type, wire: Wire) -> Param {
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

/// Whether it has a key, all of whose parts are fields.
pub(super) fn is_keyed(entity: &Entity) -> bool {
    !entity.key.is_empty() && entity.key.iter().all(|part| entity.fields.contains_key(part))
}

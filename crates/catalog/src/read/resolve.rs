//! Shape to meaning: every name is looked up, every mapping is checked against the keys it needs.
//! Invariant: all mistakes of a file are found in one go; a catalog comes out only when there is none.

use base::{CatalogId, Diagnostic, Method, Origin, Span, near};
use indexmap::IndexMap;

use super::raw::{self, SlotType, Text};
use crate::codes;
use crate::model::{Capability, Catalog, Entity, Field, Http, Kind, PageSize, Paging, Param, Relation, Via};
use crate::path::DataPath;
use crate::template::{Hole, Template};
use crate::types::{DateFormat, TextStyle, Type};

pub fn resolve(raw: raw::Catalog, text: &str) -> Result<Catalog, Vec<Diagnostic>> {
    let mut cx = Cx {
        text,
        raw: &raw,
        found: Vec::new(),
    };
    let id = cx.catalog_id(&raw.catalog);
    let aliases = raw.aliases.iter().filter_map(|alias| cx.catalog_id(alias)).collect();
    let origin = cx.origin(&raw.origin);
    let mut entities: IndexMap<String, Entity> = raw
        .entities
        .iter()
        .map(|(name, entity)| (name.clone(), cx.entity(name, entity)))
        .collect();
    let capabilities: IndexMap<String, Capability> = raw
        .capabilities
        .iter()
        .filter_map(|(name, capability)| Some((name.clone(), cx.capability(name, capability, &entities)?)))
        .collect();
    for (name, entity) in &raw.entities {
        let relations = cx.relations(name, entity, &entities, &capabilities);
        if let Some(entity) = entities.get_mut(name) {
            entity.relations = relations;
        }
    }
    cx.unreachable(&entities, &capabilities);
    cx.key_rings(&entities);
    match (id, origin, cx.found) {
        (Some(id), Some((origin, base_path)), found) if found.is_empty() => Ok(Catalog {
            id,
            version: raw.version,
            title: raw.title.clone(),
            aliases,
            origin,
            base_path,
            auth: raw.auth.clone(),
            entities,
            capabilities,
            digest: base::Digest::of(b""),
        }),
        (_, _, found) => Err(found),
    }
}

struct Cx<'a> {
    text: &'a str,
    raw: &'a raw::Catalog,
    found: Vec<Diagnostic>,
}

impl Cx<'_> {
    fn report(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }

    /// Where a name stands; one whose place the reader did not keep is looked for in the text.
    fn place(&self, text: &Text) -> Span {
        let span = super::place_of(text.referenced);
        if span.end > 0 {
            span
        } else {
            self.place_of_word(&text.value)
        }
    }

    fn place_of_word(&self, word: &str) -> Span {
        self.text
            .find(word)
            .map(|at| Span::new(at, at + word.len()))
            .unwrap_or_default()
    }

    fn catalog_id(&mut self, text: &Text) -> Option<CatalogId> {
        CatalogId::parse(&text.value)
            .map_err(|error| self.report(Diagnostic::error(codes::NAME, self.place(text), error.to_string())))
            .ok()
    }

    fn origin(&mut self, text: &Text) -> Option<(Origin, String)> {
        let after_scheme = text.value.find("://").map_or(0, |at| at + 3);
        let path_at = text.value[after_scheme..]
            .find('/')
            .map_or(text.value.len(), |at| after_scheme + at);
        let (origin, path) = text.value.split_at(path_at);
        let path = path.trim_end_matches('/');
        if let Some(bad) = path
            .chars()
            .find(|c| matches!(c, '?' | '#' | '{' | '\\') || c.is_whitespace())
        {
            let message = format!("`{bad}` is not allowed in the path of an origin");
            self.report(Diagnostic::error(codes::ORIGIN, self.place(text), message));
            return None;
        }
        Origin::parse(origin)
            .map(|origin| (origin, path.to_owned()))
            .map_err(|error| self.report(Diagnostic::error(codes::ORIGIN, self.place(text), error.to_string())))
            .ok()
    }

    fn slot_type(&mut self, slot: &SlotType) -> Type {
        match slot {
            SlotType::Named(name) => self.named_type(name),
            SlotType::Array(of) => Type::Array(Box::new(self.named_type(of))),
            SlotType::Ref(entity) => {
                self.entity_name(entity);
                Type::Ref(entity.value.clone())
            }
        }
    }

    fn named_type(&mut self, name: &Text) -> Type {
        match name.value.as_str() {
            "string" => Type::String(TextStyle::Short),
            "markdown" => Type::String(TextStyle::Markdown),
            "integer" => Type::Integer,
            "number" => Type::Number,
            "boolean" => Type::Boolean,
            "time" => Type::Date(DateFormat::Rfc3339),
            "date" => Type::Date(DateFormat::IsoDate),
            "json" => Type::Json,
            other => match self.raw.types.get(other) {
                Some(named) => Type::Select(named.select.clone()),
                None => {
                    let builtin = [
                        "string", "markdown", "integer", "number", "boolean", "time", "date", "json",
                    ];
                    let known = builtin.into_iter().chain(self.raw.types.keys().map(String::as_str));
                    let alternatives = near(other, known);
                    let message = format!("no type `{other}`");
                    let place = self.place(name);
                    self.report(Diagnostic::error(codes::NAME, place, message).with_alternatives(alternatives));
                    Type::Json
                }
            },
        }
    }

    fn entity_name(&mut self, name: &Text) -> bool {
        if self.raw.entities.contains_key(&name.value) {
            return true;
        }
        let alternatives = near(&name.value, self.raw.entities.keys().map(String::as_str));
        let message = format!("no entity `{}`", name.value);
        let place = self.place(name);
        self.report(Diagnostic::error(codes::NAME, place, message).with_alternatives(alternatives));
        false
    }

    fn entity(&mut self, name: &str, raw: &raw::Entity) -> Entity {
        let mut fields = IndexMap::new();
        for (field, slot) in &raw.fields {
            let kind = self.slot_type(&slot.kind);
            let path = DataPath::from(slot.path.clone().unwrap_or_else(|| field.clone()));
            let show = slot.show.unwrap_or_default();
            fields.insert(
                field.clone(),
                Field {
                    name: field.clone(),
                    kind,
                    path,
                    show,
                },
            );
        }
        if raw.key.is_empty() {
            let message = format!("{name} has no key; name the fields that identify a row");
            self.report(Diagnostic::error(codes::NAME, self.place_of_word(name), message));
        }
        for part in raw.key.iter().filter(|part| !raw.fields.contains_key(&part.value)) {
            let alternatives = near(&part.value, raw.fields.keys().map(String::as_str));
            let message = format!("key `{}` is not a field of {name}", part.value);
            let place = self.place(part);
            self.report(Diagnostic::error(codes::NAME, place, message).with_alternatives(alternatives));
        }
        let key = raw.key.iter().map(|part| part.value.clone()).collect();
        Entity {
            name: name.to_owned(),
            about: raw.about.clone(),
            key,
            fields,
            relations: IndexMap::new(),
        }
    }

    fn capability(
        &mut self,
        name: &str,
        raw: &raw::Capability,
        entities: &IndexMap<String, Entity>,
    ) -> Option<Capability> {
        let (kind, entity) = match (&raw.query, &raw.get) {
            (Some(entity), None) => (Kind::Query, entity),
            (None, Some(entity)) => (Kind::Get, entity),
            _ => {
                let message = format!("`{name}` needs exactly one of `query: Entity` and `get: Entity`");
                self.report(Diagnostic::error(codes::SHAPE, self.place_of_word(name), message));
                return None;
            }
        };
        if !self.entity_name(entity) {
            return None;
        }
        let target = entities.get(&entity.value)?;
        let mut params: IndexMap<String, Param> = IndexMap::new();
        // A get is asked for by key: the parts of the key are its parameters without being declared.
        if kind == Kind::Get {
            for field in target.key.iter().filter_map(|part| target.fields.get(part)) {
                let param = Param {
                    name: field.name.clone(),
                    kind: field.kind.clone(),
                    required: true,
                };
                params.insert(field.name.clone(), param);
            }
        }
        for (param, slot) in &raw.params {
            let kind = self.slot_type(&slot.kind);
            params.insert(
                param.clone(),
                Param {
                    name: param.clone(),
                    kind,
                    required: slot.required,
                },
            );
        }
        let http = self.http(name, &raw.http)?;
        self.mapping(name, &raw.http, &params, &http, entities);
        let paging = raw.paging.as_ref().map(|paging| Paging::Page {
            send: paging.page.clone(),
            from: paging.from,
            size: paging.size.as_ref().map(|s| PageSize {
                send: s.send.clone(),
                max: s.max.max(1),
            }),
            total: paging.total.clone().map(DataPath::from),
        });
        let rows = DataPath::from(raw.rows.clone());
        let (name, entity, about) = (name.to_owned(), entity.value.clone(), raw.about.clone());
        Some(Capability {
            name,
            kind,
            entity,
            about,
            params,
            http,
            rows,
            paging,
        })
    }

    /// `GET /path/{hole}?name={hole}&other=literal`
    fn http(&mut self, name: &str, text: &Text) -> Option<Http> {
        let place = self.place(text);
        let refuse = |message: String| Diagnostic::error(codes::MAPPING, place, message);
        let Some((method, target)) = text.value.split_once(' ') else {
            self.report(refuse(format!("`{name}`: write a method and a path: `GET /tickets`")));
            return None;
        };
        let Some(method) = Method::parse(method).filter(|m| *m == Method::Get) else {
            self.report(refuse(format!("`{name}`: `{method}` cannot be a read; write `GET`")));
            return None;
        };
        let (path, query) = target.trim().split_once('?').unwrap_or((target.trim(), ""));
        if !path.starts_with('/') || path.contains("//") || path.contains(['#', '\\', ' ']) {
            self.report(refuse(format!(
                "`{name}`: `{path}` is not a path; write `/tickets/{{number}}`"
            )));
            return None;
        }
        let mut pairs = Vec::new();
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match Template::parse(value) {
                Ok(template) => pairs.push((key.to_owned(), template)),
                Err(error) => self.report(refuse(format!("`{name}`: {error}"))),
            }
        }
        match Template::parse(path) {
            Ok(path) => Some(Http {
                method,
                path,
                query: pairs,
            }),
            Err(error) => {
                self.report(refuse(format!("`{name}`: {error}")));
                None
            }
        }
    }

    /// Every hole has a parameter, every parameter a hole, and what stands in the path is required.
    fn mapping(
        &mut self,
        name: &str,
        text: &Text,
        params: &IndexMap<String, Param>,
        http: &Http,
        entities: &IndexMap<String, Entity>,
    ) {
        let place = self.place(text);
        let path_holes: Vec<&Hole> = http.path.holes().collect();
        let query_holes: Vec<&Hole> = http.query.iter().flat_map(|(_, template)| template.holes()).collect();
        let mut wrong = Vec::new();
        for hole in path_holes.iter().chain(&query_holes) {
            match params.get(&hole.param) {
                None => wrong.push((
                    format!("`{{{}}}` is not a parameter of `{name}`", hole.param),
                    params.keys().cloned().collect(),
                )),
                Some(param) => wrong.extend(hole_mistake(hole, param, entities)),
            }
        }
        for hole in &path_holes {
            if params.get(&hole.param).is_some_and(|p| !p.required) {
                wrong.push((
                    format!(
                        "`{}` stands in the path of `{name}`; make it `required: true`",
                        hole.param
                    ),
                    Vec::new(),
                ));
            }
        }
        for param in params
            .keys()
            .filter(|p| !path_holes.iter().chain(&query_holes).any(|h| &h.param == *p))
        {
            wrong.push((
                format!("`{name}` does not send its parameter `{param}`; put `{{{param}}}` into `http`"),
                Vec::new(),
            ));
        }
        for (message, alternatives) in wrong {
            self.report(Diagnostic::error(codes::MAPPING, place, message).with_alternatives(alternatives));
        }
    }

    fn relations(
        &mut self,
        parent: &str,
        raw: &raw::Entity,
        entities: &IndexMap<String, Entity>,
        capabilities: &IndexMap<String, Capability>,
    ) -> IndexMap<String, Relation> {
        let mut relations = IndexMap::new();
        for (name, relation) in &raw.relations {
            let (target, many) = match (&relation.many, &relation.one) {
                (Some(target), None) => (target, true),
                (None, Some(target)) => (target, false),
                _ => {
                    let message = format!("{parent}.{name} needs exactly one of `many: Entity` and `one: Entity`");
                    self.report(Diagnostic::error(codes::SHAPE, self.place_of_word(name), message));
                    continue;
                }
            };
            if !self.entity_name(target) {
                continue;
            }
            let Some(parent) = entities.get(parent) else { continue };
            let via = match (&relation.by, &relation.key) {
                (Some(by), None) => self.via_call(parent, (name, target, by), relation, capabilities),
                (None, Some(field)) => self.via_key(parent, (name, target, field), capabilities),
                _ => {
                    let message = format!(
                        "{}.{name} needs exactly one of `by: capability` and `key: field`",
                        parent.name
                    );
                    self.report(Diagnostic::error(codes::SHAPE, self.place(target), message));
                    None
                }
            };
            if let Some(via) = via {
                let target = target.value.clone();
                relations.insert(
                    name.clone(),
                    Relation {
                        name: name.clone(),
                        target,
                        many,
                        via,
                    },
                );
            }
        }
        relations
    }

    fn via_call(
        &mut self,
        parent: &Entity,
        (name, target, by): (&str, &Text, &Text),
        relation: &raw::Relation,
        capabilities: &IndexMap<String, Capability>,
    ) -> Option<Via> {
        let place = self.place(by);
        let fits = |c: &&Capability| c.kind == Kind::Query && c.entity == target.value;
        let Some(capability) = capabilities.get(&by.value).filter(fits) else {
            let known: Vec<String> = capabilities.values().filter(fits).map(|c| c.name.clone()).collect();
            let message = format!("`{}` is not a query of {}", by.value, target.value);
            self.report(Diagnostic::error(codes::NAME, place, message).with_alternatives(known));
            return None;
        };
        let mut fill = IndexMap::new();
        for param in capability.params.values() {
            let named = relation.with.get(&param.name).map(|t| t.value.clone());
            let source = match named {
                Some(field) => Some(Some(field)),
                None if param.kind == Type::Ref(parent.name.clone()) => Some(None),
                None if parent.key.contains(&param.name) && param.required => Some(Some(param.name.clone())),
                None => None,
            };
            match source {
                Some(Some(field)) if !parent.fields.contains_key(&field) => {
                    let message = format!("{}.{name}: `{field}` is not a field of {}", parent.name, parent.name);
                    self.report(Diagnostic::error(codes::NAME, place, message));
                }
                Some(source) => {
                    fill.insert(param.name.clone(), source);
                }
                None if param.required => {
                    let message = format!(
                        "{}.{name}: nothing fills `{}` of `{}`",
                        parent.name, param.name, by.value
                    );
                    let copy = format!(
                        "with: {{{}: {}}}",
                        param.name,
                        parent.key.first().map_or("field", String::as_str)
                    );
                    self.report(Diagnostic::error(codes::MAPPING, place, message).with_copy(copy));
                }
                None => {}
            }
        }
        Some(Via::Call {
            capability: capability.name.clone(),
            fill,
        })
    }

    fn via_key(
        &mut self,
        parent: &Entity,
        (name, target, field): (&str, &Text, &Text),
        capabilities: &IndexMap<String, Capability>,
    ) -> Option<Via> {
        let place = self.place(field);
        if parent
            .fields
            .get(&field.value)
            .is_none_or(|f| f.kind != Type::Ref(target.value.clone()))
        {
            let message = format!(
                "{}.{name}: `{}` is not a field `{{ref: {}}}`",
                parent.name, field.value, target.value
            );
            self.report(Diagnostic::error(codes::NAME, place, message));
            return None;
        }
        if !capabilities
            .values()
            .any(|c| c.kind == Kind::Get && c.entity == target.value)
        {
            let message = format!(
                "{}.{name}: {} has no `get` to follow the key with",
                parent.name, target.value
            );
            self.report(Diagnostic::error(codes::MAPPING, place, message));
            return None;
        }
        Some(Via::Key {
            field: field.value.clone(),
        })
    }

    /// A key whose parts refer round to their own entity could never be written down.
    fn key_rings(&mut self, entities: &IndexMap<String, Entity>) {
        let next = |name: &str| -> Vec<String> {
            let Some(entity) = entities.get(name) else {
                return Vec::new();
            };
            let kinds = entity.key.iter().filter_map(|k| entity.fields.get(k)).map(|f| &f.kind);
            kinds
                .filter_map(|kind| {
                    if let Type::Ref(target) = kind {
                        Some(target.clone())
                    } else {
                        None
                    }
                })
                .collect()
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

    fn unreachable(&mut self, entities: &IndexMap<String, Entity>, capabilities: &IndexMap<String, Capability>) {
        for name in entities
            .keys()
            .filter(|name| !capabilities.values().any(|c| &c.entity == *name))
        {
            let message = format!("nothing reads {name}; add a `query` or a `get`, or take it out");
            self.report(Diagnostic::error(codes::UNREACHABLE, self.place_of_word(name), message));
        }
    }
}

/// A hole must name a part of a reference with several, and nothing of a plain value.
fn hole_mistake(hole: &Hole, param: &Param, entities: &IndexMap<String, Entity>) -> Option<(String, Vec<String>)> {
    let key = match &param.kind {
        Type::Ref(entity) => entities.get(entity).map(|e| e.key.clone()).unwrap_or_default(),
        _ => Vec::new(),
    };
    let shown: Vec<String> = key.iter().map(|part| format!("{{{}.{part}}}", param.name)).collect();
    match &hole.part {
        Some(part) if !key.contains(part) => Some((format!("`{}` has no part `{part}`", param.name), shown)),
        None if key.len() > 1 => Some((
            format!("`{}` has a key of {} parts; say which", param.name, key.len()),
            shown,
        )),
        _ => None,
    }
}

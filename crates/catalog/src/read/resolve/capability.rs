//! Capabilities: what each reads, with which parameters, and how it travels.
//! Invariant: every hole has a parameter and every parameter a hole; what stands in a path is required.

use base::{Diagnostic, Method};
use indexmap::IndexMap;

use super::Cx;
use crate::codes;
use crate::model::{Capability, Entity, Http, Kind, Param};
use crate::paging::{PageSize, Paging, PagingForm};
use crate::path::DataPath;
use crate::read::raw::{self, Text};
use crate::template::{Hole, Template};
use crate::types::Type;

impl Cx<'_> {
    pub(super) fn capability(
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
        let params = self.params(kind, raw, target);
        let http = self.http(name, &raw.http)?;
        self.mapping(name, &raw.http, &params, &http, entities);
        let paging = match &raw.paging {
            Some(paging) => Some(self.paging(name, paging)?),
            None => None,
        };
        let rows = DataPath::from(raw.rows.clone());
        let (name, entity, about) = (name.to_owned(), entity.value.clone(), raw.about.clone());
        Some(Capability { name, kind, entity, about, params, http, rows, paging })
    }

    fn paging(&mut self, name: &str, raw: &raw::Paging) -> Option<Paging> {
        let chosen = (&raw.page, &raw.offset, &raw.cursor, &raw.link, &raw.next);
        let form = match (chosen, &raw.send, raw.from) {
            ((Some(send), None, None, None, None), None, from) => {
                PagingForm::Page { send: send.clone(), from: from.unwrap_or(1) }
            }
            ((None, Some(send), None, None, None), None, None) => PagingForm::Offset { send: send.clone() },
            ((None, None, Some(read), None, None), Some(send), None) => {
                PagingForm::Cursor { read: DataPath::from(read.clone()), send: send.clone() }
            }
            ((None, None, None, Some(_), None), None, None) => PagingForm::Link,
            ((None, None, None, None, Some(read)), None, None) => {
                PagingForm::Next { read: DataPath::from(read.clone()) }
            }
            _ => {
                let message = format!("`{name}`: this paging is none of the forms");
                let forms = [
                    "{page: PARAM, from: 1}",
                    "{offset: PARAM}",
                    "{cursor: PATH, send: PARAM}",
                    "{link: next}",
                    "{next: PATH}",
                ];
                let diagnostic = Diagnostic::error(codes::MAPPING, self.place_of_word(name), message);
                self.report(diagnostic.with_alternatives(forms.map(str::to_owned)));
                return None;
            }
        };
        if raw.size.as_ref().is_some_and(|size| size.max == 0) {
            let message = format!("`{name}`: a page has at least one row; write `max: 100`");
            self.report(Diagnostic::error(codes::MAPPING, self.place_of_word(name), message));
            return None;
        }
        let size = raw.size.as_ref().map(|s| PageSize { send: s.send.clone(), max: s.max });
        Some(Paging { form, size, total: raw.total.clone().map(DataPath::from) })
    }

    fn params(&mut self, kind: Kind, raw: &raw::Capability, target: &Entity) -> IndexMap<String, Param> {
        let mut params: IndexMap<String, Param> = IndexMap::new();
        // A get is asked for by key: the parts of the key are its parameters without being declared.
        if kind == Kind::Get {
            for field in target.key.iter().filter_map(|part| target.fields.get(part)) {
                let param = Param { name: field.name.clone(), kind: field.kind.clone(), required: true };
                params.insert(field.name.clone(), param);
            }
        }
        for (param, slot) in &raw.params {
            let kind = self.slot_type(&slot.kind);
            params.insert(param.clone(), Param { name: param.clone(), kind, required: slot.required });
        }
        params
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
            self.report(refuse(format!("`{name}`: `{path}` is not a path; write `/tickets/{{number}}`")));
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
            Ok(path) => Some(Http { method, path, query: pairs }),
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
                    format!("`{}` stands in the path of `{name}`; make it `required: true`", hole.param),
                    Vec::new(),
                ));
            }
        }
        for param in params.keys().filter(|p| !path_holes.iter().chain(&query_holes).any(|h| &h.param == *p)) {
            wrong.push((
                format!("`{name}` does not send its parameter `{param}`; put `{{{param}}}` into `http`"),
                Vec::new(),
            ));
        }
        for (message, alternatives) in wrong {
            self.report(Diagnostic::error(codes::MAPPING, place, message).with_alternatives(alternatives));
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
        None if key.len() > 1 => Some((format!("`{}` has a key of {} parts; say which", param.name, key.len()), shown)),
        _ => None,
    }
}

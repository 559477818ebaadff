//! Capabilities: what each does, with which parameters, and what its answer holds.
//! Invariant: every hole has a parameter or a part of the key, and every parameter a hole; what stands in a path is required.

use base::{Diagnostic, Span};
use indexmap::IndexMap;

use super::Cx;
use crate::codes;
use crate::model::{Capability, Entity, Http, Kind, Param, Role, RowForm, Rows, Transport};
use crate::path::DataPath;
use crate::read::raw::{self, Paths, Text};
use crate::template::Hole;
use crate::types::{TextStyle, Type, Wire};

impl Cx<'_> {
    pub(super) fn capability(
        &mut self,
        name: &str,
        raw: &raw::Capability,
        entities: &IndexMap<String, Entity>,
    ) -> Option<Capability> {
        let (kind, entity) = self.kind(name, raw)?;
        if !self.entity_name(entity) {
            return None;
        }
        let target = entities.get(&entity.value)?;
        let params = self.params((name, kind), raw, target);
        let transport = match (&raw.http, &raw.graphql) {
            (Some(text), None) => Transport::Http(self.http(name, kind, raw, text)?),
            (None, Some(text)) => Transport::Graphql(self.graphql((name, kind), raw, text, &params)?),
            _ => {
                let message = format!("`{name}` needs exactly one of `http` and `graphql`");
                self.report(Diagnostic::error(codes::SHAPE, self.place_of_word(name), message));
                return None;
            }
        };
        self.misplaced(name, raw, &transport);
        let place = raw.http.as_ref().or(raw.graphql.as_ref()).map(|text| self.place(text)).unwrap_or_default();
        let anchor = self.mapping(&Mapping { name, kind, place, target, entities }, &params, &transport);
        let paging = match &raw.paging {
            Some(paging) => Some(self.paging((name, kind), paging, &transport, target)?),
            None => None,
        };
        let rows = self.rows((name, kind), raw, target)?;
        let returns = match &raw.returns {
            Some(other) if !self.entity_name(other) => return None,
            Some(other) => other.value.clone(),
            None => entity.value.clone(),
        };
        let gives = raw.gives.as_ref().map(|fields| self.gives(target, fields));
        let effect = self.effect((name, kind), raw);
        Some(Capability {
            name: name.to_owned(),
            kind,
            entity: entity.value.clone(),
            about: raw.about.clone(),
            words: raw.words.clone(),
            params,
            anchor,
            text: raw.text.as_ref().map(|t| t.value.clone()),
            transport,
            rows,
            returns,
            gives,
            paging,
            effect,
        })
    }

    fn kind<'r>(&mut self, name: &str, raw: &'r raw::Capability) -> Option<(Kind, &'r Text)> {
        let named =
            [&raw.query, &raw.search, &raw.get, &raw.singleton, &raw.create, &raw.update, &raw.delete, &raw.action];
        let mut given = Kind::ALL.into_iter().zip(named).filter_map(|(kind, text)| Some((kind, text.as_ref()?)));
        if let (Some(only), None) = (given.next(), given.next()) {
            return Some(only);
        }
        let message = format!("`{name}` needs exactly one kind, with its entity");
        let kinds = Kind::ALL.map(|kind| format!("{}: Entity", kind.word()));
        self.report(Diagnostic::error(codes::SHAPE, self.place_of_word(name), message).with_alternatives(kinds));
        None
    }

    fn params(
        &mut self,
        (name, kind): (&str, Kind),
        raw: &raw::Capability,
        target: &Entity,
    ) -> IndexMap<String, Param> {
        let mut params: IndexMap<String, Param> = IndexMap::new();
        // A get is asked for by key: the parts of the key are its parameters without being declared.
        if kind == Kind::Get {
            for field in target.key_fields() {
                params.insert(field.name.clone(), required(&field.name, field.kind.clone(), field.wire));
            }
        }
        // A search has its words without their being declared.
        match (&raw.text, kind) {
            (Some(text), Kind::Search) => {
                let words = required(&text.value, Type::String(TextStyle::Short), Wire::Plain);
                params.insert(text.value.clone(), words);
            }
            (None, Kind::Search) => {
                let message = format!("`{name}` is a search; `text: PARAM` says which parameter takes the words");
                self.report(Diagnostic::error(codes::SHAPE, self.place_of_word(name), message));
            }
            (Some(text), _) => {
                let message = format!("`{name}` is no search, so it has no `text`");
                self.report(Diagnostic::error(codes::SHAPE, self.place(text), message));
            }
            (None, _) => {}
        }
        for (param, slot) in &raw.params {
            let declared = self.param(param, slot);
            params.insert(param.clone(), declared);
        }
        params
    }

    /// Keys that say something about the other transport.
    fn misplaced(&mut self, name: &str, raw: &raw::Capability, transport: &Transport) {
        let over_http = !raw.headers.is_empty()
            || raw.body.is_some()
            || raw.form.is_some()
            || raw.multipart.is_some()
            || raw.raw.is_some();
        let message = match transport {
            Transport::Graphql(_) if over_http => {
                format!("`{name}` is GraphQL: no `headers`, `body`, `form`, `multipart`, `raw`; write `variables`")
            }
            Transport::Http(_) if !raw.variables.is_empty() => {
                format!("`{name}` is not GraphQL, so it has no `variables`; write `body`")
            }
            _ => return,
        };
        self.report(Diagnostic::error(codes::SHAPE, self.place_of_word(name), message));
    }

    fn rows(&mut self, (name, kind): (&str, Kind), raw: &raw::Capability, target: &Entity) -> Option<Rows> {
        let wrong = |cx: &mut Self, message: String| {
            cx.report(Diagnostic::error(codes::SHAPE, cx.place_of_word(name), format!("`{name}`: {message}")));
        };
        let (given, other) = if kind.is_list() { (&raw.rows, &raw.row) } else { (&raw.row, &raw.rows) };
        if other.is_some() {
            let fix = if kind.is_list() { "a list has `rows`, not `row`" } else { "one row is at `row`, not `rows`" };
            wrong(self, fix.to_owned());
            return None;
        }
        let forms = usize::from(raw.wrap.is_some()) + usize::from(raw.entries.is_some()) + usize::from(raw.columns);
        if forms > 1 || (forms == 1 && !kind.is_list()) {
            wrong(self, "at most one of `wrap`, `entries`, `columns`, and only for a list".to_owned());
            return None;
        }
        for field in [&raw.wrap, &raw.entries].into_iter().flatten() {
            if !target.fields.contains_key(&field.value) {
                wrong(self, format!("`{}` is not a field of {}", field.value, target.name));
                return None;
            }
        }
        if raw.sparse && !(kind.is_list() && given.is_some()) {
            wrong(self, "`sparse: true` is for a list with `rows` that the answer may leave out".to_owned());
            return None;
        }
        let silent = raw.answer.is_some();
        if silent && (given.is_some() || kind.is_read()) {
            wrong(self, "`answer: none` is for a write whose answer holds no row".to_owned());
            return None;
        }
        // Deleting answers with nothing, an action with nothing of interest, unless the catalog says where its row is.
        let quiet = silent || (matches!(kind, Kind::Delete | Kind::Action) && given.is_none() && raw.returns.is_none());
        let form = match (&raw.wrap, &raw.entries) {
            _ if quiet => RowForm::Nothing,
            (Some(field), _) => RowForm::Wrap(field.value.clone()),
            (_, Some(field)) => RowForm::Entries(field.value.clone()),
            _ if raw.columns => RowForm::Columns,
            _ if kind.is_list() => RowForm::List,
            _ => RowForm::One,
        };
        let connection = raw.paging.as_ref().and_then(|p| p.connection.as_ref());
        let at: Vec<DataPath> = match (given, connection) {
            (Some(Paths::One(path)), _) => vec![DataPath::from(path.clone())],
            (Some(Paths::Several(paths)), _) => paths.iter().cloned().map(DataPath::from).collect(),
            (None, Some(connection)) => vec![DataPath::from(format!("{connection}.nodes"))],
            (None, None) => vec![DataPath::default()],
        };
        Some(Rows { at, item: raw.item.clone().map(DataPath::from), form, sparse: raw.sparse })
    }

    fn gives(&mut self, target: &Entity, fields: &[Text]) -> Vec<String> {
        for field in fields.iter().filter(|f| !target.fields.contains_key(&f.value)) {
            let alternatives = base::near(&field.value, target.fields.keys().map(String::as_str));
            let message = format!("`{}` is not a field of {}", field.value, target.name);
            self.report(Diagnostic::error(codes::NAME, self.place(field), message).with_alternatives(alternatives));
        }
        fields.iter().map(|f| f.value.clone()).collect()
    }

    /// Every hole has a parameter or a part of the key, every parameter a hole, and what stands in the path is required. Gives
    /// the parts of the key that the instance fills.
    fn mapping(&mut self, of: &Mapping<'_>, params: &IndexMap<String, Param>, transport: &Transport) -> Vec<String> {
        let (path_holes, others) = holes(transport);
        let all: Vec<&Hole> = path_holes.iter().chain(&others).copied().collect();
        let mut anchor: Vec<String> = Vec::new();
        let mut wrong: Vec<(String, Vec<String>)> = Vec::new();
        let by_instance = matches!(of.kind, Kind::Update | Kind::Delete | Kind::Action);
        for hole in &all {
            match params.get(&hole.param) {
                Some(param) => wrong.extend(hole_mistake(hole, &param.name, &param.kind, of.entities)),
                None if by_instance && of.target.key.contains(&hole.param) => {
                    if !anchor.contains(&hole.param) {
                        anchor.push(hole.param.clone());
                    }
                }
                None => {
                    let known = params.keys().cloned().collect();
                    wrong.push((format!("`{{{}}}` is not a parameter of `{}`", hole.param, of.name), known));
                }
            }
        }
        if !anchor.is_empty() {
            let missing = of.target.key.iter().filter(|part| !anchor.contains(part) && !params.contains_key(*part));
            wrong.extend(missing.map(|part| {
                (
                    format!("`{}` misses `{{{part}}}`, which is part of the key of {}", of.name, of.target.name),
                    Vec::new(),
                )
            }));
        }
        for hole in path_holes.iter().filter(|hole| params.get(&hole.param).is_some_and(|p| !p.required)) {
            let message = format!("`{}` stands in the path of `{}`; make it `required: true`", hole.param, of.name);
            wrong.push((message, Vec::new()));
        }
        for param in params.values().filter(|p| p.role != Role::PageSize && !all.iter().any(|h| h.param == p.name)) {
            let fix = format!("put `{{{}}}` into its mapping", param.name);
            wrong.push((format!("`{}` does not send its parameter `{}`; {fix}", of.name, param.name), Vec::new()));
        }
        for (message, alternatives) in wrong {
            self.report(Diagnostic::error(codes::MAPPING, of.place, message).with_alternatives(alternatives));
        }
        // In the order of the key, whatever the order of the holes.
        of.target.key.iter().filter(|part| anchor.contains(part)).cloned().collect()
    }
}

struct Mapping<'a> {
    name: &'a str,
    kind: Kind,
    place: Span,
    target: &'a Entity,
    entities: &'a IndexMap<String, Entity>,
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

/// Those of the path, and all others.
fn holes(transport: &Transport) -> (Vec<&Hole>, Vec<&Hole>) {
    match transport {
        Transport::Http(Http { path, query, headers, body, .. }) => {
            let pairs = query.iter().chain(headers).flat_map(|(_, template)| template.holes());
            (path.holes().collect(), pairs.chain(body.iter().flat_map(|body| body.holes())).collect())
        }
        Transport::Graphql(graphql) => {
            (Vec::new(), graphql.variables.values().flat_map(|shape| shape.holes()).collect())
        }
    }
}

/// A hole must name a part of a reference with several, and nothing of a plain value.
fn hole_mistake(
    hole: &Hole,
    name: &str,
    kind: &Type,
    entities: &IndexMap<String, Entity>,
) -> Option<(String, Vec<String>)> {
    let key = match kind {
        Type::Ref(entity) => entities.get(entity).map(|e| e.key.clone()).unwrap_or_default(),
        _ => Vec::new(),
    };
    let shown: Vec<String> = key.iter().map(|part| format!("{{{name}.{part}}}")).collect();
    match &hole.part {
        Some(part) if !key.contains(part) => Some((format!("`{name}` has no part `{part}`"), shown)),
        None if key.len() > 1 => Some((format!("`{name}` has a key of {} parts; say which", key.len()), shown)),
        _ => None,
    }
}

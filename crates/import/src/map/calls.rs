//! A plan as a capability: its name, its parameters, where each travels, its pages.
//! Invariant: every hole has a parameter or a part of the key, and every parameter a hole; no two have one name.

use std::collections::HashSet;

use catalog::Kind;
use serde_json::Value;

use super::{Mapper, Plan, View};
use crate::api::answer::Shape;
use crate::api::auth::reserved;
use crate::api::paging::{self, Asked};
use crate::api::path::Step;
use crate::draft::{Auth, Call, Capability, Draft, Entity, Field, Once, Param, Place, Ty};
use crate::names;
use crate::spec::{self, In, Verb};

/// Optional inputs of one call; a model reads none of the rest.
pub(super) const MAX_OPTIONAL: usize = 24;

/// A capability while its parts are put together.
pub(super) struct Making<'p> {
    pub plan: &'p Plan,
    pub made: Capability,
    pub used: HashSet<String>,
    pub query: Vec<String>,
    pub optional: usize,
}

impl<'a> Mapper<'_, 'a> {
    pub(super) fn write_down(&mut self, mut draft: Draft) -> Draft {
        self.index();
        let mut taken: HashSet<String> = HashSet::new();
        let mut made: Vec<Option<Capability>> = Vec::with_capacity(self.plans.len());
        let plans = std::mem::take(&mut self.plans);
        for plan in &plans {
            match self.capability(plan, &mut taken) {
                Ok(capability) => {
                    made.push(Some(capability));
                    self.say_unsendable(plan.view);
                }
                Err(Unsendable(why)) => {
                    made.push(None);
                    if plan.text.is_none() || plan.kind != Kind::Search || !self.done[plan.view] {
                        self.refuse(plan.view, why);
                    }
                }
            }
        }
        self.plans = plans;
        let mut entities: Vec<Entity> = (0..self.ents.len()).map(|at| self.entity(at)).collect();
        self.relations(&mut entities, &made);
        let mut gets: Vec<Vec<&str>> = vec![Vec::new(); entities.len()];
        for (plan, capability) in self.plans.iter().zip(&made).filter(|(plan, _)| plan.kind == Kind::Get) {
            gets[plan.ent].extend(capability.iter().map(|capability| capability.name.as_str()));
        }
        for (entity, gets) in entities.iter_mut().zip(gets) {
            entity.primary_read = gets.first().filter(|_| gets.len() > 1).map(|get| (*get).to_owned());
        }
        for (plan, capability) in self.plans.iter().zip(&mut made) {
            if let Some(capability) = capability {
                capability.gives = self.gives(plan, &entities[plan.ent]);
            }
        }
        draft.entities = entities;
        draft.capabilities = made.into_iter().flatten().collect();
        draft.failure = self.failure();
        let order: std::collections::HashMap<&str, usize> =
            draft.entities.iter().enumerate().map(|(at, entity)| (entity.name.as_str(), at)).collect();
        draft.capabilities.sort_by_key(|c| (order.get(c.entity.as_str()).copied(), c.kind));
        draft
    }

    /// The fields that a list carries, where a get carries more.
    fn gives(&self, plan: &Plan, entity: &Entity) -> Option<Vec<String>> {
        let readable = self.ents[plan.ent].home.as_ref().is_some_and(|home| self.readable.contains(&home.join("/")));
        let (Kind::Query | Kind::Search, Shape::Rows { item, .. }) = (plan.kind, &self.views[plan.view].seen.shape)
        else {
            return None;
        };
        let top = |path: &str| path.split(['.', '[']).next().unwrap_or_default().to_owned();
        let there = |field: &Field| {
            let path = match &field.place {
                Place::Own => field.name.clone(),
                Place::At(path) => top(path),
                Place::Parts(parts) => parts.first().map(|(_, path)| top(path)).unwrap_or_default(),
                Place::Asked | Place::Header(_) => return true,
            };
            entity.key.contains(&field.name) || self.reader.object(item).props.contains_key(path.as_str())
        };
        let given: Vec<String> =
            entity.fields.iter().filter(|field| there(field)).map(|field| field.name.clone()).collect();
        (readable && given.len() + 1 < entity.fields.len()).then_some(given)
    }

    /// A flag of success that most answers have beside the words for what went wrong: Slack's `ok` and `error`.
    fn failure(&self) -> Option<(String, String)> {
        let whole: Vec<_> = self.views.iter().filter_map(|view| view.seen.whole.as_ref()).collect();
        for (flag, words) in [("ok", ["error", "message"]), ("success", ["error", "message"])] {
            let told = |object: &&std::rc::Rc<spec::Object<'a>>| {
                object.props.get(flag).is_some_and(|p| self.reader.scalar(p.schema) == Some(spec::Scalar::Boolean))
            };
            if whole.len() < 4 || whole.iter().filter(|object| told(object)).count() * 2 < whole.len() {
                continue;
            }
            let says = words.iter().max_by_key(|word| whole.iter().filter(|o| o.props.contains_key(**word)).count());
            return says.map(|says| (flag.to_owned(), (*says).to_owned()));
        }
        None
    }

    fn entity(&self, at: usize) -> Entity {
        let ent = &self.ents[at];
        let about = if ent.about.is_empty() { names::a(&ent.name) } else { ent.about.clone() };
        Entity {
            name: ent.name.clone(),
            about,
            key: ent.parts.iter().map(|part| part.name.clone()).collect(),
            fields: self.fields(at),
            note: ent.note.clone(),
            ..Entity::default()
        }
    }

    fn capability(&self, plan: &Plan, taken: &mut HashSet<String>) -> Result<Capability, Unsendable> {
        let view = &self.views[plan.view];
        let ent = &self.ents[plan.ent];
        let prefix = names::entity_prefix(&ent.name);
        let plain = format!("{prefix}_{}", self.verb_of(plan));
        let said = || {
            let words = view.path.steps.iter().rev().filter_map(|step| match step {
                Step::Word(word) => Some(names::snake(word)),
                Step::Hole(_) => None,
            });
            words.map(|word| names::name(&format!("{prefix}_{}_{word}", plan.verb))).find(|name| !taken.contains(name))
        };
        let reads = matches!(plan.kind, Kind::Query | Kind::Search) && taken.contains(&plain);
        let name = if reads { said().unwrap_or(plain) } else { plain };
        let name = names::unique(taken, name);
        let call = Call::Http(String::new());
        let mut making = Making {
            plan,
            made: Capability::new(name, plan.kind, ent.name.clone(), call),
            used: HashSet::new(),
            query: Vec::new(),
            optional: 0,
        };
        making.made.from = view.op.label();
        self.path_params(&mut making);
        let pages = self.pages(plan);
        let paged: Vec<&str> = pages.as_ref().map(|pages| pages.taken.clone()).unwrap_or_default();
        self.other_params(&mut making, &paged)?;
        if !matches!(view.op.verb, Verb::Get) {
            self.body(&mut making)?;
        }
        let Making { mut made, query, .. } = making;
        let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        let path = format!("{}{}", view.before, view.path.template(&plan.holes));
        made.call = Call::Http(format!("{} {path}{query}", view.op.verb.word()));
        made.paging = pages.map(|pages| pages.paging).filter(|_| matches!(plan.kind, Kind::Query | Kind::Search));
        made.rows = plan.rows.clone();
        made.wrap = plan.wrap.clone();
        made.entries = plan.entries.clone();
        made.silent = plan.silent;
        made.instance = plan.instance;
        made.returns = plan.returns.map(|ent| self.ents[ent].name.clone());
        made.about = self.about(plan);
        // A `PUT` or a `DELETE` sets a state, by what HTTP says of them.
        if made.once.is_none() && matches!(view.op.verb, Verb::Put | Verb::Delete) {
            made.once = Some(Once::Natural);
        }
        Ok(made)
    }

    /// `list`, or where a list needs a scope `of_project`.
    fn verb_of(&self, plan: &Plan) -> String {
        if !matches!(plan.kind, Kind::Query | Kind::Search) || plan.holes.is_empty() {
            return plan.verb.clone();
        }
        let path = &self.views[plan.view].path;
        let last = plan.holes.len() - 1;
        let scope = names::singular(&names::snake(path.word_before(last)));
        let own = names::snake(&self.ents[plan.ent].name);
        let home = self.ents[plan.ent].home.as_ref().is_some_and(|home| home.starts_with(&path.keys));
        if home || scope.is_empty() || scope == own { plan.verb.clone() } else { format!("{}_of_{scope}", plan.verb) }
    }

    /// Words for what is not said by the name: actions, searches, and all but the plainest list.
    fn about(&self, plan: &Plan) -> String {
        let View { op, .. } = &self.views[plan.view];
        let plain = match plan.kind {
            Kind::Get | Kind::Create | Kind::Update | Kind::Delete => !matches!(plan.verb.as_str(), "replace"),
            Kind::Query => self.ents[plan.ent].queries.len() == 1,
            _ => false,
        };
        if plain {
            return String::new();
        }
        let text = if op.summary.trim().is_empty() { op.description } else { op.summary };
        names::sentence(text, 72)
    }

    fn path_params(&self, making: &mut Making<'_>) {
        let plan = making.plan;
        let parts = &self.ents[plan.ent].parts;
        let keyed = plan.kind == Kind::Get || plan.instance;
        if keyed {
            making.used.extend(parts.iter().map(|part| part.name.clone()));
        }
        for (at, hole) in plan.holes.iter().enumerate() {
            if keyed && parts.iter().any(|part| part.name == *hole) {
                continue;
            }
            making.used.insert(hole.clone());
            if making.made.params.iter().any(|param| param.name == *hole) {
                continue;
            }
            let schema = self.hole_schema(plan.view, at);
            let typed = self.types.flat(schema);
            let ty = typed.map_or_else(|| Ty::named("string"), |typed| typed.ty);
            let param = Param { name: hole.clone(), ty, required: true, role: None, list: None, as_text: false };
            making.made.params.push(param);
        }
    }

    fn pages(&self, plan: &Plan) -> Option<paging::Pages<'a>> {
        if !matches!(plan.kind, Kind::Query | Kind::Search) {
            return None;
        }
        let view = &self.views[plan.view];
        let asked: Vec<Asked<'a>> = view
            .op
            .params
            .iter()
            .filter(|p| p.place == In::Query)
            .map(|p| Asked { name: p.name, schema: p.schema, about: p.about, required: p.required })
            .collect();
        let parts = &self.ents[plan.ent].parts;
        let id = match parts.as_slice() {
            [only] => Some(only.name.as_str()),
            _ => None,
        };
        let asked: Vec<Asked<'a>> = asked.into_iter().filter(|asked| names::is_sendable(asked.name)).collect();
        paging::pages(self.reader, &asked, view.seen.whole.as_deref(), view.op.links, id)
    }

    /// Optional parameters that no query can carry are left out, and said.
    fn say_unsendable(&mut self, view: usize) {
        let op = self.views[view].op;
        let lost = op.params.iter().filter(|p| p.place == In::Query && !names::is_sendable(p.name));
        for param in lost {
            let shown: String = param.name.chars().take(60).collect();
            self.guess(&op.label(), format!("the parameter {shown:?} is left out: no query carries its name"));
        }
    }

    /// Parameters of the query and of headers.
    fn other_params(&self, making: &mut Making<'_>, paged: &[&str]) -> Result<(), Unsendable> {
        let op = self.views[making.plan.view].op;
        let mut params: Vec<&spec::Param<'a>> = op.params.iter().filter(|p| p.place != In::Path).collect();
        params.sort_by_key(|p| !p.required);
        for param in params {
            let elsewhere = paged.contains(&param.name) || making.plan.without.as_deref() == Some(param.name);
            if self.is_credential(param) || (param.place == In::Query && elsewhere) {
                continue;
            }
            match param.place {
                In::Cookie if param.required => return Err(Unsendable("it needs a cookie".to_owned())),
                In::Cookie | In::Path => {}
                In::Query => self.query_param(making, param)?,
                In::Header => self.header_param(making, param)?,
            }
        }
        Ok(())
    }

    /// Whether the credential is sent in its place.
    pub(super) fn is_credential(&self, param: &spec::Param<'a>) -> bool {
        match (&self.signed.auth, param.place) {
            (Some(Auth::Query { name, .. }), In::Query) => name == param.name,
            (Some(Auth::Header { name, .. }), In::Header) if name.eq_ignore_ascii_case(param.name) => true,
            // The same credential by another way.
            (Some(_), In::Query | In::Header) => {
                matches!(names::snake(param.name).as_str(), "token" | "access_token" | "auth_token" | "oauth_token")
            }
            _ => false,
        }
    }

    /// The one value that a required parameter can have.
    pub(super) fn fixed(&self, param: &spec::Param<'a>) -> Option<String> {
        let opened = self.reader.open(param.schema);
        let only = match opened.get("enum").and_then(Value::as_array).map(Vec::as_slice) {
            Some([only]) => Some(only),
            _ => opened.get("const"),
        };
        let name = param.name.to_ascii_lowercase().replace(['-', '_'], "");
        let version = name == "apiversion" || (param.place == In::Header && name.ends_with("version"));
        let by_default = || opened.get("default").filter(|_| version);
        let text = match only.or_else(by_default)? {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            _ => return None,
        };
        let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && !b"{}%#&=?+".contains(&b));
        plain.then_some(text)
    }

    fn query_param(&self, making: &mut Making<'_>, param: &spec::Param<'a>) -> Result<(), Unsendable> {
        let name = param.name;
        let sendable = names::is_sendable(name);
        if !sendable || making.query.iter().any(|pair| pair.split('=').next() == Some(name)) {
            let shown: String = name.chars().take(60).collect();
            return if param.required && !sendable {
                Err(Unsendable(format!("no query carries `{shown}`")))
            } else {
                Ok(())
            };
        }
        if let Some(text) = self.fixed(param).filter(|_| param.required) {
            making.query.push(format!("{name}={text}"));
            return Ok(());
        }
        if let Some((_, part)) = making.plan.keyed.iter().find(|(query, _)| query == name) {
            making.query.push(format!("{name}={{{part}}}"));
            return Ok(());
        }
        if making.plan.text.as_deref() == Some(name) {
            let text = names::unique(&mut making.used, names::name(name));
            making.query.push(format!("{name}={{{text}}}"));
            making.made.text = Some(text);
            return Ok(());
        }
        let Some(typed) = self.types.flat(param.schema) else { return self.deep(making, param) };
        if !param.required && (param.deprecated || making.optional >= MAX_OPTIONAL) {
            return Ok(());
        }
        making.optional += usize::from(!param.required);
        let slot = names::unique(&mut making.used, names::name(name));
        making.query.push(format!("{name}={{{slot}}}"));
        let several = matches!(typed.ty, Ty::Array(_) | Ty::MultiSelect(_));
        let list = several.then(|| list_style(param)).flatten();
        let sorts = matches!(
            names::snake(name).as_str(),
            "sort" | "order" | "order_by" | "sort_by" | "direction" | "sort_order"
        );
        let role = (sorts && matches!(making.plan.kind, Kind::Query | Kind::Search)).then_some("sort");
        let param = Param { name: slot, ty: typed.ty, required: param.required, role, list, as_text: false };
        making.made.params.push(param);
        Ok(())
    }

    /// `created[gte]`: each scalar of an object is a parameter of its own.
    fn deep(&self, making: &mut Making<'_>, param: &spec::Param<'a>) -> Result<(), Unsendable> {
        if param.style == "deepObject" && self.reader.is_object(param.schema) {
            let object = self.reader.object(param.schema);
            for (inner, prop) in object.props.iter().take(8) {
                let Some(typed) = self.types.flat(prop.schema) else { continue };
                let plain = inner.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                if plain && making.optional < MAX_OPTIONAL && !matches!(typed.ty, Ty::Array(_) | Ty::MultiSelect(_)) {
                    making.optional += 1;
                    let slot =
                        names::unique(&mut making.used, names::name(&format!("{}_{inner}", names::snake(param.name))));
                    making.query.push(format!("{}[{inner}]={{{slot}}}", param.name));
                    let param =
                        Param { name: slot, ty: typed.ty, required: false, role: None, list: None, as_text: false };
                    making.made.params.push(param);
                }
            }
            return Ok(());
        }
        if !param.required {
            return Ok(());
        }
        let slot = names::unique(&mut making.used, names::name(param.name));
        making.query.push(format!("{}={{{slot}}}", param.name));
        let ty = Ty::named("json_text");
        making.made.params.push(Param { name: slot, ty, required: true, role: None, list: None, as_text: false });
        Ok(())
    }

    fn header_param(&self, making: &mut Making<'_>, param: &spec::Param<'a>) -> Result<(), Unsendable> {
        let name = param.name;
        if reserved(name) {
            return Ok(());
        }
        let token = name.len() <= 100 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        let twice = making.made.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        if !token || twice {
            return Ok(());
        }
        let write = !matches!(making.plan.kind, Kind::Query | Kind::Search | Kind::Get | Kind::Singleton);
        let words = names::snake(name);
        if words.contains("idempotency") && words.contains("key") {
            if write {
                making.made.once = Some(Once::Header(name.to_owned()));
            }
            return Ok(());
        }
        if let Some(text) = self.fixed(param).filter(|_| param.required) {
            making.made.headers.push((name.to_owned(), text));
            return Ok(());
        }
        if !param.required && (param.deprecated || making.optional >= MAX_OPTIONAL) {
            return Ok(());
        }
        let typed = match self.types.flat(param.schema) {
            Some(typed) if !matches!(typed.ty, Ty::Array(_) | Ty::MultiSelect(_)) => typed,
            _ if !param.required => return Ok(()),
            _ => return Err(Unsendable(format!("no header carries the value of `{name}`"))),
        };
        making.optional += usize::from(!param.required);
        let slot = names::unique(&mut making.used, names::name(&names::snake(name)));
        making.made.headers.push((name.to_owned(), format!("{{{slot}}}")));
        let param =
            Param { name: slot, ty: typed.ty, required: param.required, role: None, list: None, as_text: false };
        making.made.params.push(param);
        Ok(())
    }
}

/// Why an operation cannot be sent by a catalog.
pub(super) struct Unsendable(pub String);

/// How several values travel.
fn list_style(param: &spec::Param<'_>) -> Option<&'static str> {
    match param.style {
        _ if param.name.ends_with("[]") => Some("repeat"),
        "multi" => Some("repeat"),
        "csv" | "pipes" | "pipeDelimited" | "tsv" => None,
        "ssv" | "spaceDelimited" => Some("space"),
        "deepObject" => Some("brackets"),
        _ if param.explode => Some("repeat"),
        _ => None,
    }
}

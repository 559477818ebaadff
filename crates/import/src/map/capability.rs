//! The translation of planned capabilities to capabilities of a draft: names, parameters, the place of each parameter in the
//! request, paging.
//! Invariant: every placeholder is filled by a parameter or a key part, and every parameter fills a placeholder. Parameter
//! names are unique within a capability.

use std::collections::{HashMap, HashSet};

use base::Auth;
use catalog::raw::{Entity, Failure, IdempotencyShape};
use catalog::{Kind, ListStyle, Role, raw};
use serde_json::Value;

use super::{Endpoint, Mapper, PlannedCapability};
use crate::api::answer::AnswerShape;
use crate::api::auth::is_reserved_header;
use crate::api::paging::{self, DetectedPaging};
use crate::draft::{self, Draft, DraftCapability, DraftEntity, is_list, named_type};
use crate::names;
use crate::spec::{Param, ParamLocation, Prop, Scalar, Verb};

/// The maximum number of optional inputs of one capability. Each further input would cost tokens in every taught table.
const MAX_OPTIONAL_INPUTS: usize = 24;

/// The maximum number of scalar properties of one `deepObject` parameter.
const MAX_DEEP_PARAMS: usize = 8;

/// The minimum number of answers with an envelope before a common success flag is recognised.
const MIN_ANSWERS_WITH_FLAG: usize = 4;

/// The reason why a catalog cannot send the request of an operation.
struct Unsendable(String);

/// A capability to which parameters are still being added.
pub(super) struct CapabilityBuilder<'p> {
    pub plan: &'p PlannedCapability,
    pub capability: DraftCapability,
    /// The names that parameters and key parts already use.
    pub taken: HashSet<String>,
    /// The query pairs of the request template: `state={state}`.
    query: Vec<String>,
    /// The number of optional inputs that were added so far.
    pub optional: usize,
}

impl CapabilityBuilder<'_> {
    /// Returns whether the capability already has the maximum number of optional inputs.
    pub fn is_full(&self) -> bool {
        self.optional >= MAX_OPTIONAL_INPUTS
    }

    /// Adds a parameter and returns its final name. A number is appended if the name is already used.
    pub fn add_param(&mut self, name: String, declaration: raw::Declaration) -> String {
        let name = names::reserve_unique(&mut self.taken, name);
        self.capability.raw.params.insert(name.clone(), declaration);
        name
    }
}

impl<'a> Mapper<'_, 'a> {
    /// Translates all planned capabilities and entities to a draft.
    pub(super) fn write_draft(&mut self, head: raw::Catalog) -> Draft {
        let plans = std::mem::take(&mut self.plans);
        let mut taken: HashSet<String> = HashSet::new();
        let mut capabilities: Vec<Option<DraftCapability>> = Vec::with_capacity(plans.len());
        for plan in &plans {
            match self.capability(plan, &mut taken) {
                Ok(capability) => {
                    capabilities.push(Some(capability));
                    self.report_unsendable_params(plan.endpoint);
                }
                Err(Unsendable(reason)) => {
                    capabilities.push(None);
                    // The search is a second capability of a list operation. If the list is mapped, the operation counts as
                    // mapped.
                    let is_second = plan.kind == Kind::Search && plan.search_param.is_some();
                    if !is_second || !self.is_done[plan.endpoint] {
                        self.report_unmapped(plan.endpoint, reason);
                    }
                }
            }
        }
        self.plans = plans;
        let mut entities: Vec<DraftEntity> = (0..self.entities.len()).map(|at| self.entity(at)).collect();
        self.add_relations(&mut entities, &capabilities);
        self.set_primary_reads(&mut entities, &capabilities);
        for (plan, capability) in self.plans.iter().zip(&mut capabilities) {
            let shape = &self.endpoints[plan.endpoint].answer.shape;
            if let (Some(capability), AnswerShape::Rows { item, .. }) = (capability, shape)
                && matches!(plan.kind, Kind::Query | Kind::Search)
            {
                let fields = &entities[plan.entity].raw.fields;
                capability.raw.gives = self.fields_of_list(plan.entity, item, fields);
            }
        }
        let order: HashMap<&str, usize> =
            entities.iter().enumerate().map(|(at, entity)| (entity.name.as_str(), at)).collect();
        let mut capabilities: Vec<DraftCapability> = capabilities.into_iter().flatten().collect();
        capabilities.sort_by_key(|capability| (order.get(capability.entity.as_str()).copied(), capability.kind));
        let head = raw::Catalog { failure: self.failure(), ..head };
        Draft { head, comments: Vec::new(), entities, capabilities }
    }

    /// Sets the primary read of each entity with several gets: the first one. `Entity(key)` in a program calls the primary
    /// read.
    fn set_primary_reads(&self, entities: &mut [DraftEntity], capabilities: &[Option<DraftCapability>]) {
        let mut gets: Vec<Vec<&str>> = vec![Vec::new(); entities.len()];
        for (plan, capability) in self.plans.iter().zip(capabilities) {
            if plan.kind == Kind::Get {
                gets[plan.entity].extend(capability.iter().map(|capability| capability.name.as_str()));
            }
        }
        for (entity, gets) in entities.iter_mut().zip(gets) {
            if let [first, _, ..] = gets.as_slice() {
                entity.raw.primary_read = Some((*first).to_owned());
            }
        }
    }

    /// Returns the success flag of APIs that report failures in the body, such as Slack's `ok`, with the property that has the
    /// message (`error`). At least half of the answers must have the flag.
    fn failure(&self) -> Option<Failure> {
        let envelopes: Vec<_> =
            self.endpoints.iter().filter_map(|endpoint| endpoint.answer.envelope.as_ref()).collect();
        for flag in ["ok", "success"] {
            let has_flag = |prop: &Prop<'a>| self.reader.scalar(prop.schema) == Some(Scalar::Boolean);
            let with_flag = envelopes.iter().filter(|object| object.props.get(flag).is_some_and(has_flag)).count();
            if envelopes.len() < MIN_ANSWERS_WITH_FLAG || with_flag * 2 < envelopes.len() {
                continue;
            }
            let uses = |name: &str| envelopes.iter().filter(|object| object.props.contains_key(name)).count();
            let says = if uses("error") > uses("message") { "error" } else { "message" };
            return Some(Failure { flag: flag.to_owned(), says: says.to_owned() });
        }
        None
    }

    fn entity(&self, at: usize) -> DraftEntity {
        let entity = &self.entities[at];
        let about = if entity.about.is_empty() { names::with_article(&entity.name) } else { entity.about.clone() };
        let raw = Entity {
            about,
            key: entity.key.iter().map(|part| part.name.clone()).collect(),
            fields: self.fields(at),
            ..Entity::default()
        };
        DraftEntity { name: entity.name.clone(), raw, comment: entity.comment.clone() }
    }

    fn capability(&self, plan: &PlannedCapability, taken: &mut HashSet<String>) -> Result<DraftCapability, Unsendable> {
        let Endpoint { op, path, path_prefix, .. } = &self.endpoints[plan.endpoint];
        let entity = &self.entities[plan.entity];
        let name = self.capability_name(plan, taken);
        let mut builder = CapabilityBuilder {
            plan,
            capability: DraftCapability::new(name, plan.kind, entity.name.clone(), op.label()),
            taken: HashSet::new(),
            query: Vec::new(),
            optional: 0,
        };
        self.add_path_params(&mut builder);
        let paging = self.paging(plan);
        let paging_params = paging.as_ref().map(|paging| paging.params.as_slice()).unwrap_or_default();
        self.add_query_and_header_params(&mut builder, paging_params)?;
        if op.verb != Verb::Get {
            self.add_body(&mut builder);
        }

        let CapabilityBuilder { mut capability, query, .. } = builder;
        let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        let template = path.template(&plan.placeholder_names);
        capability.raw.http = Some(format!("{} {path_prefix}{template}{query}", op.verb.word()));
        capability.raw.paging = paging.map(|paging| paging.paging);
        capability.set_rows(plan.rows.clone());
        capability.raw.wrap = plan.wrap.clone();
        capability.raw.entries = plan.entries.clone();
        if plan.ignores_answer {
            capability.ignore_answer();
        }
        capability.on_row = plan.on_row;
        capability.raw.returns = plan.returns.map(|entity| self.entities[entity].name.clone());
        capability.raw.about = self.about(plan);
        // RFC 9110 section 9.2.2 defines PUT and DELETE as idempotent.
        if capability.raw.idempotency.is_none() && matches!(op.verb, Verb::Put | Verb::Delete) {
            capability.raw.idempotency = Some(IdempotencyShape::Natural);
        }
        Ok(capability)
    }

    /// Returns an unused name such as `ticket_list`. A second list of the entity gets a word of its path as a suffix.
    fn capability_name(&self, plan: &PlannedCapability, taken: &mut HashSet<String>) -> String {
        let prefix = names::entity_prefix(&self.entities[plan.entity].name);
        let mut name = format!("{prefix}_{}", self.verb_with_scope(plan));
        if matches!(plan.kind, Kind::Query | Kind::Search) && taken.contains(&name) {
            let words = self.endpoints[plan.endpoint].path.words().rev().map(names::snake_case);
            let mut longer = words.map(|word| names::field_name(&format!("{prefix}_{}_{word}", plan.verb)));
            if let Some(free) = longer.find(|longer| !taken.contains(longer)) {
                name = free;
            }
        }
        names::reserve_unique(taken, name)
    }

    /// Returns the verb of a planned capability. The verb of a list below another entity contains that entity's name:
    /// `list_of_project`.
    fn verb_with_scope(&self, plan: &PlannedCapability) -> String {
        let Some(last) = plan.placeholder_names.len().checked_sub(1) else { return plan.verb.clone() };
        if !matches!(plan.kind, Kind::Query | Kind::Search) {
            return plan.verb.clone();
        }
        let path = &self.endpoints[plan.endpoint].path;
        let entity = &self.entities[plan.entity];
        let scope = names::singular(&names::snake_case(path.word_before(last)));
        let is_own_list = entity.home.as_ref().is_some_and(|home| home.starts_with(&path.keys));
        if is_own_list || scope.is_empty() || scope == names::snake_case(&entity.name) {
            plan.verb.clone()
        } else {
            format!("{}_of_{scope}", plan.verb)
        }
    }

    /// Returns the description of a capability. It is empty for kinds whose name explains them, to save tokens in the taught
    /// table.
    fn about(&self, plan: &PlannedCapability) -> String {
        let name_says_enough = match plan.kind {
            Kind::Get | Kind::Create | Kind::Update | Kind::Delete => plan.verb != "replace",
            Kind::Query => self.entities[plan.entity].query_required_inputs.len() == 1,
            Kind::Search | Kind::Singleton | Kind::Action => false,
        };
        if name_says_enough {
            return String::new();
        }
        let op = self.endpoints[plan.endpoint].op;
        names::first_sentence(if op.summary.trim().is_empty() { op.description } else { op.summary }, 72)
    }

    fn add_path_params(&self, builder: &mut CapabilityBuilder<'_>) {
        let plan = builder.plan;
        let key = &self.entities[plan.entity].key;
        let is_filled_from_key = plan.kind == Kind::Get || plan.on_row;
        if is_filled_from_key {
            builder.taken.extend(key.iter().map(|part| part.name.clone()));
        }
        for (at, placeholder) in plan.placeholder_names.iter().enumerate() {
            if is_filled_from_key && key.iter().any(|part| part.name == *placeholder) {
                continue;
            }
            builder.taken.insert(placeholder.clone());
            let kind = self
                .types
                .flat_type(self.placeholder_schema(plan.endpoint, at))
                .unwrap_or_else(|| named_type("string"));
            builder
                .capability
                .raw
                .params
                .entry(placeholder.clone())
                .or_insert_with(|| draft::param_declaration(kind, true));
        }
    }

    fn paging(&self, plan: &PlannedCapability) -> Option<DetectedPaging<'a>> {
        if !matches!(plan.kind, Kind::Query | Kind::Search) {
            return None;
        }
        let Endpoint { op, answer, .. } = &self.endpoints[plan.endpoint];
        let is_sendable = |p: &&Param<'a>| p.location == ParamLocation::Query && names::is_sendable(p.name);
        let params: Vec<&Param<'a>> = op.params.iter().filter(is_sendable).collect();
        let key_field = match self.entities[plan.entity].key.as_slice() {
            [only] => Some(only.name.as_str()),
            _ => None,
        };
        paging::detect_paging(self.reader, &params, answer.envelope.as_deref(), op.has_link_header, key_field)
    }

    /// Reports the query parameters whose names a catalog cannot send.
    fn report_unsendable_params(&mut self, endpoint: usize) {
        let op = self.endpoints[endpoint].op;
        let is_lost = |p: &&Param<'a>| p.location == ParamLocation::Query && !names::is_sendable(p.name);
        for param in op.params.iter().filter(is_lost) {
            let name: String = param.name.chars().take(60).collect();
            self.report_guess(&op.label(), format!("the parameter {name:?} is left out: no query carries its name"));
        }
    }

    fn add_query_and_header_params(
        &self,
        builder: &mut CapabilityBuilder<'_>,
        paging_params: &[&str],
    ) -> Result<(), Unsendable> {
        let op = self.endpoints[builder.plan.endpoint].op;
        let mut params: Vec<&Param<'a>> = op.params.iter().collect();
        params.sort_by_key(|param| !param.required);
        for param in params {
            match param.location {
                _ if self.is_credential(param) => {}
                ParamLocation::Path => {}
                ParamLocation::Cookie if param.required => return Err(Unsendable("it needs a cookie".to_owned())),
                ParamLocation::Cookie => {}
                ParamLocation::Query => {
                    let is_hidden = builder.plan.hidden_param.as_deref() == Some(param.name);
                    if !is_hidden && !paging_params.contains(&param.name) {
                        self.add_query_param(builder, param)?;
                    }
                }
                ParamLocation::Header => self.add_header_param(builder, param)?,
            }
        }
        Ok(())
    }

    /// Returns whether the parameter takes the credential, which the client sends itself.
    pub(super) fn is_credential(&self, param: &Param<'a>) -> bool {
        let Some(auth) = &self.credential.auth else { return false };
        match (auth, param.location) {
            (Auth::Query { name, .. }, ParamLocation::Query) => name == param.name,
            (Auth::Header { name, .. }, ParamLocation::Header) if name.eq_ignore_ascii_case(param.name) => true,
            // Some APIs accept the same credential in a second place, such as a `token` parameter beside the header.
            (_, ParamLocation::Query | ParamLocation::Header) => {
                matches!(
                    names::snake_case(param.name).as_str(),
                    "token" | "access_token" | "auth_token" | "oauth_token"
                )
            }
            _ => false,
        }
    }

    /// Returns the value of a parameter with only one choice, or the default of an API-version parameter.
    pub(super) fn fixed_value(&self, param: &Param<'a>) -> Option<String> {
        let opened = self.reader.open(param.schema);
        let only_choice = match opened.get("enum").and_then(Value::as_array).map(Vec::as_slice) {
            Some([only]) => Some(only),
            _ => opened.get("const"),
        };
        let name = param.name.to_ascii_lowercase().replace(['-', '_'], "");
        let is_version = name == "apiversion" || (param.location == ParamLocation::Header && name.ends_with("version"));
        let default = opened.get("default").filter(|_| is_version);
        let text = match only_choice.or(default)? {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            _ => return None,
        };
        let is_literal = !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic() && !b"{}%#&=?+".contains(&b));
        is_literal.then_some(text)
    }

    fn add_query_param(&self, builder: &mut CapabilityBuilder<'_>, param: &Param<'a>) -> Result<(), Unsendable> {
        let name = param.name;
        if !names::is_sendable(name) {
            let shown: String = name.chars().take(60).collect();
            let reason = Unsendable(format!("no query carries `{shown}`"));
            return if param.required { Err(reason) } else { Ok(()) };
        }
        if builder.query.iter().any(|pair| pair.split('=').next() == Some(name)) {
            return Ok(());
        }
        if let Some(text) = self.fixed_value(param).filter(|_| param.required) {
            builder.query.push(format!("{name}={text}"));
            return Ok(());
        }
        if let Some((_, part)) = builder.plan.key_params.iter().find(|(query_name, _)| query_name == name) {
            builder.query.push(format!("{name}={{{part}}}"));
            return Ok(());
        }
        if builder.plan.search_param.as_deref() == Some(name) {
            let text = names::reserve_unique(&mut builder.taken, names::field_name(name));
            builder.query.push(format!("{name}={{{text}}}"));
            builder.capability.raw.text = Some(text);
            return Ok(());
        }
        let Some(kind) = self.types.flat_type(param.schema) else {
            self.add_object_param(builder, param);
            return Ok(());
        };
        if !param.required && (param.deprecated || builder.is_full()) {
            return Ok(());
        }
        builder.optional += usize::from(!param.required);
        let mut declaration = draft::param_declaration(kind, param.required);
        if is_list(&declaration.kind) {
            declaration.list = list_style(param);
        }
        let snake_name = names::snake_case(name);
        let sorts =
            matches!(snake_name.as_str(), "sort" | "order" | "order_by" | "sort_by" | "direction" | "sort_order");
        if sorts && matches!(builder.plan.kind, Kind::Query | Kind::Search) {
            declaration.role = Some(Role::Sort);
        }
        let slot = builder.add_param(names::field_name(name), declaration);
        builder.query.push(format!("{name}={{{slot}}}"));
        Ok(())
    }

    /// Adds the inputs of an object parameter. A `deepObject` becomes one input for each scalar (`created[gte]`); another
    /// required object becomes one input with JSON text.
    fn add_object_param(&self, builder: &mut CapabilityBuilder<'_>, param: &Param<'a>) {
        if param.style == "deepObject" && self.reader.is_object(param.schema) {
            let object = self.reader.object(param.schema);
            for (inner, prop) in object.props.iter().take(MAX_DEEP_PARAMS) {
                let Some(kind) = self.types.flat_type(prop.schema).filter(|kind| !is_list(kind)) else { continue };
                let is_plain = inner.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                if is_plain && !builder.is_full() {
                    builder.optional += 1;
                    let name = names::field_name(&format!("{}_{inner}", names::snake_case(param.name)));
                    let slot = builder.add_param(name, draft::param_declaration(kind, false));
                    builder.query.push(format!("{}[{inner}]={{{slot}}}", param.name));
                }
            }
        } else if param.required {
            let slot = builder
                .add_param(names::field_name(param.name), draft::param_declaration(named_type("json_text"), true));
            builder.query.push(format!("{}={{{slot}}}", param.name));
        }
    }

    fn add_header_param(&self, builder: &mut CapabilityBuilder<'_>, param: &Param<'a>) -> Result<(), Unsendable> {
        let name = param.name;
        let headers = &builder.capability.raw.headers;
        let is_header_name =
            name.len() <= 100 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        let is_known = headers.keys().any(|known| known.eq_ignore_ascii_case(name));
        if is_reserved_header(name) || !is_header_name || is_known {
            return Ok(());
        }
        let snake_name = names::snake_case(name);
        if snake_name.contains("idempotency") && snake_name.contains("key") {
            if !builder.plan.kind.is_read() {
                builder.capability.raw.idempotency = Some(IdempotencyShape::Header(name.to_owned()));
            }
            return Ok(());
        }
        if let Some(text) = self.fixed_value(param).filter(|_| param.required) {
            builder.capability.raw.headers.insert(name.to_owned(), text);
            return Ok(());
        }
        if !param.required && (param.deprecated || builder.is_full()) {
            return Ok(());
        }
        let kind = match self.types.flat_type(param.schema).filter(|kind| !is_list(kind)) {
            Some(kind) => kind,
            None if !param.required => return Ok(()),
            None => return Err(Unsendable(format!("no header carries the value of `{name}`"))),
        };
        builder.optional += usize::from(!param.required);
        let slot = builder.add_param(names::field_name(&snake_name), draft::param_declaration(kind, param.required));
        builder.capability.raw.headers.insert(name.to_owned(), format!("{{{slot}}}"));
        Ok(())
    }
}

/// Returns the encoding of a list parameter; `None` for commas, which are a catalog's default.
fn list_style(param: &Param<'_>) -> Option<ListStyle> {
    match param.style {
        _ if param.name.ends_with("[]") => Some(ListStyle::Repeat),
        "multi" => Some(ListStyle::Repeat),
        "csv" | "pipes" | "pipeDelimited" | "tsv" => None,
        "ssv" | "spaceDelimited" => Some(ListStyle::Space),
        "deepObject" => Some(ListStyle::Brackets),
        _ if param.explode => Some(ListStyle::Repeat),
        _ => None,
    }
}

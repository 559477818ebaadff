//! Holes and parameters, held against each other.
//! Invariant: every hole has a parameter or a part of the key, and every parameter a hole; what stands in a path is required.

use indexmap::IndexMap;

use super::capability::{Written, is_keyed};
use super::{Cx, Mistake};
use crate::codes;
use crate::model::{Entity, Http, Kind, Param, Role, Transport};
use crate::template::Hole;
use crate::types::Type;

impl Cx<'_> {
    /// Gives the parts of the key that the instance fills.
    pub(super) fn mapping(
        &mut self,
        of: &Written<'_>,
        params: &IndexMap<String, Param>,
        transport: &Transport,
        entities: &IndexMap<String, Entity>,
    ) -> Vec<String> {
        let (path_holes, others) = holes(transport);
        for hole in others.iter().filter(|hole| hole.segments) {
            let message = format!("`{hole}` takes several segments, which only a path has; write `{{{}}}`", hole.param);
            self.report(Mistake::new(codes::TEMPLATE, of.at.word(hole.to_string()), message));
        }
        let all: Vec<&Hole> = path_holes.iter().chain(&others).copied().collect();
        let mut anchor: Vec<&str> = Vec::new();
        let by_instance = matches!(of.kind, Kind::Update | Kind::Delete | Kind::Action);
        for hole in &all {
            let instance = by_instance && of.target.key.contains(&hole.param);
            let kind = match params.get(&hole.param) {
                Some(param) => Some(&param.kind),
                None if instance => {
                    anchor.push(&hole.param);
                    of.target.fields.get(&hole.param).map(|field| &field.kind)
                }
                None => {
                    let known = base::similar_names(&hole.param, params.keys().map(String::as_str));
                    let message = format!("`{{{}}}` is not a parameter of `{}`", hole.param, of.name);
                    let spot = of.at.word(hole.to_string());
                    self.report(Mistake::new(codes::MAPPING, spot, message).any_of(known));
                    None
                }
            };
            if let Some((message, parts)) = kind.and_then(|kind| hole_mistake(hole, kind, entities)) {
                self.report(Mistake::new(codes::MAPPING, of.at.word(hole.to_string()), message).any_of(parts));
            }
        }
        self.whole_key(of, params, &anchor);
        self.in_path(of, params, &path_holes);
        self.unsent(of, params, &all);
        // In the order of the key, whatever the order of the holes.
        of.target.key.iter().filter(|part| anchor.contains(&part.as_str())).cloned().collect()
    }

    fn whole_key(&mut self, of: &Written<'_>, params: &IndexMap<String, Param>, anchor: &[&str]) {
        if anchor.is_empty() {
            return;
        }
        let missing =
            of.target.key.iter().filter(|part| !anchor.contains(&part.as_str()) && !params.contains_key(*part));
        for part in missing {
            let message = format!("`{}` misses `{{{part}}}`, which is part of the key of {}", of.name, of.target.name);
            self.report(Mistake::new(codes::MAPPING, of.mapped().value(), message));
        }
    }

    fn in_path(&mut self, of: &Written<'_>, params: &IndexMap<String, Param>, path_holes: &[&Hole]) {
        for hole in path_holes {
            let Some(param) = params.get(&hole.param) else { continue };
            if !param.required {
                let message = format!("`{}` stands in the path of `{}`; make it `required: true`", hole.param, of.name);
                let spot = of.at.key("params").key(&hole.param).here();
                self.report(Mistake::new(codes::MAPPING, spot, message));
            }
            if matches!(param.kind, Type::Object(_) | Type::Union(_) | Type::Json) {
                let message = format!("`{}` is {}, which no path can hold", hole.param, param.kind.describe());
                self.report(Mistake::new(codes::MAPPING, of.at.word(hole.to_string()), message));
            }
        }
    }

    fn unsent(&mut self, of: &Written<'_>, params: &IndexMap<String, Param>, all: &[&Hole]) {
        let size = of.raw.paging.as_ref().and_then(|p| p.size.as_ref()).map(|size| size.send.as_str());
        let sent = |param: &Param| {
            let by_page = param.role == Role::PageSize && size == Some(param.name.as_str());
            by_page || all.iter().any(|hole| hole.param == param.name)
        };
        for param in params.values().filter(|param| !sent(param)) {
            let declared = of.raw.params.contains_key(&param.name);
            let spot = if declared { of.at.key("params").key(&param.name).here() } else { of.mapped().value() };
            let fix = format!("put `{{{}}}` into its mapping", param.name);
            let message = format!("`{}` does not send its parameter `{}`; {fix}", of.name, param.name);
            self.report(Mistake::new(codes::MAPPING, spot, message));
        }
    }
}

impl Written<'_> {
    /// Where its mapping stands.
    pub(super) fn mapped(&self) -> crate::read::places::At<'_> {
        self.at.key(if self.raw.http.is_some() { "http" } else { "graphql" })
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
fn hole_mistake(hole: &Hole, kind: &Type, entities: &IndexMap<String, Entity>) -> Option<(String, Vec<String>)> {
    let name = &hole.param;
    let key: &[String] = match kind {
        Type::Ref(entity) => entities.get(entity).filter(|e| is_keyed(e))?.key.as_slice(),
        _ => &[],
    };
    let shown = || key.iter().map(|part| format!("{{{name}.{part}}}")).collect::<Vec<String>>();
    match &hole.part {
        Some(part) if !key.contains(part) => Some((format!("`{name}` has no part `{part}`"), shown())),
        None if key.len() > 1 => Some((format!("`{name}` has a key of {} parts; say which", key.len()), shown())),
        _ => None,
    }
}

//! Compares the holes of a mapping (the places for values) with the capability's parameters and the entity's key.
//! Invariants: every hole is filled by a parameter or by a part of the key. Every parameter fills a hole or is the
//! page size. A parameter in a path is required.

use indexmap::IndexMap;

use super::capability::{WrittenCapability, has_valid_key};
use super::{CatalogResolver, Mistake};
use crate::codes;
use crate::model::{Entity, Http, Kind, Param, Role, Transport};
use crate::template::Hole;
use crate::types::Type;

impl CatalogResolver<'_> {
    /// Checks the holes of a mapping. Returns the parts of the key that the instance before `.method(…)` fills, in
    /// the order of the key.
    pub(super) fn check_mapping(
        &mut self,
        written: &WrittenCapability<'_>,
        params: &IndexMap<String, Param>,
        transport: &Transport,
        entities: &IndexMap<String, Entity>,
    ) -> Vec<String> {
        let MappingHoles { in_path, elsewhere } = collect_holes(transport);
        for hole in elsewhere.iter().filter(|hole| hole.segments) {
            let message = format!("`{hole}` takes several segments, which only a path has; write `{{{}}}`", hole.param);
            self.report(Mistake::new(codes::TEMPLATE, written.at.on_word(hole.to_string()), message));
        }
        let all: Vec<&Hole> = in_path.iter().chain(&elsewhere).copied().collect();
        let mut anchor: Vec<&str> = Vec::new();
        let has_instance = matches!(written.kind, Kind::Update | Kind::Delete | Kind::Action);
        for hole in &all {
            let is_filled_by_instance = has_instance && written.entity.key.contains(&hole.param);
            let kind = match params.get(&hole.param) {
                Some(param) => Some(&param.kind),
                None if is_filled_by_instance => {
                    anchor.push(&hole.param);
                    written.entity.fields.get(&hole.param).map(|field| &field.kind)
                }
                None => {
                    let known = base::similar_names(&hole.param, params.keys().map(String::as_str));
                    let message = format!("`{{{}}}` is not a parameter of `{}`", hole.param, written.name);
                    let target = written.at.on_word(hole.to_string());
                    self.report(Mistake::new(codes::MAPPING, target, message).with_alternatives(known));
                    None
                }
            };
            if let Some((message, parts)) = kind.and_then(|kind| find_hole_mistake(hole, kind, entities)) {
                self.report(
                    Mistake::new(codes::MAPPING, written.at.on_word(hole.to_string()), message)
                        .with_alternatives(parts),
                );
            }
        }
        self.check_whole_key(written, params, &anchor);
        self.check_path_params(written, params, &in_path);
        self.check_params_are_sent(written, params, &all);
        written.entity.key.iter().filter(|part| anchor.contains(&part.as_str())).cloned().collect()
    }

    /// Reports parts of the key without a hole, if the instance fills the holes of other parts.
    fn check_whole_key(&mut self, written: &WrittenCapability<'_>, params: &IndexMap<String, Param>, anchor: &[&str]) {
        if anchor.is_empty() {
            return;
        }
        let missing =
            written.entity.key.iter().filter(|part| !anchor.contains(&part.as_str()) && !params.contains_key(*part));
        for part in missing {
            let message =
                format!("`{}` misses `{{{part}}}`, which is part of the key of {}", written.name, written.entity.name);
            self.report(Mistake::new(codes::MAPPING, written.mapping_path().on_value(), message));
        }
    }

    /// Reports parameters in the path that are optional, or whose type cannot be part of a path.
    fn check_path_params(
        &mut self,
        written: &WrittenCapability<'_>,
        params: &IndexMap<String, Param>,
        path_holes: &[&Hole],
    ) {
        for hole in path_holes {
            let Some(param) = params.get(&hole.param) else { continue };
            if !param.required {
                let message =
                    format!("`{}` stands in the path of `{}`; make it `required: true`", hole.param, written.name);
                let target = written.at.key("params").key(&hole.param).on_key();
                self.report(Mistake::new(codes::MAPPING, target, message));
            }
            if matches!(param.kind, Type::Object(_) | Type::Union(_) | Type::Json) {
                let message = format!("`{}` is {}, which no path can hold", hole.param, param.kind.describe());
                self.report(Mistake::new(codes::MAPPING, written.at.on_word(hole.to_string()), message));
            }
        }
    }

    /// Reports parameters that no hole contains.
    fn check_params_are_sent(
        &mut self,
        written: &WrittenCapability<'_>,
        params: &IndexMap<String, Param>,
        all: &[&Hole],
    ) {
        let size = written.raw.paging.as_ref().and_then(|p| p.size.as_ref()).map(|size| size.send.as_str());
        let is_sent = |param: &Param| {
            let is_page_size = param.role == Role::PageSize && size == Some(param.name.as_str());
            is_page_size || all.iter().any(|hole| hole.param == param.name)
        };
        for param in params.values().filter(|param| !is_sent(param)) {
            let target = if written.raw.params.contains_key(&param.name) {
                written.at.key("params").key(&param.name).on_key()
            } else {
                written.mapping_path().on_value()
            };
            let fix = format!("put `{{{}}}` into its mapping", param.name);
            let message = format!("`{}` does not send its parameter `{}`; {fix}", written.name, param.name);
            self.report(Mistake::new(codes::MAPPING, target, message));
        }
    }
}

impl WrittenCapability<'_> {
    /// Returns the path of the key with the mapping: `http` or `graphql`.
    fn mapping_path(&self) -> crate::read::spans::YamlPath<'_> {
        self.at.key(if self.raw.http.is_some() { "http" } else { "graphql" })
    }
}

/// The holes of a mapping, by their place in the request.
struct MappingHoles<'t> {
    in_path: Vec<&'t Hole>,
    elsewhere: Vec<&'t Hole>,
}

fn collect_holes(transport: &Transport) -> MappingHoles<'_> {
    match transport {
        Transport::Http(Http { path, query, headers, body, .. }) => {
            let pairs = query.iter().chain(headers).flat_map(|(_, template)| template.holes());
            let in_body = body.iter().flat_map(|body| body.holes());
            MappingHoles { in_path: path.holes().collect(), elsewhere: pairs.chain(in_body).collect() }
        }
        Transport::Graphql(graphql) => MappingHoles {
            in_path: Vec::new(),
            elsewhere: graphql.variables.values().flat_map(|value| value.holes()).collect(),
        },
    }
}

/// Returns the message and the correct holes for a hole with a mistake, or `None` for a correct hole. A hole for a
/// reference whose key has several parts must name one part. Any other hole must name no part.
fn find_hole_mistake(hole: &Hole, kind: &Type, entities: &IndexMap<String, Entity>) -> Option<(String, Vec<String>)> {
    let name = &hole.param;
    let key: &[String] = match kind {
        Type::Ref(entity) => entities.get(entity).filter(|e| has_valid_key(e))?.key.as_slice(),
        _ => &[],
    };
    let right_holes = || key.iter().map(|part| format!("{{{name}.{part}}}")).collect::<Vec<String>>();
    match &hole.part {
        Some(part) if !key.contains(part) => Some((format!("`{name}` has no part `{part}`"), right_holes())),
        None if key.len() > 1 => Some((format!("`{name}` has a key of {} parts; say which", key.len()), right_holes())),
        _ => None,
    }
}

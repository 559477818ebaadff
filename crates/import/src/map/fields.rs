//! Fields of an entity: its key, then the properties of its rows, with references to other entities.
//! Invariant: no two fields have one name; a reference points to an entity whose key the row holds.

use std::collections::HashSet;

use serde_json::Value;

use super::rows::{RowProp, row_props};
use super::{Ent, Mapper};
use crate::api::types;
use crate::draft::{Field, Place, Ty};
use crate::names;
use crate::spec::Scalar;

/// More fields than this are taught to nobody's use; those that must be there come first.
const MAX_FIELDS: usize = 24;

/// So many fields beside the key a table names all of.
const NAMED_FIELDS: usize = 14;

impl<'a> Mapper<'_, 'a> {
    pub(super) fn fields(&self, at: usize) -> Vec<Field> {
        let ent = &self.ents[at];
        let mut taken: HashSet<String> = HashSet::new();
        let mut out: Vec<Field> = Vec::new();
        for part in &ent.parts {
            taken.insert(part.name.clone());
            out.push(Field {
                name: part.name.clone(),
                ty: part.ty.clone(),
                place: part.place.clone(),
                as_text: false,
                long: false,
            });
        }
        let shown: HashSet<String> = ent.parts.iter().filter_map(path_of).collect();
        let mut props: Vec<RowProp<'a>> = Vec::new();
        for row in &ent.rows {
            for prop in row_props(self.reader, row) {
                let known = props.iter().any(|other| other.path == prop.path) || shown.contains(&prop.path);
                if !known && self.is_told(&prop) {
                    props.push(prop);
                }
            }
        }
        self.without_links(&mut props);
        cut(&mut props);
        for prop in props {
            let field = self.field(at, &prop);
            let name = names::name(prop.path.rsplit('.').next().unwrap_or_default());
            // What is there under another name already, as a part of the key, is not told twice.
            if taken.contains(&name) && ent.parts.iter().any(|part| part.name == name) {
                continue;
            }
            let name = names::unique(&mut taken, name);
            let place = match field.place {
                Place::At(path) if path == name => Place::Own,
                place => place,
            };
            out.push(Field { name, place, ..field });
        }
        for (name, ty, path) in &ent.extra {
            let name = names::unique(&mut taken, name.clone());
            out.push(Field { place: Place::At(path.clone()), name, ty: ty.clone(), as_text: false, long: false });
        }
        out
    }

    /// Without the addresses of other requests, which the catalog makes itself. Of a few fields only those go that are surely
    /// such: their example is one of this API, or a page for people stands beside them.
    fn without_links(&self, props: &mut Vec<RowProp<'a>>) {
        let many = props.len() > 12;
        let page = props.iter().any(|prop| matches!(prop.short.as_str(), "html_url" | "web_url"));
        let goes = |prop: &RowProp<'a>| match prop.short.as_str() {
            "node_id" | "gravatar_id" => true,
            "url" => page || self.is_request(prop),
            short => is_noise(short) && (many || self.is_request(prop)),
        };
        if !props.iter().all(goes) {
            props.retain(|prop| !goes(prop));
        }
    }

    /// Whether the example of an address is one of this API.
    fn is_request(&self, prop: &RowProp<'a>) -> bool {
        let opened = self.reader.open(prop.schema);
        let examples = opened.get("examples").and_then(|all| all.get(0));
        let example = opened.get("example").or(examples).and_then(Value::as_str);
        example.and_then(|text| text.strip_prefix(&self.origin)).is_some_and(|rest| rest.starts_with('/'))
    }

    fn is_told(&self, prop: &RowProp<'a>) -> bool {
        let opened = self.reader.open(prop.schema);
        let links = matches!(prop.short.as_str(), "links" | "self" | "embedded" | "relationships" | "managed_fields");
        let choices = opened.get("enum").and_then(Value::as_array).map(Vec::len);
        !links && choices != Some(1) && !types::write_only(opened) && !types::deprecated(opened)
    }

    /// The items of a list inside a row, as it is or in an envelope of its own: `subscriptions.data`.
    fn listed(&self, prop: &RowProp<'a>) -> Option<(&'a Value, String)> {
        if let Some(item) = self.reader.items(prop.schema) {
            return Some((item, prop.path.clone()));
        }
        if !self.reader.is_object(prop.schema) {
            return None;
        }
        let object = self.reader.object(prop.schema);
        let enveloped = object.props.contains_key("has_more") || object.props.contains_key("total_count");
        let name =
            ["data", "items", "results"].into_iter().find(|name| enveloped && object.props.contains_key(name))?;
        let item = self.reader.items(object.props.get(name)?.schema)?;
        Some((item, format!("{}.{name}", prop.path)))
    }

    fn field(&self, at: usize, prop: &RowProp<'a>) -> Field {
        let own = prop.path.clone();
        if let Some((target, place)) = self.reference(at, prop) {
            return Field { name: String::new(), ty: target, place, as_text: false, long: false };
        }
        let typed = self.types.field(prop.schema);
        let long =
            typed.ty == Ty::named("html") || matches!(prop.short.as_str(), "body" | "content" | "html" | "markdown");
        let long = long && matches!(typed.ty, Ty::Named(_));
        Field { name: String::new(), ty: typed.ty, place: Place::At(own), as_text: typed.as_text, long }
    }

    /// The entity that a property refers to, and where its key lies.
    fn reference(&self, at: usize, prop: &RowProp<'a>) -> Option<(Ty, Place)> {
        if let Some((item, at)) = self.listed(prop) {
            let (target, key) = match self.embedded(item) {
                Some((target, Place::At(path))) => (target, path),
                // An envelope inside a row says nothing that its rows do not.
                _ if at != prop.path => return Some((Ty::named("json"), Place::At(at))),
                _ => return None,
            };
            return Some((Ty::Array(Box::new(Ty::Ref(target))), Place::At(format!("{at}[].{key}"))));
        }
        if let Some(target) = self.expandable(prop.schema) {
            return Some((Ty::Ref(target), Place::At(prop.path.clone())));
        }
        if self.reader.is_object(prop.schema) {
            let (target, key) = self.embedded(prop.schema)?;
            let place = match key {
                Place::At(path) => Place::At(format!("{}.{path}", prop.path)),
                Place::Parts(parts) => Place::Parts(
                    parts.into_iter().map(|(part, path)| (part, format!("{}.{path}", prop.path))).collect(),
                ),
                _ => return None,
            };
            return Some((Ty::Ref(target), place));
        }
        self.named_reference(at, prop).map(|target| (Ty::Ref(target), Place::At(prop.path.clone())))
    }

    /// An entity whose row is embedded here with its whole key, and that can be read by it.
    fn embedded(&self, schema: &'a Value) -> Option<(String, Place)> {
        let ident = self.ident(schema);
        let known = self.by_ident.get(&ident)?;
        let ent =
            known.iter().map(|at| &self.ents[*at]).find(|ent| self.is_readable(ent) && self.has_key(ent, schema))?;
        let path = |part: &super::Part| match &part.place {
            Place::At(path) => path.clone(),
            _ => part.name.clone(),
        };
        let place = match ent.parts.as_slice() {
            [only] => Place::At(path(only)),
            parts => Place::Parts(parts.iter().map(|part| (part.name.clone(), path(part))).collect()),
        };
        Some((ent.name.clone(), place))
    }

    fn has_key(&self, ent: &Ent<'a>, schema: &'a Value) -> bool {
        let known = |part: &super::Part| {
            !matches!(part.place, Place::Header(_) | Place::Asked) && self.holds(schema, &part.place, &part.name)
        };
        !ent.parts.is_empty() && ent.parts.iter().all(known)
    }

    /// Whether a get reads it: then a reference to it leads somewhere.
    fn is_readable(&self, ent: &Ent<'a>) -> bool {
        ent.home.as_ref().is_some_and(|home| self.readable.contains(&home.join("/")))
    }

    /// `anyOf: [string, Customer]`: an id that the API puts the row in place of, when asked to.
    fn expandable(&self, schema: &'a Value) -> Option<String> {
        let arms = self.reader.arms(self.reader.spec.follow(schema));
        if arms.len() < 2 || !arms.iter().any(|arm| self.reader.scalar(arm) == Some(Scalar::Text)) {
            return None;
        }
        let object = arms.iter().find(|arm| self.reader.is_object(arm))?;
        let known = self.by_ident.get(&self.ident(object))?;
        let ent = known.iter().map(|at| &self.ents[*at]).find(|ent| ent.parts.len() == 1 && self.is_readable(ent))?;
        Some(ent.name.clone())
    }

    /// `project_id` of an API that has projects with one key.
    fn named_reference(&self, at: usize, prop: &RowProp<'a>) -> Option<String> {
        let stem = ["_id", "_uuid", "_sid", "_key", "_slug"].iter().find_map(|end| prop.short.strip_suffix(end))?;
        let kind = self.reader.scalar(prop.schema)?;
        let target = self.by_name.get(stem).copied().filter(|target| *target != at)?;
        let ent = &self.ents[target];
        let [part] = ent.parts.as_slice() else { return None };
        let number = matches!(&part.ty, Ty::Named(name) if name == "integer" || name == "number");
        let same = number == matches!(kind, Scalar::Integer | Scalar::Number);
        (same && self.is_readable(ent)).then(|| ent.name.clone())
    }
}

fn path_of(part: &super::Part) -> Option<String> {
    match &part.place {
        Place::Own => Some(part.name.clone()),
        Place::At(path) => Some(path.clone()),
        _ => None,
    }
}

/// Addresses of other requests, which the catalog makes itself.
fn is_noise(short: &str) -> bool {
    let kept = ["html_url", "download_url", "web_url", "clone_url", "image_url", "file_url", "public_url", "short_url"];
    let link =
        short.ends_with("_url") || short.ends_with("_uri") || short.ends_with("_href") || short.ends_with("_link");
    (link && !kept.contains(&short)) || matches!(short, "node_id" | "gravatar_id" | "etag" | "self_link" | "odata_type")
}

/// At most so many. Of many a table names the first (docs/teaching.md), so there those that tell most come first, then those
/// that are always there, and addresses last; else the order is the schema's.
fn cut(props: &mut Vec<RowProp<'_>>) {
    if props.len() <= NAMED_FIELDS {
        return;
    }
    props.sort_by_key(|prop| match (names::is_telling(&prop.short), prop.required) {
        _ if is_noise(&prop.short) => 3,
        (true, _) => 0,
        (false, true) => 1,
        (false, false) => 2,
    });
    props.truncate(MAX_FIELDS);
}

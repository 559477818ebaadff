//! Keys: which property of a row is the part of a key that a path asks for.
//! Invariant: a place that comes out exists in the row's schema; where none does, the part is known only from what was asked.

use serde_json::Value;

use super::Mapper;
use super::rows::{RowProp, row_props};
use crate::api::path::hole_words;
use crate::draft::{Place, Ty};
use crate::names;
use crate::spec::Scalar;

/// Names of keys that say nothing about whose they are.
pub fn is_generic(word: &str) -> bool {
    matches!(
        word,
        "id" | "ids" | "name" | "key" | "uuid" | "slug" | "sid" | "code" | "guid" | "number" | "uid" | "pk" | "value"
    )
}

/// What identifies a row, by how sure that is.
const IDS: [&str; 22] = [
    "id", "uuid", "guid", "uid", "sid", "key", "_id", "slug", "code", "number", "login", "username", "name", "sha",
    "email", "hash", "token", "arn", "symbol", "iso", "path", "filename",
];

impl<'a> Mapper<'_, 'a> {
    /// The property that the last hole of an item's path asks for.
    pub(super) fn final_place(
        &self,
        row: &'a Value,
        hole: &str,
        schema: &'a Value,
        entity: &[String],
    ) -> Option<RowProp<'a>> {
        let props = row_props(self.reader, row);
        let wanted = self.reader.scalar(schema).filter(|_| !self.reader.is_any(schema));
        let scalar = |prop: &RowProp<'a>| self.reader.scalar(prop.schema);
        let same_kind = |prop: &RowProp<'a>| match (wanted, scalar(prop)) {
            (_, None | Some(Scalar::Boolean)) => false,
            (None, Some(_)) => true,
            (Some(a), Some(b)) => a == b || (a != Scalar::Text && b != Scalar::Text),
        };
        let by = |name: &str, strict: bool| {
            let found = props.iter().find(|p| p.short == name);
            found.filter(|p| same_kind(p) || (!strict && scalar(p).is_some_and(|s| s != Scalar::Boolean))).cloned()
        };
        let words = hole_words(hole);
        let joined = words.join("_");
        if let Some(found) = by(&joined, false) {
            return Some(found);
        }
        // `issue_number` is the `number` of an issue.
        let suffix = (1..words.len()).map(|from| words[from..].join("_")).find_map(|suffix| by(&suffix, false));
        if suffix.is_some() {
            return suffix;
        }
        let last = words.last().map(String::as_str).unwrap_or_default();
        let own =
            words == entity || entity.last().is_some_and(|e| e.starts_with(&joined) || joined.starts_with(e.as_str()));
        let id_like = matches!(last, "id" | "sid" | "uuid" | "guid" | "uid" | "key") || own || is_generic(&joined);
        if matches!(joined.as_str(), "username" | "user_name" | "login") {
            return ["login", "username", "user_name", "name"].iter().find_map(|name| by(name, true));
        }
        if !id_like {
            return None;
        }
        let entity_id = entity.last().map(|word| format!("{word}_id"));
        let ids = ["id", "uuid", "guid", "uid", "sid", "key", "login", "slug", "name", "number", "code"];
        entity_id
            .iter()
            .map(String::as_str)
            .chain(ids)
            .find_map(|name| by(name, true))
            .or_else(|| by("id", false).filter(|_| !own))
    }

    /// Where a row says the part of its key that belongs to what it lies in: `project_id`, `project.id`, `owner.login`.
    pub(super) fn scope_place(&self, row: &'a Value, part: &str, schema: &'a Value) -> Option<RowProp<'a>> {
        let props = row_props(self.reader, row);
        let wanted = self.reader.scalar(schema).unwrap_or(Scalar::Text);
        let fits = |schema: &'a Value| self.reader.scalar(schema).is_some_and(|s| s == wanted);
        if let Some(found) = props.iter().find(|p| p.short == part && fits(p.schema)) {
            return Some(found.clone());
        }
        let stem =
            ["_id", "_key", "_uuid", "_sid", "_slug", "_name", "_number"].iter().find_map(|end| part.strip_suffix(end));
        let stem = stem.unwrap_or(part);
        let outer = props.iter().find(|p| p.short == stem && self.reader.is_object(p.schema))?;
        let object = self.reader.object(outer.schema);
        let end = part.strip_prefix(stem).map(|end| end.trim_start_matches('_')).filter(|end| !end.is_empty());
        let ids = ["login", "id", "slug", "key", "name", "username", "number"];
        let found = end.into_iter().chain(ids).find_map(|name| {
            let (name, prop) = object.props.get_key_value(name)?;
            fits(prop.schema).then_some((*name, prop))
        })?;
        Some(RowProp {
            path: format!("{}.{}", outer.path, found.0),
            short: part.to_owned(),
            required: false,
            schema: found.1.schema,
        })
    }

    /// Where a row that embeds what it lies in says a part of that one's key: `repository.owner.login`.
    pub(super) fn parent_place(&self, row: &'a Value, home: &[String], at: usize, part: &str) -> Option<RowProp<'a>> {
        let parent =
            (1..home.len()).rev().find_map(|end| self.by_home.get(&home[..end].join("/"))).map(|at| &self.ents[*at])?;
        let holes = parent.home.iter().flatten().filter(|key| *key == "{}").count();
        if at >= holes || holes != parent.parts.len() {
            return None;
        }
        let wanted = parent.parts.get(at)?;
        let path = match &wanted.place {
            Place::Own => wanted.name.clone(),
            Place::At(path) => path.clone(),
            _ => return None,
        };
        let holder = row_props(self.reader, row).into_iter().find(|prop| {
            let ident = self.ident(prop.schema);
            !ident.is_empty() && parent.idents.contains(&ident) && self.reader.is_object(prop.schema)
        })?;
        let found = self.holds(holder.schema, &wanted.place, &wanted.name);
        let path = format!("{}.{path}", holder.path);
        found.then(|| RowProp { path, short: part.to_owned(), required: false, schema: holder.schema })
    }

    /// What identifies a row where no path says it: an id of its own, or the nearest to one.
    pub(super) fn guessed_place(&self, row: &'a Value, entity: &[String]) -> Option<(RowProp<'a>, bool)> {
        let props = row_props(self.reader, row);
        let scalar = |p: &&RowProp<'a>| {
            matches!(self.reader.scalar(p.schema), Some(Scalar::Text | Scalar::Integer | Scalar::Number))
        };
        let last = entity.last().cloned().unwrap_or_default();
        let own = ["id", "key", "uuid", "name", "code", "sid", "number"].map(|end| format!("{last}_{end}"));
        let names = ["id".to_owned()].into_iter().chain(own).chain(IDS.iter().map(|id| (*id).to_owned()));
        for name in names {
            if let Some(found) = props.iter().filter(scalar).find(|p| p.short == name) {
                return Some((found.clone(), true));
            }
        }
        let ends =
            |p: &&RowProp<'a>| p.short.ends_with("_id") || p.short.ends_with("_key") || p.short.ends_with("_code");
        let ending = props.iter().filter(scalar).find(ends);
        let required = || props.iter().filter(scalar).find(|p| p.required);
        let any = ending.or_else(required).or_else(|| props.iter().find(scalar));
        any.map(|found| (found.clone(), false))
    }

    /// A type that can be a key: text, a number or a moment.
    pub(super) fn key_type(&self, schema: &'a Value) -> Ty {
        match self.types.flat(schema).map(|typed| typed.ty) {
            Some(ty @ Ty::Named(_)) if !ty.is_json() && ty != Ty::named("boolean") => ty,
            Some(ty @ Ty::Select(_)) => ty,
            _ => Ty::named("string"),
        }
    }

    /// Whether a row of this schema has what lies at this place.
    pub(super) fn holds(&self, row: &'a Value, place: &Place, name: &str) -> bool {
        let path = match place {
            Place::Own => name,
            Place::At(path) => path,
            Place::Header(_) => return true,
            Place::Parts(_) | Place::Asked => return false,
        };
        let mut at = row;
        for step in path.split('.') {
            if !self.reader.is_object(at) {
                return false;
            }
            match self.reader.object(at).props.get(step) {
                Some(prop) => at = prop.schema,
                None => return false,
            }
        }
        true
    }
}

/// The place of a property: its own name needs no path.
pub fn place_of(prop: &RowProp<'_>, name: &str) -> Place {
    if prop.path == name { Place::Own } else { Place::At(prop.path.clone()) }
}

/// The words of a name in the form that `RowProp::short` has.
pub fn short(name: &str) -> String {
    let words = names::words(name);
    if words.is_empty() { name.to_owned() } else { words.join("_") }
}

//! Slots to types: names looked up, fields and parameters with everything that belongs to them.
//! Invariant: a named type is resolved where it is used; one that names itself is refused, for a value of it would never end.

use base::{Diagnostic, near};
use indexmap::IndexMap;

use super::Cx;
use crate::codes;
use crate::model::{Field, Param, Source};
use crate::path::DataPath;
use crate::read::raw::{FieldPath, Slot, SlotType, Text, UnionShape};
use crate::types::{self, DateFormat, TextStyle, Type, Union};

const BUILTIN: [&str; 15] = [
    "string",
    "markdown",
    "document",
    "html",
    "json_text",
    "blob",
    "integer",
    "number",
    "boolean",
    "time",
    "date",
    "unix",
    "unix_ms",
    "uuid",
    "json",
];

impl Cx<'_> {
    pub(super) fn slot_type(&mut self, slot: &SlotType) -> Type {
        self.slot_type_in(slot, &mut Vec::new())
    }

    /// `within` are the named types being resolved, outermost first.
    fn slot_type_in(&mut self, slot: &SlotType, within: &mut Vec<String>) -> Type {
        match slot {
            SlotType::Named(name) => self.named_type(name, within),
            SlotType::Array(of) => Type::Array(Box::new(self.slot_type_in(of, within))),
            SlotType::Select(choices) => {
                self.choices(choices);
                Type::Select(choices.clone())
            }
            SlotType::MultiSelect(choices) => {
                self.choices(choices);
                Type::MultiSelect(choices.clone())
            }
            SlotType::Object(slots) => Type::Object(self.slots(slots, within)),
            SlotType::Union(UnionShape { tag, nest, arms }) => {
                if arms.is_empty() || (tag.is_none() && !nest) {
                    let message = "a union has arms, and `tag: KEY`, `nest: true` or both to tell them apart";
                    self.report(Diagnostic::error(codes::SHAPE, self.place_of_word("union"), message));
                }
                let arms = arms.iter().map(|(name, slots)| (name.clone(), self.slots(slots, within))).collect();
                Type::Union(Union { tag: tag.clone(), nest: *nest, arms })
            }
            SlotType::Ref(entity) => {
                self.entity_name(entity);
                Type::Ref(entity.value.clone())
            }
        }
    }

    fn slots(&mut self, slots: &IndexMap<String, Slot>, within: &mut Vec<String>) -> IndexMap<String, types::Slot> {
        let mut out = IndexMap::new();
        for (name, slot) in slots {
            let kind = self.slot_type_in(&slot.kind, within);
            out.insert(name.clone(), types::Slot { kind, required: slot.required });
        }
        out
    }

    fn choices(&mut self, choices: &[String]) {
        let twice = choices.iter().enumerate().find(|(at, choice)| choices[..*at].contains(choice));
        let message = match (choices, twice) {
            ([], _) => "a select has at least one choice".to_owned(),
            (_, Some((_, choice))) => format!("the choice `{choice}` is there twice"),
            _ => return,
        };
        let place = choices.first().map_or_else(|| self.place_of_word("select"), |c| self.place_of_word(c));
        self.report(Diagnostic::error(codes::NAME, place, message));
    }

    fn named_type(&mut self, name: &Text, within: &mut Vec<String>) -> Type {
        match name.value.as_str() {
            "string" => Type::String(TextStyle::Short),
            "markdown" => Type::String(TextStyle::Markdown),
            "document" => Type::String(TextStyle::Document),
            "html" => Type::String(TextStyle::Html),
            "json_text" => Type::String(TextStyle::JsonText),
            "blob" => Type::String(TextStyle::Blob),
            "integer" => Type::Integer,
            "number" => Type::Number,
            "boolean" => Type::Boolean,
            "time" => Type::Date(DateFormat::Rfc3339),
            "date" => Type::Date(DateFormat::IsoDate),
            "unix" => Type::Date(DateFormat::Unix),
            "unix_ms" => Type::Date(DateFormat::UnixMs),
            "uuid" => Type::Uuid,
            "json" => Type::Json,
            other if within.iter().any(|outer| outer == other) => {
                let message = format!("type `{other}` contains itself; make one of its slots `json`");
                self.report(Diagnostic::error(codes::NAME, self.place(name), message));
                Type::Json
            }
            other => self.own_type(name, other, within),
        }
    }

    fn own_type(&mut self, name: &Text, other: &str, within: &mut Vec<String>) -> Type {
        let raw = self.raw;
        if let Some(named) = raw.types.get(other) {
            within.push(other.to_owned());
            let kind = self.slot_type_in(named, within);
            within.pop();
            return kind;
        }
        let known = BUILTIN.into_iter().chain(raw.types.keys().map(String::as_str));
        let alternatives = near(other, known);
        let message = if raw.entities.contains_key(other) {
            format!("no type `{other}`; to refer to the entity write `{{ref: {other}}}`")
        } else {
            format!("no type `{other}`")
        };
        self.report(Diagnostic::error(codes::NAME, self.place(name), message).with_alternatives(alternatives));
        Type::Json
    }

    pub(super) fn field(&mut self, name: &str, slot: &Slot) -> Field {
        let kind = self.slot_type(&slot.kind);
        if slot.required || slot.role.is_some() || slot.list.is_some() {
            let message = format!("`{name}` is a field: `required`, `role` and `list` belong to parameters");
            self.report(Diagnostic::error(codes::SHAPE, self.place_of_word(name), message));
        }
        let source = match (&slot.path, &slot.header) {
            (None, None) => Source::Paths(vec![DataPath::from(name.to_owned())]),
            (Some(FieldPath::One(path)), None) => Source::Paths(vec![DataPath::from(path.clone())]),
            (Some(FieldPath::Several(paths)), None) => {
                Source::Paths(paths.iter().cloned().map(DataPath::from).collect())
            }
            (Some(FieldPath::Parts(parts)), None) => {
                Source::Parts(parts.iter().map(|(part, path)| (part.clone(), DataPath::from(path.clone()))).collect())
            }
            (None, Some(header)) => Source::Header(header.to_ascii_lowercase()),
            (Some(_), Some(_)) => {
                let message = format!("`{name}` has a `path` and a `header`; it comes from one of them");
                self.report(Diagnostic::error(codes::SHAPE, self.place_of_word(name), message));
                Source::Paths(Vec::new())
            }
        };
        Field {
            name: name.to_owned(),
            kind,
            source,
            show: slot.show.unwrap_or_default(),
            wire: slot.wire.unwrap_or_default(),
            about: slot.about.clone(),
        }
    }

    pub(super) fn param(&mut self, name: &str, slot: &Slot) -> Param {
        let kind = self.slot_type(&slot.kind);
        if slot.path.is_some() || slot.header.is_some() || slot.show.is_some() {
            let message = format!("`{name}` is a parameter: `path`, `header` and `show` belong to fields");
            self.report(Diagnostic::error(codes::SHAPE, self.place_of_word(name), message));
        }
        Param {
            name: name.to_owned(),
            kind,
            required: slot.required,
            role: slot.role.unwrap_or_default(),
            about: slot.about.clone(),
            list: slot.list.unwrap_or_default(),
            wire: slot.wire.unwrap_or_default(),
        }
    }
}

//! Slots to types: names looked up, fields and parameters with everything that belongs to them.
//! Invariant: a named type is resolved where it is used; one that names itself is refused, for a value of it would never end.

use base::similar_names;
use indexmap::IndexMap;

use super::capability::is_keyed;
use super::{Cx, Mistake, TOP};
use crate::codes;
use crate::model::{Entity, Field, Param, Source};
use crate::read::places::At;
use crate::read::raw::{Declaration, FieldPath, SlotType, UnionShape};
use crate::types::{self, DateFormat, TextStyle, Type, Union, Wire};

/// Slots of all types of a catalog, named types unfolded: a few types that hold one another twice would be millions.
const MAX_SLOTS: usize = 200_000;

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
    /// Every type with a name, used or not.
    pub(super) fn types(&mut self) {
        let raw = self.raw;
        let all = TOP.key("types");
        for (name, slot) in &raw.types {
            let at = all.key(name);
            if BUILTIN.contains(&name.as_str()) {
                let message = format!("`{name}` is a type already; choose another name");
                self.report(Mistake::new(codes::NAME, at.here(), message));
            }
            self.slot_type_in(&at, slot, &mut vec![name.clone()]);
        }
    }

    fn slot_type(&mut self, at: &At<'_>, slot: &SlotType) -> Type {
        self.slot_type_in(at, slot, &mut Vec::new())
    }

    /// `within` are the named types being resolved, outermost first.
    fn slot_type_in(&mut self, at: &At<'_>, slot: &SlotType, within: &mut Vec<String>) -> Type {
        self.slots += 1;
        if self.slots > MAX_SLOTS {
            if self.slots == MAX_SLOTS + 1 {
                let message = format!("the types here unfold to more than {MAX_SLOTS} slots; make some of them `json`");
                self.report(Mistake::new(codes::NAME, at.here(), message));
            }
            return Type::Json;
        }
        match slot {
            SlotType::Named(name) => self.named_type(at, name, within),
            SlotType::Array(of) => Type::Array(Box::new(self.slot_type_in(&at.key("array"), of, within))),
            SlotType::Select(choices) => {
                self.choices(&at.key("select"), choices);
                Type::Select(choices.clone())
            }
            SlotType::MultiSelect(choices) => {
                self.choices(&at.key("multi_select"), choices);
                Type::MultiSelect(choices.clone())
            }
            SlotType::Object(slots) => Type::Object(self.slots(&at.key("object"), slots, within)),
            SlotType::Union(union) => self.union(&at.key("union"), union, within),
            SlotType::Ref(entity) => {
                self.entity_name(&at.key("ref"), entity);
                Type::Ref(entity.clone())
            }
        }
    }

    fn union(&mut self, at: &At<'_>, union: &UnionShape, within: &mut Vec<String>) -> Type {
        let UnionShape { tag, nest, arms } = union;
        if arms.is_empty() || (tag.is_none() && !nest) || tag.as_ref().is_some_and(String::is_empty) {
            let message = "a union has arms, and `tag: KEY`, `nest: true` or both to tell them apart";
            self.report(Mistake::new(codes::SHAPE, at.here(), message));
        }
        let all = at.key("arms");
        let mut out = IndexMap::new();
        for (name, slots) in arms {
            let arm = all.key(name);
            if let Some(tag) = tag.as_ref().filter(|tag| !nest && slots.contains_key(*tag)) {
                let message = format!("the arm `{name}` has a slot `{tag}`, which is the tag; take it out");
                self.report(Mistake::new(codes::SHAPE, arm.key(tag).here(), message));
            }
            out.insert(name.clone(), self.slots(&arm, slots, within));
        }
        Type::Union(Union { tag: tag.clone(), nest: *nest, arms: out })
    }

    fn slots(
        &mut self,
        at: &At<'_>,
        slots: &IndexMap<String, Declaration>,
        within: &mut Vec<String>,
    ) -> IndexMap<String, types::Slot> {
        let mut out = IndexMap::new();
        for (name, slot) in slots {
            let here = at.key(name);
            let bare = slot.path.is_none() && slot.header.is_none() && slot.role.is_none() && slot.list.is_none();
            if !bare || slot.show.is_some() || slot.wire.is_some() {
                let message = format!("`{name}` is a slot inside a value: it has a type, `required` and `about`");
                self.report(Mistake::new(codes::SHAPE, here.here(), message));
            }
            let kind = self.slot_type_in(&type_at(&here, &slot.kind), &slot.kind, within);
            out.insert(name.clone(), types::Slot { kind, required: slot.required });
        }
        out
    }

    fn choices(&mut self, at: &At<'_>, choices: &[String]) {
        let twice = choices.iter().enumerate().find(|(n, choice)| choices[..*n].contains(choice));
        match (choices, twice) {
            ([], _) => {
                let message = "a select has at least one choice";
                self.report(Mistake::new(codes::NAME, at.here(), message).write("{select: [open, done]}"));
            }
            (_, Some((n, choice))) => {
                let message = format!("the choice `{choice}` is there twice; take one out");
                self.report(Mistake::new(codes::NAME, at.item(n).value(), message));
            }
            _ => {}
        }
    }

    fn named_type(&mut self, at: &At<'_>, name: &str, within: &mut Vec<String>) -> Type {
        match name {
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
                self.report(Mistake::new(codes::NAME, at.value(), message));
                Type::Json
            }
            other => self.own_type(at, other, within),
        }
    }

    fn own_type(&mut self, at: &At<'_>, other: &str, within: &mut Vec<String>) -> Type {
        let raw = self.raw;
        if let Some(named) = raw.types.get(other) {
            within.push(other.to_owned());
            let kind = self.slot_type_in(&TOP.key("types").key(other), named, within);
            within.pop();
            return kind;
        }
        let known = BUILTIN.into_iter().chain(raw.types.keys().map(String::as_str));
        let alternatives = similar_names(other, known);
        let message = if raw.entities.contains_key(other) {
            format!("no type `{other}`; to refer to the entity write `{{ref: {other}}}`")
        } else {
            format!("no type `{other}`")
        };
        self.report(Mistake::new(codes::NAME, at.value(), message).any_of(alternatives));
        Type::Json
    }

    pub(super) fn field(&mut self, at: &At<'_>, name: &str, slot: &Declaration) -> Field {
        let kind = self.slot_type(&type_at(at, &slot.kind), &slot.kind);
        if slot.required || slot.role.is_some() || slot.list.is_some() {
            let message = format!("`{name}` is a field: `required`, `role` and `list` belong to parameters");
            self.report(Mistake::new(codes::SHAPE, at.here(), message));
        }
        self.wire(at, name, slot, &kind);
        let source = match (&slot.path, &slot.header) {
            (None, None) => Source::Paths(vec![name.to_owned().into()]),
            (Some(path), None) => self.source(&at.key("path"), path, &kind),
            (None, Some(header)) => {
                self.header_read(&at.key("header"), header);
                Source::Header(header.to_ascii_lowercase())
            }
            (Some(_), Some(header)) => {
                let message = format!("`{name}` has a `path` and a `header`; it comes from one of them");
                self.report(Mistake::new(codes::SHAPE, at.key("header").here(), message));
                Source::Header(header.to_ascii_lowercase())
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

    fn header_read(&mut self, at: &At<'_>, header: &str) {
        if !super::words::is_token(header) {
            let message = format!("`{}` is not the name of a header", header.escape_debug());
            self.report(Mistake::new(codes::SHAPE, at.value(), message).write("header: etag"));
        }
    }

    fn source(&mut self, at: &At<'_>, path: &FieldPath, kind: &Type) -> Source {
        match path {
            FieldPath::One(path) => Source::Paths(vec![self.data_path(at, path)]),
            FieldPath::Several(paths) => {
                Source::Paths(paths.iter().enumerate().map(|(n, path)| self.data_path(&at.item(n), path)).collect())
            }
            FieldPath::Parts(parts) => {
                if !matches!(kind, Type::Ref(_)) {
                    let message = "only a reference has a path for each part of its key; write one path";
                    self.report(Mistake::new(codes::SHAPE, at.here(), message));
                }
                let one = |(part, path): (&String, &String)| (part.clone(), self.data_path(&at.key(part), path));
                Source::Parts(parts.iter().map(one).collect())
            }
        }
    }

    /// A reference that is put together must have exactly the parts of its entity's key.
    pub(super) fn parts(&mut self, entities: &IndexMap<String, Entity>) {
        for (name, entity) in entities {
            for field in entity.fields.values() {
                let (Source::Parts(parts), Type::Ref(target)) = (&field.source, &field.kind) else { continue };
                let Some(target) = entities.get(target).filter(|e| is_keyed(e)) else { continue };
                let missing: Vec<&String> = target.key.iter().filter(|part| !parts.contains_key(*part)).collect();
                let stray: Vec<&String> = parts.keys().filter(|part| !target.key.contains(part)).collect();
                let message = match (target.key.as_slice(), missing.as_slice(), stray.as_slice()) {
                    ([_], ..) => format!("the key of {} is one field, so the reference has one path", target.name),
                    (_, [], []) => continue,
                    (_, [part, ..], _) => {
                        format!("the reference lacks `{part}`, which is part of the key of {}", target.name)
                    }
                    (_, _, [part, ..]) => format!("`{part}` is not part of the key of {}", target.name),
                };
                let whole: Vec<String> = target.key.iter().map(|part| format!("{part}: PATH")).collect();
                let copy =
                    if whole.len() == 1 { "path: PATH".to_owned() } else { format!("path: {{{}}}", whole.join(", ")) };
                let all = TOP.key("entities");
                let at = all.key(name);
                let (at, slot) = (at.key("fields"), &field.name);
                self.report(Mistake::new(codes::MAPPING, at.key(slot).key("path").here(), message).write(copy));
            }
        }
    }

    pub(super) fn param(&mut self, at: &At<'_>, name: &str, slot: &Declaration) -> Param {
        let kind = self.slot_type(&type_at(at, &slot.kind), &slot.kind);
        if slot.path.is_some() || slot.header.is_some() || slot.show.is_some() {
            let message = format!("`{name}` is a parameter: `path`, `header` and `show` belong to fields");
            self.report(Mistake::new(codes::SHAPE, at.here(), message));
        }
        if slot.list.is_some() && !matches!(kind, Type::Array(_) | Type::MultiSelect(_) | Type::Json) {
            let message = format!("`{name}` is one value; `list` says how several travel");
            self.report(Mistake::new(codes::SHAPE, at.key("list").here(), message).write("{array: string}"));
        }
        self.wire(at, name, slot, &kind);
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

    fn wire(&mut self, at: &At<'_>, name: &str, slot: &Declaration, kind: &Type) {
        let fits = match slot.wire.unwrap_or_default() {
            Wire::Plain => return,
            Wire::Base64 => matches!(kind, Type::String(style) if *style != TextStyle::Blob),
            Wire::Text => matches!(kind, Type::Integer | Type::Number),
        };
        if !fits {
            let message =
                format!("`{name}` is {}; `base64` is for text, `text` for numbers; take `wire` out", kind.describe());
            self.report(Mistake::new(codes::SHAPE, at.key("wire").here(), message));
        }
    }
}

/// Where a slot says its type: at `type` in the long form, at itself in the short one.
fn type_at<'q>(at: &'q At<'q>, kind: &SlotType) -> At<'q> {
    // In the short form the slot's own value is the name, and a way that leads nowhere ends there.
    if matches!(kind, SlotType::Named(_)) { at.key("type") } else { *at }
}

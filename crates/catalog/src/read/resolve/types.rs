//! Resolves types: the declarations of fields, parameters and slots (members of object types), with the names of
//! types looked up.
//! Invariant: a named type is resolved at each use. A type that contains itself is refused, because its expansion
//! would never end.

use base::similar_names;
use indexmap::IndexMap;

use super::capability::has_valid_key;
use super::{CatalogResolver, Mistake, TOP};
use crate::codes;
use crate::model::{Entity, Field, FieldSource, Param};
use crate::read::raw::{Declaration, FieldPath, SlotType, UnionShape};
use crate::read::spans::YamlPath;
use crate::types::{self, DateFormat, TextStyle, Type, Union, Wire};

/// The maximum number of slots in all types of a catalog, with named types expanded. Without a limit, a few types
/// that each contain the next one twice would expand to millions.
const MAX_EXPANDED_SLOTS: usize = 200_000;

/// The names of the types that every catalog has.
const BUILTIN_TYPES: [&str; 15] = [
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

impl CatalogResolver<'_> {
    /// Checks every named type, including types that no field or parameter uses.
    pub(super) fn check_named_types(&mut self) {
        let raw = self.raw;
        let all = TOP.key("types");
        for (name, slot) in &raw.types {
            let at = all.key(name);
            if BUILTIN_TYPES.contains(&name.as_str()) {
                let message = format!("`{name}` is a type already; choose another name");
                self.report(Mistake::new(codes::NAME, at.on_key(), message));
            }
            self.resolve_type_within(&at, slot, &mut vec![name.clone()]);
        }
    }

    fn resolve_type(&mut self, at: &YamlPath<'_>, slot: &SlotType) -> Type {
        self.resolve_type_within(at, slot, &mut Vec::new())
    }

    /// Resolves a type. `within` has the names of the enclosing named types, the outermost first, so that a type that
    /// contains itself is detected.
    fn resolve_type_within(&mut self, at: &YamlPath<'_>, slot: &SlotType, within: &mut Vec<String>) -> Type {
        self.slot_count += 1;
        if self.slot_count > MAX_EXPANDED_SLOTS {
            // Only the first slot over the limit is reported, because every later slot is over the limit too.
            if self.slot_count == MAX_EXPANDED_SLOTS + 1 {
                let message =
                    format!("the types here unfold to more than {MAX_EXPANDED_SLOTS} slots; make some of them `json`");
                self.report(Mistake::new(codes::NAME, at.on_key(), message));
            }
            return Type::Json;
        }
        match slot {
            SlotType::Named(name) => self.resolve_named_type(at, name, within),
            SlotType::Array(item) => Type::Array(Box::new(self.resolve_type_within(&at.key("array"), item, within))),
            SlotType::Select(choices) => {
                self.check_choices(&at.key("select"), choices);
                Type::Select(choices.clone())
            }
            SlotType::MultiSelect(choices) => {
                self.check_choices(&at.key("multi_select"), choices);
                Type::MultiSelect(choices.clone())
            }
            SlotType::Object(slots) => Type::Object(self.resolve_slots(&at.key("object"), slots, within)),
            SlotType::Union(union) => self.resolve_union(&at.key("union"), union, within),
            SlotType::Ref(entity) => {
                self.check_entity_name(&at.key("ref"), entity);
                Type::Ref(entity.clone())
            }
        }
    }

    fn resolve_union(&mut self, at: &YamlPath<'_>, union: &UnionShape, within: &mut Vec<String>) -> Type {
        let UnionShape { tag, nest, arms } = union;
        if arms.is_empty() || (tag.is_none() && !nest) || tag.as_ref().is_some_and(String::is_empty) {
            let message = "a union has arms, and `tag: KEY`, `nest: true` or both to tell them apart";
            self.report(Mistake::new(codes::SHAPE, at.on_key(), message));
        }
        let all = at.key("arms");
        let mut resolved_arms = IndexMap::new();
        for (name, slots) in arms {
            let arm = all.key(name);
            if let Some(tag) = tag.as_ref().filter(|tag| !nest && slots.contains_key(*tag)) {
                let message = format!("the arm `{name}` has a slot `{tag}`, which is the tag; take it out");
                self.report(Mistake::new(codes::SHAPE, arm.key(tag).on_key(), message));
            }
            resolved_arms.insert(name.clone(), self.resolve_slots(&arm, slots, within));
        }
        Type::Union(Union { tag: tag.clone(), nest: *nest, arms: resolved_arms })
    }

    fn resolve_slots(
        &mut self,
        at: &YamlPath<'_>,
        slots: &IndexMap<String, Declaration>,
        within: &mut Vec<String>,
    ) -> IndexMap<String, types::ObjectSlot> {
        let mut resolved = IndexMap::new();
        for (name, slot) in slots {
            let slot_at = at.key(name);
            let has_no_source =
                slot.path.is_none() && slot.header.is_none() && slot.role.is_none() && slot.list.is_none();
            if !has_no_source || slot.show.is_some() || slot.wire.is_some() {
                let message = format!("`{name}` is a slot inside a value: it has a type, `required` and `about`");
                self.report(Mistake::new(codes::SHAPE, slot_at.on_key(), message));
            }
            let kind = self.resolve_type_within(&path_of_type(&slot_at, &slot.kind), &slot.kind, within);
            resolved.insert(name.clone(), types::ObjectSlot { kind, required: slot.required });
        }
        resolved
    }

    fn check_choices(&mut self, at: &YamlPath<'_>, choices: &[String]) {
        let repeated = choices.iter().enumerate().find(|(n, choice)| choices[..*n].contains(choice));
        match (choices, repeated) {
            ([], _) => {
                let message = "a select has at least one choice";
                self.report(Mistake::new(codes::NAME, at.on_key(), message).with_copy("{select: [open, done]}"));
            }
            (_, Some((n, choice))) => {
                let message = format!("the choice `{choice}` is there twice; take one out");
                self.report(Mistake::new(codes::NAME, at.item(n).on_value(), message));
            }
            _ => {}
        }
    }

    fn resolve_named_type(&mut self, at: &YamlPath<'_>, name: &str, within: &mut Vec<String>) -> Type {
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
                self.report(Mistake::new(codes::NAME, at.on_value(), message));
                Type::Json
            }
            other => self.resolve_catalog_type(at, other, within),
        }
    }

    /// Resolves the name of a type that the catalog defines under `types`.
    fn resolve_catalog_type(&mut self, at: &YamlPath<'_>, name: &str, within: &mut Vec<String>) -> Type {
        let raw = self.raw;
        if let Some(named) = raw.types.get(name) {
            within.push(name.to_owned());
            let kind = self.resolve_type_within(&TOP.key("types").key(name), named, within);
            within.pop();
            return kind;
        }
        let known = BUILTIN_TYPES.into_iter().chain(raw.types.keys().map(String::as_str));
        let alternatives = similar_names(name, known);
        let message = if raw.entities.contains_key(name) {
            format!("no type `{name}`; to refer to the entity write `{{ref: {name}}}`")
        } else {
            format!("no type `{name}`")
        };
        self.report(Mistake::new(codes::NAME, at.on_value(), message).with_alternatives(alternatives));
        Type::Json
    }

    /// Resolves the declaration of a field.
    pub(super) fn resolve_field(&mut self, at: &YamlPath<'_>, name: &str, slot: &Declaration) -> Field {
        let kind = self.resolve_type(&path_of_type(at, &slot.kind), &slot.kind);
        if slot.required || slot.role.is_some() || slot.list.is_some() {
            let message = format!("`{name}` is a field: `required`, `role` and `list` belong to parameters");
            self.report(Mistake::new(codes::SHAPE, at.on_key(), message));
        }
        self.check_wire(at, name, slot, &kind);
        let source = match (&slot.path, &slot.header) {
            (None, None) => FieldSource::Paths(vec![name.to_owned().into()]),
            (Some(path), None) => self.resolve_source(&at.key("path"), path, &kind),
            (None, Some(header)) => {
                self.check_answer_header(&at.key("header"), header);
                FieldSource::Header(header.to_ascii_lowercase())
            }
            (Some(_), Some(header)) => {
                let message = format!("`{name}` has a `path` and a `header`; it comes from one of them");
                self.report(Mistake::new(codes::SHAPE, at.key("header").on_key(), message));
                FieldSource::Header(header.to_ascii_lowercase())
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

    fn check_answer_header(&mut self, at: &YamlPath<'_>, header: &str) {
        if !super::text_rules::is_token(header) {
            let message = format!("`{}` is not the name of a header", header.escape_debug());
            self.report(Mistake::new(codes::SHAPE, at.on_value(), message).with_copy("header: etag"));
        }
    }

    fn resolve_source(&mut self, at: &YamlPath<'_>, path: &FieldPath, kind: &Type) -> FieldSource {
        match path {
            FieldPath::One(path) => FieldSource::Paths(vec![self.parse_data_path(at, path)]),
            FieldPath::Several(paths) => FieldSource::Paths(
                paths.iter().enumerate().map(|(n, path)| self.parse_data_path(&at.item(n), path)).collect(),
            ),
            FieldPath::Parts(parts) => {
                if !matches!(kind, Type::Ref(_)) {
                    let message = "only a reference has a path for each part of its key; write one path";
                    self.report(Mistake::new(codes::SHAPE, at.on_key(), message));
                }
                let resolve_part =
                    |(part, path): (&String, &String)| (part.clone(), self.parse_data_path(&at.key(part), path));
                FieldSource::Parts(parts.iter().map(resolve_part).collect())
            }
        }
    }

    /// Checks each reference field that has a path for each part of a key: the parts must be exactly the parts of the
    /// target entity's key.
    pub(super) fn check_reference_parts(&mut self, entities: &IndexMap<String, Entity>) {
        for (name, entity) in entities {
            for field in entity.fields.values() {
                let (FieldSource::Parts(parts), Type::Ref(target)) = (&field.source, &field.kind) else { continue };
                let Some(target) = entities.get(target).filter(|e| has_valid_key(e)) else { continue };
                let missing: Vec<&String> = target.key.iter().filter(|part| !parts.contains_key(*part)).collect();
                let unknown: Vec<&String> = parts.keys().filter(|part| !target.key.contains(part)).collect();
                let message = match (target.key.as_slice(), missing.as_slice(), unknown.as_slice()) {
                    ([_], ..) => format!("the key of {} is one field, so the reference has one path", target.name),
                    (_, [], []) => continue,
                    (_, [part, ..], _) => {
                        format!("the reference lacks `{part}`, which is part of the key of {}", target.name)
                    }
                    (_, _, [part, ..]) => format!("`{part}` is not part of the key of {}", target.name),
                };
                let parts_to_write: Vec<String> = target.key.iter().map(|part| format!("{part}: PATH")).collect();
                let copy = if parts_to_write.len() == 1 {
                    "path: PATH".to_owned()
                } else {
                    format!("path: {{{}}}", parts_to_write.join(", "))
                };
                let target = TOP.key("entities").key(name).key("fields").key(&field.name).key("path").on_key();
                self.report(Mistake::new(codes::MAPPING, target, message).with_copy(copy));
            }
        }
    }

    /// Resolves the declaration of a parameter.
    pub(super) fn resolve_param(&mut self, at: &YamlPath<'_>, name: &str, slot: &Declaration) -> Param {
        let kind = self.resolve_type(&path_of_type(at, &slot.kind), &slot.kind);
        if slot.path.is_some() || slot.header.is_some() || slot.show.is_some() {
            let message = format!("`{name}` is a parameter: `path`, `header` and `show` belong to fields");
            self.report(Mistake::new(codes::SHAPE, at.on_key(), message));
        }
        if slot.list.is_some() && !matches!(kind, Type::Array(_) | Type::MultiSelect(_) | Type::Json) {
            let message = format!("`{name}` is one value; `list` says how several travel");
            self.report(Mistake::new(codes::SHAPE, at.key("list").on_key(), message).with_copy("{array: string}"));
        }
        self.check_wire(at, name, slot, &kind);
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

    fn check_wire(&mut self, at: &YamlPath<'_>, name: &str, slot: &Declaration, kind: &Type) {
        let fits = match slot.wire.unwrap_or_default() {
            Wire::Plain => return,
            Wire::Base64 => matches!(kind, Type::String(style) if *style != TextStyle::Blob),
            Wire::Text => matches!(kind, Type::Integer | Type::Number),
        };
        if !fits {
            let message =
                format!("`{name}` is {}; `base64` is for text, `text` for numbers; take `wire` out", kind.describe());
            self.report(Mistake::new(codes::SHAPE, at.key("wire").on_key(), message));
        }
    }
}

/// Returns the path of the type in a declaration, for the positions of mistakes.
fn path_of_type<'q>(at: &'q YamlPath<'q>, kind: &SlotType) -> YamlPath<'q> {
    // The short form has no key `type`. The span of a path to a missing key is the span of the scalar above, which is
    // the name of the type.
    if matches!(kind, SlotType::Named(_)) { at.key("type") } else { *at }
}

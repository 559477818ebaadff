//! A draft: the catalog that an import produces, as raw types with comments, for a person to review.
//! Invariant: the draft is plain data. Only `catalog::read` decides whether it is a valid catalog.

use catalog::Kind;
use catalog::raw::{self, Answer, Declaration, Paths, SlotType};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::ImportError;
use crate::yaml::Emitter;

/// Keys of an entity whose map is written with one entry per line, because people read it as a table.
const EXPANDED_KEYS: [&str; 2] = ["fields", "relations"];

#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// The catalog without entities and capabilities, which are in the lists below.
    pub head: raw::Catalog,
    /// Comments at the top of the file.
    pub comments: Vec<String>,
    pub entities: Vec<DraftEntity>,
    pub capabilities: Vec<DraftCapability>,
}

#[derive(Debug, Clone, Default)]
pub struct DraftEntity {
    pub name: String,
    pub raw: raw::Entity,
    /// A comment above the entity that asks a person to review it.
    pub comment: Option<String>,
}

#[derive(Debug, Clone)]
pub struct DraftCapability {
    pub name: String,
    pub kind: Kind,
    pub entity: String,
    /// The label of the operation that the capability calls (`GET /tickets`). One operation can have several capabilities.
    pub operation: String,
    /// Whether the capability is called on a row. The row's key then fills placeholders of the request.
    pub on_row: bool,
    pub raw: raw::Capability,
}

/// A draft as YAML, with the line numbers of its parts.
#[derive(Debug)]
pub struct DraftText {
    pub text: String,
    /// The number of the first line of each entity, in the order of the draft. A comment above an entity belongs to the entity.
    pub entity_lines: Vec<usize>,
    /// The number of the first line of each capability, in the order of the draft.
    pub capability_lines: Vec<usize>,
}

impl Draft {
    /// Returns the number of slots of all types, nested ones included. `catalog::read` limits this number.
    pub fn count_slots(&self) -> usize {
        let fields = self.entities.iter().flat_map(|entity| entity.raw.fields.values());
        let params = self.capabilities.iter().flat_map(|capability| capability.raw.params.values());
        fields.chain(params).map(|declaration| count_type_slots(&declaration.kind)).sum()
    }

    /// Writes the draft as YAML: first the head, then entities, then capabilities.
    pub fn write(&self) -> Result<DraftText, ImportError> {
        let mut out = Emitter::new(&EXPANDED_KEYS);
        for comment in &self.comments {
            out.comment(0, comment);
        }
        let mut head = to_json_map(&self.head)?;
        let entities = head.shift_remove("entities").unwrap_or_default();
        let capabilities = head.shift_remove("capabilities").unwrap_or_default();
        out.entries(0, &head);

        let mut entity_lines = Vec::with_capacity(self.entities.len());
        match self.entities.as_slice() {
            [] => out.entry(0, "entities", &entities),
            _ => out.open(0, "entities"),
        }
        for entity in &self.entities {
            entity_lines.push(out.next_line());
            if let Some(comment) = &entity.comment {
                out.comment(1, comment);
            }
            out.open(1, &entity.name);
            out.entries(2, &to_json_map(&entity.raw)?);
        }

        out.blank_line();
        let mut capability_lines = Vec::with_capacity(self.capabilities.len());
        match self.capabilities.as_slice() {
            [] => out.entry(0, "capabilities", &capabilities),
            _ => out.open(0, "capabilities"),
        }
        for capability in &self.capabilities {
            capability_lines.push(out.next_line());
            out.open(1, &capability.name);
            out.entries(2, &to_json_map(&capability.raw)?);
        }
        Ok(DraftText { text: out.finish(), entity_lines, capability_lines })
    }
}

impl DraftCapability {
    pub fn new(name: String, kind: Kind, entity: String, operation: String) -> Self {
        let raw = raw::Capability::new(kind, entity.clone());
        Self { name, kind, entity, operation, on_row: false, raw }
    }

    /// Sets the path in the answer: `rows` for a list or search, `row` for any other kind.
    pub fn set_rows(&mut self, path: Option<String>) {
        let path = path.map(Paths::One);
        if matches!(self.kind, Kind::Query | Kind::Search) {
            self.raw.rows = path;
        } else {
            self.raw.row = path;
        }
    }

    pub fn ignore_answer(&mut self) {
        self.raw.answer = Some(Answer::None);
    }
}

/// Returns the catalog type with this name, such as `integer`.
pub fn named_type(name: &str) -> SlotType {
    SlotType::Named(name.to_owned())
}

pub fn is_json(kind: &SlotType) -> bool {
    matches!(kind, SlotType::Named(name) if name == "json")
}

/// Returns whether values of the type are lists.
pub fn is_list(kind: &SlotType) -> bool {
    matches!(kind, SlotType::Array(_) | SlotType::MultiSelect(_))
}

/// Returns the declaration of a parameter or an object slot of this type.
pub fn param_declaration(kind: SlotType, required: bool) -> Declaration {
    Declaration { required, ..Declaration::new(kind) }
}

fn count_type_slots(kind: &SlotType) -> usize {
    let inner: usize = match kind {
        SlotType::Array(item) => count_type_slots(item),
        SlotType::Object(members) => members.values().map(|member| count_type_slots(&member.kind)).sum(),
        SlotType::Union(union) => {
            union.arms.values().flat_map(|arm| arm.values()).map(|slot| count_type_slots(&slot.kind)).sum()
        }
        SlotType::Named(_) | SlotType::Ref(_) | SlotType::Select(_) | SlotType::MultiSelect(_) => 0,
    };
    1 + inner
}

fn to_json_map<T: Serialize>(raw: &T) -> Result<Map<String, Value>, ImportError> {
    match serde_json::to_value(raw) {
        Ok(Value::Object(entries)) => Ok(entries),
        Ok(other) => Err(ImportError::Refused(format!("{other} is no map"))),
        Err(error) => Err(ImportError::Refused(error.to_string())),
    }
}

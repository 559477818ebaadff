//! A draft of a catalog: the raw types that the reader of catalogs takes, with comments and the source of each part.
//! Invariant: the draft is plain data. Whether it is a valid catalog is decided by `catalog::read`.

use catalog::Kind;
use catalog::raw::{self, Answer, Declaration, Paths, SlotType};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::ImportError;
use crate::yaml::Emitter;

/// Maps of an entity that are tables to a reader: each field and each relation has a line of its own.
const EXPANDED_KEYS: [&str; 2] = ["fields", "relations"];

#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// The catalog without its entities and capabilities, which stand in the lists below.
    pub head: raw::Catalog,
    /// Comments at the head of the file.
    pub comments: Vec<String>,
    pub entities: Vec<DraftEntity>,
    pub capabilities: Vec<DraftCapability>,
}

#[derive(Debug, Clone, Default)]
pub struct DraftEntity {
    pub name: String,
    pub raw: raw::Entity,
    /// A comment that asks a person to look at the entity.
    pub comment: Option<String>,
}

#[derive(Debug, Clone)]
pub struct DraftCapability {
    pub name: String,
    pub kind: Kind,
    pub entity: String,
    /// The label of the operation that it calls. One operation may have several capabilities.
    pub operation: String,
    /// Whether it is called on a row, whose key fills holes of the request.
    pub on_row: bool,
    pub raw: raw::Capability,
}

/// A draft as YAML, and where its parts stand in it.
#[derive(Debug)]
pub struct DraftText {
    pub text: String,
    /// The first line of each entity, in their order; it is the comment's where the entity has one.
    pub entity_lines: Vec<usize>,
    /// The first line of each capability, in their order.
    pub capability_lines: Vec<usize>,
}

impl Draft {
    /// Returns how many slots all types unfold to. The reader of catalogs limits them.
    pub fn slots(&self) -> usize {
        let fields = self.entities.iter().flat_map(|entity| entity.raw.fields.values());
        let params = self.capabilities.iter().flat_map(|capability| capability.raw.params.values());
        fields.chain(params).map(|declaration| slots(&declaration.kind)).sum()
    }

    /// Returns the draft as YAML: the head, then entities, then capabilities, each in their order.
    pub fn write(&self) -> Result<DraftText, ImportError> {
        let mut out = Emitter::new(&EXPANDED_KEYS);
        for comment in &self.comments {
            out.comment(0, comment);
        }
        let mut head = entries(&self.head)?;
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
            out.entries(2, &entries(&entity.raw)?);
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
            out.entries(2, &entries(&capability.raw)?);
        }
        Ok(DraftText { text: out.finish(), entity_lines, capability_lines })
    }
}

impl DraftCapability {
    pub fn new(name: String, kind: Kind, entity: String, operation: String) -> Self {
        let raw = raw::Capability::new(kind, entity.clone());
        Self { name, kind, entity, operation, on_row: false, raw }
    }

    /// Sets where the rows of a list, or the one row of anything else, are in the answer.
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

/// Returns the type of this name.
pub fn named(name: &str) -> SlotType {
    SlotType::Named(name.to_owned())
}

pub fn is_json(kind: &SlotType) -> bool {
    matches!(kind, SlotType::Named(name) if name == "json")
}

/// Returns whether a value of the type is a list.
pub fn is_list(kind: &SlotType) -> bool {
    matches!(kind, SlotType::Array(_) | SlotType::MultiSelect(_))
}

/// Returns a parameter, or a slot of an object, of this type.
pub fn param(kind: SlotType, required: bool) -> Declaration {
    Declaration { required, ..Declaration::new(kind) }
}

fn slots(kind: &SlotType) -> usize {
    let inner: usize = match kind {
        SlotType::Array(item) => slots(item),
        SlotType::Object(members) => members.values().map(|member| slots(&member.kind)).sum(),
        SlotType::Union(union) => union.arms.values().flat_map(|arm| arm.values()).map(|slot| slots(&slot.kind)).sum(),
        SlotType::Named(_) | SlotType::Ref(_) | SlotType::Select(_) | SlotType::MultiSelect(_) => 0,
    };
    1 + inner
}

fn entries<T: Serialize>(raw: &T) -> Result<Map<String, Value>, ImportError> {
    match serde_json::to_value(raw) {
        Ok(Value::Object(entries)) => Ok(entries),
        Ok(other) => Err(ImportError::Refused(format!("{other} is no map"))),
        Err(error) => Err(ImportError::Refused(error.to_string())),
    }
}

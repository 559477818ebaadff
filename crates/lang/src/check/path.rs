//! Resolves paths from a row inwards: `votes`, `owner.name`, `ticket.project.lead`.
//! Invariant: a resolved path leads to a value. The row behind a reference is attached, except for parts of its key,
//! which the reference holds.

use std::sync::Arc;

use base::{Diagnostic, Edit, similar_names};
use catalog::{Catalog, Type, Via};
use smol_str::SmolStr;

use super::correction::{FIELDS_SHOWN, list_all_names, rename_edit};
use super::{Checker, NodeId, RowType};
use crate::codes;
use crate::ir::{EntityRef, Path};
use crate::scope::NameStyle;
use crate::syntax::tree::{DottedName, Name};

/// A path and the value that it leads to.
#[derive(Debug, Clone)]
pub(super) struct ResolvedPath {
    /// The path in the rows of a run.
    pub path: Path,
    /// The names as the API writes them. A part of a key that is the reference itself is in these names and not in
    /// `path`.
    pub wire: Vec<SmolStr>,
    /// The type of the value.
    pub kind: Type,
    /// The catalog of the entities that references in the value refer to.
    pub ref_catalog: Option<Arc<Catalog>>,
    /// The rows that must be attached for the path, in order.
    pub attachments: Vec<Attachment>,
}

/// A row that is attached to each row, so that a path can lead into it.
#[derive(Debug, Clone)]
pub(super) struct Attachment {
    /// The path to the reference.
    pub field: Path,
    /// The entity of the attached row.
    pub entity: EntityRef,
}

/// The reason why a path leads nowhere.
#[derive(Debug)]
pub(super) struct PathError {
    /// The index of the name that is wrong.
    pub index: usize,
    /// Where the name was looked for.
    pub kind: PathErrorKind,
}

/// The place that does not have a name.
#[derive(Debug)]
pub(super) enum PathErrorKind {
    /// The rows have no such column.
    Column,
    /// The entity that is referred to has no such field.
    Field(Arc<Catalog>, String),
    /// The object has no such slot. Its slots are given.
    Slot(Vec<String>),
    /// A value of this type has nothing inside.
    Plain(String),
    /// The entity that is referred to was not taught.
    UntaughtEntity(Arc<Catalog>, String),
}

impl ResolvedPath {
    /// Returns the name of a column that is made from the path: `owner.name`.
    pub fn name(&self) -> SmolStr {
        match self.wire.as_slice() {
            [only] => only.clone(),
            names => names.join(".").into(),
        }
    }
}

impl<'s> Checker<'s> {
    /// Returns the API's name of a slot in a catalog. In rows that a program computed, a symbol of any catalog is
    /// accepted.
    pub(super) fn wire_name_of<'t>(&'t self, ref_catalog: Option<&Catalog>, text: &'t str) -> &'t str {
        match ref_catalog {
            Some(catalog) => self.scope.wire_name(catalog, text),
            None => self.scope.slots.get(text).map_or(text, |meaning| meaning.name.as_str()),
        }
    }

    /// Resolves a path without reporting a mistake.
    pub(super) fn lookup_path(&self, rows: &RowType, names: &[Name]) -> Result<ResolvedPath, PathError> {
        let ref_catalog = rows.catalog().map(|catalog| catalog.as_ref());
        if rows.has_unknown_columns {
            let wire: Vec<SmolStr> = names.iter().map(|n| self.wire_name_of(ref_catalog, &n.text).into()).collect();
            return Ok(ResolvedPath {
                path: wire.clone(),
                wire,
                kind: Type::Json,
                ref_catalog: None,
                attachments: Vec::new(),
            });
        }
        let (column, column_names) =
            self.first_column(rows, names).ok_or(PathError { index: 0, kind: PathErrorKind::Column })?;
        let mut resolved = ResolvedPath {
            path: vec![column.name.clone()],
            wire: vec![column.name.clone()],
            kind: column.kind,
            ref_catalog: column.ref_catalog,
            attachments: Vec::new(),
        };
        if rows.is_literal && column_names == 0 {
            resolved.wire.clear();
        }
        for (index, name) in names.iter().enumerate().skip(column_names) {
            self.step_into(&mut resolved, name).map_err(|kind| PathError { index, kind })?;
        }
        Ok(resolved)
    }

    /// Finds the longest beginning of a path that is a column, and the number of its names. A projection may have made
    /// a column `owner.name`. Literal rows are their one column, which no name is used for.
    fn first_column(&self, rows: &RowType, names: &[Name]) -> Option<(super::TypedColumn, usize)> {
        let ref_catalog = rows.catalog().map(|catalog| catalog.as_ref());
        // Most rows have no column whose name is a path, and most paths have one name. Names are joined only for the
        // others.
        let dotted = names.len() > 1 && (rows.has_unread_fields || rows.columns.iter().any(|c| c.name.contains('.')));
        if dotted {
            let wire: Vec<&str> = names.iter().map(|n| self.wire_name_of(ref_catalog, &n.text)).collect();
            for column_names in (2..=wire.len()).rev() {
                if let Some(column) = rows.column(&wire[..column_names].join(".")) {
                    return Some((column, column_names));
                }
            }
        }
        let first = names.first().and_then(|n| rows.column(self.wire_name_of(ref_catalog, &n.text)));
        if let Some(column) = first {
            return Some((column, 1));
        }
        Some((rows.column_at(0).filter(|_| rows.is_literal)?, 0))
    }

    /// Extends a path by a name inside of its value.
    fn step_into(&self, resolved: &mut ResolvedPath, name: &Name) -> Result<(), PathErrorKind> {
        match resolved.kind.clone() {
            Type::Ref(target) => self.step_through_reference(resolved, &target, name),
            Type::Object(slots) => {
                let wire = SmolStr::new(self.wire_name_of(resolved.ref_catalog.as_deref(), &name.text));
                let slot =
                    slots.get(wire.as_str()).ok_or_else(|| PathErrorKind::Slot(slots.keys().cloned().collect()))?;
                resolved.kind = slot.kind.clone();
                resolved.path.push(wire.clone());
                resolved.wire.push(wire);
                Ok(())
            }
            Type::Json | Type::Union(_) => {
                resolved.path.push(name.text.clone());
                resolved.wire.push(name.text.clone());
                resolved.kind = Type::Json;
                Ok(())
            }
            other => Err(PathErrorKind::Plain(other.describe())),
        }
    }

    /// Extends a path through a reference. A part of the key lies in the reference itself; any other field lies in the
    /// attached row.
    fn step_through_reference(
        &self,
        resolved: &mut ResolvedPath,
        target: &str,
        name: &Name,
    ) -> Result<(), PathErrorKind> {
        let Some(ref_catalog) = resolved.ref_catalog.clone() else {
            return Err(PathErrorKind::Plain(target.to_owned()));
        };
        let Some(entity) = ref_catalog.entity(target) else { return Err(PathErrorKind::Plain(target.to_owned())) };
        let wire = self.wire_name_of(Some(&ref_catalog), &name.text);
        let by_relation = || match entity.relations.get(wire).map(|r| &r.via) {
            Some(Via::Key { field }) => entity.fields.get(field),
            _ => None,
        };
        let alike = || entity.fields.values().find(|f| f.name.eq_ignore_ascii_case(wire));
        let field = entity.fields.get(wire).or_else(by_relation).or_else(alike);
        let Some(field) = field else { return Err(PathErrorKind::Field(ref_catalog.clone(), target.to_owned())) };
        resolved.kind = field.kind.clone();
        resolved.wire.push(SmolStr::new(&field.name));
        match (entity.key.contains(&field.name), entity.key.len()) {
            (true, 1) => return Ok(()),
            (true, _) => {}
            (false, _) => {
                if self.scope.find_exposed(&ref_catalog, target).is_none() {
                    return Err(PathErrorKind::UntaughtEntity(ref_catalog.clone(), target.to_owned()));
                }
                let of = EntityRef { catalog: ref_catalog.id.clone(), entity: target.into() };
                resolved.attachments.push(Attachment { field: resolved.path.clone(), entity: of });
            }
        }
        resolved.path.push(SmolStr::new(&field.name));
        Ok(())
    }

    /// Resolves a path in the rows of a node, or reports why it leads nowhere.
    pub(super) fn resolve_node_path(&mut self, input: NodeId, path: &DottedName) -> Option<ResolvedPath> {
        let rows = self.rows(input).clone();
        self.resolve_path(&rows, &path.names)
    }

    /// Resolves names in rows, or reports why they lead nowhere.
    pub(super) fn resolve_path(&mut self, rows: &RowType, names: &[Name]) -> Option<ResolvedPath> {
        match self.lookup_path(rows, names) {
            Ok(resolved) => {
                for (name, wire) in names.iter().zip(&resolved.wire) {
                    self.note_case_fix(name, wire);
                }
                Some(resolved)
            }
            Err(error) => {
                self.report_path_error(rows, names, &error);
                None
            }
        }
    }

    /// Reports why names lead nowhere, with the names that could stand there.
    pub(super) fn report_path_error(&mut self, rows: &RowType, names: &[Name], error: &PathError) {
        let Some(name) = names.get(error.index).or(names.last()) else { return };
        let style = NameStyle::of(&name.text);
        let (message, known) = match &error.kind {
            PathErrorKind::Column => self.describe_missing_column(rows, name, style),
            PathErrorKind::Field(ref_catalog, entity) => {
                let fields = ref_catalog.entity(entity).into_iter().flat_map(|e| e.fields.keys());
                let known: Vec<String> = fields.map(|f| self.scope.styled_slot(ref_catalog, f, style)).collect();
                let shown =
                    self.scope.find_exposed(ref_catalog, entity).map_or(entity.as_str(), |e| e.styled_name(style));
                (format!("no field `{}` on {shown}", name.text), known)
            }
            PathErrorKind::Slot(slots) => (format!("no slot `{}` in it", name.text), slots.clone()),
            PathErrorKind::Plain(kind) => {
                (format!("`{}`: nothing is inside a value of type {kind}", name.text), Vec::new())
            }
            PathErrorKind::UntaughtEntity(ref_catalog, entity) => {
                let before = error.index.checked_sub(1).and_then(|at| names.get(at)).unwrap_or(name);
                self.report_untaught(before, "refers to", ref_catalog, entity);
                return;
            }
        };
        let alternatives = similar_names(&name.text, known.iter().map(String::as_str));
        let fix = rename_edit(name, known.iter().map(String::as_str));
        let all = match &error.kind {
            PathErrorKind::Column => rows.entity.as_ref().map(|of| all_fields(&of.catalog, &of.entity, fix.as_ref())),
            PathErrorKind::Field(ref_catalog, entity) => Some(all_fields(ref_catalog, entity, fix.as_ref())),
            _ => None,
        };
        let message = format!("{message}{}", all.unwrap_or_default());
        let diagnostic = Diagnostic::error(codes::UNKNOWN_FIELD, name.span, message);
        self.report(diagnostic.with_alternatives(alternatives).with_fix(fix));
    }

    /// Returns the message for a name that is no column, and the names that could stand there.
    fn describe_missing_column(&self, rows: &RowType, name: &Name, style: NameStyle) -> (String, Vec<String>) {
        let shown = |column: &String| match rows.catalog() {
            Some(ref_catalog) => self.scope.styled_slot(ref_catalog, column, style),
            None => column.clone(),
        };
        let known: Vec<String> = rows.nameable_columns().iter().map(shown).collect();
        let of = rows.entity.as_ref();
        let wire = self.wire_name_of(rows.catalog().map(|catalog| catalog.as_ref()), &name.text);
        let entity = of.and_then(|of| of.catalog.entity(&of.entity));
        if entity.is_some_and(|e| e.fields.contains_key(wire)) {
            return (format!("`{}` was projected away before this", name.text), known);
        }
        if known.is_empty() {
            return (format!("there is no field `{}`: this answers nothing", name.text), known);
        }
        match of {
            Some(of) => {
                let exposed = self.scope.find_exposed(&of.catalog, &of.entity);
                let shown = exposed.map_or(of.entity.as_str(), |e| e.styled_name(style));
                (format!("no field `{}` on {shown}", name.text), known)
            }
            None => (format!("no column `{}` in these rows", name.text), known),
        }
    }

    /// Reports a name that leads to an entity that was not taught. `verb` says how the name leads to it.
    pub(super) fn report_untaught(&mut self, name: &Name, verb: &str, ref_catalog: &Catalog, entity: &str) {
        let message =
            format!("`{}` {verb} {entity}, which this session was not taught; add it to the seeds", name.text);
        let copy = format!("{{\"api\": \"{}\", \"entity\": \"{entity}\"}}", ref_catalog.id);
        self.report(Diagnostic::error(codes::NOT_TAUGHT, name.span, message).with_copy(copy));
    }
}

/// Lists the fields of an entity for a message, if a table names only some of them.
fn all_fields(catalog: &Catalog, entity: &str, fix: Option<&Edit>) -> String {
    let Some(entity) = catalog.entity(entity) else { return String::new() };
    list_all_names(entity.fields.keys().map(String::as_str), FIELDS_SHOWN + entity.key.len(), fix)
}

//! Resolves paths that start at a row: `votes`, `owner.name`, `ticket.project.lead`.
//! Invariant: a resolved path names a value. If a path continues behind a reference, the referenced row is attached,
//! except for key fields, which the reference itself contains.

use std::sync::Arc;

use base::{Diagnostic, Edit, similar_names};
use catalog::{Catalog, Type, Via};
use smol_str::SmolStr;

use super::correction::{MAX_FIELDS_SHOWN, list_all_names, rename_edit};
use super::{Checker, NodeId, RowType};
use crate::codes;
use crate::ir::{EntityRef, Path};
use crate::scope::NameStyle;
use crate::syntax::tree::{DottedName, Name};

/// A resolved path, with the type of the value at its end.
#[derive(Debug, Clone)]
pub(super) struct ResolvedPath {
    /// The path of the value in the rows at run time.
    pub path: Path,
    /// The names as the API writes them. A name may be missing from `path`: the only key field of a reference
    /// is the reference itself.
    pub wire: Vec<SmolStr>,
    /// The type of the value.
    pub kind: Type,
    /// The catalog of the entities that the value may refer to.
    pub ref_catalog: Option<Arc<Catalog>>,
    /// The rows that must be attached before the path can be read, in order.
    pub attachments: Vec<Attachment>,
}

/// A row that is attached to each row behind a reference, so that a path can continue into it.
#[derive(Debug, Clone)]
pub(super) struct Attachment {
    /// The path to the reference.
    pub field: Path,
    /// The entity of the attached row.
    pub entity: EntityRef,
}

/// The mistake in a path that cannot be resolved.
#[derive(Debug)]
pub(super) struct PathError {
    /// The index of the wrong name in the path.
    pub index: usize,
    /// The reason why the name is wrong.
    pub kind: PathErrorKind,
}

/// The reason why a name in a path cannot be resolved.
#[derive(Debug)]
pub(super) enum PathErrorKind {
    /// The rows have no column of this name.
    NoSuchColumn,
    /// The referenced entity has no field of this name.
    NoSuchField(Arc<Catalog>, String),
    /// The object has no slot of this name. The list contains the names of its slots.
    NoSuchSlot(Vec<String>),
    /// A value of this type contains no other values. The text describes the type.
    NoInnerValues(String),
    /// The referenced entity was not taught to the session.
    UntaughtEntity(Arc<Catalog>, String),
}

impl ResolvedPath {
    /// Returns the name of a column that a projection makes from the path, such as `owner.name`.
    pub fn name(&self) -> SmolStr {
        match self.wire.as_slice() {
            [only] => only.clone(),
            names => names.join(".").into(),
        }
    }
}

impl<'s> Checker<'s> {
    /// Returns the API's name of a slot in a catalog. Without a catalog, as for rows that the program computed,
    /// symbols of every catalog are accepted.
    pub(super) fn wire_name_of<'t>(&'t self, ref_catalog: Option<&Catalog>, text: &'t str) -> &'t str {
        match ref_catalog {
            Some(catalog) => self.scope.wire_name(catalog, text),
            None => self.scope.slots.get(text).map_or(text, |meaning| meaning.name.as_str()),
        }
    }

    /// Resolves a path and returns a mistake to the caller instead of reporting it.
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
            self.first_column(rows, names).ok_or(PathError { index: 0, kind: PathErrorKind::NoSuchColumn })?;
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

    /// Finds the longest prefix of a path that is a column, and returns the column with the number of names in the
    /// prefix. A projection may have made a column named `owner.name`. Literal rows have one column, which is found
    /// without a name.
    fn first_column(&self, rows: &RowType, names: &[Name]) -> Option<(super::TypedColumn, usize)> {
        let ref_catalog = rows.catalog().map(|catalog| catalog.as_ref());
        // Names are joined only if the rows have a dotted column and the path has several names, because both are
        // rare.
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

    /// Extends a path by a name inside its value.
    fn step_into(&self, resolved: &mut ResolvedPath, name: &Name) -> Result<(), PathErrorKind> {
        match resolved.kind.clone() {
            Type::Ref(target) => self.step_through_reference(resolved, &target, name),
            Type::Object(slots) => {
                let wire = SmolStr::new(self.wire_name_of(resolved.ref_catalog.as_deref(), &name.text));
                let slot = slots
                    .get(wire.as_str())
                    .ok_or_else(|| PathErrorKind::NoSuchSlot(slots.keys().cloned().collect()))?;
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
            other => Err(PathErrorKind::NoInnerValues(other.describe())),
        }
    }

    /// Extends a path through a reference. The reference itself contains the key fields; any other field is in the
    /// attached row.
    fn step_through_reference(
        &self,
        resolved: &mut ResolvedPath,
        target: &str,
        name: &Name,
    ) -> Result<(), PathErrorKind> {
        let Some(ref_catalog) = resolved.ref_catalog.clone() else {
            return Err(PathErrorKind::NoInnerValues(target.to_owned()));
        };
        let Some(entity) = ref_catalog.entity(target) else {
            return Err(PathErrorKind::NoInnerValues(target.to_owned()));
        };
        let wire = self.wire_name_of(Some(&ref_catalog), &name.text);
        let by_relation = || match entity.relations.get(wire).map(|r| &r.via) {
            Some(Via::Key { field }) => entity.fields.get(field),
            _ => None,
        };
        let field_in_other_case = || entity.fields.values().find(|f| f.name.eq_ignore_ascii_case(wire));
        let field = entity.fields.get(wire).or_else(by_relation).or_else(field_in_other_case);
        let Some(field) = field else { return Err(PathErrorKind::NoSuchField(ref_catalog.clone(), target.to_owned())) };
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

    /// Resolves a path in the rows of a node, or reports the wrong name.
    pub(super) fn resolve_node_path(&mut self, input: NodeId, path: &DottedName) -> Option<ResolvedPath> {
        let rows = self.rows(input).clone();
        self.resolve_path(&rows, &path.names)
    }

    /// Resolves names in rows, or reports the wrong name.
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

    /// Reports the wrong name in a path, with the names that are valid in its place.
    pub(super) fn report_path_error(&mut self, rows: &RowType, names: &[Name], error: &PathError) {
        let Some(name) = names.get(error.index).or(names.last()) else { return };
        let style = NameStyle::of(&name.text);
        let (message, known_names) = match &error.kind {
            PathErrorKind::NoSuchColumn => self.describe_missing_column(rows, name, style),
            PathErrorKind::NoSuchField(ref_catalog, entity) => {
                let fields = ref_catalog.entity(entity).into_iter().flat_map(|e| e.fields.keys());
                let known_names: Vec<String> = fields.map(|f| self.scope.styled_slot(ref_catalog, f, style)).collect();
                let shown_name =
                    self.scope.find_exposed(ref_catalog, entity).map_or(entity.as_str(), |e| e.styled_name(style));
                (format!("no field `{}` on {shown_name}", name.text), known_names)
            }
            PathErrorKind::NoSuchSlot(slots) => (format!("no slot `{}` in it", name.text), slots.clone()),
            PathErrorKind::NoInnerValues(kind) => {
                (format!("`{}`: nothing is inside a value of type {kind}", name.text), Vec::new())
            }
            PathErrorKind::UntaughtEntity(ref_catalog, entity) => {
                let before = error.index.checked_sub(1).and_then(|at| names.get(at)).unwrap_or(name);
                self.report_untaught(before, "refers to", ref_catalog, entity);
                return;
            }
        };
        let alternatives = similar_names(&name.text, known_names.iter().map(String::as_str));
        let fix = rename_edit(name, known_names.iter().map(String::as_str));
        let all_names = match &error.kind {
            PathErrorKind::NoSuchColumn => {
                rows.entity.as_ref().map(|of| list_all_fields(&of.catalog, &of.entity, fix.as_ref()))
            }
            PathErrorKind::NoSuchField(ref_catalog, entity) => Some(list_all_fields(ref_catalog, entity, fix.as_ref())),
            _ => None,
        };
        let message = format!("{message}{}", all_names.unwrap_or_default());
        let diagnostic = Diagnostic::error(codes::UNKNOWN_FIELD, name.span, message);
        self.report(diagnostic.with_alternatives(alternatives).with_fix(fix));
    }

    /// Returns the message for a name that is not a column, and the names of the columns.
    fn describe_missing_column(&self, rows: &RowType, name: &Name, style: NameStyle) -> (String, Vec<String>) {
        let shown_name = |column: &String| match rows.catalog() {
            Some(ref_catalog) => self.scope.styled_slot(ref_catalog, column, style),
            None => column.clone(),
        };
        let known_names: Vec<String> = rows.nameable_columns().iter().map(shown_name).collect();
        let of = rows.entity.as_ref();
        let wire = self.wire_name_of(rows.catalog().map(|catalog| catalog.as_ref()), &name.text);
        let entity = of.and_then(|of| of.catalog.entity(&of.entity));
        if entity.is_some_and(|e| e.fields.contains_key(wire)) {
            return (format!("`{}` was projected away before this", name.text), known_names);
        }
        if known_names.is_empty() {
            return (format!("there is no field `{}`: this answers nothing", name.text), known_names);
        }
        match of {
            Some(of) => {
                let exposed = self.scope.find_exposed(&of.catalog, &of.entity);
                let shown_name = exposed.map_or(of.entity.as_str(), |e| e.styled_name(style));
                (format!("no field `{}` on {shown_name}", name.text), known_names)
            }
            None => (format!("no column `{}` in these rows", name.text), known_names),
        }
    }

    /// Reports a name that leads to an untaught entity. `verb` is the relationship in the message, such as "refers
    /// to".
    pub(super) fn report_untaught(&mut self, name: &Name, verb: &str, ref_catalog: &Catalog, entity: &str) {
        let message =
            format!("`{}` {verb} {entity}, which this session was not taught; add it to the seeds", name.text);
        let copy = format!("{{\"api\": \"{}\", \"entity\": \"{entity}\"}}", ref_catalog.id);
        self.report(Diagnostic::error(codes::NOT_TAUGHT, name.span, message).with_copy(copy));
    }
}

/// Returns a list of all fields of an entity for a message. It is empty if the taught table shows all of them.
fn list_all_fields(catalog: &Catalog, entity: &str, fix: Option<&Edit>) -> String {
    let Some(entity) = catalog.entity(entity) else { return String::new() };
    list_all_names(entity.fields.keys().map(String::as_str), MAX_FIELDS_SHOWN + entity.key.len(), fix)
}

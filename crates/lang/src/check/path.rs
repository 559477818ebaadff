//! Paths from a row inwards: `votes`, `owner.name`, `ticket.project.lead`.
//! Invariant: what comes out leads somewhere; whatever stands beyond a reference is attached, except parts of its key.

use std::sync::Arc;

use base::{Diagnostic, Edit, similar_names};
use catalog::{Catalog, Type, Via};
use smol_str::SmolStr;

use super::correction::{FIELDS_SHOWN, list_all_names, rename_edit};
use super::{Checker, NodeId, RowType};
use crate::codes;
use crate::ir::{EntityRef, Path};
use crate::scope::NameStyle;
use crate::syntax::tree::{self, Name};

/// Where a path leads.
#[derive(Debug, Clone)]
pub(super) struct ResolvedPath {
    pub path: Path,
    /// The names as the API writes them.
    pub wire: Vec<SmolStr>,
    pub kind: Type,
    pub ref_catalog: Option<Arc<Catalog>>,
    /// What must stand beside the row for it, in order.
    pub attachments: Vec<(Path, EntityRef)>,
}

/// Why a path leads nowhere: which of its names, and what it was looked for in.
#[derive(Debug)]
pub(super) struct PathError {
    pub index: usize,
    pub kind: PathErrorKind,
}

#[derive(Debug)]
pub(super) enum PathErrorKind {
    /// Not a column of the rows.
    Column,
    /// Not a field of the entity that is referred to.
    Field(Arc<Catalog>, String),
    /// Not a slot of the object.
    Slot(Vec<String>),
    /// Nothing is inside a value of this type.
    Plain(String),
    /// The entity was not taught.
    UntaughtEntity(Arc<Catalog>, String),
}

impl ResolvedPath {
    /// `owner.name`: what a column made from it is called.
    pub fn name(&self) -> SmolStr {
        match self.wire.as_slice() {
            [only] => only.clone(),
            names => names.join(".").into(),
        }
    }
}

impl<'s> Checker<'s> {
    /// The wire name that a slot means in a catalog, or, in rows that a program made, in any.
    pub(super) fn wire<'t>(&'t self, ref_catalog: Option<&Catalog>, text: &'t str) -> &'t str {
        match ref_catalog {
            Some(catalog) => self.scope.wire_name(catalog, text),
            None => self.scope.slots.get(text).map_or(text, |meaning| meaning.name.as_str()),
        }
    }

    pub(super) fn lookup_path(&self, rows: &RowType, names: &[Name]) -> Result<ResolvedPath, PathError> {
        let ref_catalog = rows.catalog().map(|h| h.as_ref());
        if rows.has_unknown_columns {
            let wire: Vec<SmolStr> = names.iter().map(|n| self.wire(ref_catalog, &n.text).into()).collect();
            return Ok(ResolvedPath {
                path: wire.clone(),
                wire,
                kind: Type::Json,
                ref_catalog: None,
                attachments: Vec::new(),
            });
        }
        let (column, used) =
            self.first_column(rows, names).ok_or(PathError { index: 0, kind: PathErrorKind::Column })?;
        let mut resolved = ResolvedPath {
            path: vec![column.name.clone()],
            wire: vec![column.name.clone()],
            kind: column.kind,
            ref_catalog: column.ref_catalog,
            attachments: Vec::new(),
        };
        if rows.is_literal && used == 0 {
            resolved.wire.clear();
        }
        for (index, name) in names.iter().enumerate().skip(used) {
            self.step_into(&mut resolved, name).map_err(|kind| PathError { index, kind })?;
        }
        Ok(resolved)
    }

    /// The longest beginning that is a column: `owner.name` may be one, made by a projection.
    fn first_column(&self, rows: &RowType, names: &[Name]) -> Option<(super::TypedColumn, usize)> {
        let ref_catalog = rows.catalog().map(|h| h.as_ref());
        // Most rows have no column whose name is a path, and most paths have one name: nothing is joined for those.
        let dotted = names.len() > 1 && (rows.has_unread_fields || rows.columns.iter().any(|c| c.name.contains('.')));
        if dotted {
            let wire: Vec<&str> = names.iter().map(|n| self.wire(ref_catalog, &n.text)).collect();
            for used in (2..=wire.len()).rev() {
                if let Some(column) = rows.column(&wire[..used].join(".")) {
                    return Some((column, used));
                }
            }
        }
        let first = names.first().and_then(|n| rows.column(self.wire(ref_catalog, &n.text)));
        if let Some(column) = first {
            return Some((column, 1));
        }
        Some((rows.column_at(0).filter(|_| rows.is_literal)?, 0))
    }

    fn step_into(&self, resolved: &mut ResolvedPath, name: &Name) -> Result<(), PathErrorKind> {
        match resolved.kind.clone() {
            Type::Ref(target) => self.step_through_reference(resolved, &target, name),
            Type::Object(slots) => {
                let wire = SmolStr::new(self.wire(resolved.ref_catalog.as_deref(), &name.text));
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

    /// Through a reference: a part of the key lies in the reference itself; anything else is beside it once attached.
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
        let wire = self.wire(Some(&ref_catalog), &name.text);
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
                resolved.attachments.push((resolved.path.clone(), of));
            }
        }
        resolved.path.push(SmolStr::new(&field.name));
        Ok(())
    }

    /// A path of a node's rows, or a report of why it leads nowhere.
    pub(super) fn resolve_node_path(&mut self, input: NodeId, path: &tree::Path) -> Option<ResolvedPath> {
        let rows = self.rows(input).clone();
        self.resolve_path(&rows, &path.names)
    }

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

    fn describe_missing_column(&self, rows: &RowType, name: &Name, style: NameStyle) -> (String, Vec<String>) {
        let shown = |column: &String| match rows.catalog() {
            Some(ref_catalog) => self.scope.styled_slot(ref_catalog, column, style),
            None => column.clone(),
        };
        let known: Vec<String> = rows.nameable_columns().iter().map(shown).collect();
        let of = rows.entity.as_ref();
        let wire = self.wire(rows.catalog().map(|h| h.as_ref()), &name.text);
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

    pub(super) fn report_untaught(&mut self, name: &Name, verb: &str, ref_catalog: &Catalog, entity: &str) {
        let message =
            format!("`{}` {verb} {entity}, which this session was not taught; add it to the seeds", name.text);
        let copy = format!("{{\"api\": \"{}\", \"entity\": \"{entity}\"}}", ref_catalog.id);
        self.report(Diagnostic::error(codes::NOT_TAUGHT, name.span, message).with_copy(copy));
    }
}

/// The fields of an entity, where a table names only some of them.
fn all_fields(catalog: &Catalog, entity: &str, fix: Option<&Edit>) -> String {
    let Some(entity) = catalog.entity(entity) else { return String::new() };
    list_all_names(entity.fields.keys().map(String::as_str), FIELDS_SHOWN + entity.key.len(), fix)
}

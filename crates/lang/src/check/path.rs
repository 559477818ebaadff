//! Paths from a row inwards: `votes`, `owner.name`, `ticket.project.lead`.
//! Invariant: what comes out leads somewhere; whatever stands beyond a reference is attached, except parts of its key.

use std::sync::Arc;

use base::{Diagnostic, Edit, near};
use catalog::{Catalog, Type, Via};
use smol_str::SmolStr;

use super::hint::{FIELDS_SHOWN, all_of, renamed};
use super::{Cx, NodeId, RowType};
use crate::codes;
use crate::ir::{EntityOf, Path};
use crate::scope::{Alphabet, looks_like_symbol};
use crate::syntax::tree::{self, Name};

/// Where a path leads.
#[derive(Debug, Clone)]
pub(super) struct Leads {
    pub path: Path,
    /// The names as the API writes them.
    pub wire: Vec<SmolStr>,
    pub kind: Type,
    pub home: Option<Arc<Catalog>>,
    /// What must stand beside the row for it, in order.
    pub attach: Vec<(Path, EntityOf)>,
}

/// Why a path leads nowhere: which of its names, and what it was looked for in.
#[derive(Debug)]
pub(super) struct Lost {
    pub at: usize,
    pub why: Why,
}

#[derive(Debug)]
pub(super) enum Why {
    /// Not a column of the rows.
    Column,
    /// Not a field of the entity that is referred to.
    Field(Arc<Catalog>, String),
    /// Not a slot of the object.
    Slot(Vec<String>),
    /// Nothing is inside a value of this type.
    Plain(String),
    /// The entity was not taught.
    Untaught(Arc<Catalog>, String),
}

impl Leads {
    /// `owner.name`: what a column made from it is called.
    pub fn name(&self) -> SmolStr {
        match self.wire.as_slice() {
            [only] => only.clone(),
            names => names.join(".").into(),
        }
    }
}

impl<'s> Cx<'s> {
    /// The wire name that a slot means in a catalog, or, in rows that a program made, in any.
    pub(super) fn wire<'t>(&'t self, home: Option<&Catalog>, text: &'t str) -> &'t str {
        match home {
            Some(catalog) => self.scope.slot_name(catalog, text),
            None => self.scope.slots.get(text).map_or(text, |meaning| meaning.name.as_str()),
        }
    }

    pub(super) fn lookup(&self, rows: &RowType, names: &[Name]) -> Result<Leads, Lost> {
        let home = rows.home().map(|h| h.as_ref());
        if rows.open {
            let wire: Vec<SmolStr> = names.iter().map(|n| self.wire(home, &n.text).into()).collect();
            return Ok(Leads { path: wire.clone(), wire, kind: Type::Json, home: None, attach: Vec::new() });
        }
        let (column, used) = self.first_column(rows, names).ok_or(Lost { at: 0, why: Why::Column })?;
        let mut leads = Leads {
            path: vec![column.name.clone()],
            wire: vec![column.name.clone()],
            kind: column.kind,
            home: column.home,
            attach: Vec::new(),
        };
        if rows.literal && used == 0 {
            leads.wire.clear();
        }
        for (at, name) in names.iter().enumerate().skip(used) {
            self.inside(&mut leads, name).map_err(|why| Lost { at, why })?;
        }
        Ok(leads)
    }

    /// The longest beginning that is a column: `owner.name` may be one, made by a projection.
    fn first_column(&self, rows: &RowType, names: &[Name]) -> Option<(super::Col, usize)> {
        let home = rows.home().map(|h| h.as_ref());
        // Most rows have no column whose name is a path, and most paths have one name: nothing is joined for those.
        let dotted = names.len() > 1 && (rows.beyond || rows.columns.iter().any(|c| c.name.contains('.')));
        if dotted {
            let wire: Vec<&str> = names.iter().map(|n| self.wire(home, &n.text)).collect();
            for used in (2..=wire.len()).rev() {
                if let Some(column) = rows.column(&wire[..used].join(".")) {
                    return Some((column, used));
                }
            }
        }
        let first = names.first().and_then(|n| rows.column(self.wire(home, &n.text)));
        if let Some(column) = first {
            return Some((column, 1));
        }
        Some((rows.at(0).filter(|_| rows.literal)?, 0))
    }

    fn inside(&self, leads: &mut Leads, name: &Name) -> Result<(), Why> {
        match leads.kind.clone() {
            Type::Ref(target) => self.through(leads, &target, name),
            Type::Object(slots) => {
                let wire = SmolStr::new(self.wire(leads.home.as_deref(), &name.text));
                let slot = slots.get(wire.as_str()).ok_or_else(|| Why::Slot(slots.keys().cloned().collect()))?;
                leads.kind = slot.kind.clone();
                leads.path.push(wire.clone());
                leads.wire.push(wire);
                Ok(())
            }
            Type::Json | Type::Union(_) => {
                leads.path.push(name.text.clone());
                leads.wire.push(name.text.clone());
                leads.kind = Type::Json;
                Ok(())
            }
            other => Err(Why::Plain(other.describe())),
        }
    }

    /// Through a reference: a part of the key lies in the reference itself; anything else is beside it once attached.
    fn through(&self, leads: &mut Leads, target: &str, name: &Name) -> Result<(), Why> {
        let Some(home) = leads.home.clone() else { return Err(Why::Plain(target.to_owned())) };
        let Some(entity) = home.entity(target) else { return Err(Why::Plain(target.to_owned())) };
        let wire = self.wire(Some(&home), &name.text);
        let by_relation = || match entity.relations.get(wire).map(|r| &r.via) {
            Some(Via::Key { field }) => entity.fields.get(field),
            _ => None,
        };
        let alike = || entity.fields.values().find(|f| f.name.eq_ignore_ascii_case(wire));
        let field = entity.fields.get(wire).or_else(by_relation).or_else(alike);
        let Some(field) = field else { return Err(Why::Field(home.clone(), target.to_owned())) };
        leads.kind = field.kind.clone();
        leads.wire.push(SmolStr::new(&field.name));
        match (entity.key.contains(&field.name), entity.key.len()) {
            (true, 1) => return Ok(()),
            (true, _) => {}
            (false, _) => {
                if self.scope.exposed(&home, target).is_none() {
                    return Err(Why::Untaught(home.clone(), target.to_owned()));
                }
                let of = EntityOf { catalog: home.id.clone(), entity: target.into() };
                leads.attach.push((leads.path.clone(), of));
            }
        }
        leads.path.push(SmolStr::new(&field.name));
        Ok(())
    }

    /// A path of a node's rows, or a report of why it leads nowhere.
    pub(super) fn path_of(&mut self, input: NodeId, path: &tree::Path) -> Option<Leads> {
        let rows = self.rows(input).clone();
        self.leads(&rows, &path.names)
    }

    pub(super) fn leads(&mut self, rows: &RowType, names: &[Name]) -> Option<Leads> {
        match self.lookup(rows, names) {
            Ok(leads) => {
                for (name, wire) in names.iter().zip(&leads.wire) {
                    self.mended(name, wire);
                }
                Some(leads)
            }
            Err(lost) => {
                self.lost(rows, names, &lost);
                None
            }
        }
    }

    pub(super) fn lost(&mut self, rows: &RowType, names: &[Name], lost: &Lost) {
        let Some(name) = names.get(lost.at).or(names.last()) else { return };
        let alphabet = alphabet_of(&name.text);
        let (message, known) = match &lost.why {
            Why::Column => self.no_column(rows, name, alphabet),
            Why::Field(home, entity) => {
                let fields = home.entity(entity).into_iter().flat_map(|e| e.fields.keys());
                let known: Vec<String> = fields.map(|f| self.scope.slot_in(home, f, alphabet)).collect();
                let shown = self.scope.exposed(home, entity).map_or(entity.as_str(), |e| e.name_in(alphabet));
                (format!("no field `{}` on {shown}", name.text), known)
            }
            Why::Slot(slots) => (format!("no slot `{}` in it", name.text), slots.clone()),
            Why::Plain(kind) => (format!("`{}`: nothing is inside a value of type {kind}", name.text), Vec::new()),
            Why::Untaught(home, entity) => {
                let before = lost.at.checked_sub(1).and_then(|at| names.get(at)).unwrap_or(name);
                self.untaught(before, "refers to", home, entity);
                return;
            }
        };
        let alternatives = near(&name.text, known.iter().map(String::as_str));
        let fix = renamed(name, known.iter().map(String::as_str));
        let all = match &lost.why {
            Why::Column => rows.of.as_ref().map(|of| all_fields(&of.catalog, &of.entity, fix.as_ref())),
            Why::Field(home, entity) => Some(all_fields(home, entity, fix.as_ref())),
            _ => None,
        };
        let message = format!("{message}{}", all.unwrap_or_default());
        let diagnostic = Diagnostic::error(codes::UNKNOWN_FIELD, name.span, message);
        self.report(diagnostic.with_alternatives(alternatives).with_fix(fix));
    }

    fn no_column(&self, rows: &RowType, name: &Name, alphabet: Alphabet) -> (String, Vec<String>) {
        let shown = |column: &String| match rows.home() {
            Some(home) => self.scope.slot_in(home, column, alphabet),
            None => column.clone(),
        };
        let known: Vec<String> = rows.names().iter().map(shown).collect();
        let of = rows.of.as_ref();
        let wire = self.wire(rows.home().map(|h| h.as_ref()), &name.text);
        let entity = of.and_then(|of| of.catalog.entity(&of.entity));
        if entity.is_some_and(|e| e.fields.contains_key(wire)) {
            return (format!("`{}` was projected away before this", name.text), known);
        }
        if known.is_empty() {
            return (format!("there is no field `{}`: this answers nothing", name.text), known);
        }
        match of {
            Some(of) => {
                let exposed = self.scope.exposed(&of.catalog, &of.entity);
                let shown = exposed.map_or(of.entity.as_str(), |e| e.name_in(alphabet));
                (format!("no field `{}` on {shown}", name.text), known)
            }
            None => (format!("no column `{}` in these rows", name.text), known),
        }
    }

    pub(super) fn untaught(&mut self, name: &Name, verb: &str, home: &Catalog, entity: &str) {
        let message =
            format!("`{}` {verb} {entity}, which this session was not taught; add it to the seeds", name.text);
        let copy = format!("{{\"api\": \"{}\", \"entity\": \"{entity}\"}}", home.id);
        self.report(Diagnostic::error(codes::NOT_TAUGHT, name.span, message).with_copy(copy));
    }
}

pub(super) fn alphabet_of(text: &str) -> Alphabet {
    if looks_like_symbol(text) { Alphabet::Symbols } else { Alphabet::Names }
}

/// The fields of an entity, where a table names only some of them.
fn all_fields(catalog: &Catalog, entity: &str, fix: Option<&Edit>) -> String {
    let Some(entity) = catalog.entity(entity) else { return String::new() };
    all_of(entity.fields.keys().map(String::as_str), FIELDS_SHOWN + entity.key.len(), fix)
}

//! Where a value comes from that is not written out: an earlier name, the row at hand, a read.
//! Invariant: a path is resolved to columns here; what it leads through is attached to the rows it starts from.

use std::sync::Arc;

use catalog::{Catalog, Type};
use serde_json::Value as Json;
use smol_str::SmolStr;

use crate::check::path::Leads;
use crate::check::{Cx, NodeId, RowAt, RowType};
use crate::ir::{EntityOf, Expr, Path, Step, StepKind, Take};
use crate::syntax::tree::{Args, Name, Node, Part, PartKind, Pred, Primary, Value, ValueKind};

/// Bytes of a text that is still copied to where it is used.
const LONG: usize = 4096;

/// What was found, before it is known what is wanted of it.
#[derive(Debug, Clone)]
pub(in crate::check) struct Found {
    pub base: Base,
    /// The rows are of this entity and have its key.
    pub key: Option<(Arc<Catalog>, SmolStr)>,
    /// A path of the row; of rows with one column, that column.
    pub value: Option<(Path, Type, Option<Arc<Catalog>>)>,
    pub many: bool,
    /// The label that it is nothing but.
    pub label: Option<SmolStr>,
}

#[derive(Debug, Clone)]
pub(in crate::check) enum Base {
    Step(NodeId),
    Row,
    Read(Vec<Step>),
    Known(Json),
}

impl Base {
    pub fn take(self, take: Take, many: bool) -> Expr {
        match self {
            Base::Step(node) => Expr::Step { step: node.0, take, many },
            Base::Row => Expr::Row(take),
            Base::Read(steps) => Expr::Read { steps, take },
            Base::Known(json) => Expr::Value(json),
        }
    }
}

impl Found {
    pub fn key_of(&self) -> Option<EntityOf> {
        self.key.as_ref().map(|(home, entity)| EntityOf { catalog: home.id.clone(), entity: entity.clone() })
    }
}

impl<'s> Cx<'s> {
    pub(in crate::check) fn found(&mut self, node: &Node) -> Option<Found> {
        self.values += 1;
        let found = self.find(node);
        self.values -= 1;
        let label = match &node.primary {
            Primary::Name(name) if node.parts.is_empty() => Some(name.name.text.clone()),
            _ => None,
        };
        Some(Found { label, ..found? })
    }

    fn find(&mut self, node: &Node) -> Option<Found> {
        let row = self.each.last().copied();
        let direct = row.is_some_and(|row| row.space == self.here());
        match (&node.primary, row) {
            (Primary::Row(span), None) => {
                self.row_outside(*span);
                None
            }
            (Primary::Row(_), Some(row)) => match self.of_row(row, &node.parts) {
                Some(found) => Some(found),
                None if direct => self.read(node),
                None => self.of_step(node),
            },
            (_, Some(_)) if direct && mentions_row(node) => self.read(node),
            _ => self.of_step(node),
        }
    }

    /// `_`, `_.path`; nothing when it leads further than fields.
    fn of_row(&mut self, row: RowAt, parts: &[Part]) -> Option<Found> {
        let names = plain_names(parts)?;
        let rows = self.spaces[row.space].nodes[row.input.0].rows.clone().one();
        if names.is_empty() {
            return Some(whole(Base::Row, &rows));
        }
        let leads = self.lookup(&rows, &names).ok()?;
        let at = self.attach(row.space, row.input, &leads.attach);
        if let Some(last) = self.each.last_mut() {
            last.input = at;
        }
        Some(at_path(Base::Row, &rows, leads))
    }

    /// A read of its own for each row.
    fn read(&mut self, node: &Node) -> Option<Found> {
        let (found, steps) = self.apart(|cx| cx.of_step(node))?;
        let last = steps.len().checked_sub(1);
        // The steps end with what is taken; whatever was made after it is none of its business.
        let steps = match (&found.base, last) {
            (Base::Step(node), Some(last)) if node.0 < last => steps.into_iter().take(node.0 + 1).collect(),
            _ => steps,
        };
        match found.base {
            Base::Known(_) => Some(found),
            _ => Some(Found { base: Base::Read(steps), ..found }),
        }
    }

    /// The rows as far as they are rows, then a path of them.
    fn of_step(&mut self, node: &Node) -> Option<Found> {
        let plain = |part: &Part| matches!(part.kind, PartKind::Follow { preds: None, .. });
        let from = node.parts.iter().rposition(|part| !plain(part)).map_or(0, |at| at + 1);
        let mut at = self.chain(&node.primary, &node.parts[..from], node.head)?;
        let rest = &node.parts[from..];
        for done in 0..rest.len() {
            let names = plain_names(&rest[done..])?;
            let rows = self.rows(at).clone();
            if let Ok(leads) = self.lookup(&rows, &names) {
                if let Some(known) = self.known_text(at) {
                    return Some(known);
                }
                let here = self.here();
                let at = self.attach(here, at, &leads.attach);
                return Some(at_path(Base::Step(at), &rows, leads));
            }
            at = self.part(at, &rest[done], node.head.start)?;
        }
        if let Some(known) = self.known_text(at) {
            return Some(known);
        }
        let rows = self.rows(at).clone();
        Some(whole(Base::Step(at), &rows))
    }

    /// A block bound to a name is its text, wherever it is used. A long one stays where it is: a program that uses it often
    /// must not become a plan of many copies.
    fn known_text(&self, node: NodeId) -> Option<Found> {
        let node = self.at(node);
        let content = match &node.kind {
            StepKind::Text { content } => content.clone(),
            StepKind::Given { step: Some(outer) } => match &self.spaces.first()?.nodes.get(*outer)?.kind {
                StepKind::Text { content } if self.spaces.len() == 2 => content.clone(),
                _ => return None,
            },
            _ => return None,
        };
        if content.len() > LONG {
            return None;
        }
        Some(Found { base: Base::Known(Json::String(content)), ..whole(Base::Row, &node.rows) })
    }
}

fn whole(base: Base, rows: &RowType) -> Found {
    let key = rows.of.as_ref().filter(|of| {
        let key = of.catalog.entity(&of.entity).map(|e| e.key.as_slice()).unwrap_or_default();
        rows.beyond || key.iter().all(|part| rows.has(part))
    });
    let value = match rows.at(0).filter(|_| rows.columns.len() == 1) {
        Some(only) if rows.literal => Some((Vec::new(), only.kind, only.home)),
        Some(only) => Some((vec![only.name], only.kind, only.home)),
        None if rows.open => Some((Vec::new(), Type::Json, None)),
        None => None,
    };
    let key = key.map(|of| (of.catalog.clone(), of.entity.clone()));
    Found { base, key, value, many: rows.many, label: None }
}

fn at_path(base: Base, rows: &RowType, leads: Leads) -> Found {
    let value = Some((leads.path, leads.kind, leads.home));
    Found { base, key: None, value, many: rows.many, label: None }
}

/// The names of parts that are nothing but `.name`.
pub(in crate::check) fn plain_names(parts: &[Part]) -> Option<Vec<Name>> {
    parts
        .iter()
        .map(|part| match &part.kind {
            PartKind::Follow { name, preds: None } => Some(name.clone()),
            _ => None,
        })
        .collect()
}

/// Whether what is written depends on the row at hand.
fn mentions_row(node: &Node) -> bool {
    let primary = match &node.primary {
        Primary::Row(_) => true,
        Primary::Get { key: crate::syntax::tree::Key::Unary(value), .. } => in_value(value),
        Primary::Get { key: crate::syntax::tree::Key::Slots(slots), .. } => slots.iter().any(|a| in_value(&a.value)),
        Primary::Query { preds, .. } => in_preds(preds),
        Primary::Search { text, preds, .. } => in_value(text) || in_preds(preds),
        Primary::List(values) => values.iter().any(in_value),
        Primary::Name(_) | Primary::Host(_) | Primary::Text(_) | Primary::Error(_) => false,
    };
    primary || node.parts.iter().any(|part| in_part(&part.kind))
}

fn in_part(part: &PartKind) -> bool {
    match part {
        PartKind::Follow { preds: Some(preds), .. }
        | PartKind::Back { preds, .. }
        | PartKind::Braces { preds }
        | PartKind::Filter { preds } => in_preds(preds),
        PartKind::Method { args: Args::Slots(args) | Args::Variant { args, .. }, .. } => {
            args.iter().any(|a| in_value(&a.value))
        }
        PartKind::Derive { object } => object.iter().any(|e| in_value(&e.value)),
        PartKind::Each { effect } => mentions_row(effect),
        _ => false,
    }
}

fn in_preds(preds: &[Pred]) -> bool {
    preds.iter().any(|pred| in_value(&pred.value))
}

fn in_value(value: &Value) -> bool {
    match &value.kind {
        ValueKind::Node(node) => mentions_row(node),
        ValueKind::List(values) => values.iter().any(in_value),
        ValueKind::Object(entries) => entries.iter().any(|e| in_value(&e.value)),
        ValueKind::String(text) => text.contains("{{") || text.contains("{%"),
        ValueKind::Text(block) => block.body.contains("{{") || block.body.contains("{%"),
        _ => false,
    }
}

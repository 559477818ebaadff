//! Where a value comes from that is not written out: an earlier name, the row at hand, a read.
//! Invariant: a path is resolved to columns here; what it leads through is attached to the rows it starts from.

use std::sync::Arc;

use catalog::{Catalog, Type};
use serde_json::Value as Json;
use smol_str::SmolStr;

use crate::check::path::ResolvedPath;
use crate::check::{Checker, NodeId, RowScope, RowType};
use crate::ir::{EntityRef, Expr, Path, RowPart, Step, StepKind};
use crate::syntax::tree::{Args, Name, Node, Part, PartKind, Pred, Primary, Value, ValueKind};

/// Bytes of a text that is still copied to where it is used.
const LONG: usize = 4096;

/// What was found, before it is known what is wanted of it.
#[derive(Debug, Clone)]
pub(in crate::check) struct ResolvedValue {
    pub base: ValueSource,
    /// The rows are of this entity and have its key.
    pub key: Option<(Arc<Catalog>, SmolStr)>,
    /// A path of the row; of rows with one column, that column.
    pub value: Option<(Path, Type, Option<Arc<Catalog>>)>,
    pub many: bool,
    /// The label that it is nothing but.
    pub label: Option<SmolStr>,
}

#[derive(Debug, Clone)]
pub(in crate::check) enum ValueSource {
    Step(NodeId),
    Row,
    Read(Vec<Step>),
    Known(Json),
}

impl ValueSource {
    pub fn take(self, take: RowPart, many: bool) -> Expr {
        match self {
            ValueSource::Step(node) => Expr::Step { step: node.0, take, many },
            ValueSource::Row => Expr::Row(take),
            ValueSource::Read(steps) => Expr::Read { steps, take },
            ValueSource::Known(json) => Expr::Value(json),
        }
    }
}

impl ResolvedValue {
    pub fn key_of(&self) -> Option<EntityRef> {
        self.key
            .as_ref()
            .map(|(ref_catalog, entity)| EntityRef { catalog: ref_catalog.id.clone(), entity: entity.clone() })
    }
}

impl<'s> Checker<'s> {
    pub(in crate::check) fn resolve_value(&mut self, node: &Node) -> Option<ResolvedValue> {
        self.value_depth += 1;
        let found = self.resolve_source(node);
        self.value_depth -= 1;
        let label = match &node.primary {
            Primary::Name(name) if node.parts.is_empty() => Some(name.name.text.clone()),
            _ => None,
        };
        Some(ResolvedValue { label, ..found? })
    }

    fn resolve_source(&mut self, node: &Node) -> Option<ResolvedValue> {
        let row = self.row_scopes.last().copied();
        let direct = row.is_some_and(|row| row.space == self.current_space());
        match (&node.primary, row) {
            (Primary::Row(span), None) => {
                self.report_row_outside(*span);
                None
            }
            (Primary::Row(_), Some(row)) => match self.row_path(row, &node.parts) {
                Some(found) => Some(found),
                None if direct => self.per_row_read(node),
                None => self.step_path(node),
            },
            (_, Some(_)) if direct && mentions_row(node) => self.per_row_read(node),
            _ => self.step_path(node),
        }
    }

    /// `_`, `_.path`; nothing when it leads further than fields.
    fn row_path(&mut self, row: RowScope, parts: &[Part]) -> Option<ResolvedValue> {
        let names = plain_names(parts)?;
        let rows = self.spaces[row.space].nodes[row.input.0].rows.clone().single_row();
        if names.is_empty() {
            return Some(row_value(ValueSource::Row, &rows));
        }
        let resolved = self.lookup_path(&rows, &names).ok()?;
        let at = self.attach(row.space, row.input, &resolved.attachments);
        if let Some(last) = self.row_scopes.last_mut() {
            last.input = at;
        }
        Some(path_value(ValueSource::Row, &rows, resolved))
    }

    /// A read of its own for each row.
    fn per_row_read(&mut self, node: &Node) -> Option<ResolvedValue> {
        let (found, steps) = self.in_new_space(|cx| cx.step_path(node))?;
        let last = steps.len().checked_sub(1);
        // The steps end with what is taken; whatever was made after it is none of its business.
        let steps = match (&found.base, last) {
            (ValueSource::Step(node), Some(last)) if node.0 < last => steps.into_iter().take(node.0 + 1).collect(),
            _ => steps,
        };
        match found.base {
            ValueSource::Known(_) => Some(found),
            _ => Some(ResolvedValue { base: ValueSource::Read(steps), ..found }),
        }
    }

    /// The rows as far as they are rows, then a path of them.
    fn step_path(&mut self, node: &Node) -> Option<ResolvedValue> {
        let plain = |part: &Part| matches!(part.kind, PartKind::Follow { preds: None, .. });
        let from = node.parts.iter().rposition(|part| !plain(part)).map_or(0, |at| at + 1);
        let mut at = self.chain(&node.primary, &node.parts[..from], node.head)?;
        let rest = &node.parts[from..];
        for done in 0..rest.len() {
            let names = plain_names(&rest[done..])?;
            let rows = self.rows(at).clone();
            if let Ok(resolved) = self.lookup_path(&rows, &names) {
                if let Some(known) = self.known_text(at) {
                    return Some(known);
                }
                let here = self.current_space();
                let at = self.attach(here, at, &resolved.attachments);
                return Some(path_value(ValueSource::Step(at), &rows, resolved));
            }
            at = self.part(at, &rest[done], node.head.start)?;
        }
        if let Some(known) = self.known_text(at) {
            return Some(known);
        }
        let rows = self.rows(at).clone();
        Some(row_value(ValueSource::Step(at), &rows))
    }

    /// A block bound to a name is its text, wherever it is used. A long one stays where it is: a program that uses it often
    /// must not become a plan of many copies.
    fn known_text(&self, node: NodeId) -> Option<ResolvedValue> {
        let node = self.checked_node(node);
        let content = match &node.kind {
            StepKind::Text { content } => content.clone(),
            StepKind::OuterRows { step: Some(outer) } => match &self.spaces.first()?.nodes.get(*outer)?.kind {
                StepKind::Text { content } if self.spaces.len() == 2 => content.clone(),
                _ => return None,
            },
            _ => return None,
        };
        if content.len() > LONG {
            return None;
        }
        Some(ResolvedValue {
            base: ValueSource::Known(Json::String(content)),
            ..row_value(ValueSource::Row, &node.rows)
        })
    }
}

fn row_value(base: ValueSource, rows: &RowType) -> ResolvedValue {
    let key = rows.entity.as_ref().filter(|of| {
        let key = of.catalog.entity(&of.entity).map(|e| e.key.as_slice()).unwrap_or_default();
        rows.has_unread_fields || key.iter().all(|part| rows.has_column(part))
    });
    let value = match rows.column_at(0).filter(|_| rows.columns.len() == 1) {
        Some(only) if rows.is_literal => Some((Vec::new(), only.kind, only.ref_catalog)),
        Some(only) => Some((vec![only.name], only.kind, only.ref_catalog)),
        None if rows.has_unknown_columns => Some((Vec::new(), Type::Json, None)),
        None => None,
    };
    let key = key.map(|of| (of.catalog.clone(), of.entity.clone()));
    ResolvedValue { base, key, value, many: rows.many, label: None }
}

fn path_value(base: ValueSource, rows: &RowType, resolved: ResolvedPath) -> ResolvedValue {
    let value = Some((resolved.path, resolved.kind, resolved.ref_catalog));
    ResolvedValue { base, key: None, value, many: rows.many, label: None }
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
        Primary::Get { key: crate::syntax::tree::Key::Unary(value), .. } => value_mentions_row(value),
        Primary::Get { key: crate::syntax::tree::Key::Slots(slots), .. } => {
            slots.iter().any(|a| value_mentions_row(&a.value))
        }
        Primary::Query { preds, .. } => preds_mention_row(preds),
        Primary::Search { text, preds, .. } => value_mentions_row(text) || preds_mention_row(preds),
        Primary::List(values) => values.iter().any(value_mentions_row),
        Primary::Name(_) | Primary::Host(_) | Primary::Text(_) | Primary::Error(_) => false,
    };
    primary || node.parts.iter().any(|part| part_mentions_row(&part.kind))
}

fn part_mentions_row(part: &PartKind) -> bool {
    match part {
        PartKind::Follow { preds: Some(preds), .. }
        | PartKind::Back { preds, .. }
        | PartKind::Braces { preds }
        | PartKind::Filter { preds } => preds_mention_row(preds),
        PartKind::Method { args: Args::Slots(args) | Args::Variant { args, .. }, .. } => {
            args.iter().any(|a| value_mentions_row(&a.value))
        }
        PartKind::Derive { object } => object.iter().any(|e| value_mentions_row(&e.value)),
        PartKind::Each { effect } => mentions_row(effect),
        _ => false,
    }
}

fn preds_mention_row(preds: &[Pred]) -> bool {
    preds.iter().any(|pred| value_mentions_row(&pred.value))
}

fn value_mentions_row(value: &Value) -> bool {
    match &value.kind {
        ValueKind::Node(node) => mentions_row(node),
        ValueKind::List(values) => values.iter().any(value_mentions_row),
        ValueKind::Object(entries) => entries.iter().any(|e| value_mentions_row(&e.value)),
        ValueKind::String(text) => text.contains("{{") || text.contains("{%"),
        ValueKind::Text(block) => block.body.contains("{{") || block.body.contains("{%"),
        _ => false,
    }
}

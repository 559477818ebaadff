//! Resolves values that are not written out: an earlier name, the current row, a read.
//! Invariant: a path is resolved to columns here, and the rows that it leads through are attached to the rows that it
//! starts from.

use std::sync::Arc;

use catalog::{Catalog, Type};
use serde_json::Value as Json;
use smol_str::SmolStr;

use crate::check::path::ResolvedPath;
use crate::check::{Checker, NodeId, RowEntity, RowScope, RowType};
use crate::ir::{Expr, Path, RowPart, Step, StepKind};
use crate::syntax::tree::{Key, MethodArgs, Name, Node, Part, PartKind, Pred, Primary, Value, ValueKind};

/// The most bytes of a text that is copied to each place where it is used.
const MAX_COPIED_TEXT_BYTES: usize = 4096;

/// A value whose place decides which part of it is taken.
#[derive(Debug, Clone)]
pub(in crate::check) struct ResolvedValue {
    /// Where the value comes from.
    pub base: ValueSource,
    /// The entity of the rows, if they have its key and can stand for a reference.
    pub key: Option<RowEntity>,
    /// The written path or, of rows with one column, that column.
    pub value: Option<ValuePath>,
    /// Whether there may be several rows.
    pub many: bool,
    /// The label, if only a label was written.
    pub label: Option<SmolStr>,
}

/// A value inside of a row.
#[derive(Debug, Clone)]
pub(in crate::check) struct ValuePath {
    /// Where the value is in the row. Empty for a literal row, which is the value itself.
    pub path: Path,
    pub kind: Type,
    /// The catalog of the entities that references in the value refer to.
    pub ref_catalog: Option<Arc<Catalog>>,
}

/// The place that a value comes from.
#[derive(Debug, Clone)]
pub(in crate::check) enum ValueSource {
    /// The rows of a node.
    Step(NodeId),
    /// The current row.
    Row,
    /// A read for the current row.
    Read(Vec<Step>),
    /// A text that is known.
    Known(Json),
}

impl ValueSource {
    /// Makes the expression that takes a part of the source.
    pub fn take(self, take: RowPart, many: bool) -> Expr {
        match self {
            ValueSource::Step(node) => Expr::Step { step: node.0, take, many },
            ValueSource::Row => Expr::Row(take),
            ValueSource::Read(steps) => Expr::Read { steps, take },
            ValueSource::Known(json) => Expr::Value(json),
        }
    }
}

impl<'s> Checker<'s> {
    /// Resolves an expression that stands for a value.
    pub(in crate::check) fn resolve_value(&mut self, node: &Node) -> Option<ResolvedValue> {
        self.value_depth += 1;
        let resolved = self.resolve_source(node);
        self.value_depth -= 1;
        let label = match &node.primary {
            Primary::Name(name) if node.parts.is_empty() => Some(name.name.text.clone()),
            _ => None,
        };
        Some(ResolvedValue { label, ..resolved? })
    }

    /// Decides whether an expression is a path of the current row, a read for each row, or rows of the program.
    fn resolve_source(&mut self, node: &Node) -> Option<ResolvedValue> {
        let row = self.row_scopes.last().copied();
        // Inside of a read for each row, the current row is in a space around the current one. Everything is then a
        // step of that read already.
        let is_row_of_current_space = row.is_some_and(|row| row.space == self.current_space());
        match (&node.primary, row) {
            (Primary::Row(span), None) => {
                self.report_row_outside(*span);
                None
            }
            (Primary::Row(_), Some(row)) => match self.row_path(row, &node.parts) {
                Some(resolved) => Some(resolved),
                None if is_row_of_current_space => self.per_row_read(node),
                None => self.step_path(node),
            },
            (_, Some(_)) if is_row_of_current_space && mentions_row(node) => self.per_row_read(node),
            _ => self.step_path(node),
        }
    }

    /// Resolves `_` or `_.path`. Returns `None` if the path leads further than fields.
    fn row_path(&mut self, row: RowScope, parts: &[Part]) -> Option<ResolvedValue> {
        let names = plain_names(parts)?;
        let rows = self.row_type_of(row);
        if names.is_empty() {
            return Some(row_value(ValueSource::Row, &rows));
        }
        let resolved = self.lookup_path(&rows, &names).ok()?;
        self.attach_to_row(row, &resolved.attachments);
        Some(path_value(ValueSource::Row, &rows, resolved))
    }

    /// Resolves an expression as a read for each row.
    fn per_row_read(&mut self, node: &Node) -> Option<ResolvedValue> {
        let (resolved, steps) = self.in_new_space(|checker| checker.step_path(node))?;
        let last = steps.len().checked_sub(1);
        // A value is taken from the last step of a read, so the steps that were made after the value's node are
        // dropped.
        let steps = match (&resolved.base, last) {
            (ValueSource::Step(node), Some(last)) if node.0 < last => steps.into_iter().take(node.0 + 1).collect(),
            _ => steps,
        };
        match resolved.base {
            ValueSource::Known(_) => Some(resolved),
            _ => Some(ResolvedValue { base: ValueSource::Read(steps), ..resolved }),
        }
    }

    /// Resolves an expression to the rows of a node and a path in them. Names behind the last other part may be
    /// relations or fields: relations are followed until the rest of the names is a path of fields.
    fn step_path(&mut self, node: &Node) -> Option<ResolvedValue> {
        let plain = |part: &Part| matches!(part.kind, PartKind::Follow { preds: None, .. });
        let from = node.parts.iter().rposition(|part| !plain(part)).map_or(0, |at| at + 1);
        let mut at = self.check_chain(&node.primary, &node.parts[..from], node.head)?;
        let rest = &node.parts[from..];
        for done in 0..rest.len() {
            let names = plain_names(&rest[done..])?;
            let rows = self.rows(at).clone();
            if let Ok(resolved) = self.lookup_path(&rows, &names) {
                if let Some(known) = self.known_text(at) {
                    return Some(known);
                }
                let at = self.attach(at, &resolved.attachments);
                return Some(path_value(ValueSource::Step(at), &rows, resolved));
            }
            at = self.apply_part(at, &rest[done], node.head.start)?;
        }
        if let Some(known) = self.known_text(at) {
            return Some(known);
        }
        let rows = self.rows(at).clone();
        Some(row_value(ValueSource::Step(at), &rows))
    }

    /// Returns the text of a node that is a block of text. A long text stays a step, because a program that uses it
    /// often would become a plan with many copies.
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
        if content.len() > MAX_COPIED_TEXT_BYTES {
            return None;
        }
        Some(ResolvedValue {
            base: ValueSource::Known(Json::String(content)),
            ..row_value(ValueSource::Row, &node.rows)
        })
    }
}

/// Makes a value of whole rows.
fn row_value(base: ValueSource, rows: &RowType) -> ResolvedValue {
    let key = rows.entity.as_ref().filter(|of| {
        let key = of.catalog.entity(&of.entity).map(|e| e.key.as_slice()).unwrap_or_default();
        rows.has_unread_fields || key.iter().all(|part| rows.has_column(part))
    });
    let value = match rows.column_at(0).filter(|_| rows.columns.len() == 1) {
        Some(only) if rows.is_literal => {
            Some(ValuePath { path: Vec::new(), kind: only.kind, ref_catalog: only.ref_catalog })
        }
        Some(only) => Some(ValuePath { path: vec![only.name], kind: only.kind, ref_catalog: only.ref_catalog }),
        None if rows.has_unknown_columns => Some(ValuePath { path: Vec::new(), kind: Type::Json, ref_catalog: None }),
        None => None,
    };
    ResolvedValue { base, key: key.cloned(), value, many: rows.many, label: None }
}

/// Makes a value of a path in rows.
fn path_value(base: ValueSource, rows: &RowType, resolved: ResolvedPath) -> ResolvedValue {
    let value = Some(ValuePath { path: resolved.path, kind: resolved.kind, ref_catalog: resolved.ref_catalog });
    ResolvedValue { base, key: None, value, many: rows.many, label: None }
}

/// Returns the names of parts, if each is only `.name`.
fn plain_names(parts: &[Part]) -> Option<Vec<Name>> {
    parts
        .iter()
        .map(|part| match &part.kind {
            PartKind::Follow { name, preds: None } => Some(name.clone()),
            _ => None,
        })
        .collect()
}

/// Returns whether an expression depends on the current row.
fn mentions_row(node: &Node) -> bool {
    let primary = match &node.primary {
        Primary::Row(_) => true,
        Primary::Get { key: Key::Unary(value), .. } => value_mentions_row(value),
        Primary::Get { key: Key::Slots(slots), .. } => slots.iter().any(|a| value_mentions_row(&a.value)),
        Primary::Query { preds, .. } => preds_mention_row(preds),
        Primary::Search { text, preds, .. } => value_mentions_row(text) || preds_mention_row(preds),
        Primary::List(values) => values.iter().any(value_mentions_row),
        Primary::Name(_) | Primary::HandleCall(_) | Primary::Text(_) | Primary::Error(_) => false,
    };
    primary || node.parts.iter().any(|part| part_mentions_row(&part.kind))
}

fn part_mentions_row(part: &PartKind) -> bool {
    match part {
        PartKind::Follow { preds: Some(preds), .. }
        | PartKind::Back { preds, .. }
        | PartKind::Braces { preds }
        | PartKind::Filter { preds } => preds_mention_row(preds),
        PartKind::Method { args: MethodArgs::Slots(args) | MethodArgs::Variant { args, .. }, .. } => {
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

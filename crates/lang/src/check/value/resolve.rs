//! Resolves values that refer to something else: a label, the current row, or a read.
//! Invariant: each path is resolved to columns here. The referenced rows that a path needs are attached to the rows
//! that the path starts from.

use std::sync::Arc;

use catalog::{Catalog, Type};
use serde_json::Value as Json;
use smol_str::SmolStr;

use crate::check::path::ResolvedPath;
use crate::check::{Checker, NodeId, RowEntity, RowScope, RowType};
use crate::ir::{Expr, Path, RowPart, Step, StepKind};
use crate::syntax::tree::{Key, MethodArgs, Name, Node, Part, PartKind, Pred, Primary, Value, ValueKind};

/// The largest text in bytes that is copied into each place of its use.
const MAX_COPIED_TEXT_BYTES: usize = 4096;

/// A value whose slot decides which part of the value is used.
#[derive(Debug, Clone)]
pub(in crate::check) struct ResolvedValue {
    /// The source of the value.
    pub base: ValueSource,
    /// The entity of the rows, if the rows contain its key. Only then can a row be used as a reference.
    pub key: Option<RowEntity>,
    /// The written path. Without one, this is the only column of the rows, if there is exactly one.
    pub value: Option<ValuePath>,
    /// Whether there may be several rows.
    pub many: bool,
    /// The label, if the value was written as a label alone.
    pub label: Option<SmolStr>,
}

/// A value inside a row.
#[derive(Debug, Clone)]
pub(in crate::check) struct ValuePath {
    /// The path of the value in the row. It is empty for a literal row, which is the value itself.
    pub path: Path,
    pub kind: Type,
    /// The catalog of the entities that the value may refer to.
    pub ref_catalog: Option<Arc<Catalog>>,
}

/// The source of a value.
#[derive(Debug, Clone)]
pub(in crate::check) enum ValueSource {
    /// The rows of a node.
    Step(NodeId),
    /// The current row of the nearest `=>`.
    Row,
    /// A read that is done for the current row.
    Read(Vec<Step>),
    /// A known text.
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
    /// Resolves an expression that is used as a value.
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

    /// Decides whether an expression is a path of the current row, a read per row, or rows of the program.
    fn resolve_source(&mut self, node: &Node) -> Option<ResolvedValue> {
        let row = self.row_scopes.last().copied();
        // Inside a read per row, the current row belongs to an outer space. Each expression is then already a step of
        // that read.
        let is_row_of_current_space = row.is_some_and(|row| row.space == self.current_space());
        match (&node.primary, row) {
            (Primary::Row(span), None) => {
                self.report_row_outside(*span);
                None
            }
            (Primary::Row(_), Some(row)) => match self.resolve_row_path(row, &node.parts) {
                Some(resolved) => Some(resolved),
                None if is_row_of_current_space => self.resolve_per_row_read(node),
                None => self.resolve_step_path(node),
            },
            (_, Some(_)) if is_row_of_current_space && mentions_row(node) => self.resolve_per_row_read(node),
            _ => self.resolve_step_path(node),
        }
    }

    /// Resolves `_` or `_.path`. Returns `None` if the path contains more than fields.
    fn resolve_row_path(&mut self, row: RowScope, parts: &[Part]) -> Option<ResolvedValue> {
        let names = plain_names(parts)?;
        let rows = self.row_type_of(row);
        if names.is_empty() {
            return Some(row_value(ValueSource::Row, &rows));
        }
        let resolved = self.lookup_path(&rows, &names).ok()?;
        self.attach_to_row(row, &resolved.attachments);
        Some(path_value(ValueSource::Row, &rows, resolved))
    }

    /// Resolves an expression as a read per row.
    fn resolve_per_row_read(&mut self, node: &Node) -> Option<ResolvedValue> {
        let (resolved, steps) = self.check_in_new_space(|checker| checker.resolve_step_path(node))?;
        let last = steps.len().checked_sub(1);
        // The value of a read is taken from its last step, so the steps behind the value's node are dropped.
        let steps = match (&resolved.base, last) {
            (ValueSource::Step(node), Some(last)) if node.0 < last => steps.into_iter().take(node.0 + 1).collect(),
            _ => steps,
        };
        match resolved.base {
            ValueSource::Known(_) => Some(resolved),
            _ => Some(ResolvedValue { base: ValueSource::Read(steps), ..resolved }),
        }
    }

    /// Resolves an expression to the rows of a node and a path in them. Each trailing name may be a relation or a
    /// field: relations are followed until the remaining names are a path of fields.
    fn resolve_step_path(&mut self, node: &Node) -> Option<ResolvedValue> {
        let is_plain_name = |part: &Part| matches!(part.kind, PartKind::Follow { preds: None, .. });
        let trailing_start = node.parts.iter().rposition(|part| !is_plain_name(part)).map_or(0, |at| at + 1);
        let mut at = self.check_chain(&node.primary, &node.parts[..trailing_start], node.head)?;
        let trailing_parts = &node.parts[trailing_start..];
        for followed_count in 0..trailing_parts.len() {
            let names = plain_names(&trailing_parts[followed_count..])?;
            let rows = self.rows(at).clone();
            if let Ok(resolved) = self.lookup_path(&rows, &names) {
                if let Some(known_text_value) = self.known_text(at) {
                    return Some(known_text_value);
                }
                let at = self.attach_to_rows(at, &resolved.attachments);
                return Some(path_value(ValueSource::Step(at), &rows, resolved));
            }
            at = self.apply_part(at, &trailing_parts[followed_count], node.head.start)?;
        }
        if let Some(known_text_value) = self.known_text(at) {
            return Some(known_text_value);
        }
        let rows = self.rows(at).clone();
        Some(row_value(ValueSource::Step(at), &rows))
    }

    /// Returns the text of a node that is a block of text. A long text stays a step, because a plan with many copies
    /// of it would become large.
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

/// Returns the names of the parts, or `None` if a part is more than `.name`.
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

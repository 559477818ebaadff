//! A primary and its parts to a chain of checked nodes.
//! Invariant: parts apply from left to right; the first mistake in a chain ends that chain, not the program.

use base::{Diagnostic, Span};

use super::{Cx, NodeId};
use crate::codes;
use crate::scope::{Exposed, NoEntity};
use crate::syntax::tree::{EntityName, HostKind, Node, PartKind, Primary};

impl<'s> Cx<'s> {
    pub(super) fn node(&mut self, node: &Node) -> Option<NodeId> {
        let mut parts = node.parts.as_slice();
        let mut at = match &node.primary {
            Primary::Name(name) => self.name(name)?,
            Primary::Query { entity, .. } if self.is_label(entity) => {
                let label = &entity.name.text;
                let message = format!(
                    "`{label}` is rows already read; braces on an entity filter at the API, `.filter{{…}}` filters rows"
                );
                self.report(
                    Diagnostic::error(codes::FILTER_ON_ROWS, node.span, message)
                        .with_copy(format!("{label}.filter{{…}}")),
                );
                return None;
            }
            Primary::Query { entity, preds } => {
                let exposed = self.entity(entity)?;
                self.query(exposed, entity, preds, node.span)?
            }
            Primary::Get { entity, key } => {
                let exposed = self.entity(entity)?;
                self.get(exposed, entity, key, node.span)?
            }
            other => {
                self.unsupported_primary(other, node.span);
                return None;
            }
        };
        while let Some((part, rest)) = parts.split_first() {
            at = self.part(at, part)?;
            parts = rest;
        }
        Some(at)
    }

    fn is_label(&self, name: &EntityName) -> bool {
        name.catalog.is_none() && self.labels.contains_key(&name.name.text)
    }

    /// A label, or an entity to list.
    fn name(&mut self, name: &EntityName) -> Option<NodeId> {
        if self.is_label(name) {
            return self.labels.get(&name.name.text).copied().flatten();
        }
        let exposed = self.entity(name)?;
        let span = entity_span(name);
        self.query(exposed, name, &[], span)
    }

    pub(super) fn entity(&mut self, name: &EntityName) -> Option<&'s Exposed> {
        let span = entity_span(name);
        let shown = match &name.catalog {
            Some(catalog) => format!("{}:{}", catalog.text, name.name.text),
            None => name.name.text.clone(),
        };
        match self.scope.entity(name) {
            Ok(exposed) => {
                self.mended(&name.name, &exposed.entity);
                Some(exposed)
            }
            Err(NoEntity::Ambiguous(names)) => {
                let message = format!("`{shown}` is in several catalogs of this session");
                self.report(Diagnostic::error(codes::AMBIGUOUS_ENTITY, span, message).with_alternatives(names));
                None
            }
            Err(NoEntity::Unknown(near)) => {
                let message = format!(
                    "no entity or name `{shown}` in this session; if the API has it, add a seed for it with plasm_context"
                );
                self.report(Diagnostic::error(codes::UNKNOWN_ENTITY, span, message).with_alternatives(near));
                None
            }
        }
    }

    fn unsupported_primary(&mut self, primary: &Primary, span: Span) {
        let what = match primary {
            Primary::Search { .. } => "a search `~`",
            Primary::Host(call) => match call.kind {
                HostKind::Page => "`page(…)`",
                HostKind::Wait => "`wait(…)`",
                HostKind::Cancel => "`cancel(…)`",
            },
            Primary::List(_) => "a list of rows",
            Primary::Text(_) => "a block of text",
            Primary::Row(_) => "`_`",
            // The parser has said what is wrong; names and queries are handled before this.
            Primary::Error(_) | Primary::Name(_) | Primary::Get { .. } | Primary::Query { .. } => return,
        };
        self.not_in_this_build(span, what);
    }

    pub(super) fn unsupported_part(&mut self, kind: &PartKind, span: Span) {
        let what = match kind {
            PartKind::Back { .. } => "`.^`",
            PartKind::Method { name, .. } => {
                let message = format!("`.{}(…)`: this session was taught no methods", name.text);
                self.error(codes::NOT_TAUGHT, span, message);
                return;
            }
            PartKind::Braces { .. } => {
                self.error(
                    codes::FILTER_ON_ROWS,
                    span,
                    "braces belong to an entity or a relation; rows are filtered with `.filter{…}`",
                );
                return;
            }
            PartKind::PageSize { .. } => "`.page_size`",
            PartKind::Sort { .. } => "`.sort`",
            PartKind::Filter { .. } => "`.filter`",
            PartKind::Aggregate { .. } => "`.aggregate`",
            PartKind::GroupBy { .. } => "`.group_by`",
            PartKind::Distinct { .. } => "`.distinct`",
            PartKind::First => "`.first()`",
            PartKind::Last => "`.last()`",
            PartKind::Singleton => "`.singleton()`",
            PartKind::Derive { .. } | PartKind::Each { .. } => "`=>`",
            PartKind::Template(_) => "a template",
            PartKind::Follow { .. } | PartKind::Limit { .. } | PartKind::Project { .. } => return,
        };
        self.not_in_this_build(span, what);
    }
}

pub(super) fn entity_span(name: &EntityName) -> Span {
    name.catalog.as_ref().map_or(name.name.span, |catalog| catalog.span.to(name.name.span))
}

//! Values where no slot says what is wanted: new rows, literals as rows, JSON.
//! Invariant: the type is what was written; a string inside `=>` that has Jinja in it is a template.

use std::sync::Arc;

use catalog::{Catalog, DateFormat, TextStyle, Type};
use serde_json::Value as Json;

use super::reference::reference_of;
use super::{list_of, object_of};
use crate::check::Cx;
use crate::ir::Expr;
use crate::syntax::tree::{Node, Primary, Value, ValueKind};

/// A value and what it is.
pub(in crate::check) struct Free {
    pub expr: Expr,
    pub kind: Type,
    pub home: Option<Arc<Catalog>>,
}

impl Free {
    fn plain(expr: impl Into<Expr>, kind: Type) -> Self {
        Free { expr: expr.into(), kind, home: None }
    }
}

impl Cx<'_> {
    pub(in crate::check) fn free(&mut self, value: &Value) -> Option<Free> {
        match &value.kind {
            ValueKind::Error => None,
            ValueKind::Hole => Some(Free::plain(self.hole(None, &Type::Json, value.span)?, Type::Json)),
            ValueKind::Null => Some(Free::plain(Json::Null, Type::Json)),
            ValueKind::Bool(flag) => Some(Free::plain(Json::Bool(*flag), Type::Boolean)),
            ValueKind::Number(text) => {
                let number = self.number(text, value.span)?;
                let kind = if number.is_i64() { Type::Integer } else { Type::Number };
                Some(Free::plain(number, kind))
            }
            ValueKind::String(text) => self.free_text(text, TextStyle::Short, value.span),
            ValueKind::Text(block) => self.free_text(&block.body, TextStyle::Document, value.span),
            ValueKind::List(items) => self.free_list(items),
            ValueKind::Object(entries) => {
                let pairs: Vec<Option<(String, Expr)>> =
                    entries.iter().map(|e| Some((e.key.text.to_string(), self.free(&e.value)?.expr))).collect();
                Some(Free::plain(object_of(pairs.into_iter().collect::<Option<_>>()?), Type::Json))
            }
            ValueKind::Node(node) => self.free_node(node),
        }
    }

    fn free_text(&mut self, text: &str, style: TextStyle, span: base::Span) -> Option<Free> {
        let kind = Type::String(style);
        if self.is_template(text) {
            return Some(Free::plain(self.template_for(None, &kind, text, span)?, kind));
        }
        Some(Free::plain(Json::String(text.to_owned()), kind))
    }

    fn free_list(&mut self, items: &[Value]) -> Option<Free> {
        let found: Vec<Option<Free>> = items.iter().map(|item| self.free(item)).collect();
        let found: Vec<Free> = found.into_iter().collect::<Option<_>>()?;
        let same = found.first().filter(|first| found.iter().all(|f| f.kind == first.kind));
        let (of, home) = same.map_or((Type::Json, None), |first| (first.kind.clone(), first.home.clone()));
        let expr = list_of(found.into_iter().map(|f| f.expr).collect());
        Some(Free { expr, kind: Type::Array(Box::new(of)), home })
    }

    fn free_node(&mut self, node: &Node) -> Option<Free> {
        match (&node.primary, node.parts.is_empty()) {
            (Primary::Error(_), _) => None,
            (Primary::Name(name), true) if name.catalog.is_none() && !self.is_label(name) => {
                let word = &name.name.text;
                let moment = self.moment(&Type::Json, word, node.span);
                let is_moment = moment.is_some();
                let expr = match moment {
                    Some(moment) => moment?,
                    None => self.word(None, &Type::Json, word, node.span)?,
                };
                let kind = if is_moment { Type::Date(DateFormat::Rfc3339) } else { Type::String(TextStyle::Short) };
                Some(Free::plain(expr, kind))
            }
            (Primary::Get { entity, key }, true) => {
                let exposed = self.entity(entity)?;
                let args = self.key_args(exposed, (entity, key), node.head)?;
                let kind = Type::Ref(exposed.entity.clone());
                Some(Free { expr: reference_of(exposed, args)?, kind, home: Some(exposed.catalog.clone()) })
            }
            _ => {
                let found = self.found(node)?;
                self.settle(found, node.span)
            }
        }
    }
}

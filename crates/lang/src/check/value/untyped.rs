//! Values where no slot says what is wanted: new rows, literals as rows, JSON.
//! Invariant: the type is what was written; a string inside `=>` that has Jinja in it is a template.

use std::sync::Arc;

use catalog::{Catalog, DateFormat, TextStyle, Type};
use serde_json::Value as Json;

use super::reference::reference_of;
use super::{list_of, object_of};
use crate::check::Checker;
use crate::ir::Expr;
use crate::syntax::tree::{Node, Primary, Value, ValueKind};

/// A value and what it is.
pub(in crate::check) struct TypedExpr {
    pub expr: Expr,
    pub kind: Type,
    pub ref_catalog: Option<Arc<Catalog>>,
}

impl TypedExpr {
    fn plain(expr: impl Into<Expr>, kind: Type) -> Self {
        TypedExpr { expr: expr.into(), kind, ref_catalog: None }
    }
}

impl Checker<'_> {
    pub(in crate::check) fn untyped(&mut self, value: &Value) -> Option<TypedExpr> {
        match &value.kind {
            ValueKind::Error => None,
            ValueKind::Hole => Some(TypedExpr::plain(self.placeholder(None, &Type::Json, value.span)?, Type::Json)),
            ValueKind::Null => Some(TypedExpr::plain(Json::Null, Type::Json)),
            ValueKind::Bool(flag) => Some(TypedExpr::plain(Json::Bool(*flag), Type::Boolean)),
            ValueKind::Number(text) => {
                let number = self.number(text, value.span)?;
                let kind = if number.is_i64() { Type::Integer } else { Type::Number };
                Some(TypedExpr::plain(number, kind))
            }
            ValueKind::String(text) => self.untyped_text(text, TextStyle::Short, value.span),
            ValueKind::Text(block) => self.untyped_text(&block.body, TextStyle::Document, value.span),
            ValueKind::List(items) => self.untyped_list(items),
            ValueKind::Object(entries) => {
                let pairs: Vec<Option<(String, Expr)>> =
                    entries.iter().map(|e| Some((e.key.text.to_string(), self.untyped(&e.value)?.expr))).collect();
                Some(TypedExpr::plain(object_of(pairs.into_iter().collect::<Option<_>>()?), Type::Json))
            }
            ValueKind::Node(node) => self.untyped_node(node),
        }
    }

    fn untyped_text(&mut self, text: &str, style: TextStyle, span: base::Span) -> Option<TypedExpr> {
        let kind = Type::String(style);
        if self.is_template(text) {
            return Some(TypedExpr::plain(self.template_for(None, &kind, text, span)?, kind));
        }
        Some(TypedExpr::plain(Json::String(text.to_owned()), kind))
    }

    fn untyped_list(&mut self, items: &[Value]) -> Option<TypedExpr> {
        let found: Vec<Option<TypedExpr>> = items.iter().map(|item| self.untyped(item)).collect();
        let found: Vec<TypedExpr> = found.into_iter().collect::<Option<_>>()?;
        let same = found.first().filter(|first| found.iter().all(|f| f.kind == first.kind));
        let (of, ref_catalog) =
            same.map_or((Type::Json, None), |first| (first.kind.clone(), first.ref_catalog.clone()));
        let expr = list_of(found.into_iter().map(|f| f.expr).collect());
        Some(TypedExpr { expr, kind: Type::Array(Box::new(of)), ref_catalog })
    }

    fn untyped_node(&mut self, node: &Node) -> Option<TypedExpr> {
        match (&node.primary, node.parts.is_empty()) {
            (Primary::Error(_), _) => None,
            (Primary::Name(name), true) if name.catalog.is_none() && !self.is_label(name) => {
                let word = &name.name.text;
                let moment = self.moment(&Type::Json, word, node.span);
                let is_moment = moment.is_some();
                let expr = match moment {
                    Some(moment) => moment?,
                    None => self.bare_word(None, &Type::Json, word, node.span)?,
                };
                let kind = if is_moment { Type::Date(DateFormat::Rfc3339) } else { Type::String(TextStyle::Short) };
                Some(TypedExpr::plain(expr, kind))
            }
            (Primary::Get { entity, key }, true) => {
                let exposed = self.entity(entity)?;
                let args = self.key_args(exposed, (entity, key), node.head)?;
                let kind = Type::Ref(exposed.entity.clone());
                Some(TypedExpr { expr: reference_of(exposed, args)?, kind, ref_catalog: Some(exposed.catalog.clone()) })
            }
            _ => {
                let found = self.resolve_value(node)?;
                self.infer_type(found, node.span)
            }
        }
    }
}

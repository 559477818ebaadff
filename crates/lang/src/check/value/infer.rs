//! Infers the types of values in slots without a type: columns of new rows, literals as rows, and JSON.
//! Invariant: the inferred type depends only on the written form. A string with Jinja tags is a template if it is
//! inside a `=>`.

use std::sync::Arc;

use catalog::{Catalog, DateFormat, TextStyle, Type};
use serde_json::Value as Json;

use super::reference::reference_of;
use super::{list_of, object_of};
use crate::check::Checker;
use crate::ir::Expr;
use crate::syntax::tree::{Node, Primary, Value, ValueKind};

/// An expression with its inferred type.
pub(in crate::check) struct TypedExpr {
    pub expr: Expr,
    pub kind: Type,
    /// The catalog of the entities that the value may refer to.
    pub ref_catalog: Option<Arc<Catalog>>,
}

impl TypedExpr {
    /// Makes a value that contains no references.
    fn plain(expr: impl Into<Expr>, kind: Type) -> Self {
        TypedExpr { expr: expr.into(), kind, ref_catalog: None }
    }
}

impl Checker<'_> {
    /// Checks a value and infers its type.
    pub(in crate::check) fn infer_value(&mut self, value: &Value) -> Option<TypedExpr> {
        match &value.kind {
            ValueKind::Error => None,
            ValueKind::Placeholder => {
                Some(TypedExpr::plain(self.check_placeholder(None, &Type::Json, value.span)?, Type::Json))
            }
            ValueKind::Null => Some(TypedExpr::plain(Json::Null, Type::Json)),
            ValueKind::Bool(flag) => Some(TypedExpr::plain(Json::Bool(*flag), Type::Boolean)),
            ValueKind::Number(text) => {
                let number = self.check_number(text, value.span)?;
                let kind = if number.is_i64() { Type::Integer } else { Type::Number };
                Some(TypedExpr::plain(number, kind))
            }
            ValueKind::String(text) => self.infer_text(text, TextStyle::Short, value.span),
            ValueKind::Text(block) => self.infer_text(&block.body, TextStyle::Document, value.span),
            ValueKind::List(items) => self.infer_list(items),
            ValueKind::Object(entries) => {
                let pairs: Vec<Option<(String, Expr)>> =
                    entries.iter().map(|e| Some((e.key.text.to_string(), self.infer_value(&e.value)?.expr))).collect();
                Some(TypedExpr::plain(object_of(pairs.into_iter().collect::<Option<_>>()?), Type::Json))
            }
            ValueKind::Node(node) => self.infer_node(node),
        }
    }

    /// Checks a text, which may be a template, and infers its type.
    fn infer_text(&mut self, text: &str, style: TextStyle, span: base::Span) -> Option<TypedExpr> {
        let kind = Type::String(style);
        if self.is_template(text) {
            return Some(TypedExpr::plain(self.make_template(None, &kind, text, span)?, kind));
        }
        Some(TypedExpr::plain(Json::String(text.to_owned()), kind))
    }

    /// Checks a list. Its item type is the type of all items if they agree, and JSON otherwise.
    fn infer_list(&mut self, items: &[Value]) -> Option<TypedExpr> {
        // All items are checked before the first mistake ends the check, so that all mistakes are reported.
        let inferred: Vec<Option<TypedExpr>> = items.iter().map(|item| self.infer_value(item)).collect();
        let inferred: Vec<TypedExpr> = inferred.into_iter().collect::<Option<_>>()?;
        let common_type = inferred.first().filter(|first| inferred.iter().all(|f| f.kind == first.kind));
        let (item_kind, ref_catalog) =
            common_type.map_or((Type::Json, None), |first| (first.kind.clone(), first.ref_catalog.clone()));
        let expr = list_of(inferred.into_iter().map(|f| f.expr).collect());
        Some(TypedExpr { expr, kind: Type::Array(Box::new(item_kind)), ref_catalog })
    }

    /// Checks an expression and infers its type. The expression is a moment, a bare word, a reference, or a value to
    /// resolve.
    fn infer_node(&mut self, node: &Node) -> Option<TypedExpr> {
        match (&node.primary, node.parts.is_empty()) {
            (Primary::Error(_), _) => None,
            (Primary::Name(name), true) if name.catalog.is_none() && !self.is_label(name) => {
                let word = &name.name.text;
                let moment = self.read_moment(&Type::Json, word, node.span);
                let is_moment = moment.is_some();
                let expr = match moment {
                    Some(moment) => moment?,
                    None => self.check_bare_word(None, &Type::Json, word, node.span)?,
                };
                let kind = if is_moment { Type::Date(DateFormat::Rfc3339) } else { Type::String(TextStyle::Short) };
                Some(TypedExpr::plain(expr, kind))
            }
            (Primary::Get { entity, key }, true) => {
                let exposed = self.resolve_entity(entity)?;
                let args = self.check_key_args(exposed, entity, key, node.head)?;
                let kind = Type::Ref(exposed.entity.clone());
                Some(TypedExpr { expr: reference_of(exposed, args)?, kind, ref_catalog: Some(exposed.catalog.clone()) })
            }
            _ => {
                let resolved = self.resolve_value(node)?;
                self.type_of_resolved(resolved, node.span)
            }
        }
    }
}

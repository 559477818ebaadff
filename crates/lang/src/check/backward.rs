//! Checks `rows.^Entity{…}`, which follows a declared relation against its direction.
//! Invariant: the step uses a relation that the catalog declares. If a row holds the reference, the reference is
//! followed; otherwise a query finds the rows that refer to the row.

use base::{Diagnostic, Edit, Span};
use catalog::{Capability, Param, Relation, Type, Via};

use super::correction::WrittenFilters;
use super::{Checker, NodeId};
use crate::codes;
use crate::ir::{CapabilityRef, EntityRef, Expr, RowPart, StepKind};
use crate::scope::{ExposedEntity, NameStyle};
use crate::syntax::tree::{EntityName, Pred};

/// One way to follow a relation against its direction.
#[derive(Debug, Clone, Copy, PartialEq)]
enum BackPath<'s> {
    /// A field of the row that contains the reference.
    Field(&'s str),
    /// A query, and the parameter that selects the rows which refer to the row.
    Query(&'s Capability, &'s str),
}

impl<'s> Checker<'s> {
    /// Checks `rows.^Entity{…}`. `written` is `Entity` as the program names it: the entity whose relation leads to
    /// `rows`.
    pub(super) fn check_backward_step(
        &mut self,
        input: NodeId,
        written: &EntityName,
        preds: &[Pred],
        span: Span,
    ) -> Option<NodeId> {
        let source = self.resolve_entity(written)?;
        let rows = self.rows(input).clone();
        let rows_entity = self.exposed_entity_of(&rows).filter(|e| e.catalog.id == source.catalog.id);
        let back_paths = rows_entity.map(|rows_entity| find_back_paths(source, rows_entity)).unwrap_or_default();
        let [back_path] = back_paths.as_slice() else {
            self.report_no_back_path(rows_entity, source, &back_paths, written, span);
            return None;
        };
        let rows_entity = rows_entity?;
        match *back_path {
            BackPath::Field(field) => {
                if !preds.is_empty() {
                    let message = "the row refers to it, so the API is not asked; filter with `.filter{…}` after it";
                    let fix = Edit::insert(written.span().end, ".filter");
                    self.report(Diagnostic::error(codes::FILTER_ON_ROWS, span, message).with_fix([fix]));
                    return None;
                }
                let target = self.row_type_of_entity(&source.catalog, &source.entity, rows.many);
                Some(self.add_node(StepKind::Deref { input: input.0, field: field.into(), limit: None }, target))
            }
            BackPath::Query(capability, param) => {
                let params: Vec<&Param> = capability.params.values().filter(|p| p.name != param).collect();
                let style = NameStyle::of(&written.name.text);
                let filters = WrittenFilters { preds, start: written.span().end, end: span.end };
                let mut args = self.check_filters(source, &params, filters, style)?;
                let missing: Vec<&Param> =
                    params.into_iter().filter(|p| p.required && !args.contains_key(p.name.as_str())).collect();
                if !missing.is_empty() {
                    self.report_missing_params(source, &missing, style, filters, span);
                    return None;
                }
                // A `_` in these arguments is the row that the query starts from, while a `_` of a program is the row
                // of the nearest `=>`. The checker accepts `_` here only if both are the same row.
                let starts_from_scope_row = matches!(self.checked_node(input).kind, StepKind::OuterRows { step: None });
                if !starts_from_scope_row && args.values().any(Expr::uses_row) {
                    let message = "inside `.^…{…}` there is no `_`; filter with `.filter{…}` after it";
                    self.report_error(codes::ROW_OUTSIDE, span, message);
                    return None;
                }
                let of =
                    EntityRef { catalog: rows_entity.catalog.id.clone(), entity: rows_entity.entity.as_str().into() };
                args.insert(param.into(), Expr::Row(RowPart::Key(of)));
                let target = self.row_type_of_capability(&source.catalog, capability, true);
                let call = CapabilityRef::new(&source.catalog, capability);
                Some(self.add_node(StepKind::QueryPerRow { input: input.0, call, args, limit: None }, target))
            }
        }
    }

    fn report_no_back_path(
        &mut self,
        rows_entity: Option<&ExposedEntity>,
        source: &ExposedEntity,
        back_paths: &[BackPath<'_>],
        written: &EntityName,
        span: Span,
    ) {
        let style = NameStyle::of(&written.name.text);
        let from = rows_entity.map_or("these rows", |e| e.styled_name(style));
        let to = source.styled_name(style);
        let message = if back_paths.is_empty() {
            format!("no relation of {to} leads to {from} that can be followed backwards")
        } else {
            format!("several relations of {to} lead to {from}; ask for the one that is meant")
        };
        let lines = back_paths.iter().map(|back_path| match back_path {
            BackPath::Field(field) => format!(".{}", self.scope.styled_slot(&source.catalog, field, style)),
            BackPath::Query(_, param) => format!("{to}{{{}=…}}", self.scope.styled_slot(&source.catalog, param, style)),
        });
        let alternatives: Vec<String> = lines.collect();
        self.report(Diagnostic::error(codes::NO_WAY_BACK, span, message).with_alternatives(alternatives));
    }
}

/// Lists the ways from rows of `rows_entity` back to `source`, without duplicates. If a field of the row contains the
/// reference, the list has no queries, because following the reference is cheaper.
fn find_back_paths<'s>(source: &'s ExposedEntity, rows_entity: &'s ExposedEntity) -> Vec<BackPath<'s>> {
    let relations = source.definition().into_iter().flat_map(|e| e.relations.values());
    let mut paths: Vec<BackPath<'s>> = Vec::new();
    for relation in relations.filter(|r| r.target == rows_entity.entity) {
        paths.extend(find_back_path(source, rows_entity, relation).filter(|back_path| !paths.contains(back_path)));
    }
    let field_paths: Vec<BackPath<'s>> =
        paths.iter().copied().filter(|back_path| matches!(back_path, BackPath::Field(_))).collect();
    if field_paths.is_empty() { paths } else { field_paths }
}

/// Returns the way back along one relation of `source`, or `None` if the relation cannot be followed backwards.
fn find_back_path<'s>(
    source: &'s ExposedEntity,
    rows_entity: &'s ExposedEntity,
    relation: &'s Relation,
) -> Option<BackPath<'s>> {
    let is_reference_to = |kind: &Type, to: &str| matches!(kind, Type::Ref(target) if target == to);
    let reference_in_row = |name: &str| {
        let field = rows_entity.definition()?.fields.get(name)?;
        is_reference_to(&field.kind, &source.entity).then_some(BackPath::Field(field.name.as_str()))
    };
    match &relation.via {
        Via::Call { fill, .. } => fill.keys().find_map(|param| reference_in_row(param)),
        Via::Embedded { .. } => {
            let fields = rows_entity.definition()?.fields.values();
            let mut refs = fields.filter(|f| is_reference_to(&f.kind, &source.entity));
            refs.next().map(|f| BackPath::Field(f.name.as_str()))
        }
        Via::Key { field } => source.catalog.queries(&source.entity).find_map(|query| {
            let param = query.params.get(field).filter(|p| is_reference_to(&p.kind, &rows_entity.entity))?;
            Some(BackPath::Query(query, param.name.as_str()))
        }),
    }
}

//! `.^Entity`: against the direction of a declared relation.
//! Invariant: it stands on a declared relation; where the row holds the reference it is followed, otherwise a query asks for
//! whatever refers to the row.

use base::{Diagnostic, Edit, Span};
use catalog::{Capability, Param, Relation, Type, Via};

use super::correction::BraceSpan;
use super::{Checker, NodeId};
use crate::codes;
use crate::ir::{CapabilityRef, EntityRef, Expr, RowPart, StepKind};
use crate::scope::{ExposedEntity, NameStyle};
use crate::syntax::tree::{EntityName, Pred};

/// How a relation is followed backwards.
#[derive(Debug, Clone, Copy, PartialEq)]
enum BackPath<'s> {
    /// The row holds the reference in this field.
    Field(&'s str),
    /// A query with this parameter finds what refers to the row.
    Query(&'s Capability, &'s str),
}

impl<'s> Checker<'s> {
    pub(super) fn back(&mut self, input: NodeId, written: &EntityName, preds: &[Pred], span: Span) -> Option<NodeId> {
        let source = self.entity(written)?;
        let rows = self.rows(input).clone();
        let here = self.exposed_of(&rows).filter(|e| e.catalog.id == source.catalog.id);
        let back_paths = here.map(|here| back_paths(source, here)).unwrap_or_default();
        let [back_path] = back_paths.as_slice() else {
            self.report_no_back_path(here, source, &back_paths, (written, span));
            return None;
        };
        let here = here?;
        match *back_path {
            BackPath::Field(field) => {
                if !preds.is_empty() {
                    let message = "the row refers to it, so the API is not asked; filter with `.filter{…}` after it";
                    let fix = Edit::insert(written.span().end, ".filter");
                    self.report(Diagnostic::error(codes::FILTER_ON_ROWS, span, message).with_fix([fix]));
                    return None;
                }
                let target = self.entity_rows(&source.catalog, &source.entity, rows.many);
                Some(self.add_node(StepKind::Deref { input: input.0, field: field.into(), limit: None }, target))
            }
            BackPath::Query(capability, param) => {
                let params: Vec<&Param> = capability.params.values().filter(|p| p.name != param).collect();
                let braces = BraceSpan { head: written.span().end, end: span.end };
                let mut args = self.filters(source, &params, (preds, braces), NameStyle::of(&written.name.text))?;
                let missing: Vec<&Param> =
                    params.into_iter().filter(|p| p.required && !args.contains_key(p.name.as_str())).collect();
                if !missing.is_empty() {
                    let style = NameStyle::of(&written.name.text);
                    let slots = self.slot_samples(source, missing.iter().copied(), style);
                    self.report_missing_params(source, &missing, style, (span, braces.with_filters(preds, &slots)));
                    return None;
                }
                // In its arguments the row is the one it starts from.
                let own = matches!(self.checked_node(input).kind, StepKind::OuterRows { step: None });
                if !own && args.values().any(Expr::uses_row) {
                    let message = "inside `.^…{…}` there is no `_`; filter with `.filter{…}` after it";
                    self.error(codes::ROW_OUTSIDE, span, message);
                    return None;
                }
                let of = EntityRef { catalog: here.catalog.id.clone(), entity: here.entity.as_str().into() };
                args.insert(param.into(), Expr::Row(RowPart::Key(of)));
                let target = self.capability_rows(&source.catalog, capability, true);
                let call = CapabilityRef::new(&source.catalog, capability);
                Some(self.add_node(StepKind::QueryPerRow { input: input.0, call, args, limit: None }, target))
            }
        }
    }

    fn report_no_back_path(
        &mut self,
        here: Option<&ExposedEntity>,
        source: &ExposedEntity,
        back_paths: &[BackPath<'_>],
        (written, span): (&EntityName, Span),
    ) {
        let style = NameStyle::of(&written.name.text);
        let (from, to) = (here.map_or("these rows", |h| h.styled_name(style)), source.styled_name(style));
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

/// Every way from `here` back to `source`, each once; what the row holds itself comes before a query.
fn back_paths<'s>(source: &'s ExposedEntity, here: &'s ExposedEntity) -> Vec<BackPath<'s>> {
    let relations = source.definition().into_iter().flat_map(|e| e.relations.values());
    let mut found: Vec<BackPath<'s>> = Vec::new();
    for relation in relations.filter(|r| r.target == here.entity) {
        found.extend(back_path(source, here, relation).filter(|back_path| !found.contains(back_path)));
    }
    let held: Vec<BackPath<'s>> =
        found.iter().copied().filter(|back_path| matches!(back_path, BackPath::Field(_))).collect();
    if held.is_empty() { found } else { held }
}

fn back_path<'s>(source: &'s ExposedEntity, here: &'s ExposedEntity, relation: &'s Relation) -> Option<BackPath<'s>> {
    let refers = |kind: &Type, to: &str| matches!(kind, Type::Ref(target) if target == to);
    let held = |name: &str| {
        let field = here.definition()?.fields.get(name)?;
        refers(&field.kind, &source.entity).then_some(BackPath::Field(field.name.as_str()))
    };
    match &relation.via {
        Via::Call { fill, .. } => fill.keys().find_map(|param| held(param)),
        Via::Embedded { .. } => {
            let fields = here.definition()?.fields.values();
            let mut refs = fields.filter(|f| refers(&f.kind, &source.entity));
            refs.next().map(|f| BackPath::Field(f.name.as_str()))
        }
        Via::Key { field } => source.catalog.queries(&source.entity).find_map(|query| {
            let param = query.params.get(field).filter(|p| refers(&p.kind, &here.entity))?;
            Some(BackPath::Query(query, param.name.as_str()))
        }),
    }
}

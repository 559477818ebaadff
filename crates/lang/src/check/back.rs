//! `.^Entity`: against the direction of a declared relation.
//! Invariant: it stands on a declared relation; where the row holds the reference it is followed, otherwise a query asks for
//! whatever refers to the row.

use base::{Diagnostic, Edit, Span};
use catalog::{Capability, Param, Relation, Type, Via};

use super::hint::Braces;
use super::node::entity_span;
use super::source::{alphabet_of, called};
use super::{Cx, NodeId};
use crate::codes;
use crate::ir::{EntityOf, Expr, StepKind, Take};
use crate::scope::Exposed;
use crate::syntax::tree::{EntityName, Pred};

/// How a relation is followed backwards.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way<'s> {
    /// The row holds the reference in this field.
    Field(&'s str),
    /// A query with this parameter finds what refers to the row.
    Query(&'s Capability, &'s str),
}

impl<'s> Cx<'s> {
    pub(super) fn back(&mut self, input: NodeId, written: &EntityName, preds: &[Pred], span: Span) -> Option<NodeId> {
        let source = self.entity(written)?;
        let rows = self.rows(input).clone();
        let here = self.exposed_of(&rows).filter(|e| e.catalog.id == source.catalog.id);
        let ways = here.map(|here| ways(source, here)).unwrap_or_default();
        let [way] = ways.as_slice() else {
            self.no_way(here, source, &ways, (written, span));
            return None;
        };
        let here = here?;
        match *way {
            Way::Field(field) => {
                if !preds.is_empty() {
                    let message = "the row refers to it, so the API is not asked; filter with `.filter{…}` after it";
                    let fix = Edit::insert(entity_span(written).end, ".filter");
                    self.report(Diagnostic::error(codes::FILTER_ON_ROWS, span, message).with_fix([fix]));
                    return None;
                }
                let target = self.rows_of(&source.catalog, &source.entity, rows.many);
                Some(self.push(StepKind::Deref { input: input.0, field: field.into(), limit: None }, target))
            }
            Way::Query(capability, param) => {
                let params: Vec<&Param> = capability.params.values().filter(|p| p.name != param).collect();
                let braces = Braces { head: entity_span(written).end, end: span.end };
                let mut args = self.filters(source, &params, (preds, braces), alphabet_of(written))?;
                let missing: Vec<&Param> =
                    params.into_iter().filter(|p| p.required && !args.contains_key(p.name.as_str())).collect();
                if !missing.is_empty() {
                    let alphabet = alphabet_of(written);
                    let slots = self.slot_samples(source, missing.iter().copied(), alphabet);
                    self.missing(source, &missing, alphabet, (span, braces.with(preds, &slots)));
                    return None;
                }
                // In its arguments the row is the one it starts from.
                let own = matches!(self.at(input).kind, StepKind::Given { step: None });
                if !own && args.values().any(Expr::of_row) {
                    let message = "inside `.^…{…}` there is no `_`; filter with `.filter{…}` after it";
                    self.error(codes::ROW_OUTSIDE, span, message);
                    return None;
                }
                let of = EntityOf { catalog: here.catalog.id.clone(), entity: here.entity.as_str().into() };
                args.insert(param.into(), Expr::Row(Take::Key(of)));
                let target = self.answered(&source.catalog, capability, true);
                let call = called(source, capability);
                Some(self.push(StepKind::Each { input: input.0, call, args, limit: None }, target))
            }
        }
    }

    fn no_way(
        &mut self,
        here: Option<&Exposed>,
        source: &Exposed,
        ways: &[Way<'_>],
        (written, span): (&EntityName, Span),
    ) {
        let alphabet = alphabet_of(written);
        let (from, to) = (here.map_or("these rows", |h| h.name_in(alphabet)), source.name_in(alphabet));
        let message = if ways.is_empty() {
            format!("no relation of {to} leads to {from} that can be followed backwards")
        } else {
            format!("several relations of {to} lead to {from}; ask for the one that is meant")
        };
        let lines = ways.iter().map(|way| match way {
            Way::Field(field) => format!(".{}", self.scope.slot_in(&source.catalog, field, alphabet)),
            Way::Query(_, param) => format!("{to}{{{}=…}}", self.scope.slot_in(&source.catalog, param, alphabet)),
        });
        let alternatives: Vec<String> = lines.collect();
        self.report(Diagnostic::error(codes::NO_WAY_BACK, span, message).with_alternatives(alternatives));
    }
}

/// Every way from `here` back to `source`, each once; what the row holds itself comes before a query.
fn ways<'s>(source: &'s Exposed, here: &'s Exposed) -> Vec<Way<'s>> {
    let relations = source.definition().into_iter().flat_map(|e| e.relations.values());
    let mut found: Vec<Way<'s>> = Vec::new();
    for relation in relations.filter(|r| r.target == here.entity) {
        found.extend(way_of(source, here, relation).filter(|way| !found.contains(way)));
    }
    let held: Vec<Way<'s>> = found.iter().copied().filter(|way| matches!(way, Way::Field(_))).collect();
    if held.is_empty() { found } else { held }
}

fn way_of<'s>(source: &'s Exposed, here: &'s Exposed, relation: &'s Relation) -> Option<Way<'s>> {
    let refers = |kind: &Type, to: &str| matches!(kind, Type::Ref(target) if target == to);
    let held = |name: &str| {
        let field = here.definition()?.fields.get(name)?;
        refers(&field.kind, &source.entity).then_some(Way::Field(field.name.as_str()))
    };
    match &relation.via {
        Via::Call { fill, .. } => fill.keys().find_map(|param| held(param)),
        Via::Embedded { .. } => {
            let fields = here.definition()?.fields.values();
            let mut refs = fields.filter(|f| refers(&f.kind, &source.entity));
            refs.next().map(|f| Way::Field(f.name.as_str()))
        }
        Via::Key { field } => source.catalog.queries(&source.entity).find_map(|query| {
            let param = query.params.get(field).filter(|p| refers(&p.kind, &here.entity))?;
            Some(Way::Query(query, param.name.as_str()))
        }),
    }
}

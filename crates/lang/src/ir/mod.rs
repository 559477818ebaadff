//! The plan's form between the stages: steps and values, which the checker writes and the planner bounds.
//! Invariant: it says what is done and where each value comes from; what it may cost, and in which order, the planner adds.

pub(crate) mod describe;
mod jinja;
mod step;
mod step_hash;

use catalog::{Entity, Relation, Via};

pub(crate) use describe::{describe_aggregations, describe_value};
pub(crate) use jinja::template_names;
pub use step::{
    Aggregation, Args, CapabilityRef, Column, ComparisonOp, EntityRef, Expr, FilterTest, Function, NamedPath, Path,
    RowPart, Shape, Step, StepDescription, StepKind,
};
pub(crate) use step_hash::step_hash;

/// The fields of the parent that a relation starts from; of an embedded one, the relation itself.
pub(crate) fn relation_needs<'c>(entity: Option<&'c Entity>, relation: &'c Relation) -> impl Iterator<Item = &'c str> {
    let (own, fill) = match &relation.via {
        Via::Key { field } => (Some(field), None),
        Via::Embedded { .. } => (Some(&relation.name), None),
        Via::Call { fill, .. } => (None, Some(fill)),
    };
    // A parameter that is filled from no field is filled from the whole key.
    let whole = fill.is_some_and(|fill| fill.values().any(Option::is_none));
    let key = entity.filter(|_| whole).map(|e| e.key.as_slice()).unwrap_or_default();
    own.into_iter()
        .chain(fill.into_iter().flat_map(|fill| fill.values().flatten()))
        .chain(key)
        .map(|name| name.as_str())
}

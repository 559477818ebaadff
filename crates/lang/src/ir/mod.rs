//! The intermediate representation: the steps and values that the checker makes and the planner completes.
//! Invariant: a step names its operation and the source of each value. The planner adds the cost and the order.

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

/// Lists the fields of the parent row that a relation needs. An embedded relation needs the field that contains its
/// rows.
pub(crate) fn fields_needed_by_relation<'c>(
    entity: Option<&'c Entity>,
    relation: &'c Relation,
) -> impl Iterator<Item = &'c str> {
    let (own_field, fill) = match &relation.via {
        Via::Key { field } => (Some(field), None),
        Via::Embedded { .. } => (Some(&relation.name), None),
        Via::Call { fill, .. } => (None, Some(fill)),
    };
    // A parameter without a named field is filled from the whole key of the parent.
    let needs_key = fill.is_some_and(|fill| fill.values().any(Option::is_none));
    let key = entity.filter(|_| needs_key).map(|e| e.key.as_slice()).unwrap_or_default();
    own_field
        .into_iter()
        .chain(fill.into_iter().flat_map(|fill| fill.values().flatten()))
        .chain(key)
        .map(|name| name.as_str())
}

//! The plan's form between the stages: steps and values, which the checker writes and the planner bounds.
//! Invariant: it says what is done and where each value comes from; what it may cost, and in which order, the planner adds.

mod expr;
mod jinja;
pub(crate) mod show;
mod step;

use catalog::{Entity, Relation, Via};

pub use expr::{Args, Expr, Path, Take};
pub(crate) use jinja::chains;
pub(crate) use show::{shown, specs};
pub use step::{Called, Column, EntityOf, Function, NamedPath, Says, Shape, Spec, Step, StepKind, Test, TestOp};

/// The fields of the parent that a relation starts from; of an embedded one, the relation itself.
pub(crate) fn relation_needs(entity: Option<&Entity>, relation: &Relation) -> Vec<String> {
    match &relation.via {
        Via::Key { field } => vec![field.clone()],
        Via::Embedded { .. } => vec![relation.name.clone()],
        Via::Call { fill, .. } => {
            let key = entity.map(|e| e.key.clone()).unwrap_or_default();
            let whole = if fill.values().any(Option::is_none) { key } else { Vec::new() };
            fill.values().flatten().cloned().chain(whole).collect()
        }
    }
}

//! The input of planning (catalogs, limits and nodes), and the questions about calls that the catalogs answer.
//! Invariant: nothing in this file changes a step.

use std::sync::Arc;

use base::Limits;
use catalog::{Capability, Catalog, Transport, Via};
use smol_str::SmolStr;

use super::{Column, EntityRef, PinnedCatalogs, Shape, Step, StepDescription, StepKind};
use crate::check::CheckedNode;

/// The catalogs and limits with which one program is planned.
#[derive(Clone, Copy)]
pub(super) struct PlanContext<'a> {
    pub catalogs: &'a PinnedCatalogs,
    pub limits: &'a Limits,
}

/// A node before it is planned: a node of the checker, or a step of a read for each row. The view borrows, because the
/// step of the plan is the only copy that planning makes.
pub(super) struct NodeView<'a> {
    /// The operation, which refers to other nodes by their numbers.
    pub kind: &'a StepKind,
    /// The fields below are those of [`Step`].
    pub of: Option<EntityRef>,
    pub columns: &'a Arc<Vec<Column>>,
    pub shape: Shape,
    /// The effect that must end before this node starts, as the number of its node.
    pub after: Option<usize>,
    pub label: Option<&'a SmolStr>,
    pub description: Option<&'a StepDescription>,
}

impl<'a> From<&'a CheckedNode> for NodeView<'a> {
    fn from(node: &'a CheckedNode) -> Self {
        NodeView {
            kind: &node.kind,
            of: node.rows.entity_of(),
            columns: &node.rows.columns,
            shape: node.shape(),
            after: node.after.map(|effect| effect.0),
            label: node.label.as_ref(),
            description: node.description.as_ref(),
        }
    }
}

impl<'a> From<&'a Step> for NodeView<'a> {
    fn from(step: &'a Step) -> Self {
        NodeView {
            kind: &step.kind,
            of: step.of.clone(),
            columns: &step.columns,
            shape: step.shape,
            after: step.after,
            label: step.label.as_ref(),
            description: step.description.as_ref(),
        }
    }
}

/// Finds the capability that a step calls. `parent` gives the entity of an earlier step.
pub(super) fn capability_of<'c, 's>(
    kind: &StepKind,
    parent: impl Fn(usize) -> Option<&'s EntityRef>,
    catalog: &'c Catalog,
) -> Option<&'c Capability> {
    match kind {
        StepKind::Query { call, .. }
        | StepKind::Get { call, .. }
        | StepKind::QueryPerRow { call, .. }
        | StepKind::Effect { call, .. } => catalog.capability(&call.capability),
        StepKind::Follow { .. } => match relation_via(kind, parent, Some(catalog))? {
            Via::Call { capability, .. } => catalog.capability(capability),
            Via::Key { .. } | Via::Embedded { .. } => None,
        },
        _ => None,
    }
}

/// Returns whether a call can ask for some of the fields only.
pub(super) fn can_select_fields(capability: &Capability) -> bool {
    matches!(capability.transport, Transport::Graphql(_))
}

/// Returns a function that gives the entity of the rows of a step by its number.
pub(super) fn entity_of<'s>(steps: &'s [Step]) -> impl Fn(usize) -> Option<&'s EntityRef> {
    |at| steps.get(at)?.of.as_ref()
}

/// Finds how the relation that a step follows is read.
pub(super) fn relation_via<'c, 's>(
    kind: &StepKind,
    parent: impl Fn(usize) -> Option<&'s EntityRef>,
    catalog: Option<&'c Catalog>,
) -> Option<&'c Via> {
    let StepKind::Follow { input, relation, .. } = kind else { return None };
    let parent = parent(*input)?;
    catalog?.entity(&parent.entity)?.relations.get(relation.as_str()).map(|r| &r.via)
}

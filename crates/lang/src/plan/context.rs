//! The input of planning (catalogs, limits and nodes), and lookups of the capabilities and relations of steps.
//! Invariant: nothing in this file changes a step.

use std::sync::Arc;

use base::Limits;
use catalog::{Capability, Catalog, Transport, Via};
use smol_str::SmolStr;

use super::{Column, EntityRef, PinnedCatalogs, Shape, Step, StepDescription, StepKind};
use crate::check::CheckedNode;

/// The catalogs and limits that one program is planned with.
#[derive(Clone, Copy)]
pub(super) struct PlanContext<'a> {
    pub catalogs: &'a PinnedCatalogs,
    pub limits: &'a Limits,
}

/// A node that has not been planned: a node of the checker, or a step of a read per row. It borrows, so that planning
/// copies each operation only once.
pub(super) struct NodeView<'a> {
    /// The operation. It refers to other nodes by their numbers.
    pub kind: &'a StepKind,
    /// The entity of the rows. This field and those below are the fields of [`Step`] with the same names.
    pub of: Option<EntityRef>,
    pub columns: &'a Arc<Vec<Column>>,
    pub shape: Shape,
    /// The number of the effect node that must end before this node starts.
    pub after: Option<usize>,
    pub label: Option<&'a SmolStr>,
    pub description: Option<&'a StepDescription>,
}

impl<'a> From<&'a CheckedNode> for NodeView<'a> {
    fn from(node: &'a CheckedNode) -> Self {
        NodeView {
            kind: &node.kind,
            of: node.rows.entity_ref(),
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

/// Finds the capability that a step calls. `parent` returns the entity of an earlier step.
pub(super) fn find_capability<'c, 's>(
    kind: &StepKind,
    parent: impl Fn(usize) -> Option<&'s EntityRef>,
    catalog: &'c Catalog,
) -> Option<&'c Capability> {
    match kind {
        StepKind::Query { call, .. }
        | StepKind::Get { call, .. }
        | StepKind::QueryPerRow { call, .. }
        | StepKind::Effect { call, .. } => catalog.capability(&call.capability),
        StepKind::Follow { .. } => match find_relation_via(kind, parent, Some(catalog))? {
            Via::Call { capability, .. } => catalog.capability(capability),
            Via::Key { .. } | Via::Embedded { .. } => None,
        },
        _ => None,
    }
}

/// Returns whether a call of the capability can request only some of the fields.
pub(super) fn can_select_fields(capability: &Capability) -> bool {
    matches!(capability.transport, Transport::Graphql(_))
}

/// Returns a function that looks up the entity of a step's rows by the number of the step.
pub(super) fn entity_lookup<'s>(steps: &'s [Step]) -> impl Fn(usize) -> Option<&'s EntityRef> {
    |at| steps.get(at)?.of.as_ref()
}

/// Finds out how the API reads the relation that a step follows.
pub(super) fn find_relation_via<'c, 's>(
    kind: &StepKind,
    parent: impl Fn(usize) -> Option<&'s EntityRef>,
    catalog: Option<&'c Catalog>,
) -> Option<&'c Via> {
    let StepKind::Follow { input, relation, .. } = kind else { return None };
    let parent = parent(*input)?;
    catalog?.entity(&parent.entity)?.relations.get(relation.as_str()).map(|r| &r.via)
}

//! A node before it is planned, as the checker left it or as a step of a read for a row.
//! Invariant: it borrows; a plan's step is the only copy that planning makes.

use std::sync::Arc;

use smol_str::SmolStr;

use super::{Column, EntityOf, Says, Shape, Step, StepKind};
use crate::check::CheckedNode;

pub(super) struct Raw<'a> {
    pub kind: &'a StepKind,
    pub of: Option<EntityOf>,
    pub columns: &'a Arc<Vec<Column>>,
    pub shape: Shape,
    pub after: Option<usize>,
    pub label: Option<&'a SmolStr>,
    pub says: Option<&'a Says>,
}

impl<'a> From<&'a CheckedNode> for Raw<'a> {
    fn from(node: &'a CheckedNode) -> Self {
        Raw {
            kind: &node.kind,
            of: node.rows.entity_of(),
            columns: &node.rows.columns,
            shape: node.shape(),
            after: node.after.map(|effect| effect.0),
            label: node.label.as_ref(),
            says: node.says.as_ref(),
        }
    }
}

impl<'a> From<&'a Step> for Raw<'a> {
    fn from(step: &'a Step) -> Self {
        Raw {
            kind: &step.kind,
            of: step.of.clone(),
            columns: &step.columns,
            shape: step.shape,
            after: step.after,
            label: step.label.as_ref(),
            says: step.says.as_ref(),
        }
    }
}

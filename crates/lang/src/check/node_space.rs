//! Keeps the checked nodes in spaces: one space for the program, and one for each read per row while it is checked.
//! Invariant: a node id is valid in one space only. A node of another space is imported as `OuterRows`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use catalog::{Capability, Catalog};

use super::path::Attachment;
use super::{CheckedNode, Checker, NodeId, RowScope, RowType};
use crate::ir::{Step, StepDescription, StepKind, step_hash};

/// The nodes of the program, or of one read per row.
#[derive(Debug, Default)]
pub(super) struct NodeSpace {
    /// The nodes, indexed by node id.
    pub nodes: Vec<CheckedNode>,
    /// The node for each pair of operation hash and preceding effect. It finds reads that the program writes twice.
    node_of_operation: HashMap<(u64, Option<NodeId>), NodeId>,
}

impl Checker<'_> {
    /// Returns the type of complete rows of an entity. The columns are computed once for each program.
    pub(super) fn row_type_of_entity(&mut self, catalog: &Arc<Catalog>, entity: &str, many: bool) -> RowType {
        let is_same = |rows: &&RowType| {
            rows.entity.as_ref().is_some_and(|known| known.catalog.id == catalog.id && known.entity == entity)
        };
        // The search starts at the end, because the next use is most likely of the entity that was used last.
        if let Some(rows) = self.row_types.iter().rev().find(is_same) {
            return RowType { many, ..rows.clone() };
        }
        let rows = RowType::rows_of_entity(catalog, entity, many);
        self.row_types.push(rows.clone());
        rows
    }

    /// Returns the type of the rows that a capability returns.
    pub(super) fn row_type_of_capability(
        &mut self,
        catalog: &Arc<Catalog>,
        capability: &Capability,
        many: bool,
    ) -> RowType {
        if !capability.gives_rows() {
            return RowType::computed_rows(Vec::new(), many);
        }
        self.row_type_of_entity(catalog, &capability.returns, many).limited_to_capability(catalog, capability)
    }

    /// Returns the index of the space that new nodes are added to.
    pub(super) fn current_space(&self) -> usize {
        self.spaces.len().saturating_sub(1)
    }

    pub(super) fn nodes_mut(&mut self) -> &mut Vec<CheckedNode> {
        let current = self.current_space();
        &mut self.spaces[current].nodes
    }

    /// Returns a node of the current space.
    pub(super) fn checked_node(&self, node: NodeId) -> &CheckedNode {
        &self.spaces[self.current_space()].nodes[node.0]
    }

    /// Returns the type of the rows of a node of the current space.
    pub(super) fn rows(&self, node: NodeId) -> &RowType {
        &self.checked_node(node).rows
    }

    /// Adds a node, or returns the equal node that exists. A read that is written twice is therefore done once. Two
    /// reads with an effect of their catalog between them are not equal.
    pub(super) fn add_node(&mut self, kind: StepKind, rows: RowType) -> NodeId {
        let current = self.current_space();
        self.add_node_in(current, kind, rows)
    }

    /// Adds a node to a space. A node inside a read per row waits for no effect itself, because the step that contains
    /// the read waits.
    pub(super) fn add_node_in(&mut self, space: usize, kind: StepKind, rows: RowType) -> NodeId {
        let effect = if kind.calls_api() { self.find_preceding_effect(&kind, &rows) } else { None };
        let after = effect.filter(|_| space == 0);
        // The row type is not part of the key, because the operation and its input nodes determine it.
        let operation_key = (step_hash(&kind), after);
        let space = &mut self.spaces[space];
        let next = NodeId(space.nodes.len());
        match space.node_of_operation.entry(operation_key) {
            Entry::Occupied(same) if space.nodes[same.get().0].kind == kind => return *same.get(),
            // Two operations have the same hash but are different. The second gets a node that the map does not
            // contain, so an equal third one is not merged with it.
            Entry::Occupied(_) => {}
            Entry::Vacant(free) => {
                free.insert(next);
            }
        }
        space.nodes.push(CheckedNode { kind, rows, after, description: None, label: None });
        next
    }

    /// Returns the last effect that a read must wait for.
    fn find_preceding_effect(&self, kind: &StepKind, rows: &RowType) -> Option<NodeId> {
        match (kind, rows.catalog()) {
            (StepKind::Derive { .. } | StepKind::Page { .. }, _) | (_, None) => self.last_effect,
            (_, Some(catalog)) => self.last_effect_of.get(&catalog.id).copied(),
        }
    }

    /// Adds an effect. Effects are never merged, and each effect waits for the one before it.
    pub(super) fn add_effect(&mut self, kind: StepKind, rows: RowType, description: StepDescription) -> NodeId {
        let catalog = match &kind {
            StepKind::Effect { call, .. } => Some(call.catalog.clone()),
            _ => None,
        };
        let after = self.last_effect;
        let nodes = self.nodes_mut();
        let node = NodeId(nodes.len());
        nodes.push(CheckedNode { kind, rows, after, description: Some(description), label: None });
        self.last_effect = Some(node);
        self.last_effect_of.extend(catalog.map(|catalog| (catalog, node)));
        node
    }

    /// Adds nodes that attach rows to the rows of `input`. Returns the last of them, whose rows include the
    /// attachments.
    pub(super) fn attach_to_rows(&mut self, input: NodeId, attachments: &[Attachment]) -> NodeId {
        self.attach_in_space(self.current_space(), input, attachments)
    }

    /// Attaches rows to the rows of a `=>`. Afterwards `_` includes the attached rows.
    pub(super) fn attach_to_row(&mut self, row: RowScope, attachments: &[Attachment]) {
        let input = self.attach_in_space(row.space, row.input, attachments);
        if let Some(innermost) = self.row_scopes.last_mut() {
            innermost.input = input;
        }
    }

    /// Returns the type of the row that `_` means in a scope.
    pub(super) fn row_type_of(&self, row: RowScope) -> RowType {
        self.spaces[row.space].nodes[row.input.0].rows.clone().single_row()
    }

    /// Adds nodes to a space that attach rows to the rows of `input`. Attachments that exist are not repeated.
    fn attach_in_space(&mut self, space: usize, input: NodeId, attachments: &[Attachment]) -> NodeId {
        let mut at = input;
        for Attachment { field, entity } in attachments {
            let mut rows = self.spaces[space].nodes[at.0].rows.clone();
            if rows.attached.contains(field) {
                continue;
            }
            rows.attached.push(field.clone());
            let kind = StepKind::Attach { input: at.0, field: field.clone(), entity: entity.clone() };
            at = self.add_node_in(space, kind, rows);
        }
        at
    }

    /// Makes a node of the program usable in the current space.
    pub(super) fn import_node(&mut self, node: NodeId) -> NodeId {
        let rows = self.spaces[0].nodes[node.0].rows.clone();
        let mut at = node;
        for space in 1..self.spaces.len() {
            at = self.add_node_in(space, StepKind::OuterRows { step: Some(at.0) }, rows.clone());
        }
        at
    }

    /// Runs a check in a new space. Returns the result of the check and the steps that it made.
    pub(super) fn check_in_new_space<T>(
        &mut self,
        check: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<(T, Vec<Step>)> {
        self.spaces.push(NodeSpace::default());
        let result = check(self);
        let space = self.spaces.pop().unwrap_or_default();
        Some((result?, space.nodes.iter().map(CheckedNode::to_step).collect()))
    }

    /// Returns whether an effect is allowed here. Effects are refused inside values.
    pub(super) fn effects_allowed(&self) -> bool {
        self.spaces.len() == 1 && self.value_depth == 0
    }
}

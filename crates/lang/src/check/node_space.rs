//! Holds the nodes: those of the program, and a list of their own for each read for each row while it is checked.
//! Invariant: the number of a node belongs to one space. A node of another space is imported as `OuterRows`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use catalog::{Capability, Catalog};

use super::path::Attachment;
use super::{CheckedNode, Checker, NodeId, RowScope, RowType};
use crate::ir::{Step, StepDescription, StepKind, step_hash};

/// The nodes of the program, or of one read for each row.
#[derive(Debug, Default)]
pub(super) struct NodeSpace {
    /// The nodes, by their numbers.
    pub nodes: Vec<CheckedNode>,
    /// The node of each hash, and of the effect that the node comes after. It finds reads that are written twice.
    known: HashMap<(u64, Option<NodeId>), NodeId>,
}

impl Checker<'_> {
    /// Returns the type of whole rows of an entity. Its columns are computed once for a program.
    pub(super) fn entity_rows(&mut self, catalog: &Arc<Catalog>, entity: &str, many: bool) -> RowType {
        let is_same = |rows: &&RowType| {
            rows.entity.as_ref().is_some_and(|known| known.catalog.id == catalog.id && known.entity == entity)
        };
        // The entity that was named last is the most likely one.
        if let Some(rows) = self.row_types.iter().rev().find(is_same) {
            return RowType { many, ..rows.clone() };
        }
        let rows = RowType::entity_rows(catalog, entity, many);
        self.row_types.push(rows.clone());
        rows
    }

    /// Returns the type of the rows that a capability answers.
    pub(super) fn capability_rows(&mut self, catalog: &Arc<Catalog>, capability: &Capability, many: bool) -> RowType {
        if !capability.gives_rows() {
            return RowType::computed(Vec::new(), many);
        }
        self.entity_rows(catalog, &capability.returns, many).limited_to_capability(catalog, capability)
    }

    /// Returns the number of the space whose nodes are being made.
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

    /// Adds a node, or returns the equal node that exists. So it does not matter whether a program names a read or
    /// writes it twice. A read that was written after an effect of its catalog is not equal to one before the effect.
    pub(super) fn add_node(&mut self, kind: StepKind, rows: RowType) -> NodeId {
        let current = self.current_space();
        self.add_node_in(current, kind, rows)
    }

    /// Adds a node to a space. Inside of a read for each row nothing waits for effects, because the step that holds the
    /// read does.
    pub(super) fn add_node_in(&mut self, space: usize, kind: StepKind, rows: RowType) -> NodeId {
        let effect = if kind.calls_api() { self.preceding_effect(&kind, &rows) } else { None };
        let after = effect.filter(|_| space == 0);
        // The type of the rows is not part of the key, because it follows from the kind and the nodes that it refers
        // to.
        let meaning = (step_hash(&kind), after);
        let space = &mut self.spaces[space];
        let next = NodeId(space.nodes.len());
        match space.known.entry(meaning) {
            Entry::Occupied(same) if space.nodes[same.get().0].kind == kind => return *same.get(),
            // A node with the same hash that is not equal: the second one stays a node of its own and is not found
            // again.
            Entry::Occupied(_) => {}
            Entry::Vacant(free) => {
                free.insert(next);
            }
        }
        space.nodes.push(CheckedNode { kind, rows, after, description: None, label: None });
        next
    }

    /// Returns the last effect that a read must come after.
    fn preceding_effect(&self, kind: &StepKind, rows: &RowType) -> Option<NodeId> {
        match (kind, rows.catalog()) {
            (StepKind::Derive { .. } | StepKind::Page { .. }, _) | (_, None) => self.last_effect,
            (_, Some(catalog)) => self.last_effect_of.get(&catalog.id).copied(),
        }
    }

    /// Adds an effect. Effects are never merged, and each comes after the one before it.
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

    /// Adds nodes that attach rows to the rows of a node of the current space. Returns the node with the attachments.
    pub(super) fn attach(&mut self, input: NodeId, attachments: &[Attachment]) -> NodeId {
        self.attach_in(self.current_space(), input, attachments)
    }

    /// Attaches rows to the rows of a `=>`. From then on, `_` means the rows with the attachments.
    pub(super) fn attach_to_row(&mut self, row: RowScope, attachments: &[Attachment]) {
        let input = self.attach_in(row.space, row.input, attachments);
        if let Some(innermost) = self.row_scopes.last_mut() {
            innermost.input = input;
        }
    }

    /// Returns the type of the row of a `=>`.
    pub(super) fn row_type_of(&self, row: RowScope) -> RowType {
        self.spaces[row.space].nodes[row.input.0].rows.clone().single_row()
    }

    fn attach_in(&mut self, space: usize, input: NodeId, attachments: &[Attachment]) -> NodeId {
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

    /// Checks something in a space of its own. Returns the result of the check and the steps that it made.
    pub(super) fn in_new_space<T>(&mut self, check: impl FnOnce(&mut Self) -> Option<T>) -> Option<(T, Vec<Step>)> {
        self.spaces.push(NodeSpace::default());
        let result = check(self);
        let space = self.spaces.pop().unwrap_or_default();
        Some((result?, space.nodes.iter().map(CheckedNode::step).collect()))
    }

    /// Returns whether an effect may stand here: not inside of a value.
    pub(super) fn effects_allowed(&self) -> bool {
        self.spaces.len() == 1 && self.value_depth == 0
    }
}

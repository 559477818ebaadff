//! Where nodes are kept: the program's own, and one list for each read for a row while it is checked.
//! Invariant: a node's number belongs to one space; what another space has is brought over as `Given`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use base::CatalogId;
use catalog::{Capability, Catalog};
use smol_str::SmolStr;

use super::{CheckedNode, Checker, NodeId, RowType};
use crate::ir::{EntityRef, Path, Step, StepDescription, StepKind, step_hash};

#[derive(Debug, Default)]
pub(super) struct NodeSpace {
    pub nodes: Vec<CheckedNode>,
    /// By the mark of what they mean, and the effect they come after.
    known: HashMap<(u64, Option<NodeId>), NodeId>,
}

impl Checker<'_> {
    /// Whole rows of an entity; its columns are made once for a program.
    pub(super) fn entity_rows(&mut self, catalog: &Arc<Catalog>, entity: &str, many: bool) -> RowType {
        let same = |(known, name, _): &&(CatalogId, SmolStr, RowType)| *known == catalog.id && name == entity;
        if let Some((.., rows)) = self.row_types.iter().rev().find(same) {
            return RowType { many, ..rows.clone() };
        }
        let rows = RowType::entity_rows(catalog, entity, many);
        self.row_types.push((catalog.id.clone(), entity.into(), rows.clone()));
        rows
    }

    /// Rows as a capability answers them.
    pub(super) fn capability_rows(&mut self, catalog: &Arc<Catalog>, capability: &Capability, many: bool) -> RowType {
        if !capability.gives_rows() {
            return RowType::computed(Vec::new(), many);
        }
        self.entity_rows(catalog, &capability.returns, many).limited_to_capability(catalog, capability)
    }

    /// The number of the space that is being written.
    pub(super) fn current_space(&self) -> usize {
        self.spaces.len().saturating_sub(1)
    }

    pub(super) fn nodes_mut(&mut self) -> &mut Vec<CheckedNode> {
        let here = self.current_space();
        &mut self.spaces[here].nodes
    }

    pub(super) fn checked_node(&self, node: NodeId) -> &CheckedNode {
        &self.spaces[self.current_space()].nodes[node.0]
    }

    pub(super) fn rows(&self, node: NodeId) -> &RowType {
        &self.checked_node(node).rows
    }

    /// Equal reads are one node, so that it does not matter whether a program names a read or writes it twice. A read that
    /// was written after an effect of its catalog is not equal to one before it.
    pub(super) fn add_node(&mut self, kind: StepKind, rows: RowType) -> NodeId {
        let here = self.current_space();
        self.add_node_in(here, kind, rows)
    }

    pub(super) fn add_node_in(&mut self, space: usize, kind: StepKind, rows: RowType) -> NodeId {
        let catalogs = if kind.calls_api() { self.preceding_effect(&kind, &rows) } else { None };
        let after = catalogs.filter(|_| space == 0);
        // What the rows are follows from the kind and from what it names.
        let meaning = (step_hash(&kind), after);
        let space = &mut self.spaces[space];
        let next = NodeId(space.nodes.len());
        match space.known.entry(meaning) {
            Entry::Occupied(same) if space.nodes[same.get().0].kind == kind => return *same.get(),
            // Two that are not equal and have one mark: the second is a node of its own, as it should be.
            Entry::Occupied(_) => {}
            Entry::Vacant(free) => {
                free.insert(next);
            }
        }
        space.nodes.push(CheckedNode { kind, rows, after, description: None, label: None });
        next
    }

    /// The last effect that a read must not come before.
    fn preceding_effect(&self, kind: &StepKind, rows: &RowType) -> Option<NodeId> {
        match (kind, rows.catalog()) {
            (StepKind::Derive { .. } | StepKind::Page { .. }, _) | (_, None) => self.last_effect,
            (_, Some(ref_catalog)) => self.last_effect_of.get(&ref_catalog.id).copied(),
        }
    }

    /// Effects are never merged, and each comes after the one before it.
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

    /// The rows with the entities that these references refer to beside them.
    pub(super) fn attach(&mut self, space: usize, input: NodeId, wanted: &[(Path, EntityRef)]) -> NodeId {
        let mut at = input;
        for (field, entity) in wanted {
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

    /// A node of the program in the space that is being written.
    pub(super) fn import_node(&mut self, node: NodeId) -> NodeId {
        let rows = self.spaces[0].nodes[node.0].rows.clone();
        let mut at = node;
        for space in 1..self.spaces.len() {
            at = self.add_node_in(space, StepKind::OuterRows { step: Some(at.0) }, rows.clone());
        }
        at
    }

    /// Checks something in a space of its own; gives what it gave and the steps it made.
    pub(super) fn in_new_space<T>(&mut self, check: impl FnOnce(&mut Self) -> Option<T>) -> Option<(T, Vec<Step>)> {
        self.spaces.push(NodeSpace::default());
        let found = check(self);
        let space = self.spaces.pop().unwrap_or_default();
        Some((found?, space.nodes.iter().map(CheckedNode::step).collect()))
    }

    /// Whether effects may stand here: not inside a value.
    pub(super) fn effects_allowed(&self) -> bool {
        self.spaces.len() == 1 && self.value_depth == 0
    }
}

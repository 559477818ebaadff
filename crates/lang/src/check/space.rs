//! Where nodes are kept: the program's own, and one list for each read for a row while it is checked.
//! Invariant: a node's number belongs to one space; what another space has is brought over as `Given`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use base::CatalogId;
use catalog::{Capability, Catalog};
use smol_str::SmolStr;

use super::{CheckedNode, Cx, NodeId, RowType};
use crate::ir::{EntityOf, Path, Says, Step, StepKind, mark};

#[derive(Debug, Default)]
pub(super) struct Space {
    pub nodes: Vec<CheckedNode>,
    /// By the mark of what they mean, and the effect they come after.
    known: HashMap<(u64, Option<NodeId>), NodeId>,
}

impl Cx<'_> {
    /// Whole rows of an entity; its columns are made once for a program.
    pub(super) fn rows_of(&mut self, catalog: &Arc<Catalog>, entity: &str, many: bool) -> RowType {
        let same = |(known, name, _): &&(CatalogId, SmolStr, RowType)| *known == catalog.id && name == entity;
        if let Some((.., rows)) = self.tables.iter().rev().find(same) {
            return RowType { many, ..rows.clone() };
        }
        let rows = RowType::of(catalog, entity, many);
        self.tables.push((catalog.id.clone(), entity.into(), rows.clone()));
        rows
    }

    /// Rows as a capability answers them.
    pub(super) fn answered(&mut self, catalog: &Arc<Catalog>, capability: &Capability, many: bool) -> RowType {
        if !capability.gives_rows() {
            return RowType::made(Vec::new(), many);
        }
        self.rows_of(catalog, &capability.returns, many).given_by(catalog, capability)
    }

    /// The number of the space that is being written.
    pub(super) fn here(&self) -> usize {
        self.spaces.len().saturating_sub(1)
    }

    pub(super) fn nodes_mut(&mut self) -> &mut Vec<CheckedNode> {
        let here = self.here();
        &mut self.spaces[here].nodes
    }

    pub(super) fn at(&self, node: NodeId) -> &CheckedNode {
        &self.spaces[self.here()].nodes[node.0]
    }

    pub(super) fn rows(&self, node: NodeId) -> &RowType {
        &self.at(node).rows
    }

    /// Equal reads are one node, so that it does not matter whether a program names a read or writes it twice. A read that
    /// was written after an effect of its catalog is not equal to one before it.
    pub(super) fn push(&mut self, kind: StepKind, rows: RowType) -> NodeId {
        let here = self.here();
        self.push_in(here, kind, rows)
    }

    pub(super) fn push_in(&mut self, space: usize, kind: StepKind, rows: RowType) -> NodeId {
        let catalogs = if kind.calls_api() { self.read_of(&kind, &rows) } else { None };
        let after = catalogs.filter(|_| space == 0);
        // What the rows are follows from the kind and from what it names.
        let meaning = (mark(&kind), after);
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
        space.nodes.push(CheckedNode { kind, rows, after, says: None, label: None });
        next
    }

    /// The last effect that a read must not come before.
    fn read_of(&self, kind: &StepKind, rows: &RowType) -> Option<NodeId> {
        match (kind, rows.home()) {
            (StepKind::Derive { .. } | StepKind::Page { .. }, _) | (_, None) => self.last_effect,
            (_, Some(home)) => self.last_effect_of.get(&home.id).copied(),
        }
    }

    /// Effects are never merged, and each comes after the one before it.
    pub(super) fn push_effect(&mut self, kind: StepKind, rows: RowType, says: Says) -> NodeId {
        let catalog = match &kind {
            StepKind::Effect { call, .. } => Some(call.catalog.clone()),
            _ => None,
        };
        let after = self.last_effect;
        let nodes = self.nodes_mut();
        let node = NodeId(nodes.len());
        nodes.push(CheckedNode { kind, rows, after, says: Some(says), label: None });
        self.last_effect = Some(node);
        self.last_effect_of.extend(catalog.map(|catalog| (catalog, node)));
        node
    }

    /// The rows with the entities that these references refer to beside them.
    pub(super) fn attach(&mut self, space: usize, input: NodeId, wanted: &[(Path, EntityOf)]) -> NodeId {
        let mut at = input;
        for (field, entity) in wanted {
            let mut rows = self.spaces[space].nodes[at.0].rows.clone();
            if rows.attached.contains(field) {
                continue;
            }
            rows.attached.push(field.clone());
            let kind = StepKind::Attach { input: at.0, field: field.clone(), entity: entity.clone() };
            at = self.push_in(space, kind, rows);
        }
        at
    }

    /// A node of the program in the space that is being written.
    pub(super) fn import(&mut self, node: NodeId) -> NodeId {
        let rows = self.spaces[0].nodes[node.0].rows.clone();
        let mut at = node;
        for space in 1..self.spaces.len() {
            at = self.push_in(space, StepKind::Given { step: Some(at.0) }, rows.clone());
        }
        at
    }

    /// Checks something in a space of its own; gives what it gave and the steps it made.
    pub(super) fn apart<T>(&mut self, check: impl FnOnce(&mut Self) -> Option<T>) -> Option<(T, Vec<Step>)> {
        self.spaces.push(Space::default());
        let found = check(self);
        let space = self.spaces.pop().unwrap_or_default();
        Some((found?, space.nodes.iter().map(CheckedNode::step).collect()))
    }

    /// Whether effects may stand here: not inside a value.
    pub(super) fn effects_allowed(&self) -> bool {
        self.spaces.len() == 1 && self.values == 0
    }
}

//! Checked nodes to steps: limits are pushed into the reads they bound, equal reads become one step, what no result needs is
//! left out.
//! Invariant: the steps come out in an order that depends on the program's meaning only, so equal programs have equal plans.

use std::collections::{BTreeMap, BTreeSet};

use base::{CatalogId, Digest, Limits};
use catalog::{Capability, Catalog, Paging, Via};

use super::{Returned, Step, StepKind};
use crate::check::{Checked, CheckedNode, NodeId, Op};

pub struct Lowered {
    pub steps: Vec<Step>,
    pub returns: Vec<Returned>,
    pub catalogs: Vec<(CatalogId, Digest)>,
}

pub fn lower(checked: &Checked, limits: &Limits) -> Lowered {
    let uses = uses(checked);
    let mut cx = Cx { checked, limits, uses, steps: Vec::new(), done: BTreeMap::new(), catalogs: BTreeSet::new() };
    let returns =
        checked.returns().iter().map(|r| Returned { label: r.label.clone(), step: cx.chain(r.node) }).collect();
    Lowered { steps: cx.steps, returns, catalogs: cx.catalogs.into_iter().collect() }
}

/// How many nodes and results read each node. What is read once may be bounded by its only reader.
fn uses(checked: &Checked) -> Vec<usize> {
    let mut uses = vec![0; checked.nodes().len()];
    for root in checked.returns() {
        let mut at = Some(root.node);
        while let Some(id) = at {
            uses[id.0] += 1;
            // What stands below was counted when this node was first reached.
            at = if uses[id.0] == 1 { input_of(&checked.node(id).op) } else { None };
        }
    }
    uses
}

fn input_of(op: &Op) -> Option<NodeId> {
    match op {
        Op::Query { .. } | Op::Get { .. } => None,
        Op::Follow { input, .. } | Op::Deref { input, .. } | Op::Project { input, .. } | Op::Limit { input, .. } => {
            Some(*input)
        }
    }
}

struct Cx<'a> {
    checked: &'a Checked,
    limits: &'a Limits,
    uses: Vec<usize>,
    steps: Vec<Step>,
    /// Nodes lowered so far, with the bound they were lowered under.
    done: BTreeMap<(NodeId, Option<usize>), usize>,
    catalogs: BTreeSet<(CatalogId, Digest)>,
}

/// A node on the way down: the bound pushed into it, and the bound that had to stay above it because others read it too.
struct Pending {
    id: NodeId,
    bound: Option<usize>,
    cut: Option<usize>,
}

impl Cx<'_> {
    /// Lowers a node and what it stands on. A chain is walked, not recursed into: a program may be thousands of parts long.
    fn chain(&mut self, node: NodeId) -> usize {
        let mut pending: Vec<Pending> = Vec::new();
        let mut next = Some((node, None));
        let mut last = 0;
        while let Some((id, wanted)) = next {
            let shared = self.uses[id.0] > 1;
            let (bound, cut) = if shared { (None, wanted) } else { (wanted, None) };
            pending.push(Pending { id, bound, cut });
            if let Some(step) = self.done.get(&(id, bound)) {
                last = *step;
                break;
            }
            let op = &self.checked.node(id).op;
            let below = match op {
                Op::Project { .. } => bound,
                Op::Limit { count, .. } => Some(bound.map_or(*count, |b: usize| b.min(*count))),
                // A relation's own bound does not bound what it starts from.
                Op::Query { .. } | Op::Get { .. } | Op::Follow { .. } | Op::Deref { .. } => None,
            };
            next = input_of(op).map(|input| (input, below));
        }
        for Pending { id, bound, cut } in pending.into_iter().rev() {
            last = match self.done.get(&(id, bound)) {
                Some(step) => *step,
                None => self.step(id, bound, last),
            };
            self.done.insert((id, bound), last);
            if let Some(count) = cut {
                last = self.add(StepKind::Limit { input: last, count }, self.checked.node(id));
            }
        }
        last
    }

    fn step(&mut self, id: NodeId, bound: Option<usize>, input: usize) -> usize {
        let node = self.checked.node(id);
        let kind = match &node.op {
            Op::Query { capability, args } => {
                StepKind::Query { capability: capability.clone(), args: args.clone(), limit: bound }
            }
            Op::Get { capability, args } => StepKind::Get { capability: capability.clone(), args: args.clone() },
            Op::Follow { relation, args, .. } => {
                StepKind::Follow { input, relation: relation.clone(), args: args.clone(), limit: bound }
            }
            Op::Deref { field, .. } => StepKind::Deref { input, field: field.clone(), limit: bound },
            Op::Project { columns, .. } => StepKind::Project { input, columns: columns.clone() },
            // The step below carries the bound already.
            Op::Limit { .. } => return self.name(input, node),
        };
        self.add(kind, node)
    }

    fn name(&mut self, step: usize, node: &CheckedNode) -> usize {
        if let (Some(step), Some(label)) = (self.steps.get_mut(step), &node.label) {
            step.label.get_or_insert_with(|| label.clone());
        }
        step
    }

    fn add(&mut self, kind: StepKind, node: &CheckedNode) -> usize {
        let catalog = &node.rows.catalog;
        self.catalogs.insert((catalog.id.clone(), catalog.digest()));
        let (calls, rows) = self.bounds(&kind, catalog, node);
        let label = node.label.clone().filter(|_| !matches!(kind, StepKind::Limit { .. }));
        self.steps.push(Step {
            kind,
            catalog: catalog.id.clone(),
            entity: node.rows.entity.clone(),
            columns: node.rows.columns.clone(),
            many: node.rows.many,
            calls,
            rows,
            label,
        });
        self.steps.len() - 1
    }

    /// The most calls a step can make and the most rows it can give.
    fn bounds(&self, kind: &StepKind, catalog: &Catalog, node: &CheckedNode) -> (usize, usize) {
        let input_rows = kind.input().and_then(|at| self.steps.get(at)).map_or(1, |s| s.rows);
        match kind {
            StepKind::Query { capability, limit, .. } => self.list_bounds(catalog.capability(capability), *limit),
            StepKind::Get { .. } => (1, 1),
            StepKind::Deref { limit, .. } => (input_rows, limit.unwrap_or(input_rows).min(input_rows)),
            StepKind::Follow { relation, limit, input, .. } => {
                let parent = self.steps.get(*input).and_then(|s| catalog.entity(&s.entity));
                let via = parent.and_then(|e| e.relations.get(relation)).map(|r| &r.via);
                match via {
                    Some(Via::Call { capability, .. }) => {
                        let (calls, rows) = self.list_bounds(catalog.capability(capability), *limit);
                        let rows = if node.rows.many { rows } else { 1 };
                        (calls.saturating_mul(input_rows), rows)
                    }
                    _ => (input_rows, limit.unwrap_or(input_rows).min(input_rows)),
                }
            }
            StepKind::Project { .. } => (0, input_rows),
            StepKind::Limit { count, .. } => (0, input_rows.min(*count)),
        }
    }

    fn list_bounds(&self, capability: Option<&Capability>, limit: Option<usize>) -> (usize, usize) {
        let rows = limit.unwrap_or(self.limits.rows).min(self.limits.rows);
        let page = match capability.and_then(|c| c.paging.as_ref()) {
            Some(Paging::Page { size: Some(size), .. }) => size.max,
            Some(Paging::Page { size: None, .. }) => return (self.limits.pages, rows),
            None => return (1, rows),
        };
        (rows.div_ceil(page.max(1)).clamp(1, self.limits.pages), rows)
    }
}

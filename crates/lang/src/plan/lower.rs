//! Checked nodes to steps: limits are pushed into the reads they bound, equal reads become one step, what no result needs is
//! left out.
//! Invariant: the steps come out in an order that depends on the program's meaning only, so equal programs have equal plans.

use std::collections::{BTreeMap, BTreeSet};

use base::{CatalogId, Digest, Limits};
use catalog::{Capability, Catalog, EffectClass, Type, Via};

use super::{Args, Called, Column, EntityOf, Expr, NamedPath, Returned, Shape, Step, StepKind};
use crate::check::{Checked, CheckedNode, NodeId, Op};

pub struct Lowered {
    pub steps: Vec<Step>,
    pub returns: Vec<Returned>,
    pub catalogs: Vec<(CatalogId, Digest)>,
}

pub fn lower(checked: &Checked, limits: &Limits) -> Lowered {
    let needs = needs(checked);
    let mut cx = Cx { checked, limits, needs, steps: Vec::new(), done: BTreeMap::new(), catalogs: BTreeSet::new() };
    let returns =
        checked.returns().iter().map(|r| Returned { label: r.label.clone(), step: cx.chain(r.node) }).collect();
    Lowered { steps: cx.steps, returns, catalogs: cx.catalogs.into_iter().collect() }
}

/// How many rows of a node its readers need, all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Nothing,
    First(usize),
    All,
}

/// Readers have higher numbers than what they read, so one walk downwards knows every reader of a node before the node.
fn needs(checked: &Checked) -> Vec<Need> {
    let mut needs = vec![Need::Nothing; checked.nodes().len()];
    for root in checked.returns() {
        needs[root.node.0] = Need::All;
    }
    for at in (0..needs.len()).rev() {
        let (need, op) = (needs[at], &checked.nodes()[at].op);
        let Some(input) = input_of(op).filter(|_| need != Need::Nothing) else { continue };
        let below = match op {
            Op::Project { .. } => need,
            Op::Limit { count, .. } => need.min(Need::First(*count)),
            // A relation's own bound does not bound what it starts from.
            Op::Query { .. } | Op::Get { .. } | Op::Follow { .. } | Op::Deref { .. } => Need::All,
        };
        needs[input.0] = needs[input.0].max(below);
    }
    needs
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
    needs: Vec<Need>,
    steps: Vec<Step>,
    done: BTreeMap<NodeId, usize>,
    catalogs: BTreeSet<(CatalogId, Digest)>,
}

impl Cx<'_> {
    /// Lowers a node and what it stands on. A chain is walked, not recursed into: a program may be thousands of parts long.
    fn chain(&mut self, node: NodeId) -> usize {
        let mut pending: Vec<NodeId> = Vec::new();
        let mut next = Some(node);
        while let Some(id) = next.filter(|id| !self.done.contains_key(id)) {
            pending.push(id);
            next = input_of(&self.checked.node(id).op);
        }
        for id in pending.into_iter().rev() {
            let step = self.step(id);
            self.done.insert(id, step);
        }
        self.done.get(&node).copied().unwrap_or(0)
    }

    fn step(&mut self, id: NodeId) -> usize {
        let node = self.checked.node(id);
        let input = input_of(&node.op).and_then(|input| self.done.get(&input).copied()).unwrap_or(0);
        let limit = match self.needs[id.0] {
            Need::First(count) => Some(count),
            Need::Nothing | Need::All => None,
        };
        let called =
            |capability: &String| Called { catalog: node.rows.catalog.id.clone(), capability: capability.clone() };
        let kind = match &node.op {
            Op::Query { capability, args } => {
                StepKind::Query { call: called(capability), args: known(args), limit, page_size: None, fields: None }
            }
            Op::Get { capability, args } => StepKind::Get { call: called(capability), args: known(args), fields: None },
            Op::Follow { relation, args, .. } => StepKind::Follow {
                input,
                relation: relation.clone(),
                args: known(args),
                limit,
                page_size: None,
                fields: None,
            },
            Op::Deref { field, .. } => StepKind::Deref { input, field: field.clone(), limit },
            Op::Project { columns, .. } => {
                let named = |name: &String| NamedPath { name: name.clone(), path: vec![name.clone()] };
                StepKind::Project { input, columns: columns.iter().map(named).collect() }
            }
            Op::Limit { input: read, count } => {
                // What is read is bounded already when nobody needs more of it.
                if self.needs[read.0] <= Need::First(*count) {
                    return self.name(input, node);
                }
                StepKind::Limit { input, count: *count }
            }
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
        // A read that was bounded by its reader is not what the program gave the name to.
        let bounded = matches!(
            kind,
            StepKind::Query { limit: Some(_), .. }
                | StepKind::Follow { limit: Some(_), .. }
                | StepKind::Deref { limit: Some(_), .. }
        );
        let label = node.label.clone().filter(|_| !bounded);
        let fields = catalog.entity(&node.rows.entity).map(|e| &e.fields);
        let column = |name: &String| Column {
            name: name.clone(),
            kind: fields.and_then(|f| f.get(name)).map_or(Type::Json, |f| f.kind.clone()),
        };
        self.steps.push(Step {
            kind,
            of: Some(EntityOf { catalog: catalog.id.clone(), entity: node.rows.entity.clone() }),
            columns: node.rows.columns.iter().map(column).collect(),
            shape: if node.rows.many { Shape::List } else { Shape::One },
            class: EffectClass::Read,
            calls,
            rows,
            effects: 0,
            after: None,
            label,
            says: None,
        });
        self.steps.len() - 1
    }

    /// The most calls a step can make and the most rows it can give.
    fn bounds(&self, kind: &StepKind, catalog: &Catalog, node: &CheckedNode) -> (usize, usize) {
        let input_rows = kind.input().and_then(|at| self.steps.get(at)).map_or(1, |s| s.rows);
        match kind {
            StepKind::Query { call, limit, .. } => self.list_bounds(catalog.capability(&call.capability), *limit),
            StepKind::Get { .. } => (1, 1),
            StepKind::Deref { limit, .. } => (input_rows, limit.unwrap_or(input_rows).min(input_rows)),
            StepKind::Follow { relation, limit, input, .. } => {
                let parent =
                    self.steps.get(*input).and_then(|s| s.of.as_ref()).and_then(|of| catalog.entity(&of.entity));
                let via = parent.and_then(|e| e.relations.get(relation)).map(|r| &r.via);
                match via {
                    Some(Via::Call { capability, .. }) => {
                        let (calls, rows) = self.list_bounds(catalog.capability(capability), *limit);
                        let rows = if node.rows.many { rows } else { 1 };
                        (calls.saturating_mul(input_rows), rows)
                    }
                    Some(Via::Embedded { .. }) => (0, limit.unwrap_or(self.limits.rows).min(self.limits.rows)),
                    _ => (input_rows, limit.unwrap_or(input_rows).min(input_rows)),
                }
            }
            StepKind::Project { .. } => (0, input_rows),
            StepKind::Limit { count, .. } => (0, input_rows.min(*count)),
            _ => (0, input_rows),
        }
    }

    fn list_bounds(&self, capability: Option<&Capability>, limit: Option<usize>) -> (usize, usize) {
        let rows = limit.unwrap_or(self.limits.rows).min(self.limits.rows);
        let page = match capability.and_then(|c| c.paging.as_ref()) {
            Some(paging) => match &paging.size {
                Some(size) => size.max,
                None => return (self.limits.pages, rows),
            },
            None => return (1, rows),
        };
        (rows.div_ceil(page.max(1)).min(self.limits.pages).max(1), rows)
    }
}

fn known(args: &catalog::Args) -> Args {
    args.iter().map(|(name, value)| (name.clone(), Expr::Value(value.clone()))).collect()
}

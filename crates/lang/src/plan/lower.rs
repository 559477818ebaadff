//! Checked nodes to steps: limits are pushed into the reads they bound, fields that a list does not carry are read where they
//! are first needed, what no result and no effect needs is left out.
//! Invariant: the steps come out in an order that depends on the program's meaning only, so equal programs have equal plans.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::CatalogId;
use catalog::{EffectClass, Kind};
use smol_str::SmolStr;

use super::context::{NodeView, PlanContext, can_select_fields, capability_of, entity_of};
use super::cost::cost;
use super::needs::{self, Fields, InputUse, Needs, RequiredFields, RowDemand};
use super::{CapabilityRef, Column, Expr, RowPart, Shape, Step, StepDescription, StepKind};

pub(super) struct LoweredPlan {
    pub steps: Vec<Step>,
    /// Where each root is now, in their order.
    pub roots: Vec<usize>,
    pub catalogs_used: BTreeSet<CatalogId>,
}

/// Steps around a read for a row: their place in the plan and how many rows they give.
type OuterSteps = BTreeMap<usize, (usize, usize)>;

/// `roots` are what must come out, in order, each with the fields that are wanted of it.
pub(super) fn lower(
    context: PlanContext<'_>,
    nodes: &[NodeView<'_>],
    roots: &[(usize, RequiredFields<'_>)],
    outer_steps: &OuterSteps,
) -> LoweredPlan {
    // Which fields are needed is half of the work of planning, and matters to few programs.
    let selective = needs::selective(context, nodes);
    let uses = needs::all_uses(context.catalogs, nodes, selective);
    let order = execution_order(nodes, &uses, roots);
    let wanted: Vec<(usize, Fields<'_>)> =
        roots.iter().map(|(root, wanted)| (*root, wanted.fields(&nodes[*root], selective))).collect();
    let mut lowering = Lowering {
        context,
        outer_steps,
        needs: needs::propagate_needs(nodes, &uses, &wanted),
        uses: &uses,
        steps: Vec::with_capacity(nodes.len() + 4),
        step_of_node: vec![None; nodes.len()],
        nodes,
        hydrated: BTreeMap::new(),
        carried_fields: Vec::new(),
        catalogs_used: BTreeSet::new(),
    };
    for node in order {
        lowering.lower_node(node);
    }
    let placed = roots.iter().map(|(root, _)| lowering.lower_node(*root)).collect();
    LoweredPlan { steps: lowering.steps, roots: placed, catalogs_used: lowering.catalogs_used }
}

/// Effects in the order written, and before each what was to be read before it: a read that a program wrote before an effect
/// stands before it in the plan.
fn execution_order(
    nodes: &[NodeView<'_>],
    uses: &[Vec<InputUse<'_>>],
    roots: &[(usize, RequiredFields<'_>)],
) -> Vec<usize> {
    let effects: Vec<usize> =
        (0..nodes.len()).filter(|at| matches!(nodes[*at].kind, StepKind::Effect { .. })).collect();
    if effects.is_empty() {
        return Vec::new();
    }
    let mut seen = vec![false; nodes.len()];
    let mut reads = Vec::new();
    for (root, _) in roots {
        let mut stack = vec![(*root, false)];
        while let Some((at, ready)) = stack.pop() {
            if ready {
                reads.push(at);
            } else if !std::mem::replace(&mut seen[at], true) {
                stack.push((at, true));
                stack.extend(uses[at].iter().rev().map(|used| (used.step, false)));
            }
        }
    }
    reads.retain(|at| nodes[*at].kind.calls_api() && !effects.contains(at));
    let mut order = Vec::new();
    for effect in effects {
        order.extend(reads.iter().copied().filter(|read| *read < effect));
        reads.retain(|read| *read > effect);
        order.push(effect);
    }
    order
}

struct Lowering<'a> {
    context: PlanContext<'a>,
    nodes: &'a [NodeView<'a>],
    outer_steps: &'a OuterSteps,
    needs: Needs<'a>,
    uses: &'a [Vec<InputUse<'a>>],
    steps: Vec<Step>,
    /// Where each node is.
    step_of_node: Vec<Option<usize>>,
    /// Where each node is with its fields read.
    hydrated: BTreeMap<usize, usize>,
    /// The fields that a step's rows carry, where it is not all of them.
    carried_fields: Vec<Option<Fields<'a>>>,
    catalogs_used: BTreeSet<CatalogId>,
}

impl<'a> Lowering<'a> {
    /// Lowers a node and what it stands on. Chains are walked, not recursed into: a program may be hundreds of parts long.
    fn lower_node(&mut self, node: usize) -> usize {
        let mut stack = vec![(node, false)];
        while let Some((at, ready)) = stack.pop() {
            if self.step_of_node[at].is_some() {
                continue;
            }
            let uses: &'a [InputUse<'a>] = &self.uses[at];
            if ready {
                let step = self.lower_to_step(at, uses);
                self.step_of_node[at] = Some(step);
                continue;
            }
            stack.push((at, true));
            // The first to be placed lies on top: what it comes after, then what it uses.
            let inputs = uses.iter().rev().map(|u| u.step).chain(self.nodes[at].after);
            stack.extend(inputs.filter(|input| self.step_of_node[*input].is_none()).map(|input| (input, false)));
        }
        self.step_of_node[node].unwrap_or(0)
    }

    fn lower_to_step(&mut self, at: usize, uses: &[InputUse<'a>]) -> usize {
        let nodes = &self.nodes[at];
        if let StepKind::Limit { input, count } = &nodes.kind
            && self.is_bounded(*input, *count)
            && let Some(step) = self.step_of_node[*input]
        {
            return self.add_label(step, nodes.label);
        }
        let mut numbers = StepNumbers(uses.iter().map(|used| (used.step, self.with_required_fields(used))).collect());
        numbers.0.sort_unstable();
        let mut kind = nodes.kind.clone();
        self.renumber(&mut kind, &numbers);
        self.push_down_bounds(&mut kind, at);
        self.build_step(kind, at)
    }

    /// Where a node is with these fields; those that its rows lack are read now, all that any reader needs at once.
    fn with_required_fields(&mut self, used: &InputUse<'a>) -> usize {
        let step = self.step_of_node[used.step].unwrap_or(0);
        let Some(has) =
            self.carried_fields.get(step).and_then(Option::as_ref).filter(|has| !used.fields.is_subset(has))
        else {
            return step;
        };
        if let Some(whole) = self.hydrated.get(&used.step) {
            return *whole;
        }
        let below = &self.steps[step];
        let Some((of, catalog)) =
            below.of.clone().and_then(|of| Some((of.clone(), self.context.catalogs.get(&of.catalog)?)))
        else {
            return step;
        };
        let (Some(entity), Some(get)) = (catalog.entity(&of.entity), catalog.get_of(&of.entity)) else { return step };
        let wanted =
            |name: &&String| !has.contains(name.as_str()) && self.needs.fields[used.step].contains(name.as_str());
        let names = entity.fields.keys().chain(entity.relations.keys().filter(|r| !entity.fields.contains_key(*r)));
        let fields: Vec<String> = names.filter(wanted).cloned().collect();
        if fields.is_empty() {
            return step;
        }
        let more = fields.iter().filter_map(|f| entity.fields.get(f));
        let more = more.map(|f| Column { name: SmolStr::new(&f.name), kind: f.kind.clone() });
        let call = CapabilityRef::new(catalog, get);
        let mut hydrate = below.clone();
        Arc::make_mut(&mut hydrate.columns).extend(more);
        hydrate.kind = StepKind::Hydrate { input: step, call, fields };
        hydrate.label = None;
        hydrate.description = None;
        hydrate.class = EffectClass::Read;
        if hydrate.shape == Shape::Effect {
            hydrate.shape = Shape::List;
        }
        let place = self.append_step(hydrate);
        self.hydrated.insert(used.step, place);
        place
    }

    fn renumber(&self, kind: &mut StepKind, numbers: &StepNumbers) {
        let place = |step: &mut usize| *step = numbers.of(*step);
        match kind {
            StepKind::Effect { each: Some(input), .. }
            | StepKind::Follow { input, .. }
            | StepKind::QueryPerRow { input, .. }
            | StepKind::Deref { input, .. }
            | StepKind::Attach { input, .. }
            | StepKind::Hydrate { input, .. }
            | StepKind::Filter { input, .. }
            | StepKind::Sort { input, .. }
            | StepKind::Limit { input, .. }
            | StepKind::First { input }
            | StepKind::Last { input }
            | StepKind::Singleton { input }
            | StepKind::Distinct { input, .. }
            | StepKind::Aggregate { input, .. }
            | StepKind::GroupBy { input, .. }
            | StepKind::Project { input, .. }
            | StepKind::Derive { input, .. }
            | StepKind::Template { input, .. } => place(input),
            StepKind::Query { .. }
            | StepKind::Get { .. }
            | StepKind::Rows { .. }
            | StepKind::Text { .. }
            | StepKind::Effect { each: None, .. }
            | StepKind::Page { .. }
            | StepKind::OuterRows { .. }
            | StepKind::Operation { .. } => {}
        }
        match kind {
            StepKind::Query { args, .. }
            | StepKind::Get { args, .. }
            | StepKind::Follow { args, .. }
            | StepKind::QueryPerRow { args, .. }
            | StepKind::Effect { args, .. } => args.values_mut().for_each(|v| self.renumber_value(v, numbers)),
            StepKind::Filter { tests, .. } => tests.iter_mut().for_each(|t| self.renumber_value(&mut t.value, numbers)),
            StepKind::Derive { object, .. } => object.iter_mut().for_each(|(_, v)| self.renumber_value(v, numbers)),
            StepKind::Rows { items } => items.iter_mut().for_each(|v| self.renumber_value(v, numbers)),
            _ => {}
        }
    }

    fn renumber_value(&self, value: &mut Expr, numbers: &StepNumbers) {
        match value {
            Expr::Step { step, .. } => *step = numbers.of(*step),
            Expr::List(items) => items.iter_mut().for_each(|item| self.renumber_value(item, numbers)),
            Expr::Object(pairs) => pairs.iter_mut().for_each(|(_, item)| self.renumber_value(item, numbers)),
            Expr::Read { steps, take } => {
                let outer_steps = numbers
                    .0
                    .iter()
                    .map(|(node, place)| (*node, (*place, self.steps.get(*place).map_or(1, |s| s.rows))));
                *steps = lower_inner_read(self.context, steps, take, &outer_steps.collect());
            }
            Expr::Value(_) | Expr::Row(_) | Expr::Template { .. } => {}
        }
    }

    /// Puts the rows and the fields that are needed into a read.
    fn push_down_bounds(&self, kind: &mut StepKind, at: usize) {
        let most = match self.needs.rows[at] {
            RowDemand::First(count) => Some(count),
            RowDemand::Nothing | RowDemand::All => None,
        };
        match kind {
            StepKind::Query { limit, .. }
            | StepKind::Follow { limit, .. }
            | StepKind::QueryPerRow { limit, .. }
            | StepKind::Deref { limit, .. } => *limit = most,
            StepKind::Page { limit, .. } => *limit = (*limit).into_iter().chain(most).min(),
            _ => {}
        }
        let selected = self.selected_fields(kind, at);
        if let StepKind::Query { fields, .. } | StepKind::Get { fields, .. } | StepKind::Follow { fields, .. } = kind {
            *fields = selected;
        }
    }

    /// The fields to ask for, where the transport can ask for some of them and not all are needed.
    fn selected_fields(&self, kind: &StepKind, at: usize) -> Option<Vec<String>> {
        let of = self.nodes[at].of.as_ref()?;
        let catalog = self.context.catalogs.get(&of.catalog)?;
        let capability = capability_of(kind, entity_of(&self.steps), catalog)?;
        if !can_select_fields(capability) {
            return None;
        }
        let entity = catalog.entity(&of.entity)?;
        let needed = |name: &&String| entity.key.contains(*name) || self.needs.fields[at].contains(name.as_str());
        let selected: Vec<String> = entity.fields.keys().filter(needed).cloned().collect();
        let embedded = entity
            .relations
            .keys()
            .any(|r| self.needs.fields[at].contains(r.as_str()) && !entity.fields.contains_key(r));
        (selected.len() < entity.fields.len() && !embedded).then_some(selected)
    }

    /// Whether no more than this many rows can come out of a node, by what its readers need of the reads below it.
    fn is_bounded(&self, node: usize, count: usize) -> bool {
        let mut at = node;
        loop {
            let needed = self.needs.rows[at] <= RowDemand::First(count);
            match &self.nodes[at].kind {
                StepKind::Query { .. }
                | StepKind::Follow { .. }
                | StepKind::QueryPerRow { .. }
                | StepKind::Deref { .. }
                | StepKind::Page { .. } => return needed,
                StepKind::Limit { count: own, .. } if *own <= count => return true,
                StepKind::Project { input, .. }
                | StepKind::Derive { input, .. }
                | StepKind::Attach { input, .. }
                | StepKind::Limit { input, .. }
                    if needed =>
                {
                    at = *input;
                }
                _ => return false,
            }
        }
    }

    fn add_label(&mut self, step: usize, label: Option<&SmolStr>) -> usize {
        if let (Some(step), Some(label)) = (self.steps.get_mut(step), label) {
            step.label.get_or_insert_with(|| label.clone());
        }
        step
    }

    fn build_step(&mut self, kind: StepKind, at: usize) -> usize {
        let nodes = &self.nodes[at];
        let mut columns = nodes.columns;
        // Fields that were read on the way stay with the rows.
        let below = kind.input().and_then(|input| self.steps.get(input)).filter(|_| keeps_rows(&kind));
        if let Some(below) = below.filter(|below| below.columns.len() > columns.len()) {
            columns = &below.columns;
        }
        let columns = columns.clone();
        // A read that was bounded by its reader is not what the program gave the name to.
        let bounded = matches!(
            kind,
            StepKind::Query { limit: Some(_), .. }
                | StepKind::Follow { limit: Some(_), .. }
                | StepKind::QueryPerRow { limit: Some(_), .. }
                | StepKind::Deref { limit: Some(_), .. }
        );
        let label = nodes.label.filter(|_| !bounded).cloned();
        let after = nodes.after.and_then(|effect| self.step_of_node[effect]);
        let class = self.effect_class(&kind);
        let description = nodes.description.cloned().or_else(|| self.describe_read(&kind));
        let (of, shape) = (nodes.of.clone(), nodes.shape);
        let step = Step { kind, of, columns, shape, class, calls: 0, rows: 0, effects: 0, after, label, description };
        self.append_step(step)
    }

    fn append_step(&mut self, mut step: Step) -> usize {
        let of = step.of.as_ref().map(|of| &of.catalog);
        let called = match &step.kind {
            StepKind::Effect { call, .. } => Some(&call.catalog),
            _ => None,
        };
        for catalog in of.into_iter().chain(called) {
            if !self.catalogs_used.contains(catalog) {
                self.catalogs_used.insert(catalog.clone());
            }
        }
        let outer_steps = match &mut step.kind {
            StepKind::OuterRows { step: Some(outer) } => {
                let found = self.outer_steps.get(outer).copied().unwrap_or((0, 1));
                *outer = found.0;
                Some(found.1)
            }
            _ => None,
        };
        let cost = cost(self.context, &self.steps, &step);
        (step.calls, step.rows, step.effects) = (cost.calls, outer_steps.unwrap_or(cost.rows), cost.effects);
        let has = self.fields_of_rows(&step);
        self.steps.push(step);
        self.carried_fields.push(has);
        self.steps.len() - 1
    }

    /// The fields that the rows of a step carry, where some are missing.
    fn fields_of_rows(&self, step: &Step) -> Option<Fields<'a>> {
        match &step.kind {
            kind if keeps_rows(kind) => {
                kind.input().and_then(|input| self.carried_fields.get(input).cloned().flatten())
            }
            kind => {
                let catalog = self.context.catalogs.get(&step.of.as_ref()?.catalog)?;
                let capability = capability_of(kind, entity_of(&self.steps), catalog)?;
                Some(capability.gives.as_ref()?.iter().map(|name| name.as_str()).collect())
            }
        }
    }

    fn effect_class(&self, kind: &StepKind) -> EffectClass {
        let StepKind::Effect { call, .. } = kind else { return EffectClass::Read };
        let capability = self.context.catalogs.get(&call.catalog).and_then(|c| c.capability(&call.capability));
        capability.map_or(EffectClass::SideEffect, |c| c.kind.class())
    }

    /// A read that is not the plain list or get of its entity is called by its name.
    fn describe_read(&self, kind: &StepKind) -> Option<StepDescription> {
        let (StepKind::Query { call, .. } | StepKind::Get { call, .. }) = kind else { return None };
        let catalog = self.context.catalogs.get(&call.catalog)?;
        let capability = catalog.capability(&call.capability)?;
        let what = match capability.kind {
            Kind::Search => format!("search {}", capability.entity),
            Kind::Get if catalog.get_of(&capability.entity).is_some_and(|get| get.name == capability.name) => {
                return None;
            }
            Kind::Get | Kind::Singleton => format!("{} {}", capability.method_name(), capability.entity),
            _ => return None,
        };
        Some(StepDescription { what, undo: None })
    }
}

/// Where each node that a step uses is in the plan, by node.
struct StepNumbers(Vec<(usize, usize)>);

impl StepNumbers {
    fn of(&self, node: usize) -> usize {
        self.0.binary_search_by_key(&node, |(node, _)| *node).map_or(0, |at| self.0[at].1)
    }
}

/// Whether a step's rows are those of its input, or some of them.
fn keeps_rows(kind: &StepKind) -> bool {
    matches!(
        kind,
        StepKind::Filter { .. }
            | StepKind::Sort { .. }
            | StepKind::Limit { .. }
            | StepKind::First { .. }
            | StepKind::Last { .. }
            | StepKind::Singleton { .. }
            | StepKind::Distinct { .. }
            | StepKind::Attach { .. }
    )
}

/// The steps of a read for a row, of which the last is taken.
fn lower_inner_read(context: PlanContext<'_>, steps: &[Step], take: &RowPart, outer_steps: &OuterSteps) -> Vec<Step> {
    let Some(last) = steps.len().checked_sub(1) else { return Vec::new() };
    let wanted = match take {
        RowPart::Path(path) => path.first().map_or(RequiredFields::Columns, |name| RequiredFields::Field(name)),
        RowPart::Key(_) => RequiredFields::Nothing,
    };
    let nodes: Vec<NodeView<'_>> = steps.iter().map(NodeView::from).collect();
    let mut lowered = lower(context, &nodes, &[(last, wanted)], outer_steps);
    // What is taken must be the last one; a node before it may have been what it came to.
    if let Some(root) = lowered.roots.first() {
        lowered.steps.truncate(root + 1);
    }
    lowered.steps
}

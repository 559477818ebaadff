//! Lowers checked nodes to the steps of a plan. Limits move into the reads that they bound, missing fields are read
//! before their first use, and nodes that no result and no effect needs are omitted.
//! Invariant: the order of the steps depends only on the meaning of the program, so equal programs have equal plans.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::CatalogId;
use catalog::{EffectClass, Kind};
use smol_str::SmolStr;

use super::context::{NodeView, PlanContext, can_select_fields, entity_lookup, find_capability};
use super::cost::compute_cost;
use super::needs::{self, FieldNames, InputUse, Needs, RequiredFields, RowDemand};
use super::{CapabilityRef, Column, Expr, RowPart, Shape, Step, StepDescription, StepKind};

/// The steps of a program or of a read per row.
pub(super) struct LoweredPlan {
    pub steps: Vec<Step>,
    /// The index of each root's step, in the order of the roots.
    pub roots: Vec<usize>,
    /// The catalogs that the rows and calls of the steps belong to.
    pub catalogs_used: BTreeSet<CatalogId>,
}

/// The steps of the enclosing plan that a read per row refers to, by node number.
type OuterSteps = BTreeMap<usize, OuterStep>;

/// A step of the enclosing plan.
#[derive(Clone, Copy)]
pub(super) struct OuterStep {
    /// The index of the step in the plan.
    step: usize,
    /// The most rows that the step returns.
    rows: usize,
}

/// Lowers the nodes that the roots need. The roots are lowered in order, each with the fields that its reader
/// requires.
pub(super) fn lower_to_steps(
    context: PlanContext<'_>,
    nodes: &[NodeView<'_>],
    roots: &[(usize, RequiredFields<'_>)],
    outer_steps: &OuterSteps,
) -> LoweredPlan {
    // The analysis of needed fields takes half of the time of planning, and most programs do not depend on it.
    let fields_matter = needs::fields_matter(context, nodes);
    let uses = needs::list_all_uses(context.catalogs, nodes, fields_matter);
    let order = execution_order(nodes, &uses, roots);
    let wanted: Vec<(usize, FieldNames<'_>)> =
        roots.iter().map(|(root, wanted)| (*root, wanted.required_names(&nodes[*root], fields_matter))).collect();
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
    let root_steps = roots.iter().map(|(root, _)| lowering.lower_node(*root)).collect();
    LoweredPlan { steps: lowering.steps, roots: root_steps, catalogs_used: lowering.catalogs_used }
}

/// Returns the effects in the order written. Reads that the program wrote before an effect come before it.
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
    // Lists the reads by a depth-first walk from the roots, with inputs before their readers. The flag tells whether
    // the inputs of a node have been pushed; such a node is finished when it is popped.
    let mut visited = vec![false; nodes.len()];
    let mut reads = Vec::new();
    for (root, _) in roots {
        let mut stack = vec![(*root, false)];
        while let Some((at, ready)) = stack.pop() {
            if ready {
                reads.push(at);
            } else if !std::mem::replace(&mut visited[at], true) {
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

/// The state of lowering one program.
struct Lowering<'a> {
    context: PlanContext<'a>,
    nodes: &'a [NodeView<'a>],
    outer_steps: &'a OuterSteps,
    /// The rows and fields of each node that its readers need.
    needs: Needs<'a>,
    /// The inputs that each node uses.
    uses: &'a [Vec<InputUse<'a>>],
    /// The steps made so far.
    steps: Vec<Step>,
    /// The step of each node that has been lowered.
    step_of_node: Vec<Option<usize>>,
    /// The `Hydrate` step of each node whose missing fields were read.
    hydrated: BTreeMap<usize, usize>,
    /// The fields that the rows of each step contain. `None` means all fields.
    carried_fields: Vec<Option<FieldNames<'a>>>,
    catalogs_used: BTreeSet<CatalogId>,
}

impl<'a> Lowering<'a> {
    /// Lowers a node and the nodes that it uses. The function has its own stack instead of recursion, because a
    /// program may be a chain of hundreds of parts.
    fn lower_node(&mut self, node: usize) -> usize {
        // The flag tells whether the inputs of a node have been pushed. Such a node is lowered when it is popped.
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
            // The top of the stack is lowered first: the effect that the node waits for, then the nodes that it uses.
            let inputs = uses.iter().rev().map(|u| u.step).chain(self.nodes[at].after);
            stack.extend(inputs.filter(|input| self.step_of_node[*input].is_none()).map(|input| (input, false)));
        }
        self.step_of_node[node].unwrap_or(0)
    }

    /// Makes the step of a node whose inputs have been lowered. A limit that its input observes already makes no step.
    fn lower_to_step(&mut self, at: usize, uses: &[InputUse<'a>]) -> usize {
        let node = &self.nodes[at];
        if let StepKind::Limit { input, count } = &node.kind
            && self.is_bounded(*input, *count)
            && let Some(step) = self.step_of_node[*input]
        {
            return self.add_label(step, node.label);
        }
        let mut numbers = StepNumbers(uses.iter().map(|used| (used.step, self.ensure_required_fields(used))).collect());
        numbers.0.sort_unstable();
        let mut kind = node.kind.clone();
        self.renumber_operation(&mut kind, &numbers);
        self.push_down_bounds(&mut kind, at);
        self.build_step(kind, at)
    }

    /// Returns the step whose rows have the fields that a use needs. If fields are missing, one new step reads all
    /// missing fields that any reader needs.
    fn ensure_required_fields(&mut self, used: &InputUse<'a>) -> usize {
        let step = self.step_of_node[used.step].unwrap_or(0);
        let Some(carried) =
            self.carried_fields.get(step).and_then(Option::as_ref).filter(|carried| !used.fields.is_subset(carried))
        else {
            return step;
        };
        if let Some(whole) = self.hydrated.get(&used.step) {
            return *whole;
        }
        let unhydrated = &self.steps[step];
        let Some((of, catalog)) =
            unhydrated.of.clone().and_then(|of| Some((of.clone(), self.context.catalogs.get(&of.catalog)?)))
        else {
            return step;
        };
        let (Some(entity), Some(get)) = (catalog.entity(&of.entity), catalog.get_of(&of.entity)) else { return step };
        let wanted =
            |name: &&String| !carried.contains(name.as_str()) && self.needs.fields[used.step].contains(name.as_str());
        let names = entity.fields.keys().chain(entity.relations.keys().filter(|r| !entity.fields.contains_key(*r)));
        let fields: Vec<String> = names.filter(wanted).cloned().collect();
        if fields.is_empty() {
            return step;
        }
        let missing_columns = fields.iter().filter_map(|f| entity.fields.get(f));
        let missing_columns = missing_columns.map(|f| Column { name: SmolStr::new(&f.name), kind: f.kind.clone() });
        let call = CapabilityRef::new(catalog, get);
        let mut hydrate = unhydrated.clone();
        Arc::make_mut(&mut hydrate.columns).extend(missing_columns);
        hydrate.kind = StepKind::Hydrate { input: step, call, fields };
        hydrate.label = None;
        hydrate.description = None;
        hydrate.class = EffectClass::Read;
        if hydrate.shape == Shape::Effect {
            hydrate.shape = Shape::List;
        }
        let hydrate_step = self.append_step(hydrate);
        self.hydrated.insert(used.step, hydrate_step);
        hydrate_step
    }

    /// Replaces the node numbers in an operation by step indexes.
    fn renumber_operation(&self, kind: &mut StepKind, numbers: &StepNumbers) {
        let renumber_input = |step: &mut usize| *step = numbers.step_of_node(*step);
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
            | StepKind::Template { input, .. } => renumber_input(input),
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

    /// Replaces the node numbers in a value by step indexes, and lowers the reads per row in the value.
    fn renumber_value(&self, value: &mut Expr, numbers: &StepNumbers) {
        match value {
            Expr::Step { step, .. } => *step = numbers.step_of_node(*step),
            Expr::List(items) => items.iter_mut().for_each(|item| self.renumber_value(item, numbers)),
            Expr::Object(pairs) => pairs.iter_mut().for_each(|(_, item)| self.renumber_value(item, numbers)),
            Expr::Read { steps, take } => {
                let outer_steps = numbers.0.iter().map(|(node, step)| {
                    let rows = self.steps.get(*step).map_or(1, |s| s.rows);
                    (*node, OuterStep { step: *step, rows })
                });
                *steps = lower_inner_read(self.context, steps, take, &outer_steps.collect());
            }
            Expr::Value(_) | Expr::Row(_) | Expr::Template { .. } => {}
        }
    }

    /// Moves the row limit and the needed fields of a node into the read operation.
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

    /// Returns the fields to request, or `None` if all fields are needed or the transport cannot select fields.
    fn selected_fields(&self, kind: &StepKind, at: usize) -> Option<Vec<String>> {
        let of = self.nodes[at].of.as_ref()?;
        let catalog = self.context.catalogs.get(&of.catalog)?;
        let capability = find_capability(kind, entity_lookup(&self.steps), catalog)?;
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

    /// Returns whether a node returns at most `count` rows without a limit step, because its reads are limited to the
    /// rows that their readers need.
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

    /// Adds a label to a step that has none, and returns the index of the step.
    fn add_label(&mut self, step: usize, label: Option<&SmolStr>) -> usize {
        if let (Some(step), Some(label)) = (self.steps.get_mut(step), label) {
            step.label.get_or_insert_with(|| label.clone());
        }
        step
    }

    /// Makes the step of a node from its final operation.
    fn build_step(&mut self, kind: StepKind, at: usize) -> usize {
        let node = &self.nodes[at];
        let mut columns = node.columns;
        // The rows still contain the fields that an earlier step read in addition.
        let input = kind.input().and_then(|input| self.steps.get(input)).filter(|_| returns_input_rows(&kind));
        if let Some(input) = input.filter(|input| input.columns.len() > columns.len()) {
            columns = &input.columns;
        }
        let columns = columns.clone();
        // The label means the rows of the read without a limit, so a read with a limit does not get the label.
        let bounded = matches!(
            kind,
            StepKind::Query { limit: Some(_), .. }
                | StepKind::Follow { limit: Some(_), .. }
                | StepKind::QueryPerRow { limit: Some(_), .. }
                | StepKind::Deref { limit: Some(_), .. }
        );
        let label = node.label.filter(|_| !bounded).cloned();
        let after = node.after.and_then(|effect| self.step_of_node[effect]);
        let class = self.effect_class(&kind);
        let description = node.description.cloned().or_else(|| self.describe_read(&kind));
        let of = node.of.clone();
        let step = Step {
            kind,
            of,
            columns,
            shape: node.shape,
            class,
            calls: 0,
            rows: 0,
            effects: 0,
            after,
            label,
            description,
        };
        self.append_step(step)
    }

    /// Computes the bounds of a step and appends the step. Returns its index.
    fn append_step(&mut self, mut step: Step) -> usize {
        let of = step.of.as_ref().map(|of| &of.catalog);
        let called_catalog = match &step.kind {
            StepKind::Effect { call, .. } => Some(&call.catalog),
            _ => None,
        };
        for catalog in of.into_iter().chain(called_catalog) {
            if !self.catalogs_used.contains(catalog) {
                self.catalogs_used.insert(catalog.clone());
            }
        }
        let outer_rows = match &mut step.kind {
            StepKind::OuterRows { step: Some(outer) } => {
                let outer_step = self.outer_steps.get(outer).copied().unwrap_or(OuterStep { step: 0, rows: 1 });
                *outer = outer_step.step;
                Some(outer_step.rows)
            }
            _ => None,
        };
        let cost = compute_cost(self.context, &self.steps, &step);
        step.calls = cost.calls;
        step.rows = outer_rows.unwrap_or(cost.rows);
        step.effects = cost.effects;
        let carried_fields = self.fields_of_rows(&step);
        self.steps.push(step);
        self.carried_fields.push(carried_fields);
        self.steps.len() - 1
    }

    /// Returns the fields that the rows of a step contain, or `None` if they contain all fields.
    fn fields_of_rows(&self, step: &Step) -> Option<FieldNames<'a>> {
        match &step.kind {
            kind if returns_input_rows(kind) => {
                kind.input().and_then(|input| self.carried_fields.get(input).cloned().flatten())
            }
            kind => {
                let catalog = self.context.catalogs.get(&step.of.as_ref()?.catalog)?;
                let capability = find_capability(kind, entity_lookup(&self.steps), catalog)?;
                Some(capability.gives.as_ref()?.iter().map(|name| name.as_str()).collect())
            }
        }
    }

    /// Returns whether an operation reads, writes, or has another side effect.
    fn effect_class(&self, kind: &StepKind) -> EffectClass {
        let StepKind::Effect { call, .. } = kind else { return EffectClass::Read };
        let capability = self.context.catalogs.get(&call.catalog).and_then(|c| c.capability(&call.capability));
        capability.map_or(EffectClass::SideEffect, |c| c.kind.class())
    }

    /// Describes a read by the name of its capability, unless it is the plain list or get operation of its entity.
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

/// Pairs of a node number and the index of its step, sorted by node number, for the nodes that a step uses.
struct StepNumbers(Vec<(usize, usize)>);

impl StepNumbers {
    /// Returns the index of the step of a node.
    fn step_of_node(&self, node: usize) -> usize {
        self.0.binary_search_by_key(&node, |(node, _)| *node).map_or(0, |at| self.0[at].1)
    }
}

/// Returns whether the rows of an operation are rows of its input.
fn returns_input_rows(kind: &StepKind) -> bool {
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

/// Lowers the steps of a read per row. The value of the read is taken from the last step.
fn lower_inner_read(context: PlanContext<'_>, steps: &[Step], take: &RowPart, outer_steps: &OuterSteps) -> Vec<Step> {
    let Some(last) = steps.len().checked_sub(1) else { return Vec::new() };
    let wanted = match take {
        RowPart::Path(path) => path.first().map_or(RequiredFields::Columns, |name| RequiredFields::Field(name)),
        RowPart::Key(_) => RequiredFields::Nothing,
    };
    let nodes: Vec<NodeView<'_>> = steps.iter().map(NodeView::from).collect();
    let mut lowered = lower_to_steps(context, &nodes, &[(last, wanted)], outer_steps);
    // The root may have been merged into an earlier step, such as a limit into its list. The steps behind the root are
    // dropped, so that the root is the last step.
    if let Some(root) = lowered.roots.first() {
        lowered.steps.truncate(root + 1);
    }
    lowered.steps
}

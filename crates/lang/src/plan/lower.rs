//! Checked nodes to steps: limits are pushed into the reads they bound, fields that a list does not carry are read where they
//! are first needed, what no result and no effect needs is left out.
//! Invariant: the steps come out in an order that depends on the program's meaning only, so equal programs have equal plans.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{CatalogId, Limits};
use catalog::{EffectClass, Kind};
use smol_str::SmolStr;

use super::cost;
use super::needs::{self, Fields, Needs, Rows, Use, Wanted};
use super::raw::Raw;
use super::{Called, Catalogs, Column, Expr, Says, Shape, Step, StepKind, Take};

/// What there is to plan with.
#[derive(Clone, Copy)]
pub(super) struct With<'a> {
    pub catalogs: &'a Catalogs,
    pub limits: &'a Limits,
}

pub(super) struct Lowered {
    pub steps: Vec<Step>,
    /// Where each root is now, in their order.
    pub roots: Vec<usize>,
    pub used: BTreeSet<CatalogId>,
}

/// Steps around a read for a row: their place in the plan and how many rows they give.
type Around = BTreeMap<usize, (usize, usize)>;

/// `roots` are what must come out, in order, each with the fields that are wanted of it.
pub(super) fn lower(with: With<'_>, raw: &[Raw<'_>], roots: &[(usize, Wanted<'_>)], around: &Around) -> Lowered {
    // Which fields are needed is half of the work of planning, and matters to few programs.
    let selective = needs::selective(with, raw);
    let uses = needs::all_uses(with.catalogs, raw, selective);
    let order = order(raw, &uses, roots);
    let wanted: Vec<(usize, Fields<'_>)> =
        roots.iter().map(|(root, wanted)| (*root, wanted.fields(&raw[*root], selective))).collect();
    let mut cx = Cx {
        with,
        around,
        needs: needs::needs(raw, &uses, &wanted),
        uses: &uses,
        steps: Vec::with_capacity(raw.len() + 4),
        done: vec![None; raw.len()],
        raw,
        whole: BTreeMap::new(),
        has: Vec::new(),
        used: BTreeSet::new(),
    };
    for node in order {
        cx.place(node);
    }
    let placed = roots.iter().map(|(root, _)| cx.place(*root)).collect();
    Lowered { steps: cx.steps, roots: placed, used: cx.used }
}

/// Effects in the order written, and before each what was to be read before it: a read that a program wrote before an effect
/// stands before it in the plan.
fn order(raw: &[Raw<'_>], uses: &[Vec<Use<'_>>], roots: &[(usize, Wanted<'_>)]) -> Vec<usize> {
    let effects: Vec<usize> = (0..raw.len()).filter(|at| matches!(raw[*at].kind, StepKind::Effect { .. })).collect();
    if effects.is_empty() {
        return Vec::new();
    }
    let mut seen = vec![false; raw.len()];
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
    reads.retain(|at| raw[*at].kind.calls_api() && !effects.contains(at));
    let mut order = Vec::new();
    for effect in effects {
        order.extend(reads.iter().copied().filter(|read| *read < effect));
        reads.retain(|read| *read > effect);
        order.push(effect);
    }
    order
}

struct Cx<'a> {
    with: With<'a>,
    raw: &'a [Raw<'a>],
    around: &'a Around,
    needs: Needs<'a>,
    uses: &'a [Vec<Use<'a>>],
    steps: Vec<Step>,
    /// Where each node is.
    done: Vec<Option<usize>>,
    /// Where each node is with its fields read.
    whole: BTreeMap<usize, usize>,
    /// The fields that a step's rows carry, where it is not all of them.
    has: Vec<Option<Fields<'a>>>,
    used: BTreeSet<CatalogId>,
}

impl<'a> Cx<'a> {
    /// Lowers a node and what it stands on. Chains are walked, not recursed into: a program may be hundreds of parts long.
    fn place(&mut self, node: usize) -> usize {
        let mut stack = vec![(node, false)];
        while let Some((at, ready)) = stack.pop() {
            if self.done[at].is_some() {
                continue;
            }
            let uses: &'a [Use<'a>] = &self.uses[at];
            if ready {
                let step = self.step(at, uses);
                self.done[at] = Some(step);
                continue;
            }
            stack.push((at, true));
            // The first to be placed lies on top: what it comes after, then what it uses.
            let inputs = uses.iter().rev().map(|u| u.step).chain(self.raw[at].after);
            stack.extend(inputs.filter(|input| self.done[*input].is_none()).map(|input| (input, false)));
        }
        self.done[node].unwrap_or(0)
    }

    fn step(&mut self, at: usize, uses: &[Use<'a>]) -> usize {
        let raw = &self.raw[at];
        if let StepKind::Limit { input, count } = &raw.kind
            && self.is_bounded(*input, *count)
            && let Some(step) = self.done[*input]
        {
            return self.name(step, raw.label);
        }
        let mut places = Places(uses.iter().map(|used| (used.step, self.with_fields(used))).collect());
        places.0.sort_unstable();
        let mut kind = raw.kind.clone();
        self.renumber(&mut kind, &places);
        self.bound(&mut kind, at);
        self.add(kind, at)
    }

    /// Where a node is with these fields; those that its rows lack are read now, all that any reader needs at once.
    fn with_fields(&mut self, used: &Use<'a>) -> usize {
        let step = self.done[used.step].unwrap_or(0);
        let Some(has) = self.has.get(step).and_then(Option::as_ref).filter(|has| !used.fields.is_subset(has)) else {
            return step;
        };
        if let Some(whole) = self.whole.get(&used.step) {
            return *whole;
        }
        let below = &self.steps[step];
        let Some((of, catalog)) =
            below.of.clone().and_then(|of| Some((of.clone(), self.with.catalogs.get(&of.catalog)?)))
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
        let call = Called { catalog: of.catalog.clone(), capability: SmolStr::new(&get.name) };
        let mut hydrate = below.clone();
        Arc::make_mut(&mut hydrate.columns).extend(more);
        hydrate.kind = StepKind::Hydrate { input: step, call, fields };
        hydrate.label = None;
        hydrate.says = None;
        hydrate.class = EffectClass::Read;
        if hydrate.shape == Shape::Effect {
            hydrate.shape = Shape::List;
        }
        let place = self.push(hydrate);
        self.whole.insert(used.step, place);
        place
    }

    fn renumber(&self, kind: &mut StepKind, places: &Places) {
        let place = |step: &mut usize| *step = places.of(*step);
        match kind {
            StepKind::Effect { each: Some(input), .. }
            | StepKind::Follow { input, .. }
            | StepKind::Each { input, .. }
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
            | StepKind::Given { .. }
            | StepKind::Operation { .. } => {}
        }
        match kind {
            StepKind::Query { args, .. }
            | StepKind::Get { args, .. }
            | StepKind::Follow { args, .. }
            | StepKind::Each { args, .. }
            | StepKind::Effect { args, .. } => args.values_mut().for_each(|v| self.value(v, places)),
            StepKind::Filter { tests, .. } => tests.iter_mut().for_each(|t| self.value(&mut t.value, places)),
            StepKind::Derive { object, .. } => object.iter_mut().for_each(|(_, v)| self.value(v, places)),
            StepKind::Rows { items } => items.iter_mut().for_each(|v| self.value(v, places)),
            _ => {}
        }
    }

    fn value(&self, value: &mut Expr, places: &Places) {
        match value {
            Expr::Step { step, .. } => *step = places.of(*step),
            Expr::List(items) => items.iter_mut().for_each(|item| self.value(item, places)),
            Expr::Object(pairs) => pairs.iter_mut().for_each(|(_, item)| self.value(item, places)),
            Expr::Read { steps, take } => {
                let around = places
                    .0
                    .iter()
                    .map(|(node, place)| (*node, (*place, self.steps.get(*place).map_or(1, |s| s.rows))));
                *steps = lower_read(self.with, steps, take, &around.collect());
            }
            Expr::Value(_) | Expr::Row(_) | Expr::Template { .. } => {}
        }
    }

    /// Puts the rows and the fields that are needed into a read.
    fn bound(&self, kind: &mut StepKind, at: usize) {
        let most = match self.needs.rows[at] {
            Rows::First(count) => Some(count),
            Rows::Nothing | Rows::All => None,
        };
        match kind {
            StepKind::Query { limit, .. }
            | StepKind::Follow { limit, .. }
            | StepKind::Each { limit, .. }
            | StepKind::Deref { limit, .. } => *limit = most,
            StepKind::Page { limit, .. } => *limit = (*limit).into_iter().chain(most).min(),
            _ => {}
        }
        let selected = self.selected(kind, at);
        if let StepKind::Query { fields, .. } | StepKind::Get { fields, .. } | StepKind::Follow { fields, .. } = kind {
            *fields = selected;
        }
    }

    /// The fields to ask for, where the transport can ask for some of them and not all are needed.
    fn selected(&self, kind: &StepKind, at: usize) -> Option<Vec<String>> {
        let of = self.raw[at].of.as_ref()?;
        let catalog = self.with.catalogs.get(&of.catalog)?;
        let capability = cost::capability_of(kind, cost::of(&self.steps), catalog)?;
        if !cost::selects(capability) {
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
            let needed = self.needs.rows[at] <= Rows::First(count);
            match &self.raw[at].kind {
                StepKind::Query { .. }
                | StepKind::Follow { .. }
                | StepKind::Each { .. }
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

    fn name(&mut self, step: usize, label: Option<&SmolStr>) -> usize {
        if let (Some(step), Some(label)) = (self.steps.get_mut(step), label) {
            step.label.get_or_insert_with(|| label.clone());
        }
        step
    }

    fn add(&mut self, kind: StepKind, at: usize) -> usize {
        let raw = &self.raw[at];
        let mut columns = raw.columns;
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
                | StepKind::Each { limit: Some(_), .. }
                | StepKind::Deref { limit: Some(_), .. }
        );
        let label = raw.label.filter(|_| !bounded).cloned();
        let after = raw.after.and_then(|effect| self.done[effect]);
        let class = self.class(&kind);
        let says = raw.says.cloned().or_else(|| self.says(&kind));
        let (of, shape) = (raw.of.clone(), raw.shape);
        let step = Step { kind, of, columns, shape, class, calls: 0, rows: 0, effects: 0, after, label, says };
        self.push(step)
    }

    fn push(&mut self, mut step: Step) -> usize {
        let of = step.of.as_ref().map(|of| &of.catalog);
        let called = match &step.kind {
            StepKind::Effect { call, .. } => Some(&call.catalog),
            _ => None,
        };
        for catalog in of.into_iter().chain(called) {
            if !self.used.contains(catalog) {
                self.used.insert(catalog.clone());
            }
        }
        let around = match &mut step.kind {
            StepKind::Given { step: Some(outer) } => {
                let found = self.around.get(outer).copied().unwrap_or((0, 1));
                *outer = found.0;
                Some(found.1)
            }
            _ => None,
        };
        let cost = cost::cost(self.with, &self.steps, &step);
        (step.calls, step.rows, step.effects) = (cost.calls, around.unwrap_or(cost.rows), cost.effects);
        let has = self.carried(&step);
        self.steps.push(step);
        self.has.push(has);
        self.steps.len() - 1
    }

    /// The fields that the rows of a step carry, where some are missing.
    fn carried(&self, step: &Step) -> Option<Fields<'a>> {
        match &step.kind {
            kind if keeps_rows(kind) => kind.input().and_then(|input| self.has.get(input).cloned().flatten()),
            kind => {
                let catalog = self.with.catalogs.get(&step.of.as_ref()?.catalog)?;
                let capability = cost::capability_of(kind, cost::of(&self.steps), catalog)?;
                Some(capability.gives.as_ref()?.iter().map(|name| name.as_str()).collect())
            }
        }
    }

    fn class(&self, kind: &StepKind) -> EffectClass {
        let StepKind::Effect { call, .. } = kind else { return EffectClass::Read };
        let capability = self.with.catalogs.get(&call.catalog).and_then(|c| c.capability(&call.capability));
        capability.map_or(EffectClass::SideEffect, |c| c.kind.class())
    }

    /// A read that is not the plain list or get of its entity is called by its name.
    fn says(&self, kind: &StepKind) -> Option<Says> {
        let (StepKind::Query { call, .. } | StepKind::Get { call, .. }) = kind else { return None };
        let catalog = self.with.catalogs.get(&call.catalog)?;
        let capability = catalog.capability(&call.capability)?;
        let what = match capability.kind {
            Kind::Search => format!("search {}", capability.entity),
            Kind::Get if catalog.get_of(&capability.entity).is_some_and(|get| get.name == capability.name) => {
                return None;
            }
            Kind::Get | Kind::Singleton => format!("{} {}", capability.method_name(), capability.entity),
            _ => return None,
        };
        Some(Says { what, undo: None })
    }
}

/// Where each node that a step uses is in the plan, by node.
struct Places(Vec<(usize, usize)>);

impl Places {
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
fn lower_read(with: With<'_>, steps: &[Step], take: &Take, around: &Around) -> Vec<Step> {
    let Some(last) = steps.len().checked_sub(1) else { return Vec::new() };
    let wanted = match take {
        Take::Path(path) => path.first().map_or(Wanted::Columns, |name| Wanted::Field(name)),
        Take::Key(_) => Wanted::Nothing,
    };
    let raw: Vec<Raw<'_>> = steps.iter().map(Raw::from).collect();
    let mut lowered = lower(with, &raw, &[(last, wanted)], around);
    // What is taken must be the last one; a node before it may have been what it came to.
    if let Some(root) = lowered.roots.first() {
        lowered.steps.truncate(root + 1);
    }
    lowered.steps
}

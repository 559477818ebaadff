//! What of each node its readers need: how many rows, and which fields.
//! Invariant: readers have higher numbers than what they read, so one walk downwards knows every reader of a node before the node.

use std::collections::BTreeSet;

use super::Catalogs;
use super::context::{NodeView, PlanContext, can_select_fields, capability_of};
use crate::ir::{EntityRef, Expr, Path, RowPart, Step, StepKind, relation_needs, template_names};

/// How many rows of a node its readers need, all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RowDemand {
    Nothing,
    First(usize),
    All,
}

/// Names that stand in the program and its catalogs.
pub(super) type Fields<'a> = BTreeSet<&'a str>;

/// The fields that are wanted of what must come out.
#[derive(Debug, Clone, Copy)]
pub(super) enum RequiredFields<'a> {
    Nothing,
    Field(&'a str),
    Columns,
}

impl<'a> RequiredFields<'a> {
    /// Of this node; none, where fields do not matter.
    pub fn fields(self, node: &NodeView<'a>, fields_matter: bool) -> Fields<'a> {
        match self {
            RequiredFields::Field(name) if fields_matter => Fields::from([name]),
            RequiredFields::Columns if fields_matter => node.columns.iter().map(|c| c.name.as_str()).collect(),
            _ => Fields::new(),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Needs<'a> {
    pub rows: Vec<RowDemand>,
    pub fields: Vec<Fields<'a>>,
}

/// What one step needs of one that it names.
#[derive(Debug, Clone)]
pub(super) struct InputUse<'a> {
    pub step: usize,
    pub rows: RowBound,
    pub fields: Fields<'a>,
    /// Whether what its own readers need is needed too.
    pub passes_on: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowBound {
    All,
    /// As many as its own readers need.
    Same,
    /// As many as its own readers need, and no more than this.
    AtMost(usize),
}

/// `roots` with the fields that are wanted of them.
pub(super) fn propagate_needs<'a>(
    steps: &[NodeView<'a>],
    uses: &[Vec<InputUse<'a>>],
    roots: &[(usize, Fields<'a>)],
) -> Needs<'a> {
    let mut needs = Needs { rows: vec![RowDemand::Nothing; steps.len()], fields: vec![Fields::new(); steps.len()] };
    for (root, fields) in roots {
        needs.rows[*root] = RowDemand::All;
        needs.fields[*root].extend(fields);
    }
    for at in (0..steps.len()).rev() {
        let own = needs.rows[at];
        if own == RowDemand::Nothing {
            continue;
        }
        for used in &uses[at] {
            let rows = match used.rows {
                RowBound::All => RowDemand::All,
                RowBound::Same => own,
                RowBound::AtMost(most) => own.min(RowDemand::First(most)),
            };
            needs.rows[used.step] = needs.rows[used.step].max(rows);
            let (below, own) = needs.fields.split_at_mut(at);
            if used.passes_on && below[used.step].is_empty() {
                below[used.step].clone_from(&own[0]);
            } else if used.passes_on {
                below[used.step].extend(&own[0]);
            }
            below[used.step].extend(&used.fields);
        }
    }
    needs
}

/// Whether it matters which fields are needed: where a list carries some of them only, or can be asked for some.
pub(super) fn selective(context: PlanContext<'_>, steps: &[NodeView<'_>]) -> bool {
    steps.iter().any(|step| {
        let catalog = step.of.as_ref().and_then(|of| context.catalogs.get(&of.catalog));
        let parent = |input: usize| steps.get(input)?.of.as_ref();
        let capability = catalog.and_then(|c| capability_of(step.kind, parent, c));
        capability.is_some_and(|c| c.gives.is_some() || can_select_fields(c))
    })
}

/// What each step needs of those that it names; without fields, where those do not matter.
pub(super) fn all_uses<'a>(catalogs: &'a Catalogs, steps: &[NodeView<'a>], fields: bool) -> Vec<Vec<InputUse<'a>>> {
    let analysis = UseAnalysis { catalogs, steps, fields };
    (0..steps.len()).map(|at| analysis.uses(at)).collect()
}

fn merge_uses(uses: Vec<InputUse<'_>>) -> Vec<InputUse<'_>> {
    let mut out: Vec<InputUse<'_>> = Vec::new();
    for used in uses {
        match out.iter_mut().find(|seen| seen.step == used.step) {
            Some(seen) => {
                seen.fields.extend(used.fields);
                seen.passes_on |= used.passes_on;
                if seen.rows != used.rows {
                    seen.rows = RowBound::All;
                }
            }
            None => out.push(used),
        }
    }
    out
}

struct UseAnalysis<'a, 's> {
    catalogs: &'a Catalogs,
    steps: &'s [NodeView<'a>],
    fields: bool,
}

impl<'a> UseAnalysis<'a, '_> {
    /// What a step needs of each step that it names, its input first, each once.
    fn uses(&self, at: usize) -> Vec<InputUse<'a>> {
        let step = &self.steps[at];
        let mut uses: Vec<InputUse<'a>> = Vec::new();
        uses.extend(step.kind.input().map(|input| self.input_use(step, input)));
        let mut row = Fields::new();
        for value in step.kind.values() {
            self.value_uses(value, &mut row, &mut uses);
        }
        // A row in the arguments of a filter or a follow is that of the plan around.
        if matches!(step.kind, StepKind::Derive { .. } | StepKind::Effect { .. } | StepKind::QueryPerRow { .. })
            && step.kind.input().is_some()
            && let Some(input) = uses.first_mut()
        {
            input.fields.extend(row);
        }
        if uses.len() < 2 { uses } else { merge_uses(uses) }
    }

    fn input_use(&self, step: &NodeView<'a>, input: usize) -> InputUse<'a> {
        let (rows, passes_on) = input_demand(step.kind);
        let fields = if self.fields { self.input_fields(step, input) } else { Fields::new() };
        InputUse { step: input, rows, fields, passes_on }
    }

    fn input_fields(&self, step: &NodeView<'a>, input: usize) -> Fields<'a> {
        match step.kind {
            StepKind::Filter { tests, .. } => first_names(tests.iter().map(|t| &t.path)),
            StepKind::Sort { by, .. } => first_names([by]),
            StepKind::Distinct { by, .. } if by.is_empty() => self.columns(input),
            StepKind::Distinct { by, .. } => first_names(by),
            StepKind::Attach { field, .. } => first_names([field]),
            StepKind::Aggregate { specs, .. } => first_names(specs.iter().filter_map(|s| s.path.as_ref())),
            StepKind::GroupBy { by, specs, .. } => {
                first_names(by.iter().map(|p| &p.path).chain(specs.iter().filter_map(|s| s.path.as_ref())))
            }
            StepKind::Project { columns, .. } => first_names(columns.iter().map(|c| &c.path)),
            StepKind::Template { source, names, .. } => {
                let mut fields = self.columns(input);
                fields.extend(template_fields(source, names));
                fields
            }
            StepKind::Follow { relation, .. } => {
                let parent = self.steps[input].of.as_ref();
                parent.map(|p| self.relation_fields(p, relation)).unwrap_or_default()
            }
            StepKind::Deref { field, .. } => Fields::from([field.as_str()]),
            _ => Fields::new(),
        }
    }

    fn columns(&self, at: usize) -> Fields<'a> {
        self.steps[at].columns.iter().map(|c| c.name.as_str()).collect()
    }

    fn selected_fields(&self, take: &'a RowPart) -> Fields<'a> {
        match take {
            RowPart::Path(path) => path.first().map(|name| name.as_str()).into_iter().collect(),
            RowPart::Key(of) => self.key_fields(of),
        }
    }

    fn key_fields(&self, of: &EntityRef) -> Fields<'a> {
        let entity = self.catalogs.get(&of.catalog).and_then(|c| c.entity(&of.entity));
        entity.into_iter().flat_map(|e| e.key.iter().map(|part| part.as_str())).collect()
    }

    /// Adds what a value needs of earlier steps to `found`, and what it needs of the row at hand to `row`.
    fn value_uses(&self, value: &'a Expr, row: &mut Fields<'a>, uses: &mut Vec<InputUse<'a>>) {
        match value {
            Expr::Value(_) => {}
            Expr::Step { step, take, .. } => {
                let whole = matches!(take, RowPart::Path(path) if path.is_empty());
                let fields = match (self.fields, whole) {
                    (false, _) => Fields::new(),
                    (true, true) => self.columns(*step),
                    (true, false) => self.selected_fields(take),
                };
                uses.push(InputUse { step: *step, rows: RowBound::All, fields, passes_on: false });
            }
            Expr::Row(take) if self.fields => row.extend(self.selected_fields(take)),
            Expr::Template { source, names } if self.fields => row.extend(template_fields(source, names)),
            Expr::Row(_) | Expr::Template { .. } => {}
            Expr::List(items) => items.iter().for_each(|item| self.value_uses(item, row, uses)),
            Expr::Object(pairs) => pairs.iter().for_each(|(_, item)| self.value_uses(item, row, uses)),
            Expr::Read { steps: inner, take } => self.read_uses(inner, take, row, uses),
        }
    }

    /// A read for a row needs of the plan around it what it was given, and of the row what its steps take of it.
    fn read_uses(&self, inner: &'a [Step], take: &'a RowPart, row: &mut Fields<'a>, uses: &mut Vec<InputUse<'a>>) {
        let Some(last) = inner.len().checked_sub(1) else { return };
        let nodes: Vec<NodeView<'a>> = inner.iter().map(NodeView::from).collect();
        let inner_uses = all_uses(self.catalogs, &nodes, self.fields);
        let fields = if self.fields { self.selected_fields(take) } else { Fields::new() };
        let mut needs = propagate_needs(&nodes, &inner_uses, &[(last, fields)]);
        let analysis = UseAnalysis { catalogs: self.catalogs, steps: &nodes, fields: self.fields };
        for (at, step) in inner.iter().enumerate() {
            match &step.kind {
                StepKind::OuterRows { step: Some(outer) } => {
                    let fields = std::mem::take(&mut needs.fields[at]);
                    uses.push(InputUse { step: *outer, rows: RowBound::All, fields, passes_on: false });
                }
                StepKind::OuterRows { step: None } => row.extend(&needs.fields[at]),
                StepKind::Derive { .. } | StepKind::QueryPerRow { .. } => {}
                kind => {
                    for value in kind.values() {
                        // Steps that it names are those of the read.
                        analysis.value_uses(value, row, &mut Vec::new());
                    }
                }
            }
        }
    }

    fn relation_fields(&self, parent: &EntityRef, relation: &str) -> Fields<'a> {
        let entity = self.catalogs.get(&parent.catalog).and_then(|c| c.entity(&parent.entity));
        let relation = entity.and_then(|e| e.relations.get(relation));
        relation.map(|relation| relation_needs(entity, relation).collect()).unwrap_or_default()
    }
}

/// How many rows of its input a step needs, and whether what its own readers need is needed of the input too.
fn input_demand(kind: &StepKind) -> (RowBound, bool) {
    match kind {
        StepKind::Filter { .. } | StepKind::Sort { .. } | StepKind::Last { .. } | StepKind::Distinct { .. } => {
            (RowBound::All, true)
        }
        StepKind::Limit { count, .. } => (RowBound::AtMost(*count), true),
        StepKind::First { .. } => (RowBound::AtMost(1), true),
        // A second row is enough to know that there are several.
        StepKind::Singleton { .. } => (RowBound::AtMost(2), true),
        StepKind::Attach { .. } | StepKind::Hydrate { .. } => (RowBound::Same, true),
        StepKind::Project { .. } | StepKind::Derive { .. } => (RowBound::Same, false),
        _ => (RowBound::All, false),
    }
}

fn first_names<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Fields<'a> {
    paths.into_iter().filter_map(|path| path.first()).map(|name| name.as_str()).collect()
}

/// Every name that a template has in its tags, as the rows call it.
fn template_fields<'a>(source: &'a str, names: &'a [(String, String)]) -> Fields<'a> {
    let uses = template_names(source).unwrap_or_default();
    let wire = |word: &'a str| names.iter().find(|(symbol, _)| symbol == word).map_or(word, |(_, name)| name.as_str());
    uses.chains.into_iter().flatten().map(wire).collect()
}

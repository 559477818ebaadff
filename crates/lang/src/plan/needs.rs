//! Computes how many rows and which fields of each node its readers need.
//! Invariant: a reader has a higher number than the nodes that it reads. A walk from the last node to the first
//! therefore visits all readers of a node before the node itself.

use std::collections::BTreeSet;

use super::PinnedCatalogs;
use super::context::{NodeView, PlanContext, can_select_fields, find_capability};
use crate::ir::{EntityRef, Expr, Path, RowPart, Step, StepKind, fields_needed_by_relation, template_names};

/// The number of rows of a node that all its readers together need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RowDemand {
    Nothing,
    First(usize),
    All,
}

/// Names of fields, borrowed from the program and the catalogs.
pub(super) type FieldNames<'a> = BTreeSet<&'a str>;

/// The fields of a root that its reader requires.
#[derive(Debug, Clone, Copy)]
pub(super) enum RequiredFields<'a> {
    Nothing,
    Field(&'a str),
    Columns,
}

impl<'a> RequiredFields<'a> {
    /// Returns the names of the required fields of a node. The set is empty if fields do not matter.
    pub fn required_names(self, node: &NodeView<'a>, fields_matter: bool) -> FieldNames<'a> {
        match self {
            RequiredFields::Field(name) if fields_matter => FieldNames::from([name]),
            RequiredFields::Columns if fields_matter => node.columns.iter().map(|c| c.name.as_str()).collect(),
            _ => FieldNames::new(),
        }
    }
}

/// The rows and fields that are needed of each node, by node number.
#[derive(Debug, Clone)]
pub(super) struct Needs<'a> {
    pub rows: Vec<RowDemand>,
    pub fields: Vec<FieldNames<'a>>,
}

/// The use of one input by a step.
#[derive(Debug, Clone)]
pub(super) struct InputUse<'a> {
    /// The number of the input step.
    pub step: usize,
    /// The number of input rows that are needed.
    pub rows: RowBound,
    /// The fields of the input that the step itself needs.
    pub fields: FieldNames<'a>,
    /// Whether the fields that the readers of the step need are also needed of the input.
    pub passes_fields_on: bool,
}

/// The number of rows of an input that a step needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowBound {
    All,
    /// As many rows as the readers of the step need.
    Same,
    /// As many rows as the readers of the step need, up to this number.
    AtMost(usize),
}

/// Collects the needs of all nodes by a walk from the last node to the first.
pub(super) fn propagate_needs<'a>(
    steps: &[NodeView<'a>],
    uses: &[Vec<InputUse<'a>>],
    roots: &[(usize, FieldNames<'a>)],
) -> Needs<'a> {
    let mut needs = Needs { rows: vec![RowDemand::Nothing; steps.len()], fields: vec![FieldNames::new(); steps.len()] };
    for (root, fields) in roots {
        needs.rows[*root] = RowDemand::All;
        needs.fields[*root].extend(fields);
    }
    for at in (0..steps.len()).rev() {
        let demand = needs.rows[at];
        if demand == RowDemand::Nothing {
            continue;
        }
        for used in &uses[at] {
            let rows = match used.rows {
                RowBound::All => RowDemand::All,
                RowBound::Same => demand,
                RowBound::AtMost(most_rows) => demand.min(RowDemand::First(most_rows)),
            };
            needs.rows[used.step] = needs.rows[used.step].max(rows);
            let (earlier, current_and_later) = needs.fields.split_at_mut(at);
            if used.passes_fields_on && earlier[used.step].is_empty() {
                earlier[used.step].clone_from(&current_and_later[0]);
            } else if used.passes_fields_on {
                earlier[used.step].extend(&current_and_later[0]);
            }
            earlier[used.step].extend(&used.fields);
        }
    }
    needs
}

/// Returns whether the needed fields influence the plan: a list returns only some fields, or the transport can select
/// fields.
pub(super) fn fields_matter(context: PlanContext<'_>, steps: &[NodeView<'_>]) -> bool {
    steps.iter().any(|step| {
        let catalog = step.of.as_ref().and_then(|of| context.catalogs.get(&of.catalog));
        let parent = |input: usize| steps.get(input)?.of.as_ref();
        let capability = catalog.and_then(|c| find_capability(step.kind, parent, c));
        capability.is_some_and(|c| c.gives.is_some() || can_select_fields(c))
    })
}

/// Lists the inputs that each step uses. If `fields_matter` is false, the fields are left out.
pub(super) fn list_all_uses<'a>(
    catalogs: &'a PinnedCatalogs,
    steps: &[NodeView<'a>],
    fields: bool,
) -> Vec<Vec<InputUse<'a>>> {
    let analysis = UseAnalysis { catalogs, steps, fields };
    (0..steps.len()).map(|at| analysis.list_uses(at)).collect()
}

/// Merges several uses of the same step into one.
fn merge_uses(uses: Vec<InputUse<'_>>) -> Vec<InputUse<'_>> {
    let mut out: Vec<InputUse<'_>> = Vec::new();
    for used in uses {
        match out.iter_mut().find(|known_use| known_use.step == used.step) {
            Some(known_use) => {
                known_use.fields.extend(used.fields);
                known_use.passes_fields_on |= used.passes_fields_on;
                if known_use.rows != used.rows {
                    known_use.rows = RowBound::All;
                }
            }
            None => out.push(used),
        }
    }
    out
}

/// The analysis of the inputs that nodes use.
struct UseAnalysis<'a, 's> {
    catalogs: &'a PinnedCatalogs,
    steps: &'s [NodeView<'a>],
    /// Whether the analysis collects fields.
    fields: bool,
}

impl<'a> UseAnalysis<'a, '_> {
    /// Lists the steps that a step uses, without duplicates. The input of the step comes first.
    fn list_uses(&self, at: usize) -> Vec<InputUse<'a>> {
        let step = &self.steps[at];
        let mut uses: Vec<InputUse<'a>> = Vec::new();
        uses.extend(step.kind.input().map(|input| self.use_of_input(step, input)));
        let mut row = FieldNames::new();
        for value in step.kind.values() {
            self.collect_value_uses(value, &mut row, &mut uses);
        }
        // Only for these steps, `Row` is a row of the input. In the arguments of a filter or a follow step, `Row` is
        // the current row of the enclosing plan.
        if matches!(step.kind, StepKind::Derive { .. } | StepKind::Effect { .. } | StepKind::QueryPerRow { .. })
            && step.kind.input().is_some()
            && let Some(input) = uses.first_mut()
        {
            input.fields.extend(row);
        }
        if uses.len() < 2 { uses } else { merge_uses(uses) }
    }

    /// Returns the use that a step makes of its input.
    fn use_of_input(&self, step: &NodeView<'a>, input: usize) -> InputUse<'a> {
        let InputDemand { rows, passes_fields_on } = demand_on_input(step.kind);
        let fields = if self.fields { self.fields_read_from_input(step, input) } else { FieldNames::new() };
        InputUse { step: input, rows, fields, passes_fields_on }
    }

    /// Returns the fields of the input that the operation of a step reads.
    fn fields_read_from_input(&self, step: &NodeView<'a>, input: usize) -> FieldNames<'a> {
        match step.kind {
            StepKind::Filter { tests, .. } => first_names_of_paths(tests.iter().map(|t| &t.path)),
            StepKind::Sort { by, .. } => first_names_of_paths([by]),
            StepKind::Distinct { by, .. } if by.is_empty() => self.column_names(input),
            StepKind::Distinct { by, .. } => first_names_of_paths(by),
            StepKind::Attach { field, .. } => first_names_of_paths([field]),
            StepKind::Aggregate { specs, .. } => first_names_of_paths(specs.iter().filter_map(|s| s.path.as_ref())),
            StepKind::GroupBy { by, specs, .. } => {
                first_names_of_paths(by.iter().map(|p| &p.path).chain(specs.iter().filter_map(|s| s.path.as_ref())))
            }
            StepKind::Project { columns, .. } => first_names_of_paths(columns.iter().map(|c| &c.path)),
            StepKind::Template { source, names, .. } => {
                let mut fields = self.column_names(input);
                fields.extend(fields_used_by_template(source, names));
                fields
            }
            StepKind::Follow { relation, .. } => {
                let parent = self.steps[input].of.as_ref();
                parent.map(|p| self.relation_fields(p, relation)).unwrap_or_default()
            }
            StepKind::Deref { field, .. } => FieldNames::from([field.as_str()]),
            _ => FieldNames::new(),
        }
    }

    /// Returns the names of all columns of a node.
    fn column_names(&self, at: usize) -> FieldNames<'a> {
        self.steps[at].columns.iter().map(|c| c.name.as_str()).collect()
    }

    /// Returns the fields that a row part reads.
    fn fields_of_row_part(&self, take: &'a RowPart) -> FieldNames<'a> {
        match take {
            RowPart::Path(path) => path.first().map(|name| name.as_str()).into_iter().collect(),
            RowPart::Key(of) => self.key_fields(of),
        }
    }

    fn key_fields(&self, of: &EntityRef) -> FieldNames<'a> {
        let entity = self.catalogs.get(&of.catalog).and_then(|c| c.entity(&of.entity));
        entity.into_iter().flat_map(|e| e.key.iter().map(|part| part.as_str())).collect()
    }

    /// Collects the uses in a value: `uses` gets the earlier steps that the value reads, and `row` gets the fields of
    /// the current row.
    fn collect_value_uses(&self, value: &'a Expr, row: &mut FieldNames<'a>, uses: &mut Vec<InputUse<'a>>) {
        match value {
            Expr::Value(_) => {}
            Expr::Step { step, take, .. } => {
                let whole = matches!(take, RowPart::Path(path) if path.is_empty());
                let fields = match (self.fields, whole) {
                    (false, _) => FieldNames::new(),
                    (true, true) => self.column_names(*step),
                    (true, false) => self.fields_of_row_part(take),
                };
                uses.push(InputUse { step: *step, rows: RowBound::All, fields, passes_fields_on: false });
            }
            Expr::Row(take) if self.fields => row.extend(self.fields_of_row_part(take)),
            Expr::Template { source, names } if self.fields => row.extend(fields_used_by_template(source, names)),
            Expr::Row(_) | Expr::Template { .. } => {}
            Expr::List(items) => items.iter().for_each(|item| self.collect_value_uses(item, row, uses)),
            Expr::Object(pairs) => pairs.iter().for_each(|(_, item)| self.collect_value_uses(item, row, uses)),
            Expr::Read { steps: inner, take } => self.collect_read_uses(inner, take, row, uses),
        }
    }

    /// Collects the uses in a read per row: `uses` gets the steps of the enclosing plan, and `row` gets the fields of
    /// the current row.
    fn collect_read_uses(
        &self,
        inner: &'a [Step],
        take: &'a RowPart,
        row: &mut FieldNames<'a>,
        uses: &mut Vec<InputUse<'a>>,
    ) {
        let Some(last) = inner.len().checked_sub(1) else { return };
        let nodes: Vec<NodeView<'a>> = inner.iter().map(NodeView::from).collect();
        let inner_uses = list_all_uses(self.catalogs, &nodes, self.fields);
        let fields = if self.fields { self.fields_of_row_part(take) } else { FieldNames::new() };
        let mut needs = propagate_needs(&nodes, &inner_uses, &[(last, fields)]);
        let analysis = UseAnalysis { catalogs: self.catalogs, steps: &nodes, fields: self.fields };
        for (at, step) in inner.iter().enumerate() {
            match &step.kind {
                StepKind::OuterRows { step: Some(outer) } => {
                    let fields = std::mem::take(&mut needs.fields[at]);
                    uses.push(InputUse { step: *outer, rows: RowBound::All, fields, passes_fields_on: false });
                }
                StepKind::OuterRows { step: None } => row.extend(&needs.fields[at]),
                StepKind::Derive { .. } | StepKind::QueryPerRow { .. } => {}
                kind => {
                    for value in kind.values() {
                        // The steps that a value refers to here belong to the inner read, so these uses are dropped.
                        analysis.collect_value_uses(value, row, &mut Vec::new());
                    }
                }
            }
        }
    }

    fn relation_fields(&self, parent: &EntityRef, relation: &str) -> FieldNames<'a> {
        let entity = self.catalogs.get(&parent.catalog).and_then(|c| c.entity(&parent.entity));
        let relation = entity.and_then(|e| e.relations.get(relation));
        relation.map(|relation| fields_needed_by_relation(entity, relation).collect()).unwrap_or_default()
    }
}

/// The rows and fields of its input that a step needs.
struct InputDemand {
    /// The number of input rows that the step needs.
    rows: RowBound,
    /// Whether the fields that the readers of the step need are also needed of the input.
    passes_fields_on: bool,
}

/// Returns the rows of its input that an operation needs.
fn demand_on_input(kind: &StepKind) -> InputDemand {
    let demand = |rows, passes_fields_on| InputDemand { rows, passes_fields_on };
    match kind {
        StepKind::Filter { .. } | StepKind::Sort { .. } | StepKind::Last { .. } | StepKind::Distinct { .. } => {
            demand(RowBound::All, true)
        }
        StepKind::Limit { count, .. } => demand(RowBound::AtMost(*count), true),
        StepKind::First { .. } => demand(RowBound::AtMost(1), true),
        // A second row is enough to detect that there are several.
        StepKind::Singleton { .. } => demand(RowBound::AtMost(2), true),
        StepKind::Attach { .. } | StepKind::Hydrate { .. } => demand(RowBound::Same, true),
        StepKind::Project { .. } | StepKind::Derive { .. } => demand(RowBound::Same, false),
        _ => demand(RowBound::All, false),
    }
}

/// Returns the first name of each path, which is a field of the row.
fn first_names_of_paths<'a>(paths: impl IntoIterator<Item = &'a Path>) -> FieldNames<'a> {
    paths.into_iter().filter_map(|path| path.first()).map(|name| name.as_str()).collect()
}

/// Returns every name in the tags of a template, by column name. Jinja variables and filters are included too; they
/// match no field and have no effect.
fn fields_used_by_template<'a>(source: &'a str, names: &'a [(String, String)]) -> FieldNames<'a> {
    let uses = template_names(source).unwrap_or_default();
    let wire = |word: &'a str| names.iter().find(|(symbol, _)| symbol == word).map_or(word, |(_, name)| name.as_str());
    uses.chains.into_iter().flatten().map(wire).collect()
}

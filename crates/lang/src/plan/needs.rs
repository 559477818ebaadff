//! What of each node its readers need: how many rows, and which fields.
//! Invariant: readers have higher numbers than what they read, so one walk downwards knows every reader of a node before the node.

use std::collections::{BTreeMap, BTreeSet};

use super::Catalogs;
use crate::ir::{EntityOf, Expr, Path, Step, StepKind, Take, chains, relation_needs};

/// How many rows of a node its readers need, all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rows {
    Nothing,
    First(usize),
    All,
}

pub(super) type Fields = BTreeSet<String>;

#[derive(Debug, Clone)]
pub(super) struct Needs {
    pub rows: Vec<Rows>,
    pub fields: Vec<Fields>,
}

/// What one step needs of one that it names.
#[derive(Debug, Clone)]
pub(super) struct Use {
    pub step: usize,
    pub rows: Bound,
    pub fields: Fields,
    /// Whether what its own readers need is needed too.
    pub pass: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    All,
    /// As many as its own readers need.
    Same,
    /// As many as its own readers need, and no more than this.
    AtMost(usize),
}

/// `roots` with the fields that are wanted of them.
pub(super) fn needs(steps: &[Step], uses: &[Vec<Use>], roots: &[(usize, Fields)]) -> Needs {
    let mut needs = Needs { rows: vec![Rows::Nothing; steps.len()], fields: vec![Fields::new(); steps.len()] };
    for (root, fields) in roots {
        needs.rows[*root] = Rows::All;
        needs.fields[*root].extend(fields.iter().cloned());
    }
    for at in (0..steps.len()).rev() {
        let own = needs.rows[at];
        if own == Rows::Nothing {
            continue;
        }
        for used in &uses[at] {
            let rows = match used.rows {
                Bound::All => Rows::All,
                Bound::Same => own,
                Bound::AtMost(most) => own.min(Rows::First(most)),
            };
            needs.rows[used.step] = needs.rows[used.step].max(rows);
            let (below, own) = needs.fields.split_at_mut(at);
            if used.pass && below[used.step].is_empty() {
                below[used.step].clone_from(&own[0]);
            } else if used.pass {
                below[used.step].extend(own[0].iter().cloned());
            }
            below[used.step].extend(used.fields.iter().cloned());
        }
    }
    needs
}

/// What each step needs of those that it names.
pub(super) fn all_uses(catalogs: &Catalogs, steps: &[Step]) -> Vec<Vec<Use>> {
    (0..steps.len()).map(|at| uses(catalogs, steps, at)).collect()
}

/// What a step needs of each step that it names, its input first, each once.
fn uses(catalogs: &Catalogs, steps: &[Step], at: usize) -> Vec<Use> {
    let step = &steps[at];
    let mut found: Vec<Use> = Vec::new();
    let mut row = Fields::new();
    for value in values(&step.kind) {
        value_uses(catalogs, steps, value, &mut row, &mut found);
    }
    if let Some(input) = step.kind.input() {
        let mut used = input_use(catalogs, steps, step, input);
        // A row in the arguments of a filter or a follow is that of the plan around.
        if matches!(step.kind, StepKind::Derive { .. } | StepKind::Effect { .. } | StepKind::Each { .. }) {
            used.fields.extend(row);
        }
        found.insert(0, used);
    }
    merged(found)
}

fn merged(found: Vec<Use>) -> Vec<Use> {
    let mut out: Vec<Use> = Vec::new();
    for used in found {
        match out.iter_mut().find(|seen| seen.step == used.step) {
            Some(seen) => {
                seen.fields.extend(used.fields);
                seen.pass |= used.pass;
                if seen.rows != used.rows {
                    seen.rows = Bound::All;
                }
            }
            None => out.push(used),
        }
    }
    out
}

/// The values that a step holds, in an order that does not depend on how it was written.
pub(super) fn values(kind: &StepKind) -> Vec<&Expr> {
    match kind {
        StepKind::Query { args, .. }
        | StepKind::Get { args, .. }
        | StepKind::Follow { args, .. }
        | StepKind::Each { args, .. }
        | StepKind::Effect { args, .. } => args.values().collect(),
        StepKind::Filter { tests, .. } => tests.iter().map(|t| &t.value).collect(),
        StepKind::Derive { object, .. } => object.iter().map(|(_, value)| value).collect(),
        StepKind::Rows { items } => items.iter().collect(),
        _ => Vec::new(),
    }
}

fn input_use(catalogs: &Catalogs, steps: &[Step], step: &Step, input: usize) -> Use {
    let heads =
        |paths: &mut dyn Iterator<Item = &Path>| -> Fields { paths.filter_map(|p| p.first().cloned()).collect() };
    let of = |rows, fields, pass| Use { step: input, rows, fields, pass };
    match &step.kind {
        StepKind::Filter { tests, .. } => of(Bound::All, heads(&mut tests.iter().map(|t| &t.path)), true),
        StepKind::Sort { by, .. } => of(Bound::All, heads(&mut [by].into_iter()), true),
        StepKind::Limit { count, .. } => of(Bound::AtMost(*count), Fields::new(), true),
        StepKind::First { .. } => of(Bound::AtMost(1), Fields::new(), true),
        // A second row is enough to know that there are several.
        StepKind::Singleton { .. } => of(Bound::AtMost(2), Fields::new(), true),
        StepKind::Last { .. } => of(Bound::All, Fields::new(), true),
        StepKind::Distinct { by, .. } if by.is_empty() => of(Bound::All, columns(steps, input), true),
        StepKind::Distinct { by, .. } => of(Bound::All, heads(&mut by.iter()), true),
        StepKind::Attach { field, .. } => of(Bound::Same, heads(&mut [field].into_iter()), true),
        StepKind::Hydrate { .. } => of(Bound::Same, Fields::new(), true),
        StepKind::Aggregate { specs, .. } => {
            of(Bound::All, heads(&mut specs.iter().filter_map(|s| s.path.as_ref())), false)
        }
        StepKind::GroupBy { by, specs, .. } => {
            let paths = by.iter().map(|p| &p.path).chain(specs.iter().filter_map(|s| s.path.as_ref()));
            of(Bound::All, heads(&mut { paths }), false)
        }
        StepKind::Project { columns, .. } => of(Bound::Same, heads(&mut columns.iter().map(|c| &c.path)), false),
        StepKind::Derive { .. } => of(Bound::Same, Fields::new(), false),
        StepKind::Template { source, names, .. } => {
            let mut fields = columns(steps, input);
            fields.extend(words(source, names));
            of(Bound::All, fields, false)
        }
        StepKind::Follow { relation, .. } => {
            let parent = steps[input].of.as_ref();
            of(Bound::All, parent.map(|p| relation_fields(catalogs, p, relation)).unwrap_or_default(), false)
        }
        StepKind::Deref { field, .. } => of(Bound::All, Fields::from([field.clone()]), false),
        _ => of(Bound::All, Fields::new(), false),
    }
}

fn columns(steps: &[Step], at: usize) -> Fields {
    steps[at].columns.iter().map(|c| c.name.clone()).collect()
}

/// Every name that a template has in its tags, as the rows call it.
fn words(source: &str, names: &[(String, String)]) -> Fields {
    let symbols: BTreeMap<&str, &str> = names.iter().map(|(symbol, name)| (symbol.as_str(), name.as_str())).collect();
    let found = chains(source).unwrap_or_default();
    let wire = |word: String| symbols.get(word.as_str()).map_or(word.clone(), |name| (*name).to_owned());
    found.chains.into_iter().flatten().map(wire).collect()
}

fn taken(catalogs: &Catalogs, take: &Take) -> Fields {
    match take {
        Take::Path(path) => path.first().cloned().into_iter().collect(),
        Take::Key(of) => key_of(catalogs, of),
    }
}

fn key_of(catalogs: &Catalogs, of: &EntityOf) -> Fields {
    let entity = catalogs.get(&of.catalog).and_then(|c| c.entity(&of.entity));
    entity.into_iter().flat_map(|e| e.key.iter().cloned()).collect()
}

/// Adds what a value needs of earlier steps to `found`, and what it needs of the row at hand to `row`.
fn value_uses(catalogs: &Catalogs, steps: &[Step], value: &Expr, row: &mut Fields, found: &mut Vec<Use>) {
    match value {
        Expr::Value(_) => {}
        Expr::Step { step, take, .. } => {
            let whole = matches!(take, Take::Path(path) if path.is_empty());
            let fields = if whole { columns(steps, *step) } else { taken(catalogs, take) };
            found.push(Use { step: *step, rows: Bound::All, fields, pass: false });
        }
        Expr::Row(take) => row.extend(taken(catalogs, take)),
        Expr::List(items) => items.iter().for_each(|item| value_uses(catalogs, steps, item, row, found)),
        Expr::Object(pairs) => pairs.iter().for_each(|(_, item)| value_uses(catalogs, steps, item, row, found)),
        Expr::Template { source, names } => row.extend(words(source, names)),
        Expr::Read { steps: inner, take } => read_uses(catalogs, inner, take, row, found),
    }
}

/// A read for a row needs of the plan around it what it was given, and of the row what its steps take of it.
fn read_uses(catalogs: &Catalogs, inner: &[Step], take: &Take, row: &mut Fields, found: &mut Vec<Use>) {
    let Some(last) = inner.len().checked_sub(1) else { return };
    let needs = needs(inner, &all_uses(catalogs, inner), &[(last, taken(catalogs, take))]);
    for (at, step) in inner.iter().enumerate() {
        match &step.kind {
            StepKind::Given { step: Some(outer) } => {
                found.push(Use { step: *outer, rows: Bound::All, fields: needs.fields[at].clone(), pass: false });
            }
            StepKind::Given { step: None } => row.extend(needs.fields[at].iter().cloned()),
            StepKind::Derive { .. } | StepKind::Each { .. } => {}
            kind => {
                for value in values(kind) {
                    // Steps that it names are those of the read.
                    value_uses(catalogs, inner, value, row, &mut Vec::new());
                }
            }
        }
    }
}

fn relation_fields(catalogs: &Catalogs, parent: &EntityOf, relation: &str) -> Fields {
    let entity = catalogs.get(&parent.catalog).and_then(|c| c.entity(&parent.entity));
    let relation = entity.and_then(|e| e.relations.get(relation));
    relation.map(|relation| relation_needs(entity, relation).into_iter().collect()).unwrap_or_default()
}

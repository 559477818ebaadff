//! What of each node its readers need: how many rows, and which fields.
//! Invariant: readers have higher numbers than what they read, so one walk downwards knows every reader of a node before the node.

use std::collections::BTreeSet;

use super::lower::With;
use super::raw::Raw;
use super::{Catalogs, cost};
use crate::ir::{EntityOf, Expr, Path, Step, StepKind, Take, chains, relation_needs};

/// How many rows of a node its readers need, all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rows {
    Nothing,
    First(usize),
    All,
}

/// Names that stand in the program and its catalogs.
pub(super) type Fields<'a> = BTreeSet<&'a str>;

/// The fields that are wanted of what must come out.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted<'a> {
    Nothing,
    Field(&'a str),
    Columns,
}

impl<'a> Wanted<'a> {
    /// Of this node; none, where fields do not matter.
    pub fn fields(self, node: &Raw<'a>, matter: bool) -> Fields<'a> {
        match self {
            Wanted::Field(name) if matter => Fields::from([name]),
            Wanted::Columns if matter => node.columns.iter().map(|c| c.name.as_str()).collect(),
            _ => Fields::new(),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Needs<'a> {
    pub rows: Vec<Rows>,
    pub fields: Vec<Fields<'a>>,
}

/// What one step needs of one that it names.
#[derive(Debug, Clone)]
pub(super) struct Use<'a> {
    pub step: usize,
    pub rows: Bound,
    pub fields: Fields<'a>,
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
pub(super) fn needs<'a>(steps: &[Raw<'a>], uses: &[Vec<Use<'a>>], roots: &[(usize, Fields<'a>)]) -> Needs<'a> {
    let mut needs = Needs { rows: vec![Rows::Nothing; steps.len()], fields: vec![Fields::new(); steps.len()] };
    for (root, fields) in roots {
        needs.rows[*root] = Rows::All;
        needs.fields[*root].extend(fields);
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
                below[used.step].extend(&own[0]);
            }
            below[used.step].extend(&used.fields);
        }
    }
    needs
}

/// Whether it matters which fields are needed: where a list carries some of them only, or can be asked for some.
pub(super) fn selective(with: With<'_>, steps: &[Raw<'_>]) -> bool {
    steps.iter().any(|step| {
        let catalog = step.of.as_ref().and_then(|of| with.catalogs.get(&of.catalog));
        let parent = |input: usize| steps.get(input)?.of.as_ref();
        let capability = catalog.and_then(|c| cost::capability_of(step.kind, parent, c));
        capability.is_some_and(|c| c.gives.is_some() || cost::selects(c))
    })
}

/// What each step needs of those that it names; without fields, where those do not matter.
pub(super) fn all_uses<'a>(catalogs: &'a Catalogs, steps: &[Raw<'a>], fields: bool) -> Vec<Vec<Use<'a>>> {
    let look = Look { catalogs, steps, fields };
    (0..steps.len()).map(|at| look.uses(at)).collect()
}

fn merged(found: Vec<Use<'_>>) -> Vec<Use<'_>> {
    let mut out: Vec<Use<'_>> = Vec::new();
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
pub(super) fn values(kind: &StepKind) -> impl Iterator<Item = &Expr> {
    let args = match kind {
        StepKind::Query { args, .. }
        | StepKind::Get { args, .. }
        | StepKind::Follow { args, .. }
        | StepKind::Each { args, .. }
        | StepKind::Effect { args, .. } => Some(args.values()),
        _ => None,
    };
    let (tests, object, items) = match kind {
        StepKind::Filter { tests, .. } => (tests.as_slice(), [].as_slice(), [].as_slice()),
        StepKind::Derive { object, .. } => ([].as_slice(), object.as_slice(), [].as_slice()),
        StepKind::Rows { items } => ([].as_slice(), [].as_slice(), items.as_slice()),
        _ => ([].as_slice(), [].as_slice(), [].as_slice()),
    };
    let written = tests.iter().map(|t| &t.value).chain(object.iter().map(|(_, value)| value)).chain(items);
    args.into_iter().flatten().chain(written)
}

struct Look<'a, 's> {
    catalogs: &'a Catalogs,
    steps: &'s [Raw<'a>],
    fields: bool,
}

impl<'a> Look<'a, '_> {
    /// What a step needs of each step that it names, its input first, each once.
    fn uses(&self, at: usize) -> Vec<Use<'a>> {
        let step = &self.steps[at];
        let mut found: Vec<Use<'a>> = Vec::new();
        found.extend(step.kind.input().map(|input| self.input_use(step, input)));
        let mut row = Fields::new();
        for value in values(step.kind) {
            self.value_uses(value, &mut row, &mut found);
        }
        // A row in the arguments of a filter or a follow is that of the plan around.
        if matches!(step.kind, StepKind::Derive { .. } | StepKind::Effect { .. } | StepKind::Each { .. })
            && step.kind.input().is_some()
            && let Some(input) = found.first_mut()
        {
            input.fields.extend(row);
        }
        if found.len() < 2 { found } else { merged(found) }
    }

    fn input_use(&self, step: &Raw<'a>, input: usize) -> Use<'a> {
        let (rows, pass) = reach(step.kind);
        let fields = if self.fields { self.input_fields(step, input) } else { Fields::new() };
        Use { step: input, rows, fields, pass }
    }

    fn input_fields(&self, step: &Raw<'a>, input: usize) -> Fields<'a> {
        match step.kind {
            StepKind::Filter { tests, .. } => heads(tests.iter().map(|t| &t.path)),
            StepKind::Sort { by, .. } => heads([by]),
            StepKind::Distinct { by, .. } if by.is_empty() => self.columns(input),
            StepKind::Distinct { by, .. } => heads(by),
            StepKind::Attach { field, .. } => heads([field]),
            StepKind::Aggregate { specs, .. } => heads(specs.iter().filter_map(|s| s.path.as_ref())),
            StepKind::GroupBy { by, specs, .. } => {
                heads(by.iter().map(|p| &p.path).chain(specs.iter().filter_map(|s| s.path.as_ref())))
            }
            StepKind::Project { columns, .. } => heads(columns.iter().map(|c| &c.path)),
            StepKind::Template { source, names, .. } => {
                let mut fields = self.columns(input);
                fields.extend(words(source, names));
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

    fn taken(&self, take: &'a Take) -> Fields<'a> {
        match take {
            Take::Path(path) => path.first().map(|name| name.as_str()).into_iter().collect(),
            Take::Key(of) => self.key_of(of),
        }
    }

    fn key_of(&self, of: &EntityOf) -> Fields<'a> {
        let entity = self.catalogs.get(&of.catalog).and_then(|c| c.entity(&of.entity));
        entity.into_iter().flat_map(|e| e.key.iter().map(|part| part.as_str())).collect()
    }

    /// Adds what a value needs of earlier steps to `found`, and what it needs of the row at hand to `row`.
    fn value_uses(&self, value: &'a Expr, row: &mut Fields<'a>, found: &mut Vec<Use<'a>>) {
        match value {
            Expr::Value(_) => {}
            Expr::Step { step, take, .. } => {
                let whole = matches!(take, Take::Path(path) if path.is_empty());
                let fields = match (self.fields, whole) {
                    (false, _) => Fields::new(),
                    (true, true) => self.columns(*step),
                    (true, false) => self.taken(take),
                };
                found.push(Use { step: *step, rows: Bound::All, fields, pass: false });
            }
            Expr::Row(take) if self.fields => row.extend(self.taken(take)),
            Expr::Template { source, names } if self.fields => row.extend(words(source, names)),
            Expr::Row(_) | Expr::Template { .. } => {}
            Expr::List(items) => items.iter().for_each(|item| self.value_uses(item, row, found)),
            Expr::Object(pairs) => pairs.iter().for_each(|(_, item)| self.value_uses(item, row, found)),
            Expr::Read { steps: inner, take } => self.read_uses(inner, take, row, found),
        }
    }

    /// A read for a row needs of the plan around it what it was given, and of the row what its steps take of it.
    fn read_uses(&self, inner: &'a [Step], take: &'a Take, row: &mut Fields<'a>, found: &mut Vec<Use<'a>>) {
        let Some(last) = inner.len().checked_sub(1) else { return };
        let raw: Vec<Raw<'a>> = inner.iter().map(Raw::from).collect();
        let uses = all_uses(self.catalogs, &raw, self.fields);
        let fields = if self.fields { self.taken(take) } else { Fields::new() };
        let mut needs = needs(&raw, &uses, &[(last, fields)]);
        let look = Look { catalogs: self.catalogs, steps: &raw, fields: self.fields };
        for (at, step) in inner.iter().enumerate() {
            match &step.kind {
                StepKind::Given { step: Some(outer) } => {
                    let fields = std::mem::take(&mut needs.fields[at]);
                    found.push(Use { step: *outer, rows: Bound::All, fields, pass: false });
                }
                StepKind::Given { step: None } => row.extend(&needs.fields[at]),
                StepKind::Derive { .. } | StepKind::Each { .. } => {}
                kind => {
                    for value in values(kind) {
                        // Steps that it names are those of the read.
                        look.value_uses(value, row, &mut Vec::new());
                    }
                }
            }
        }
    }

    fn relation_fields(&self, parent: &EntityOf, relation: &str) -> Fields<'a> {
        let entity = self.catalogs.get(&parent.catalog).and_then(|c| c.entity(&parent.entity));
        let relation = entity.and_then(|e| e.relations.get(relation));
        relation.map(|relation| relation_needs(entity, relation).collect()).unwrap_or_default()
    }
}

/// How many rows of its input a step needs, and whether what its own readers need is needed of the input too.
fn reach(kind: &StepKind) -> (Bound, bool) {
    match kind {
        StepKind::Filter { .. } | StepKind::Sort { .. } | StepKind::Last { .. } | StepKind::Distinct { .. } => {
            (Bound::All, true)
        }
        StepKind::Limit { count, .. } => (Bound::AtMost(*count), true),
        StepKind::First { .. } => (Bound::AtMost(1), true),
        // A second row is enough to know that there are several.
        StepKind::Singleton { .. } => (Bound::AtMost(2), true),
        StepKind::Attach { .. } | StepKind::Hydrate { .. } => (Bound::Same, true),
        StepKind::Project { .. } | StepKind::Derive { .. } => (Bound::Same, false),
        _ => (Bound::All, false),
    }
}

fn heads<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Fields<'a> {
    paths.into_iter().filter_map(|path| path.first()).map(|name| name.as_str()).collect()
}

/// Every name that a template has in its tags, as the rows call it.
fn words<'a>(source: &'a str, names: &'a [(String, String)]) -> Fields<'a> {
    let found = chains(source).unwrap_or_default();
    let wire = |word: &'a str| names.iter().find(|(symbol, _)| symbol == word).map_or(word, |(_, name)| name.as_str());
    found.chains.into_iter().flatten().map(wire).collect()
}

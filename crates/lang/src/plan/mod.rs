//! What will be done: steps in the order they may run, what each returns, how much each may call, and a digest over all of it.
//! Invariant: a plan is a pure function of a `Checked` program and the limits; names given to steps do not change its digest.

mod context;
mod cost;
mod explain;
mod lower;
mod needs;
mod verdict;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use base::{CatalogId, Digest, Limits};
use catalog::Catalog;
use serde::{Deserialize, Serialize};

use crate::check::Checked;

pub use crate::ir::{
    Aggregation, Args, CapabilityRef, Column, ComparisonOp, EntityRef, Expr, FilterTest, Function, NamedPath, Path,
    RowPart, Shape, Step, StepDescription, StepKind,
};
pub use explain::explain;

pub(crate) type Catalogs = BTreeMap<CatalogId, Arc<Catalog>>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Each step uses only earlier ones.
    pub steps: Vec<Step>,
    pub returns: Vec<PlanResult>,
    /// Catalogs used, by id, with the digest that the session pinned.
    pub catalogs: Vec<(CatalogId, Digest)>,
    pub digest: Digest,
    pub verdict: Verdict,
    pub bounds: Bounds,
    pub warnings: Vec<String>,
}

/// What a run may cost at most; it stops with what it has rather than exceed one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Calls, by catalog.
    pub calls: BTreeMap<CatalogId, usize>,
    /// Rows that are read.
    pub rows: usize,
    /// Bytes of answers.
    pub bytes: u64,
    /// Effects, by catalog and capability.
    pub effects: BTreeMap<String, usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanResult {
    pub label: String,
    pub step: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Reads within the session's limits.
    Ok,
    /// It changes something, or makes more calls than may run unasked.
    Review,
}

pub fn plan(checked: &Checked, limits: &Limits) -> Plan {
    let raw: Vec<context::NodeView<'_>> = checked.nodes().iter().map(context::NodeView::from).collect();
    let is_effect = |at: &usize| matches!(raw[*at].kind, StepKind::Effect { .. });
    // An effect happens whether or not a result shows it, and in the order written.
    let effects = (0..raw.len()).filter(is_effect).map(|at| (at, needs::RequiredFields::Nothing));
    let returned = checked.returns().iter().map(|r| (r.node.0, needs::RequiredFields::Columns));
    let roots: Vec<(usize, needs::RequiredFields<'_>)> = effects.chain(returned).collect();
    let context = context::PlanContext { catalogs: checked.catalogs(), limits };
    let lower::LoweredPlan { mut steps, roots, catalogs_used } = lower::lower(context, &raw, &roots, &BTreeMap::new());
    let first = roots.len() - checked.returns().len();
    let returns: Vec<PlanResult> = checked
        .returns()
        .iter()
        .zip(&roots[first..])
        .map(|(r, step)| PlanResult {
            label: r.label.clone(),
            step: project_declared_columns(&mut steps, *step, checked, r.node.0),
        })
        .collect();
    let catalogs: Vec<(CatalogId, Digest)> =
        catalogs_used.into_iter().filter_map(|id| Some((id.clone(), checked.catalogs().get(&id)?.digest()))).collect();
    let digest = digest(&steps, &returns, &catalogs);
    let (verdict, warnings) = verdict::verdict(context, &steps, &returns);
    let bounds = bounds(&steps, limits);
    Plan { steps, returns, catalogs, digest, verdict, bounds, warnings }
}

/// A result shows the columns that the program gave it, not fields that were read on the way.
fn project_declared_columns(steps: &mut Vec<Step>, at: usize, checked: &Checked, node: usize) -> usize {
    let (Some(step), Some(node)) = (steps.get(at), checked.nodes().get(node)) else { return at };
    if step.columns.len() <= node.rows.columns.len() {
        return at;
    }
    let wanted = &node.rows.columns;
    let columns = wanted.iter().map(|c| NamedPath { name: c.name.clone(), path: vec![c.name.clone()] }).collect();
    let mut projection = step.clone();
    Arc::make_mut(&mut projection.columns).retain(|c| wanted.iter().any(|w| w.name == c.name));
    projection.kind = StepKind::Project { input: at, columns };
    (projection.calls, projection.effects, projection.after, projection.description) = (0, 0, None, None);
    (projection.class, projection.label) = (catalog::EffectClass::Read, None);
    if projection.shape == Shape::Effect {
        projection.shape = Shape::List;
    }
    steps.push(projection);
    steps.len() - 1
}

fn bounds(steps: &[Step], limits: &Limits) -> Bounds {
    let mut bounds = Bounds::default();
    for step in steps.iter().filter(|s| s.kind.calls_api()) {
        add_calls(&mut bounds, step, 1);
        bounds.rows = bounds.rows.saturating_add(step.rows);
        bounds.bytes = bounds.bytes.saturating_add((step.calls as u64).saturating_mul(limits.response_bytes as u64));
        if let StepKind::Effect { call, .. } = &step.kind {
            let effects = bounds.effects.entry(format!("{}:{}", call.catalog, call.capability)).or_default();
            *effects = effects.saturating_add(step.effects);
        }
    }
    bounds
}

/// Calls go to the catalog that a step calls; those of a read for each row to the catalogs of its own steps.
fn add_calls(bounds: &mut Bounds, step: &Step, times: usize) {
    let mut own = step.calls.saturating_mul(times);
    let rows = match &step.kind {
        StepKind::Derive { .. } => times.saturating_mul(step.rows),
        StepKind::Effect { .. } => times.saturating_mul(step.effects),
        _ => 0,
    };
    for inner in step.kind.values().flat_map(reads_in) {
        own = own.saturating_sub(inner.calls.saturating_mul(rows));
        add_calls(bounds, inner, rows);
    }
    let catalog = match &step.kind {
        StepKind::Effect { call, .. } => Some(&call.catalog),
        _ => step.of.as_ref().map(|of| &of.catalog),
    };
    if let (Some(catalog), true) = (catalog, own > 0) {
        let calls = bounds.calls.entry(catalog.clone()).or_default();
        *calls = calls.saturating_add(own);
    }
}

fn reads_in(value: &Expr) -> Vec<&Step> {
    match value {
        Expr::Read { steps, .. } => steps.iter().collect(),
        Expr::List(items) => items.iter().flat_map(reads_in).collect(),
        Expr::Object(pairs) => pairs.iter().flat_map(|(_, item)| reads_in(item)).collect(),
        _ => Vec::new(),
    }
}

/// Over steps, edges, order, returns and catalogs, and nothing else. The columns follow from the steps and the catalogs.
fn digest(steps: &[Step], returns: &[PlanResult], catalogs: &[(CatalogId, Digest)]) -> Digest {
    let mut text = Vec::with_capacity(256 * steps.len() + 256);
    for step in steps {
        let plain = step.kind.values().all(has_one_spelling);
        let kind = if plain { Cow::Borrowed(&step.kind) } else { Cow::Owned(normalized(&step.kind)) };
        append_json(&mut text, &(kind, &step.of, step.after));
    }
    let returns: Vec<usize> = returns.iter().map(|r| r.step).collect();
    append_json(&mut text, &(returns, catalogs));
    Digest::of(&text)
}

/// As JSON, which does not fail on what a plan is made of.
fn append_json(text: &mut Vec<u8>, part: &impl Serialize) {
    if serde_json::to_writer(&mut *text, part).is_err() {
        text.extend_from_slice(b"null");
    }
    text.push(b'\n');
}

/// Whether a value is written in one way only, and has nothing in it that is only for reading.
fn has_one_spelling(value: &Expr) -> bool {
    match value {
        Expr::Value(known) => !known.is_object() && !known.is_array(),
        Expr::Step { .. } | Expr::Row(_) | Expr::Template { .. } => true,
        Expr::List(_) | Expr::Object(_) | Expr::Read { .. } => false,
    }
}

/// A step without what is only for reading, with objects in one order.
fn normalized(kind: &StepKind) -> StepKind {
    let mut kind = kind.clone();
    match &mut kind {
        StepKind::Query { args, .. }
        | StepKind::Get { args, .. }
        | StepKind::Follow { args, .. }
        | StepKind::QueryPerRow { args, .. }
        | StepKind::Effect { args, .. } => args.values_mut().for_each(normalize_value),
        StepKind::Filter { tests, .. } => tests.iter_mut().for_each(|t| normalize_value(&mut t.value)),
        StepKind::Derive { object, .. } => object.iter_mut().for_each(|(_, value)| normalize_value(value)),
        StepKind::Rows { items } => items.iter_mut().for_each(normalize_value),
        _ => {}
    }
    kind
}

fn normalize_value(value: &mut Expr) {
    match value {
        Expr::Value(known) if known.is_object() || known.is_array() => {
            *known = serde_json::Value::String(base::canonical(known));
        }
        Expr::Read { steps, .. } => {
            for step in steps {
                step.kind = normalized(&step.kind);
                (step.label, step.description) = (None, None);
                step.columns = Arc::default();
            }
        }
        Expr::List(items) => items.iter_mut().for_each(normalize_value),
        Expr::Object(pairs) => pairs.iter_mut().for_each(|(_, item)| normalize_value(item)),
        Expr::Value(_) | Expr::Step { .. } | Expr::Row(_) | Expr::Template { .. } => {}
    }
}

/// What a step is called: by the program, by the result that it is, or by its number.
fn step_name(steps: &[Step], returns: &[PlanResult], at: usize) -> String {
    let given = steps.get(at).and_then(|step| step.label.as_ref().map(ToString::to_string));
    let returned = || returns.iter().find(|r| r.step == at).map(|r| r.label.clone());
    given.or_else(returned).unwrap_or_else(|| format!("#{:02}", at + 1))
}

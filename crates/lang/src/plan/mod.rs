//! Plans a checked program: steps in execution order, the results, the bounds, the verdict, and a digest of the
//! meaning.
//! Invariant: a plan is a pure function of the `Checked` program and the limits. Labels of steps do not change the
//! digest.

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
pub use explain::{explain, explain_within};

/// The catalogs that the session pinned, by id.
pub(crate) type PinnedCatalogs = BTreeMap<CatalogId, Arc<Catalog>>;

/// The plan of a program. It is stored with its digest, so its JSON names must not change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The steps. A step uses only earlier steps.
    pub steps: Vec<Step>,
    /// The results of the program, in the order written.
    pub returns: Vec<PlanResult>,
    /// The id of each catalog that the plan uses, with the digest that the session pinned.
    pub catalogs: Vec<(CatalogId, Digest)>,
    /// The digest of the meaning. Equal programs have equal digests, even if they label their steps differently.
    pub digest: Digest,
    /// Whether the plan may run at once.
    pub verdict: Verdict,
    /// The upper bounds of the cost of a run.
    pub bounds: Bounds,
    /// The warnings for the reader of the plan, one sentence each.
    pub warnings: Vec<String>,
}

/// The upper bounds of the cost of a run. A run that reaches a bound stops and returns the rows that it has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// The most calls to each catalog.
    pub calls: BTreeMap<CatalogId, usize>,
    /// The most rows that are read.
    pub rows: usize,
    /// The most bytes of all answers together.
    pub bytes: u64,
    /// The most effects of each capability, by `catalog:capability`.
    pub effects: BTreeMap<String, usize>,
}

/// One result of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanResult {
    /// The name of the result.
    pub label: String,
    /// The index of the step whose rows are the result.
    pub step: usize,
}

/// Whether a plan may run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The plan only reads, within the limits of the session.
    Ok,
    /// The plan has effects, or makes more calls than are allowed without a review.
    Review,
}

/// Plans a checked program within the limits.
pub fn plan(checked: &Checked, limits: &Limits) -> Plan {
    let nodes: Vec<context::NodeView<'_>> = checked.nodes().iter().map(context::NodeView::from).collect();
    let is_effect = |at: &usize| matches!(nodes[*at].kind, StepKind::Effect { .. });
    // Effects are roots too, because an effect must happen even if no result shows it.
    let effect_roots = (0..nodes.len()).filter(is_effect).map(|at| (at, needs::RequiredFields::Nothing));
    let result_roots = checked.returns().iter().map(|r| (r.node.0, needs::RequiredFields::Columns));
    let roots: Vec<(usize, needs::RequiredFields<'_>)> = effect_roots.chain(result_roots).collect();
    let context = context::PlanContext { catalogs: checked.catalogs(), limits };
    let lower::LoweredPlan { mut steps, roots, catalogs_used } =
        lower::lower_to_steps(context, &nodes, &roots, &BTreeMap::new());
    // The roots of the effects come first, followed by the roots of the results.
    let first_result = roots.len() - checked.returns().len();
    let returns: Vec<PlanResult> = checked
        .returns()
        .iter()
        .zip(&roots[first_result..])
        .map(|(r, step)| PlanResult {
            label: r.label.clone(),
            step: project_declared_columns(&mut steps, *step, checked, r.node.0),
        })
        .collect();
    let catalogs: Vec<(CatalogId, Digest)> =
        catalogs_used.into_iter().filter_map(|id| Some((id.clone(), checked.catalogs().get(&id)?.digest()))).collect();
    let digest = compute_digest(&steps, &returns, &catalogs);
    let (verdict, warnings) = verdict::decide_verdict(context, &steps, &returns);
    let bounds = sum_bounds(&steps, limits);
    Plan { steps, returns, catalogs, digest, verdict, bounds, warnings }
}

/// Adds a projection if the rows of a result contain more fields than the program asked for. Returns the index of the
/// step with the final rows.
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
    projection.calls = 0;
    projection.effects = 0;
    projection.after = None;
    projection.description = None;
    projection.class = catalog::EffectClass::Read;
    projection.label = None;
    if projection.shape == Shape::Effect {
        projection.shape = Shape::List;
    }
    steps.push(projection);
    steps.len() - 1
}

/// Adds up the bounds of the steps.
fn sum_bounds(steps: &[Step], limits: &Limits) -> Bounds {
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

/// Adds the calls of a step to its catalog. The calls of a read per row are added to the catalogs of its inner steps.
fn add_calls(bounds: &mut Bounds, step: &Step, times: usize) {
    let mut own_calls = step.calls.saturating_mul(times);
    let rows = match &step.kind {
        StepKind::Derive { .. } => times.saturating_mul(step.rows),
        StepKind::Effect { .. } => times.saturating_mul(step.effects),
        _ => 0,
    };
    for inner in step.kind.values().flat_map(inner_steps_in) {
        own_calls = own_calls.saturating_sub(inner.calls.saturating_mul(rows));
        add_calls(bounds, inner, rows);
    }
    let catalog = match &step.kind {
        StepKind::Effect { call, .. } => Some(&call.catalog),
        _ => step.of.as_ref().map(|of| &of.catalog),
    };
    if let (Some(catalog), true) = (catalog, own_calls > 0) {
        let calls = bounds.calls.entry(catalog.clone()).or_default();
        *calls = calls.saturating_add(own_calls);
    }
}

/// Lists the steps of the reads per row in a value.
fn inner_steps_in(value: &Expr) -> Vec<&Step> {
    match value {
        Expr::Read { steps, .. } => steps.iter().collect(),
        Expr::List(items) => items.iter().flat_map(inner_steps_in).collect(),
        Expr::Object(pairs) => pairs.iter().flat_map(|(_, item)| inner_steps_in(item)).collect(),
        _ => Vec::new(),
    }
}

/// Computes the digest of the steps, their dependencies and order, the results and the catalogs. Labels and
/// descriptions are left out because they are only shown. Bounds and columns are left out because they follow from the
/// steps, the catalogs and the limits.
fn compute_digest(steps: &[Step], returns: &[PlanResult], catalogs: &[(CatalogId, Digest)]) -> Digest {
    let mut text = Vec::with_capacity(256 * steps.len() + 256);
    for step in steps {
        let has_one_spelling_only = step.kind.values().all(has_one_spelling);
        let kind =
            if has_one_spelling_only { Cow::Borrowed(&step.kind) } else { Cow::Owned(normalize_step_kind(&step.kind)) };
        append_json(&mut text, &(kind, &step.of, step.after));
    }
    let returns: Vec<usize> = returns.iter().map(|r| r.step).collect();
    append_json(&mut text, &(returns, catalogs));
    Digest::of(&text)
}

/// Appends a part of the plan as JSON with a line break. Serialization of a plan cannot fail; if it did, the part
/// would be written as `null`.
fn append_json(text: &mut Vec<u8>, part: &impl Serialize) {
    if serde_json::to_writer(&mut *text, part).is_err() {
        text.extend_from_slice(b"null");
    }
    text.push(b'\n');
}

/// Returns whether a value has only one JSON form and contains nothing that the digest leaves out. Such a value is
/// hashed without a copy.
fn has_one_spelling(value: &Expr) -> bool {
    match value {
        Expr::Value(known) => !known.is_object() && !known.is_array(),
        Expr::Step { .. } | Expr::Row(_) | Expr::Template { .. } => true,
        Expr::List(_) | Expr::Object(_) | Expr::Read { .. } => false,
    }
}

/// Returns an operation without the parts that the digest leaves out, and with the keys of objects in canonical order.
fn normalize_step_kind(kind: &StepKind) -> StepKind {
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
                step.kind = normalize_step_kind(&step.kind);
                step.label = None;
                step.description = None;
                step.columns = Arc::default();
            }
        }
        Expr::List(items) => items.iter_mut().for_each(normalize_value),
        Expr::Object(pairs) => pairs.iter_mut().for_each(|(_, item)| normalize_value(item)),
        Expr::Value(_) | Expr::Step { .. } | Expr::Row(_) | Expr::Template { .. } => {}
    }
}

/// Returns the name of a step: its label, the name of the result that it makes, or its number.
fn step_name(steps: &[Step], returns: &[PlanResult], at: usize) -> String {
    let label = steps.get(at).and_then(|step| step.label.as_ref().map(ToString::to_string));
    let result_label = || returns.iter().find(|r| r.step == at).map(|r| r.label.clone());
    label.or_else(result_label).unwrap_or_else(|| format!("#{:02}", at + 1))
}

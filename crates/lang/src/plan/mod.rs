//! What will be done: steps in the order they may run, what each returns, how much each may call, and a digest over all of it.
//! Invariant: a plan is a pure function of a `Checked` program and the limits; names given to steps do not change its digest.

mod explain;
mod expr;
mod lower;
mod step;

use std::collections::BTreeMap;

use base::{Digest, Limits};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::check::Checked;

pub use explain::explain;
pub use expr::{Args, Expr, Path, Take};
pub use step::{Called, Column, EntityOf, Function, NamedPath, Says, Shape, Spec, Step, StepKind, Test, TestOp};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Each step uses only earlier ones.
    pub steps: Vec<Step>,
    pub returns: Vec<Returned>,
    /// Catalogs used, by id, with the digest that the session pinned.
    pub catalogs: Vec<(base::CatalogId, Digest)>,
    pub digest: Digest,
    pub verdict: Verdict,
    pub bounds: Bounds,
    pub warnings: Vec<String>,
}

/// What a run may cost at most; it stops with what it has rather than exceed one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Calls, by catalog.
    pub calls: BTreeMap<base::CatalogId, usize>,
    /// Rows that are read.
    pub rows: usize,
    /// Bytes of answers.
    pub bytes: u64,
    /// Effects, by catalog and capability.
    pub effects: BTreeMap<String, usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    pub label: String,
    pub step: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Reads within the session's limits.
    Ok,
    /// More calls than may run unasked.
    Review,
}

pub fn plan(checked: &Checked, limits: &Limits) -> Plan {
    let lowered = lower::lower(checked, limits);
    let fans: Vec<(usize, &Step)> = lowered
        .steps
        .iter()
        .enumerate()
        .filter(|(_, s)| matches!(s.kind, StepKind::Follow { .. } | StepKind::Deref { .. }))
        .collect();
    // Many small fan-outs are a large one.
    let calls = fans.iter().fold(0usize, |sum, (_, step)| sum.saturating_add(step.calls));
    let verdict = if calls > limits.fan_out { Verdict::Review } else { Verdict::Ok };
    let mut warnings: Vec<String> = fans
        .iter()
        .filter(|(_, step)| step.calls > limits.fan_out)
        .map(|(at, step)| fan_out_warning(&lowered.steps, *at, step, limits))
        .collect();
    if verdict == Verdict::Review && warnings.is_empty() {
        warnings
            .push(format!("the relations together may make {calls} calls; {} run without a review", limits.fan_out));
    }
    let digest = digest(&lowered);
    let lower::Lowered { steps, returns, catalogs } = lowered;
    let bounds = bounds(&steps, limits);
    Plan { steps, returns, catalogs, digest, verdict, bounds, warnings }
}

fn bounds(steps: &[Step], limits: &Limits) -> Bounds {
    let mut bounds = Bounds::default();
    for step in steps.iter().filter(|s| s.kind.calls_api()) {
        if let Some(of) = &step.of {
            let calls = bounds.calls.entry(of.catalog.clone()).or_default();
            *calls = calls.saturating_add(step.calls);
        }
        bounds.rows = bounds.rows.saturating_add(step.rows);
        bounds.bytes = bounds.bytes.saturating_add((step.calls as u64).saturating_mul(limits.response_bytes as u64));
        if let StepKind::Effect { call, .. } = &step.kind {
            let effects = bounds.effects.entry(format!("{}:{}", call.catalog, call.capability)).or_default();
            *effects = effects.saturating_add(step.effects);
        }
    }
    bounds
}

/// Says how many rows the step may start from and stay within the limit.
fn fan_out_warning(steps: &[Step], at: usize, step: &Step, limits: &Limits) -> String {
    let rows = step.kind.input().and_then(|input| steps.get(input)).map_or(1, |s| s.rows.max(1));
    let fitting = (limits.fan_out / (step.calls / rows).max(1)).max(1);
    format!("step {:02} may make {} calls; put .limit({fitting}) on the rows it starts from", at + 1, step.calls)
}

/// Over steps, edges, order, returns and catalogs, and nothing else.
fn digest(lowered: &lower::Lowered) -> Digest {
    let steps: Vec<_> = lowered
        .steps
        .iter()
        .map(|s| json!({"kind": s.kind, "of": s.of, "columns": s.columns, "after": s.after}))
        .collect();
    let returns: Vec<usize> = lowered.returns.iter().map(|r| r.step).collect();
    let whole = json!({"steps": steps, "returns": returns, "catalogs": lowered.catalogs});
    Digest::of(base::canonical(&whole).as_bytes())
}

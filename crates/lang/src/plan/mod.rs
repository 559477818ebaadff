//! What will be done: steps in the order they may run, what each returns, how much each may call, and a digest over all of it.
//! Invariant: a plan is a pure function of a `Checked` program and the limits; names given to steps do not change its digest.

mod explain;
mod lower;

use base::{Digest, Limits};
use catalog::Args;
use serde::Serialize;
use serde_json::json;

use crate::check::Checked;

pub use explain::explain;

#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// Each step uses only earlier ones.
    pub steps: Vec<Step>,
    pub returns: Vec<Returned>,
    /// Catalogs used, by id, with the digest that the session pinned.
    pub catalogs: Vec<(base::CatalogId, Digest)>,
    pub digest: Digest,
    pub verdict: Verdict,
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    pub kind: StepKind,
    pub catalog: base::CatalogId,
    pub entity: String,
    pub columns: Vec<String>,
    pub many: bool,
    /// At most this many calls.
    pub calls: usize,
    /// At most this many rows.
    pub rows: usize,
    /// The name the program gave it; only for reading.
    pub label: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    Query { capability: String, args: Args, limit: Option<usize> },
    Get { capability: String, args: Args },
    Follow { input: usize, relation: String, args: Args, limit: Option<usize> },
    Deref { input: usize, field: String, limit: Option<usize> },
    Project { input: usize, columns: Vec<String> },
    Limit { input: usize, count: usize },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Returned {
    pub label: String,
    pub step: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Reads within the session's limits.
    Ok,
    /// More calls than may run unasked.
    Review,
}

impl StepKind {
    pub fn input(&self) -> Option<usize> {
        match self {
            StepKind::Query { .. } | StepKind::Get { .. } => None,
            StepKind::Follow { input, .. }
            | StepKind::Deref { input, .. }
            | StepKind::Project { input, .. }
            | StepKind::Limit { input, .. } => Some(*input),
        }
    }

    /// Whether it calls the API at all.
    pub fn calls_api(&self) -> bool {
        !matches!(self, StepKind::Project { .. } | StepKind::Limit { .. })
    }
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
    Plan { steps, returns, catalogs, digest, verdict, warnings }
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
        .map(|s| json!({"kind": s.kind, "catalog": s.catalog, "entity": s.entity, "columns": s.columns}))
        .collect();
    let returns: Vec<usize> = lowered.returns.iter().map(|r| r.step).collect();
    let whole = json!({"steps": steps, "returns": returns, "catalogs": lowered.catalogs});
    Digest::of(base::canonical(&whole).as_bytes())
}

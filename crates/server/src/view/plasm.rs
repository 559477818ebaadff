//! The part of an answer that client programs read beside the text: `_meta.plasm` of MCP, `plasm` of HTTP.
//! Invariant: models never see it, so nothing that a model needs is only here.

use access::{Caller, Connection};
use base::Digest;
use exec::{Receipt, ReturnResult};
use lang::plan::Plan;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use session::{
    DetachedRun, ExecuteBinding, OpenedSession, PageHandle, PlannedProgram, ResourceUri, RunProgress, RunResult,
};

/// A larger plan is left out and read by its URI: hosts keep every answer, and few programs read the plan.
const MAX_PLAN_BYTES: usize = 32 * 1024;

/// The session that a call of `plasm_context` opened or extended.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ContextMeta {
    logical_session_ref: String,
    domain_revision: u32,
    continuity: ContinuityMeta,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    relations: Vec<RelationMeta>,
    /// Pinned catalogs of which the registry offers another version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    newer_catalogs: Vec<CatalogUpdateMeta>,
    /// The id with which a connection without transport session finds the session again.
    #[serde(skip_serializing_if = "Option::is_none")]
    logical_session_id: Option<String>,
}

/// Tells whether the symbols that the client had before are still valid.
#[derive(Debug, Serialize, JsonSchema)]
struct ContinuityMeta {
    stale_binding_recovered: bool,
    new_symbol_space: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    discard_cached_plasm_symbols: Option<bool>,
    /// The execute session that was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_execute: Option<ExecuteBinding>,
}

/// A relation that the session's table teaches.
#[derive(Debug, Serialize, JsonSchema)]
struct RelationMeta {
    symbol: String,
    from: String,
    to: String,
    name: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CatalogUpdateMeta {
    api: String,
    pinned: u32,
    offered: u32,
}

impl ContextMeta {
    pub fn new(caller: &Caller, opened: &OpenedSession) -> Self {
        let lost = opened.continuity.previous_execute.clone();
        let new_symbol_space = opened.continuity.new_symbol_space;
        let mut relations = Vec::new();
        for relation in &opened.relations {
            relations.push(RelationMeta {
                symbol: relation.symbol.to_string(),
                from: relation.from.to_string(),
                to: relation.to.to_string(),
                name: relation.name.to_string(),
            });
        }
        let mut newer_catalogs = Vec::new();
        for update in &opened.catalog_updates {
            let api = update.api.to_string();
            newer_catalogs.push(CatalogUpdateMeta { api, pinned: update.pinned, offered: update.offered });
        }
        // A connection with a transport session finds the session by that, and needs no id.
        let needs_id = matches!(caller.connection, Connection::Principal(_));
        Self {
            logical_session_ref: opened.slot.to_string(),
            domain_revision: opened.revision,
            continuity: ContinuityMeta {
                stale_binding_recovered: lost.is_some(),
                new_symbol_space,
                discard_cached_plasm_symbols: new_symbol_space.then_some(true),
                previous_execute: lost,
            },
            relations,
            newer_catalogs,
            logical_session_id: needs_id.then(|| opened.session.to_string()),
        }
    }
}

/// A plan that was shown.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanMeta<'a> {
    logical_session_ref: String,
    /// Always true.
    dry_run: bool,
    #[schemars(with = "String")]
    dry_verdict: lang::plan::Verdict,
    #[schemars(with = "String")]
    plan_digest: Digest,
    /// The whole plan, unless it is too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<std::collections::BTreeMap<String, Value>>")]
    plan: Option<&'a Plan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_omitted: Option<OmittedPlan>,
    plan_uri: Option<String>,
    /// The plan commit with which the plan can be run, if it needs a review.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_commit_ref: Option<String>,
}

/// Stands for a plan that is too large to be repeated in an answer.
#[derive(Debug, Serialize, JsonSchema)]
struct OmittedPlan {
    steps: usize,
    /// The URI of the plan.
    read: Option<String>,
}

impl<'a> PlanMeta<'a> {
    pub fn new(planned: &'a PlannedProgram) -> Self {
        let uri = planned.number.map(|number| ResourceUri::plan(planned.slot, number));
        let is_small = super::json(&planned.plan).to_string().len() <= MAX_PLAN_BYTES;
        Self {
            logical_session_ref: planned.slot.to_string(),
            dry_run: true,
            dry_verdict: planned.plan.verdict,
            plan_digest: planned.plan.digest,
            plan: is_small.then_some(&planned.plan),
            plan_omitted: (!is_small).then(|| OmittedPlan { steps: planned.plan.steps.len(), read: uri.clone() }),
            plan_uri: uri,
            plan_commit_ref: planned.commit.clone(),
        }
    }
}

/// A run that goes on without its caller.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunningMeta {
    logical_session_ref: String,
    op: OperationState,
}

/// The progress of a run that goes on without its caller.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OperationState {
    handle: String,
    /// `running`, `stopping` or `ended`.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<usize>,
    /// The number of steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<usize>,
    /// The number of effects that are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    effects: Option<usize>,
}

impl OperationState {
    /// Returns the state of an operation that has ended.
    pub fn ended(handle: &str) -> Self {
        Self { handle: handle.to_owned(), state: "ended", step: None, of: None, effects: None }
    }
}

impl RunningMeta {
    pub fn new(operation: &DetachedRun) -> Self {
        let RunProgress { steps_done, steps, effects_done } = operation.progress;
        Self {
            logical_session_ref: operation.slot.to_string(),
            op: OperationState {
                handle: operation.handle.clone(),
                state: if operation.stopping { "stopping" } else { "running" },
                step: Some(steps_done),
                of: Some(steps),
                effects: Some(effects_done),
            },
        }
    }
}

/// A run that has ended.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunMeta {
    receipts: Vec<ReceiptMeta>,
    /// Handles for lists that were not read to their end.
    paging: Vec<PageMeta>,
    /// Nothing ran: this is the result of an earlier call with the same plan commit or request id.
    replayed: bool,
    cancelled: bool,
    logical_session_ref: String,
    run_id: String,
    #[schemars(with = "String")]
    plan_digest: Digest,
    /// One entry for each return of the program.
    steps: Vec<ReturnMeta>,
}

/// The state of one effect.
#[derive(Debug, Serialize, JsonSchema)]
struct ReceiptMeta {
    step: Option<String>,
    capability: String,
    outcome: String,
    /// The method and address of the request.
    target: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PageMeta {
    label: String,
    next_page_handle: String,
    has_more: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ReturnMeta {
    return_label: String,
    artifact_uri: String,
    /// Columns whose long cells are only in the artifact.
    lossy_fields: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    row_count: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl RunMeta {
    /// Describes a run. `lossy` names for each return the columns that its text left to the artifact.
    pub fn new(run: &RunResult, lossy: &[Vec<String>]) -> Self {
        let artifact = ResourceUri::run(run.slot, run.number);
        let mut steps = Vec::new();
        for (index, returned) in run.outcome.returns.iter().enumerate() {
            steps.push(ReturnMeta::new(returned, &artifact, lossy.get(index)));
        }
        Self {
            receipts: run.outcome.receipts.iter().map(ReceiptMeta::new).collect(),
            paging: run.pages.iter().map(PageMeta::new).collect(),
            replayed: run.replayed,
            cancelled: run.outcome.cancelled,
            logical_session_ref: run.slot.to_string(),
            run_id: run.run.to_string(),
            plan_digest: run.plan,
            steps,
        }
    }
}

impl ReturnMeta {
    fn new(returned: &ReturnResult, artifact: &str, lossy: Option<&Vec<String>>) -> Self {
        let rowset = returned.result.as_ref().ok();
        Self {
            return_label: returned.label.clone(),
            artifact_uri: artifact.to_owned(),
            lossy_fields: lossy.cloned(),
            row_count: rowset.map(|rowset| rowset.rows.len()),
            coverage: rowset.map(|rowset| rowset.coverage.to_string()),
            error: returned.result.as_ref().err().map(ToString::to_string),
        }
    }
}

impl ReceiptMeta {
    fn new(receipt: &Receipt) -> Self {
        let intent = &receipt.intent;
        Self {
            step: intent.label.clone(),
            capability: format!("{}:{}", intent.catalog, intent.capability),
            outcome: receipt.state.to_string(),
            target: intent.request.clone(),
        }
    }
}

impl PageMeta {
    fn new(page: &PageHandle) -> Self {
        Self { label: page.label.clone(), next_page_handle: page.handle.clone(), has_more: true }
    }
}

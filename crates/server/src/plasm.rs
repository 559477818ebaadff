//! What client programs read beside the text: `_meta.plasm` of MCP, `plasm` of HTTP. Models never see it.
//! Invariant: nothing that a model needs is only here; the text says it too.

use access::{Caller, Connection};
use serde_json::{Value, json};
use session::{DetachedRun, OpenedSession, PageHandle, PlannedProgram, ResourceUri, RunProgress, RunResult};

/// A larger plan is read by its URI: hosts keep every answer, and few look at this part of it.
const PLAN_BYTES: usize = 32 * 1024;

pub fn opened(caller: &Caller, opened: &OpenedSession) -> Value {
    let lost = opened.continuity.previous_execute.as_ref();
    let mut continuity = json!({
        "stale_binding_recovered": lost.is_some(),
        "new_symbol_space": opened.continuity.new_symbol_space,
    });
    if opened.continuity.new_symbol_space {
        continuity["discard_cached_plasm_symbols"] = json!(true);
    }
    if let Some(lost) = lost {
        continuity["previous_execute"] = json!(lost);
    }
    let mut plasm = json!({
        "logical_session_ref": opened.slot.to_string(),
        "domain_revision": opened.revision,
        "continuity": continuity,
    });
    if !opened.relations.is_empty() {
        let relations = opened.relations.iter();
        plasm["relations"] =
            relations.map(|r| json!({"symbol": r.symbol, "from": r.from, "to": r.to, "name": r.name})).collect();
    }
    if !opened.catalog_updates.is_empty() {
        let newer = opened.catalog_updates.iter();
        plasm["newer_catalogs"] =
            newer.map(|n| json!({"api": n.api, "pinned": n.pinned, "offered": n.offered})).collect();
    }
    // A connection without a transport session has nothing else to come back with.
    if matches!(caller.connection, Connection::Principal(_)) {
        plasm["logical_session_id"] = json!(opened.session.to_string());
    }
    plasm
}

pub fn planned(planned: &PlannedProgram) -> Value {
    let mut plasm = json!({
        "logical_session_ref": planned.slot.to_string(),
        "dry_run": true,
        "dry_verdict": planned.plan.verdict,
        "plan_digest": planned.plan.digest,
    });
    let uri = planned.number.map(|number| ResourceUri::plan(planned.slot, number));
    let plan = json!(planned.plan);
    if plan.to_string().len() <= PLAN_BYTES {
        plasm["plan"] = plan;
    } else {
        plasm["plan_omitted"] = json!({"steps": planned.plan.steps.len(), "read": uri});
    }
    plasm["plan_uri"] = json!(uri);
    if let Some(commit) = &planned.commit {
        plasm["plan_commit_ref"] = json!(commit);
    }
    plasm
}

pub fn running(operation: &DetachedRun) -> Value {
    let state = if operation.stopping { "stopping" } else { "running" };
    let RunProgress { steps_done, steps, effects_done } = operation.progress;
    let op =
        json!({"handle": operation.handle, "state": state, "step": steps_done, "of": steps, "effects": effects_done});
    json!({"logical_session_ref": operation.slot.to_string(), "op": op})
}

pub fn ran(ran: &RunResult, lossy: &[Vec<String>]) -> Value {
    let artifact = ResourceUri::run(ran.slot, ran.number);
    let step = |(at, finished): (usize, &exec::ReturnResult)| {
        let mut step = json!({"return_label": finished.label, "artifact_uri": artifact, "lossy_fields": lossy.get(at)});
        match &finished.result {
            Ok(rowset) => {
                step["row_count"] = json!(rowset.rows.len());
                step["coverage"] = json!(rowset.coverage.to_string());
            }
            Err(error) => step["error"] = json!(error.to_string()),
        }
        step
    };
    let steps: Vec<Value> = ran.outcome.returns.iter().enumerate().map(step).collect();
    let receipt = |r: &exec::Receipt| {
        json!({
            "step": r.intent.label,
            "capability": format!("{}:{}", r.intent.catalog, r.intent.capability),
            "outcome": r.state.to_string(),
            "target": r.intent.request,
        })
    };
    let receipts: Vec<Value> = ran.outcome.receipts.iter().map(receipt).collect();
    let page = |more: &PageHandle| json!({"label": more.label, "next_page_handle": more.handle, "has_more": true});
    let paging: Vec<Value> = ran.pages.iter().map(page).collect();
    json!({
        "receipts": receipts,
        "paging": paging,
        "replayed": ran.replayed,
        "cancelled": ran.outcome.cancelled,
        "logical_session_ref": ran.slot.to_string(),
        "run_id": ran.run.to_string(),
        "plan_digest": ran.plan,
        "steps": steps,
    })
}

//! `read_artifact`: the rows of an earlier run, uncut, in portions.
//! Invariant: it reads what was stored; it never calls an API.

use access::Caller;
use exec::Coverage;
use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use session::{Artifact, ArtifactReturn, Resource, ResourceUri, Service, StoredPlan};

use super::{Answer, Name, arguments, describe, schema};
use crate::text::rows_table;

const DEFAULT_ROWS: usize = 100;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// plasm://session/s0/r/1; #label for one of several returns; heap://KEY.
    uri: String,
    #[serde(default)]
    offset: usize,
    /// Rows (100).
    #[serde(default)]
    limit: Option<usize>,
    #[serde(default)]
    fields: Option<Vec<String>>,
}

pub fn tool() -> Tool {
    describe(
        Name::ReadArtifact,
        "Read a stored result",
        "Read the rows of an earlier run, with all fields uncut.",
        schema::of::<Arguments>(),
        true,
    )
}

pub async fn call(service: &Service, caller: &Caller, given: JsonObject) -> Answer {
    let given: Arguments = match arguments(Name::ReadArtifact, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    if given.uri.starts_with("heap://") {
        return match service.heap_info(caller, &given.uri).await {
            Ok(info) => Answer::without_session(crate::js::heap(&info).to_string(), None),
            Err(error) => Answer::failed(&error),
        };
    }
    match service.resource(caller, &given.uri).await {
        Ok(Resource::Artifact(artifact)) => Answer {
            outcome: "ok",
            slot: slot_of(&given.uri),
            result: shown(&artifact, &given),
            call: None,
            task: None,
        },
        Ok(Resource::Plan(plan)) => {
            Answer { slot: slot_of(&given.uri), ..Answer::without_session(of_plan(&plan), None) }
        }
        Err(error) => Answer::failed(&error),
    }
}

/// What the run could not read, or why it read nothing.
fn missing(returned: &ArtifactReturn) -> String {
    match (&returned.error, &returned.coverage) {
        (Some(error), _) => format!(", failed: {error}"),
        (None, Some(Coverage::Complete) | None) => String::new(),
        (None, Some(other)) => format!(", {other}"),
    }
}

fn slot_of(uri: &str) -> Option<String> {
    ResourceUri::parse(uri).ok().and_then(|uri| uri.session().map(str::to_owned))
}

/// As it was shown, with the program it was made of.
fn of_plan(plan: &StoredPlan) -> String {
    let commit = plan.plan_commit_ref.as_ref().map(|commit| format!(" · {commit}")).unwrap_or_default();
    format!("{}{commit}\n{}\n\n{}", plan.planned, plan.explained.trim_end(), plan.program.trim_end())
}

fn shown(artifact: &Artifact, given: &Arguments) -> rmcp::model::CallToolResult {
    let mut out = String::new();
    for returned in &artifact.returns {
        let columns: Vec<String> = match &given.fields {
            None => returned.columns.clone(),
            Some(fields) => {
                if let Some(unknown) = fields.iter().find(|f| !returned.columns.contains(f)) {
                    let known = returned.columns.join(", ");
                    return super::refused(format!(
                        "bad_arguments: read_artifact: no field `{unknown}`; one of: {known}"
                    ));
                }
                fields.clone()
            }
        };
        let total = returned.rows.len();
        let from = given.offset.min(total);
        let to = from.saturating_add(given.limit.unwrap_or(DEFAULT_ROWS)).min(total);
        let rows = if from == to { "no rows".to_owned() } else { format!("rows {} to {} of {total}", from + 1, to) };
        out.push_str(&format!("## {} ({rows}{})\n", returned.label, missing(returned)));
        out.push_str(&rows_table(&columns, &returned.rows[from..to], |_, _| false));
    }
    rmcp::model::CallToolResult::success(vec![rmcp::model::ContentBlock::text(crate::text::capped(
        out.trim_end().to_owned(),
    ))])
}

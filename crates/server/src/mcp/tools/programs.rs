//! The tools for sessions and programs, and the texts that a model reads of them.

use app::calls::{ArtifactContent, DiscoverCapabilities, ListRegistry, Plasm, PlasmContext, PlasmRun, ReadArtifact};
use app::{App, Context};
use exec::Coverage;
use serde::Serialize;
use session::{
    ApiListing, Artifact, ArtifactReturn, DiscoveryAnswer, OpenedSession, PlannedProgram, RunAnswer, RunResult,
    StoredPlan,
};

use super::{Effect, ToolAnswer, ToolCall};
use crate::text;
use crate::text::rows_table;
use crate::view::{ContextMeta, DiscoveryDecision, PlanMeta, RunMeta, RunningMeta};

/// The rows that `read_artifact` shows if the request has no limit.
const DEFAULT_ROWS: usize = 100;

impl ToolCall for PlasmContext {
    const TITLE: &'static str = "Open a session";
    const DESCRIPTION: &'static str = "Open a session over APIs, or add entities to it; call this first. Answers a \
        logical_session_ref (s0) and a table of the expressions you may write. Merge all seeds of a task into one call.";
    const EFFECT: Effect = Effect::Changes;

    fn render(&self, _app: &App, context: &Context, opened: OpenedSession) -> ToolAnswer {
        ToolAnswer::text_only(text::opened(&opened)).with_meta(&ContextMeta::new(&context.caller, &opened))
    }
}

impl ToolCall for Plasm {
    const TITLE: &'static str = "Plan a program";
    const DESCRIPTION: &'static str =
        "Show the plan of a program without calling any API. Never send a bare $: replace it with a value.";
    const EFFECT: Effect = Effect::Reads;

    fn render(&self, _app: &App, _context: &Context, planned: PlannedProgram) -> ToolAnswer {
        ToolAnswer::text_only(text::planned(&planned, &self.program)).with_meta(&PlanMeta::new(&planned))
    }
}

impl ToolCall for PlasmRun {
    const TITLE: &'static str = "Run a program";
    const DESCRIPTION: &'static str = "Run a program and answer its rows. One that changes something needs the \
        plan_commit_ref of its plan (plasm). More rows: page(s0_pg1). Long runs: wait(s0_o1), cancel(s0_o1).";
    const EFFECT: Effect = Effect::ChangesApis;

    fn render(&self, app: &App, _context: &Context, answer: RunAnswer) -> ToolAnswer {
        match answer {
            RunAnswer::Finished(run) => run_result(app, &run),
            RunAnswer::Running(operation) => {
                let answer = ToolAnswer::text_only(text::running(&operation)).with_meta(&RunningMeta::new(&operation));
                // A caller that asked not to wait wants the handle itself, not a task.
                let wants_task = self.wait != Some(false);
                ToolAnswer { task: wants_task.then_some(operation.task), ..answer }
            }
        }
    }
}

/// Renders a run that has ended, for `plasm_run` and for tasks. A run with a failed step is an error that still shows all that
/// succeeded.
pub fn run_result(app: &App, run: &RunResult) -> ToolAnswer {
    let shown = text::run(run, app.service().limits().shown_chars);
    let answer = ToolAnswer::text_only(shown.text).with_meta(&RunMeta::new(run, &shown.lossy));
    if PlasmRun::outcome(run) == "ok" { answer } else { answer.into_error() }
}

impl ToolCall for ReadArtifact {
    const TITLE: &'static str = "Read a stored result";
    const DESCRIPTION: &'static str = "Read the rows of an earlier run, with all fields uncut.";
    const EFFECT: Effect = Effect::Reads;

    fn render(&self, _app: &App, _context: &Context, content: ArtifactContent) -> ToolAnswer {
        ToolAnswer::text_only(match content {
            ArtifactContent::Artifact(artifact) => artifact_text(&artifact, self),
            ArtifactContent::Plan(plan) => plan_text(&plan, self),
            ArtifactContent::Heap(heap) => crate::view::json(&heap).to_string(),
        })
    }
}

fn artifact_text(artifact: &Artifact, request: &ReadArtifact) -> String {
    let mut out = String::new();
    for returned in &artifact.returns {
        let columns = request.fields.as_ref().unwrap_or(&returned.columns);
        let total = returned.rows.len();
        let from = request.offset.min(total);
        let to = from.saturating_add(request.limit.unwrap_or(DEFAULT_ROWS)).min(total);
        let rows = if from == to { "no rows".to_owned() } else { format!("rows {} to {} of {total}", from + 1, to) };
        out.push_str(&format!("## {} ({rows}{})\n", returned.label, incompleteness(returned)));
        out.push_str(&rows_table(columns, &returned.rows[from..to], |_, _| false));
    }
    out.trim_end().to_owned()
}

/// Describes the rows that the run could not read. Empty if the return is complete.
fn incompleteness(returned: &ArtifactReturn) -> String {
    match (&returned.error, &returned.coverage) {
        (Some(error), _) => format!(", failed: {error}"),
        (None, Some(Coverage::Complete) | None) => String::new(),
        (None, Some(partial)) => format!(", {partial}"),
    }
}

/// The most characters of a part of a plan. The text of an answer is cut above 40,000.
const MAX_PLAN_PART_CHARS: usize = 38_000;

/// Renders a whole plan with its program. `offset` and `limit` count lines. A plan that does not fit says which lines are shown and how to
/// read on, because a reviewer must be able to read all of it.
fn plan_text(plan: &StoredPlan, request: &ReadArtifact) -> String {
    let commit = plan.plan_commit_ref.as_ref().map(|commit| format!(" · {commit}")).unwrap_or_default();
    let program = base::visible_lines(plan.program.trim_end());
    let whole = format!("{}{commit}\n{}\n\n{program}", plan.planned, plan.explained.trim_end());
    let lines: Vec<&str> = whole.lines().collect();
    let from = request.offset.min(lines.len());
    let mut chars = 0;
    let fits = |line: &&&str| {
        chars += line.chars().count() + 1;
        chars <= MAX_PLAN_PART_CHARS
    };
    let shown = lines[from..].iter().take(request.limit.unwrap_or(usize::MAX)).take_while(fits).count();
    // A line of the program can be longer than a part; it is shown alone and cut, since the plan above has every value.
    let to = from + shown.max(usize::from(from < lines.len()));
    let mut part = lines[from..to].join("\n");
    if to < lines.len() {
        part.push_str(&format!("\n(lines {} to {to} of {}; read on with offset: {to})", from + 1, lines.len()));
    }
    part
}

/// `_meta.plasm` of `discover_capabilities`.
#[derive(Serialize)]
struct DiscoveryMeta {
    discovery: DiscoveryCount,
}

#[derive(Serialize)]
struct DiscoveryCount {
    /// The number of rows in the answer.
    shown: usize,
    /// The number of matches beyond the limit.
    omitted: usize,
}

impl DiscoveryMeta {
    fn new(shown: usize, omitted: usize) -> Self {
        Self { discovery: DiscoveryCount { shown, omitted } }
    }
}

impl ToolCall for DiscoverCapabilities {
    const TITLE: &'static str = "Find what a goal needs";
    const DESCRIPTION: &'static str = "Find the {api, entity} rows that a goal needs. One call per goal with one intent; \
        merge the rows you need into one `seeds` of plasm_context.";
    const EFFECT: Effect = Effect::Reads;

    fn render(&self, _app: &App, _context: &Context, answer: DiscoveryAnswer) -> ToolAnswer {
        if self.typed {
            let recommendation = answer.result.decide();
            let meta = DiscoveryMeta::new(recommendation.options.len(), recommendation.omitted);
            return ToolAnswer::json(&DiscoveryDecision::new(&recommendation, &answer)).with_meta(&meta);
        }
        let meta = DiscoveryMeta::new(answer.result.rows.len(), answer.result.omitted);
        ToolAnswer::text_only(text::discovered(&answer)).with_meta(&meta)
    }
}

impl ToolCall for ListRegistry {
    const TITLE: &'static str = "List the APIs";
    const DESCRIPTION: &'static str = "List the APIs with their entities and whether their credentials are set.";
    const EFFECT: Effect = Effect::Reads;

    fn render(&self, _app: &App, _context: &Context, listings: Vec<ApiListing>) -> ToolAnswer {
        ToolAnswer::text_only(text::listed(&listings, self.query.as_deref()))
    }
}

//! The tools: one file each; the match is only a table.
//! Invariant: arguments that the schema does not know are refused, with the ones it knows.

mod discover_capabilities;
mod js;
mod list_registry;
mod plasm;
mod plasm_context;
mod plasm_run;
mod read_artifact;
mod schema;

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use access::Caller;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject, Tool, ToolAnnotations};
use serde::de::DeserializeOwned;
use serde_json::Value;
use session::{Call, Error, RunResult, Service};

use super::ToolSet;
use super::handler::refused;
use super::named::Named;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    PlasmContext,
    Plasm,
    PlasmRun,
    ReadArtifact,
    DiscoverCapabilities,
    ListRegistry,
    RunJs,
    GetExecution,
    GetExecutionOutput,
    CancelExecution,
    ListExecutions,
    ListSessions,
    ListSessionSnapshots,
    GetHeapTags,
    SetHeapTags,
    DeleteHeapTags,
    QueryHeapsByTags,
    ForkSession,
    PromoteSession,
    RewindSession,
    DiffHeaps,
}

impl Name {
    /// `plasm_context` comes first: it must be called first.
    pub const ALL: [Name; 21] = [
        Name::PlasmContext,
        Name::DiscoverCapabilities,
        Name::Plasm,
        Name::PlasmRun,
        Name::ReadArtifact,
        Name::ListRegistry,
        Name::RunJs,
        Name::GetExecution,
        Name::GetExecutionOutput,
        Name::CancelExecution,
        Name::ListExecutions,
        Name::ListSessions,
        Name::ListSessionSnapshots,
        Name::GetHeapTags,
        Name::SetHeapTags,
        Name::DeleteHeapTags,
        Name::QueryHeapsByTags,
        Name::ForkSession,
        Name::PromoteSession,
        Name::RewindSession,
        Name::DiffHeaps,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Name::PlasmContext => "plasm_context",
            Name::Plasm => "plasm",
            Name::PlasmRun => "plasm_run",
            Name::ReadArtifact => "read_artifact",
            Name::DiscoverCapabilities => "discover_capabilities",
            Name::ListRegistry => "list_registry",
            Name::RunJs => "run_js",
            Name::GetExecution => "get_execution",
            Name::GetExecutionOutput => "get_execution_output",
            Name::CancelExecution => "cancel_execution",
            Name::ListExecutions => "list_executions",
            Name::ListSessions => "list_sessions",
            Name::ListSessionSnapshots => "list_session_snapshots",
            Name::GetHeapTags => "get_heap_tags",
            Name::SetHeapTags => "set_heap_tags",
            Name::DeleteHeapTags => "delete_heap_tags",
            Name::QueryHeapsByTags => "query_heaps_by_tags",
            Name::ForkSession => "fork_session",
            Name::PromoteSession => "promote_session",
            Name::RewindSession => "rewind_session",
            Name::DiffHeaps => "diff_heaps",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == text)
    }

    pub fn is_in(self, set: ToolSet) -> bool {
        let core = [
            Name::PlasmContext,
            Name::DiscoverCapabilities,
            Name::Plasm,
            Name::PlasmRun,
            Name::ReadArtifact,
            Name::RunJs,
            Name::GetExecution,
        ];
        set == ToolSet::All || core.contains(&self)
    }

    /// Whether it matters to it how the connection is named.
    pub fn is_named(self) -> bool {
        matches!(self, Name::RunJs | Name::ListSessionSnapshots)
    }
}

/// What a tool answers, and what the log says of it.
pub struct Answer {
    pub result: CallToolResult,
    pub slot: Option<String>,
    pub outcome: &'static str,
    /// The run that goes on, for clients that know tasks.
    pub task: Option<String>,
    /// For the trace of a session: which, and what the tool knows of the call.
    pub call: Option<(String, Call)>,
}

/// What a run that has ended answers.
pub fn ran(ran: &RunResult, shown_chars: usize) -> CallToolResult {
    plasm_run::finished(ran, shown_chars).result
}

/// Those of a set, in the order they are listed. Made once: rmcp asks for a tool's schema before each call of it, and making
/// the schemas anew was an eighth of what a dry run costs.
pub fn offered(set: ToolSet) -> &'static [Tool] {
    static ALL: OnceLock<Vec<Tool>> = OnceLock::new();
    static CORE: OnceLock<Vec<Tool>> = OnceLock::new();
    match set {
        ToolSet::All => ALL.get_or_init(|| made(set)),
        ToolSet::Core => CORE.get_or_init(|| made(set)),
    }
}

fn made(set: ToolSet) -> Vec<Tool> {
    let tool = |name: Name| match name {
        Name::PlasmContext => Some(plasm_context::tool()),
        Name::Plasm => Some(plasm::tool()),
        Name::PlasmRun => Some(plasm_run::tool()),
        Name::ReadArtifact => Some(read_artifact::tool()),
        Name::DiscoverCapabilities => Some(discover_capabilities::tool()),
        Name::ListRegistry => Some(list_registry::tool()),
        other => js::tool(other),
    };
    Name::ALL.into_iter().filter(|name| name.is_in(set)).filter_map(tool).collect()
}

/// The larger ones in boxes: rmcp makes a task of every call, and each would be as large as the largest.
pub async fn call(service: &Arc<Service>, caller: &Caller, (name, named): (Name, Named), given: JsonObject) -> Answer {
    match name {
        Name::PlasmContext => Box::pin(plasm_context::call(service, caller, given)).await,
        Name::Plasm => Box::pin(plasm::call(service, caller, given)).await,
        Name::PlasmRun => Box::pin(plasm_run::call(service, caller, given)).await,
        Name::ReadArtifact => Box::pin(read_artifact::call(service, caller, given)).await,
        Name::DiscoverCapabilities => discover_capabilities::call(service, caller, given),
        Name::ListRegistry => Box::pin(list_registry::call(service, caller, given)).await,
        Name::RunJs => js::run(service, caller, named, given).await,
        Name::GetExecution => js::get(service, caller, given).await,
        Name::GetExecutionOutput => js::output(service, caller, given).await,
        Name::CancelExecution => js::cancel(service, caller, given).await,
        Name::ListExecutions => js::list(service, caller, given).await,
        Name::ListSessions => js::sessions(service, caller, given).await,
        Name::ListSessionSnapshots => js::snapshots(service, caller, named, given).await,
        Name::GetHeapTags => js::get_tags(service, caller, given).await,
        Name::SetHeapTags => js::set_tags(service, caller, given).await,
        Name::DeleteHeapTags => js::delete_tags(service, caller, given).await,
        Name::QueryHeapsByTags => js::query(service, caller, given).await,
        Name::ForkSession => js::fork(service, caller, given).await,
        Name::PromoteSession => js::promote(service, caller, given).await,
        Name::RewindSession => js::rewind(service, caller, given).await,
        Name::DiffHeaps => js::diff(service, caller, given).await,
    }
}

impl Answer {
    fn text(slot: base::Slot, text: String, meta: Option<MetaObject>) -> Self {
        Self { slot: Some(slot.to_string()), ..Self::without_session(text, meta) }
    }

    fn without_session(text: String, meta: Option<MetaObject>) -> Self {
        let mut result = CallToolResult::success(vec![ContentBlock::text(crate::text::capped(text))]);
        result.meta = meta;
        Self { result, slot: None, outcome: "ok", call: None, task: None }
    }

    /// The same as JSON and as text: hosts show one or the other.
    fn structured(value: Value, meta: Option<MetaObject>) -> Self {
        let mut answer = Self::without_session(value.to_string(), meta);
        answer.result.structured_content = Some(value);
        answer
    }

    pub fn failed(error: &Error) -> Self {
        if error.is_fault() {
            tracing::error!(error = error as &dyn std::error::Error, "a call failed");
        }
        Self {
            result: refused(crate::text::capped(crate::text::error(error))),
            slot: None,
            outcome: error.code(),
            call: None,
            task: None,
        }
    }

    /// Belongs to the trace of the session that `reference` names.
    fn traced(self, reference: &str, call: Call) -> Self {
        Self { call: Some((reference.to_owned(), call)), ..self }
    }

    /// What a model reads of it.
    pub fn shown(&self) -> &str {
        self.result.content.first().and_then(|block| block.as_text()).map_or("", |text| &text.text)
    }

    pub fn broken() -> Self {
        let text = "internal: this call hit a defect of the server; its log has the place. The session is as it was";
        Self { result: refused(text), slot: None, outcome: "internal", call: None, task: None }
    }

    pub fn cancelled() -> Self {
        Self {
            result: refused("cancelled: the client asked to stop"),
            slot: None,
            outcome: "cancelled",
            call: None,
            task: None,
        }
    }
}

/// Arguments that the tool's schema does not allow.
#[derive(Debug, thiserror::Error)]
#[error("bad_arguments: {tool}: {cause}")]
struct BadArguments {
    tool: &'static str,
    /// Names the argument, then says what is wrong with it.
    cause: crate::arguments::Wrong,
}

impl From<BadArguments> for Answer {
    fn from(bad: BadArguments) -> Self {
        Self { result: refused(bad.to_string()), slot: None, outcome: "bad_arguments", call: None, task: None }
    }
}

fn arguments<T: DeserializeOwned>(name: Name, arguments: JsonObject) -> Result<T, BadArguments> {
    crate::arguments::from_value(Value::Object(arguments)).map_err(|cause| BadArguments { tool: name.as_str(), cause })
}

fn describe(name: Name, title: &str, description: &'static str, schema: JsonObject, read_only: bool) -> Tool {
    let mut tool = Tool::new(Cow::Borrowed(name.as_str()), Cow::Borrowed(description), schema);
    tool.title = Some(title.to_owned());
    // Only a program changes anything outside the session; code asks for a review first.
    let destructive = matches!(name, Name::PlasmRun | Name::DeleteHeapTags);
    let again = !matches!(name, Name::PlasmRun | Name::RunJs | Name::RewindSession | Name::ForkSession);
    // Hints say nothing of what only reads, and nothing where the protocol's default is meant (destructive, not idempotent):
    // hosts hand them to the model.
    let mut hints = ToolAnnotations::new().read_only(read_only);
    if !read_only && !destructive {
        hints = hints.destructive(false);
    }
    if !read_only && again {
        hints = hints.idempotent(true);
    }
    tool.annotations = Some(hints);
    tool
}

//! The tools: what a host lists of each, and how its answer is rendered. The table below is the only list of them.
//!
//! A tool's name and arguments are those of its use case in `app::calls`. `programs` and `scripts` add the texts that a model
//! reads.
//! Invariants:
//! - Arguments that the schema does not know are refused, and the refusal lists the known ones.
//! - The tool list is constant, so that clients may keep it.

mod programs;
mod schema;
mod scripts;

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::OnceLock;

use app::calls::{
    CancelExecution, ConnectionScope, DeleteHeapTags, DiffHeaps, DiscoverCapabilities, ForkSession, GetExecution,
    GetExecutionOutput, GetHeapTags, ListExecutions, ListRegistry, ListSessionSnapshots, ListSessions, Plasm,
    PlasmContext, PlasmRun, PromoteSession, QueryHeapsByTags, ReadArtifact, RewindSession, RunJs, SetHeapTags,
};
use app::{App, Call, Context, Error, Rendered};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ToolSet;
use crate::{arguments, text, view};

pub use programs::run_result;

/// All tools, in the order in which a host lists them. `plasm_context` comes first, because a model must call it first.
static TOOLS: [ToolEntry; 21] = [
    ToolEntry::new::<PlasmContext>(ToolSet::Core),
    ToolEntry::new::<DiscoverCapabilities>(ToolSet::Core),
    ToolEntry::new::<Plasm>(ToolSet::Core),
    ToolEntry::new::<PlasmRun>(ToolSet::Core),
    ToolEntry::new::<ReadArtifact>(ToolSet::Core),
    ToolEntry::new::<ListRegistry>(ToolSet::All),
    ToolEntry::new::<RunJs>(ToolSet::Core),
    ToolEntry::new::<GetExecution>(ToolSet::Core),
    ToolEntry::new::<GetExecutionOutput>(ToolSet::All),
    ToolEntry::new::<CancelExecution>(ToolSet::All),
    ToolEntry::new::<ListExecutions>(ToolSet::All),
    ToolEntry::new::<ListSessions>(ToolSet::All),
    ToolEntry::new::<ListSessionSnapshots>(ToolSet::All),
    ToolEntry::new::<GetHeapTags>(ToolSet::All),
    ToolEntry::new::<SetHeapTags>(ToolSet::All),
    ToolEntry::new::<DeleteHeapTags>(ToolSet::All),
    ToolEntry::new::<QueryHeapsByTags>(ToolSet::All),
    ToolEntry::new::<ForkSession>(ToolSet::All),
    ToolEntry::new::<PromoteSession>(ToolSet::All),
    ToolEntry::new::<RewindSession>(ToolSet::All),
    ToolEntry::new::<DiffHeaps>(ToolSet::All),
];

/// The tool whose runs a client can withdraw.
pub const RUN_JS: &str = RunJs::NAME;

/// A use case as an MCP tool. Its arguments are the fields of the use case.
trait ToolCall: Call + DeserializeOwned + JsonSchema {
    /// Shown to people by the host.
    const TITLE: &'static str;
    /// Read by the model.
    const DESCRIPTION: &'static str;
    /// The hints about changes for the host.
    const EFFECT: Effect;
    /// Whether the connection's headers matter to the call.
    const USES_CONNECTION: bool = false;

    /// Fills in the fields that the connection determines.
    fn set_connection(&mut self, _connection: ConnectionScope) {}

    /// Renders the answer as a model reads it.
    fn render(&self, app: &App, context: &Context, answer: Self::Answer) -> ToolAnswer;

    /// Renders a failure. Some tools of the wire contract have a form of their own for it.
    fn render_error(&self, error: &Error) -> ToolAnswer {
        ToolAnswer::failed(Self::NAME, error)
    }
}

/// The effect of a tool, as hints to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// The tool changes nothing.
    Reads,
    /// The tool changes a session. The same call again changes nothing more.
    Changes,
    /// The tool changes a session, again with every call.
    Adds,
    /// The tool deletes data of a session. The same call again deletes nothing more.
    Deletes,
    /// The tool may change an API, again with every call.
    ChangesApis,
}

/// The answer of a tool.
pub struct ToolAnswer {
    /// The answer in the form of the protocol.
    pub result: CallToolResult,
    /// The name of the run that goes on, for clients that know tasks.
    pub task: Option<String>,
    /// The client withdrew the call.
    pub withdrawn: bool,
}

/// A call of any tool. It is boxed, because the calls of different use cases are different types and stand in one table.
type CallFuture<'a> = Pin<Box<dyn Future<Output = ToolAnswer> + Send + 'a>>;

/// One tool: its listing and its call.
pub struct ToolEntry {
    pub name: &'static str,
    /// The smallest set that has the tool.
    set: ToolSet,
    /// Whether the connection's headers are read before the call.
    pub uses_connection: bool,
    /// Makes the tool's entry in the tool list.
    listing: fn() -> Tool,
    /// Reads the arguments, runs the use case and renders its answer.
    call: for<'a> fn(&'a App, &'a Context, Result<ConnectionScope, Error>, JsonObject) -> CallFuture<'a>,
}

impl ToolEntry {
    /// Returns the entry of a use case.
    const fn new<C: ToolCall + 'static>(set: ToolSet) -> Self {
        Self {
            name: C::NAME,
            set,
            uses_connection: C::USES_CONNECTION,
            listing: listing::<C>,
            call: |app, context, connection, arguments| {
                Box::pin(read_and_call::<C>(app, context, connection, arguments))
            },
        }
    }

    /// Returns whether a server with this set offers the tool.
    fn is_in(&self, set: ToolSet) -> bool {
        set == ToolSet::All || self.set == ToolSet::Core
    }

    /// Runs the tool. The connection is an error if its headers could not be read.
    pub fn call<'a>(
        &self,
        app: &'a App,
        context: &'a Context,
        connection: Result<ConnectionScope, Error>,
        arguments: JsonObject,
    ) -> CallFuture<'a> {
        (self.call)(app, context, connection, arguments)
    }
}

/// Returns the tool of a set by its name.
pub fn find(name: &str, set: ToolSet) -> Option<&'static ToolEntry> {
    TOOLS.iter().find(|tool| tool.name == name && tool.is_in(set))
}

/// Returns the names of a set's tools.
pub fn names(set: ToolSet) -> impl Iterator<Item = &'static str> {
    TOOLS.iter().filter(move |tool| tool.is_in(set)).map(|tool| tool.name)
}

/// Returns the tools of a set as a host lists them. The list is built once: the SDK looks up a tool's schema before each call,
/// and building the schemas anew took an eighth of the time of a dry run.
pub fn listed(set: ToolSet) -> &'static [Tool] {
    static ALL: OnceLock<Vec<Tool>> = OnceLock::new();
    static CORE: OnceLock<Vec<Tool>> = OnceLock::new();
    let list = || TOOLS.iter().filter(|tool| tool.is_in(set)).map(|tool| (tool.listing)()).collect();
    match set {
        ToolSet::All => ALL.get_or_init(list),
        ToolSet::Core => CORE.get_or_init(list),
    }
}

/// Makes a tool's entry in the tool list.
fn listing<C: ToolCall>() -> Tool {
    let mut tool = Tool::new(Cow::Borrowed(C::NAME), Cow::Borrowed(C::DESCRIPTION), schema::of::<C>());
    tool.title = Some(C::TITLE.to_owned());
    tool.annotations = Some(C::EFFECT.annotations());
    tool
}

impl Effect {
    /// Returns the hints for the host. Hints that equal the protocol's default (destructive, not idempotent) are left out,
    /// because hosts show the hints to the model and each costs tokens.
    fn annotations(self) -> ToolAnnotations {
        let hints = ToolAnnotations::new().read_only(self == Effect::Reads);
        match self {
            Effect::Reads | Effect::ChangesApis => hints,
            Effect::Changes => hints.destructive(false).idempotent(true),
            Effect::Adds => hints.destructive(false),
            Effect::Deletes => hints.idempotent(true),
        }
    }
}

/// Reads the arguments, runs the use case and renders its answer.
async fn read_and_call<C: ToolCall>(
    app: &App,
    context: &Context,
    connection: Result<ConnectionScope, Error>,
    arguments: JsonObject,
) -> ToolAnswer {
    let request = read_arguments::<C>(arguments).and_then(|mut request| {
        request.set_connection(connection?);
        Ok(request)
    });
    let request = match request {
        Ok(request) => request,
        Err(error) => {
            app.refuse::<C>(context, &error);
            return ToolAnswer::failed(C::NAME, &error);
        }
    };
    let render = |request: &C, result: Result<C::Answer, Error>| {
        let answer = match result {
            Ok(answer) => request.render(app, context, answer),
            Err(error) => request.render_error(&error),
        };
        let text = answer.text().to_owned();
        Rendered { value: answer, text }
    };
    app.call_with(context, request, render).await
}

fn read_arguments<C: ToolCall>(arguments: JsonObject) -> Result<C, Error> {
    arguments::from_value(Value::Object(arguments)).map_err(|mistake| Error::BadArguments(mistake.to_string()))
}

impl ToolAnswer {
    /// Returns an answer that is only text. A text that is longer than hosts show is cut.
    fn text_only(text: String) -> Self {
        let result = CallToolResult::success(vec![ContentBlock::text(text::capped(text))]);
        Self { result, task: None, withdrawn: false }
    }

    /// Returns an answer as JSON, with the same JSON as text: hosts show one or the other.
    fn json(answer: &impl Serialize) -> Self {
        let value = view::json(answer);
        let mut rendered = Self::text_only(value.to_string());
        rendered.result.structured_content = Some(value);
        rendered
    }

    /// Returns a failure as the model reads it. A mistake in the arguments names the tool.
    fn failed(tool: &'static str, error: &Error) -> Self {
        let text = match error {
            Error::BadArguments(mistake) => format!("{}: {tool}: {mistake}", error.code()),
            _ => text::error(error),
        };
        let withdrawn = matches!(error, Error::Withdrawn);
        Self { withdrawn, ..Self::text_only(text).into_error() }
    }

    /// Adds `_meta.plasm`.
    fn with_meta(mut self, plasm: &impl Serialize) -> Self {
        let mut meta = MetaObject::default();
        meta.0.insert("plasm".to_owned(), view::json(plasm));
        self.result.meta = Some(meta);
        self
    }

    /// Marks the answer as a failure that the model reads.
    fn into_error(mut self) -> Self {
        self.result.is_error = Some(true);
        self
    }

    /// Returns the text that the model reads.
    pub fn text(&self) -> &str {
        self.result.content.first().and_then(|block| block.as_text()).map_or("", |text| &text.text)
    }
}

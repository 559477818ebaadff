//! `App::call`: runs one use case with its trace, metrics, log line and panic guard.
//! Invariant: every call is counted once, logged once and, if it belongs to a session, recorded once in that session's trace,
//! however it ends.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use access::{Caller, Identity};
use base::Timestamp;
use futures::FutureExt;
use session::{CallRecord, ExecuteAddress, Service};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::admission::{Admission, NotAdmitted};
use crate::error::Error;

/// One use case: the value is the request, and `run` does the work.
pub trait Call: Send + Sync {
    /// The name of the tool, and the label in metrics and logs.
    const NAME: &'static str;
    /// The answer, before an entry point renders it.
    type Answer: Send;

    /// Does the work. Only [`App::call`] may call this, or else the call would be neither counted nor guarded.
    fn run(&self, app: &App, caller: &Caller) -> impl Future<Output = Result<Self::Answer, Error>> + Send;

    /// Describes the call for the log, the metrics and the trace of its session.
    fn summary(&self, result: &Result<Self::Answer, Error>) -> CallSummary {
        CallSummary::of(result)
    }
}

/// The description of one call for the log, the metrics and the session's trace.
#[derive(Debug, Default)]
pub struct CallSummary {
    /// `ok`, or the code of the failure.
    pub outcome: &'static str,
    /// The slot of the session that the answer names.
    pub slot: Option<String>,
    /// The session whose trace lists the call, as the request or the answer names it, and the record.
    pub record: Option<(String, CallRecord)>,
}

impl CallSummary {
    /// Returns the summary of a call that belongs to no session.
    pub fn of<T>(result: &Result<T, Error>) -> Self {
        let outcome = result.as_ref().map_or_else(Error::code, |_| "ok");
        Self { outcome, ..Self::default() }
    }

    /// Adds the slot for the log line.
    #[must_use]
    pub fn with_slot(self, slot: impl ToString) -> Self {
        Self { slot: Some(slot.to_string()), ..self }
    }

    /// Adds the record to the trace of the session that `reference` names.
    #[must_use]
    pub fn with_record(self, reference: &str, record: CallRecord) -> Self {
        Self { record: Some((reference.to_owned(), record)), ..self }
    }
}

/// The mode of a program at the HTTP address of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecuteMode {
    /// The program is run.
    Run,
    /// The plan is shown and no API is called.
    Plan,
}

/// The part of the server that a call came in through. It chooses the names in metrics and the target of the log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryPoint {
    /// An MCP tool.
    Tool,
    /// Another request of the MCP protocol: resources and tasks.
    Protocol,
    /// A program at the address of its session: `/execute/{prompt_hash}/{session}`.
    Execute(ExecuteMode),
    /// Any other HTTP route.
    Http,
    /// A command, with the name that the session's trace shows.
    Command(&'static str),
}

/// The circumstances of one call.
#[derive(Debug, Clone)]
pub struct Context {
    /// The identity and connection of the call.
    pub caller: Caller,
    /// The part of the server that the call came in through.
    pub entry: EntryPoint,
    /// The id that all log lines of the request carry. `None` lets the call make one.
    pub request_id: Option<String>,
    /// Cancelled when the client withdraws the call. A call that is withdrawn before it starts does not start.
    pub withdrawn: Option<CancellationToken>,
}

impl Context {
    pub fn new(caller: Caller, entry: EntryPoint) -> Self {
        Self { caller, entry, request_id: None, withdrawn: None }
    }

    /// Returns the context of a command that a person runs on the data folder.
    pub fn command(name: &'static str) -> Self {
        Self::new(Caller::local(), EntryPoint::Command(name))
    }

    /// Returns the name of a call in metrics and in the trace.
    fn name_of<C: Call>(&self) -> &'static str {
        match self.entry {
            EntryPoint::Tool | EntryPoint::Protocol | EntryPoint::Http => C::NAME,
            EntryPoint::Execute(ExecuteMode::Run) => "execute",
            EntryPoint::Execute(ExecuteMode::Plan) => "execute_plan",
            EntryPoint::Command(name) => name,
        }
    }
}

/// An answer in the form that its client gets.
pub struct Rendered<R> {
    /// The answer that the client gets.
    pub value: R,
    /// The text that a model reads of it, for the trace. Empty for an answer to a client program, since the trace counts only
    /// tokens of models.
    pub text: String,
}

impl<R> Rendered<R> {
    /// Returns an answer that no model reads.
    pub fn unread(value: R) -> Self {
        Self { value, text: String::new() }
    }
}

/// Every use case of the product, on one service.
pub struct App {
    /// The sessions and all effects below them.
    service: Arc<Service>,
    /// Decides which requests over HTTP are answered.
    admission: Admission,
}

impl App {
    pub fn new(service: Arc<Service>, admission: Admission) -> Self {
        Self { service, admission }
    }

    /// Returns an app that admits every request as the operator's own: commands, standard input, and servers without keys.
    pub fn without_keys(service: Arc<Service>) -> Self {
        Self::new(service, Admission::default())
    }

    /// Returns the service below, for background work and for the state of transports, which are no calls.
    pub fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// Returns whether a request over HTTP needs an API key.
    pub fn keys_required(&self) -> bool {
        self.admission.keys_required()
    }

    /// Requires an API key of every request over HTTP from now on.
    pub fn require_keys(&self) {
        self.admission.require_keys();
    }

    /// Finds the identity of a request from its API key, and takes one call from the tenant's rate.
    pub async fn authenticate(&self, key: Option<&str>) -> Result<Identity, NotAdmitted> {
        self.admission.admit(&self.service, key).await
    }

    /// Resolves the HTTP address of an execute session to a caller that has this session as its only slot.
    pub async fn execute_address(
        &self,
        caller: Caller,
        prompt_hash: &str,
        session: &str,
    ) -> Result<ExecuteAddress, Error> {
        Ok(self.service.execute_address(caller, prompt_hash, session).await?)
    }

    /// Runs a use case.
    pub async fn call<C: Call>(&self, context: &Context, call: C) -> Result<C::Answer, Error> {
        self.call_with(context, call, |_, result| Rendered::unread(result)).await
    }

    /// Runs a use case and renders its result. The trace of the session keeps the rendered text.
    pub async fn call_with<C: Call, R>(
        &self,
        context: &Context,
        call: C,
        render: impl FnOnce(&C, Result<C::Answer, Error>) -> Rendered<R>,
    ) -> R {
        let name = context.name_of::<C>();
        let span = self.span(context, name);
        let observed = async {
            let started = Started::now(&self.service);
            let result = self.run_to_end(context, &call).await;
            if let Err(error) = &result
                && error.is_fault()
            {
                tracing::error!(error = error as &dyn std::error::Error, "a call failed");
            }
            // Before rendering, which consumes the result.
            let summary = call.summary(&result);
            let rendered = render(&call, result);
            self.observe(context, name, started, summary, &rendered.text);
            rendered.value
        };
        observed.instrument(span).await
    }

    /// Counts and logs a call that was refused before it could run, because its arguments or its address are wrong.
    pub fn refuse<C: Call>(&self, context: &Context, error: &Error) {
        let name = context.name_of::<C>();
        // Nothing is awaited here, so the span may be entered for the rest of the function.
        let _entered = self.span(context, name).entered();
        let summary = CallSummary { outcome: error.code(), ..CallSummary::default() };
        self.observe(context, name, Started::now(&self.service), summary, "");
    }

    /// Runs the use case until it ends, its client withdraws it, or it panics.
    async fn run_to_end<C: Call>(&self, context: &Context, call: &C) -> Result<C::Answer, Error> {
        // Boxed, because the MCP SDK makes a task of every call, and each task would be as large as the largest use case.
        // Unwind safety is asserted: what use cases share in memory is caches and lists whose changes are single steps, and
        // all other state is in the store, so a panic leaves nothing half changed.
        let run = Box::pin(AssertUnwindSafe(call.run(self, &context.caller)).catch_unwind());
        let withdrawn = async {
            match &context.withdrawn {
                Some(withdrawn) => withdrawn.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // In this order, so that a call that was withdrawn before it started does not start.
            biased;
            () = withdrawn => Err(Error::Withdrawn),
            result = run => result.unwrap_or(Err(Error::Panicked)),
        }
    }

    /// Returns the span of a tool call. Requests over HTTP have a span of their own already.
    fn span(&self, context: &Context, name: &'static str) -> tracing::Span {
        if context.entry != EntryPoint::Tool {
            return tracing::Span::none();
        }
        let request_id = context.request_id.clone().unwrap_or_else(|| self.service.new_request_id());
        tracing::info_span!("tool", request_id, tool = name)
    }

    /// Counts, logs and records a call that has ended.
    fn observe(&self, context: &Context, name: &'static str, started: Started, summary: CallSummary, text: &str) {
        let ms = self.service.now().0 - started.at.0;
        let outcome = match context.entry {
            // At the address of a session, a plan that was shown has an outcome of its own.
            EntryPoint::Execute(ExecuteMode::Plan) if summary.outcome == "ok" => "planned",
            _ => summary.outcome,
        };
        self.service.count_call(name, outcome, started.clock.elapsed().as_secs_f64());
        if let Some((reference, record)) = summary.record {
            let record =
                CallRecord { at: started.at.0, ms, tool: name.to_owned(), outcome: outcome.to_owned(), ..record };
            self.service.record(&context.caller, &reference, record.with_answer(text));
        }
        match context.entry {
            EntryPoint::Tool => {
                tracing::info!(target: "tokamak::mcp", slot = summary.slot, outcome, ms, "called");
            }
            EntryPoint::Execute(mode) => {
                let session = context.caller.execute_session().map(|id| id.to_string());
                tracing::info!(target: "tokamak::http_execute", session, ?mode, outcome, ms, "called");
            }
            EntryPoint::Protocol => tracing::debug!(target: "tokamak::mcp", call = name, outcome, ms, "called"),
            EntryPoint::Http => tracing::debug!(target: "tokamak::http", call = name, outcome, ms, "called"),
            EntryPoint::Command(_) => {}
        }
    }
}

/// The start of a call on two clocks: the service's, which a test controls, and a monotonic one for durations.
struct Started {
    /// The time that the trace shows.
    at: Timestamp,
    /// The start for the metrics. It is not moved when the system's clock is set.
    clock: Instant,
}

impl Started {
    fn now(service: &Service) -> Self {
        Self { at: service.now(), clock: Instant::now() }
    }
}

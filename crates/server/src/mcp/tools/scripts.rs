//! The tools for scripts, their logs and their heaps. Each answers JSON, and the same JSON as text.
//! Invariant: where the wire contract (docs/heaps.md) has a body for a failure, the answer is exactly that body.

use app::calls::{
    CancelExecution, ConnectionScope, DeleteHeapTags, DiffHeaps, ForkSession, GetExecution, GetExecutionOutput,
    GetHeapTags, ListExecutions, ListSessionSnapshots, ListSessions, ListedExecutions, LogOwner, PromoteSession,
    QueryHeapsByTags, RewindSession, RunJs, RunJsAnswer, SetHeapTags,
};
use app::{App, Context, Error};
use base::Digest;
use serde_json::json;
use session::{Execution, ExecutionState, ForkedSession, HeapDiff, ListPage, LogEntry, OutputPage, Tags};

use super::{Effect, ToolAnswer, ToolCall};
use crate::view::{
    ExecutionList, ExecutionView, ForkView, HeapTagMatches, HeapTags, LogEntries, LogEntryView, Rewound, RunJsView,
    SessionNames, Success,
};

impl ToolCall for RunJs {
    const TITLE: &'static str = "Run JavaScript";
    const DESCRIPTION: &'static str = "Run JavaScript or TypeScript; top-level await; the last value is the result; globals \
        last. In a session `(await plasm(program)).rows`.";
    const EFFECT: Effect = Effect::Adds;
    const USES_CONNECTION: bool = true;

    fn set_connection(&mut self, connection: ConnectionScope) {
        self.connection = connection;
    }

    /// A run that did not complete is an error that still shows its execution.
    fn render(&self, _app: &App, _context: &Context, answer: RunJsAnswer) -> ToolAnswer {
        let rendered = ToolAnswer::json(&RunJsView::new(&answer));
        match answer.execution.state {
            ExecutionState::Failed | ExecutionState::Cancelled | ExecutionState::TimedOut => rendered.into_error(),
            ExecutionState::Queued
            | ExecutionState::Running
            | ExecutionState::WaitingReview
            | ExecutionState::Completed => rendered,
        }
    }
}

impl ToolCall for GetExecution {
    const TITLE: &'static str = "Run state";
    const DESCRIPTION: &'static str = "A run; wait_ms waits for its end.";
    const EFFECT: Effect = Effect::Reads;

    fn render(&self, _app: &App, _context: &Context, execution: Execution) -> ToolAnswer {
        ToolAnswer::json(&ExecutionView::new(&execution))
    }
}

impl ToolCall for GetExecutionOutput {
    const TITLE: &'static str = "Run output";
    const DESCRIPTION: &'static str = "Console output.";
    const EFFECT: Effect = Effect::Reads;

    fn render(&self, _app: &App, _context: &Context, page: OutputPage) -> ToolAnswer {
        ToolAnswer::json(&page)
    }
}

impl ToolCall for CancelExecution {
    const TITLE: &'static str = "Stop run";
    const DESCRIPTION: &'static str = "Stop a run.";
    const EFFECT: Effect = Effect::Changes;

    fn render(&self, _app: &App, _context: &Context, (): ()) -> ToolAnswer {
        ToolAnswer::json(&Success::yes())
    }

    fn render_error(&self, error: &Error) -> ToolAnswer {
        refused(error)
    }
}

impl ToolCall for ListExecutions {
    const TITLE: &'static str = "List runs";
    const DESCRIPTION: &'static str = "Newest first.";
    const EFFECT: Effect = Effect::Reads;

    fn render(&self, _app: &App, _context: &Context, executions: ListedExecutions) -> ToolAnswer {
        ToolAnswer::json(&ExecutionList::new(&executions))
    }
}

impl ToolCall for ListSessions {
    const TITLE: &'static str = "List sessions";
    const DESCRIPTION: &'static str = "Sessions with a log.";
    const EFFECT: Effect = Effect::Reads;

    fn render(&self, _app: &App, _context: &Context, sessions: ListPage<String>) -> ToolAnswer {
        ToolAnswer::json(&SessionNames::new(sessions))
    }
}

impl ToolCall for ListSessionSnapshots {
    const TITLE: &'static str = "Session log";
    const DESCRIPTION: &'static str = "Log of runs and heaps.";
    const EFFECT: Effect = Effect::Reads;
    const USES_CONNECTION: bool = true;

    fn set_connection(&mut self, connection: ConnectionScope) {
        self.owner = LogOwner::Connection(connection);
    }

    fn render(&self, _app: &App, _context: &Context, entries: ListPage<LogEntry>) -> ToolAnswer {
        // `run` has checked the fields.
        let fields = self.chosen_fields().unwrap_or_default();
        ToolAnswer::json(&LogEntries::new(&entries, &fields))
    }

    /// The wire contract puts the failure into the list of entries.
    fn render_error(&self, error: &Error) -> ToolAnswer {
        ToolAnswer::json(&json!({"entries": [{"error": error.to_string()}]})).into_error()
    }
}

impl ToolCall for ForkSession {
    const TITLE: &'static str = "Fork a session";
    const DESCRIPTION: &'static str = "Copy a session; its writes stop at the plan until promote_session.";
    const EFFECT: Effect = Effect::Adds;

    fn render(&self, _app: &App, _context: &Context, forked: ForkedSession) -> ToolAnswer {
        ToolAnswer::json(&ForkView::new(&forked))
    }
}

impl ToolCall for PromoteSession {
    const TITLE: &'static str = "Promote a fork";
    const DESCRIPTION: &'static str = "Let a fork write.";
    const EFFECT: Effect = Effect::Changes;

    fn render(&self, _app: &App, _context: &Context, (): ()) -> ToolAnswer {
        ToolAnswer::json(&Success::yes())
    }

    fn render_error(&self, error: &Error) -> ToolAnswer {
        refused(error)
    }
}

impl ToolCall for RewindSession {
    const TITLE: &'static str = "Rewind a session";
    const DESCRIPTION: &'static str = "Go back to a heap of its log.";
    const EFFECT: Effect = Effect::Adds;

    fn render(&self, _app: &App, _context: &Context, entry: LogEntry) -> ToolAnswer {
        ToolAnswer::json(&Rewound { entry: LogEntryView::whole(&entry) })
    }
}

impl ToolCall for GetHeapTags {
    const TITLE: &'static str = "Heap tags";
    const DESCRIPTION: &'static str = "Tags of a heap.";
    const EFFECT: Effect = Effect::Reads;

    fn render(&self, _app: &App, _context: &Context, tags: Tags) -> ToolAnswer {
        ToolAnswer::json(&HeapTags { tags })
    }
}

impl ToolCall for SetHeapTags {
    const TITLE: &'static str = "Tag a heap";
    const DESCRIPTION: &'static str = "Replace all tags.";
    const EFFECT: Effect = Effect::Changes;

    fn render(&self, _app: &App, _context: &Context, (): ()) -> ToolAnswer {
        ToolAnswer::json(&Success::yes())
    }

    fn render_error(&self, error: &Error) -> ToolAnswer {
        refused(error)
    }
}

impl ToolCall for DeleteHeapTags {
    const TITLE: &'static str = "Untag a heap";
    const DESCRIPTION: &'static str = "Remove tags.";
    const EFFECT: Effect = Effect::Deletes;

    fn render(&self, _app: &App, _context: &Context, (): ()) -> ToolAnswer {
        ToolAnswer::json(&Success::yes())
    }

    fn render_error(&self, error: &Error) -> ToolAnswer {
        refused(error)
    }
}

impl ToolCall for QueryHeapsByTags {
    const TITLE: &'static str = "Find heaps";
    const DESCRIPTION: &'static str = "Heaps with all these tags.";
    const EFFECT: Effect = Effect::Reads;

    fn render(&self, _app: &App, _context: &Context, heaps: ListPage<(Digest, Tags)>) -> ToolAnswer {
        ToolAnswer::json(&HeapTagMatches::new(heaps))
    }
}

impl ToolCall for DiffHeaps {
    const TITLE: &'static str = "Compare heaps";
    const DESCRIPTION: &'static str = "Globals that two heaps differ in.";
    const EFFECT: Effect = Effect::Reads;

    fn render(&self, _app: &App, _context: &Context, diff: HeapDiff) -> ToolAnswer {
        ToolAnswer::json(&diff)
    }
}

/// The body of the wire contract for a change that was refused: `{ok, error}`.
fn refused(error: &Error) -> ToolAnswer {
    ToolAnswer::json(&Success::no(error.to_string())).into_error()
}

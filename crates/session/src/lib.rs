//! The use cases of logical sessions: open a session, plan a program, run it, read its results. Server and CLI call
//! only these functions.
//!
//! Invariants:
//! - Every call names its caller; every row it touches carries that caller's tenant.
//! - An answer is sent only after the state it describes is durable: blob before pointer, pointer by compare-and-set.
//! - Commits on one session serialise through row versions. A lost race is retried here on fresh rows, so that no
//!   caller overwrites the write of another.
//! - Dry run and live run share one planner; a live run executes exactly the plan that was shown.

mod artifact;
mod caches;
mod call_record;
mod commit;
mod detached_runs;
mod discovery;
mod engine;
mod error;
mod gc;
mod js;
mod list_page;
mod live_runs;
mod load;
mod meter;
mod metrics;
mod open;
mod open_run;
mod plans;
mod program;
mod readiness;
mod retention;
mod reuse_key;
mod rows;
mod run;
mod run_result;
mod service;
mod sessions;
mod slots;
mod sync;
mod trace;
mod transport;
mod uri;
mod visibility;

pub use artifact::{Artifact, ArtifactReturn, Resource, RunListItem};
pub use call_record::{CallRecord, Exporter, StepRecord};
pub use discovery::{ApiAccess, ApiListing, DiscoverRequest, DiscoveryAnswer, discover};
pub use engine::{
    ChangedGlobal, Execution, ExecutionIdCell, ExecutionState, FetchRule, GlobalSummary, HeapDiff, HeapInfo,
    JsSettings, LogEntry, OutputPage, OutputRequest, PendingReview, RunJsRequest, SessionTarget, Tags, UncaughtError,
};
pub use error::{Error, JsError};
pub use gc::{CollectionOptions, CollectionReport};
pub use js::{ForkRequest, ForkedSession, Lineage, LineageNode, NamedSession};
pub use list_page::{ListPage, ListRequest};
pub use open::{
    CatalogUpdate, Continuity, ExecuteAddress, ExecuteRequest, OpenRequest, OpenedExecute, OpenedSession, SeedRequest,
    TaughtTable,
};
pub use plans::StoredPlan;
pub use ports::scripts::Completion;
pub use program::{CompilerStages, PlanRequest, PlannedProgram, compile_stages};
pub use retention::Retention;
pub use reuse_key::SessionReuseKey;
pub use rows::{ExecuteBinding, Revision};
pub use run::{SettledReceipts, TaskState};
pub use run_result::{DetachedRun, PageHandle, RunAnswer, RunProgress, RunRequest, RunResult};
pub use service::{Ports, Service};
pub use sessions::{SessionView, SymbolSpace};
pub use uri::ResourceUri;

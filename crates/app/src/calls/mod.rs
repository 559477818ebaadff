//! The use cases, a file for each subject: the request as clients send it, its answer, and `run`.
//! Invariant: doc comments of request fields are the descriptions that a model reads; changing one changes the tool list.

mod collect_garbage;
mod discover_capabilities;
mod execute_address;
mod executions;
mod forks;
mod heap_files;
mod heap_tags;
mod heaps;
mod operations;
mod plasm;
mod plasm_context;
mod plasm_run;
mod read_artifact;
mod registry;
mod run_js;
mod session_log;
mod sessions;
mod status;

pub use collect_garbage::CollectGarbage;
pub use discover_capabilities::DiscoverCapabilities;
pub use execute_address::{AddSeeds, ExpandedExecute, OpenExecute, ShowExecute, ShownExecute};
pub use executions::{
    CancelExecution, CancelWithdrawnRun, GetExecution, GetExecutionOutput, ListExecutions, ListedExecutions,
};
pub use forks::{ForkSession, PromoteSession, ShowLineage};
pub use heap_files::{ExportHeap, ImportHeap, PinHeap};
pub use heap_tags::{DeleteHeapTags, GetHeapTags, QueryHeapsByTags, SetHeapTags};
pub use heaps::{DiffHeaps, ListHeaps, ShowHeap};
pub use operations::{CancelTask, GetTask, WatchOperation};
pub use plasm::Plasm;
pub use plasm_context::{PlasmContext, SeedArgument};
pub use plasm_run::PlasmRun;
pub use read_artifact::{ArtifactContent, ListRuns, PinArtifact, ReadArtifact};
pub use registry::{ListRegistry, ShowApi};
pub use run_js::{ConnectionScope, RunJs, RunJsAnswer};
pub use session_log::{ListSessionSnapshots, ListSessions, LogOwner, RewindSession};
pub use sessions::{
    ListLogicalSessions, RemoveSession, SessionListing, ShowSession, ShowTrace, ShownSession, ShownTrace,
};
pub use status::{Metrics, Ready};

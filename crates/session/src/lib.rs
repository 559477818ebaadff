//! The service behind every door: open a logical session, plan a program, run it, read what it left. Server and CLI call
//! these functions and nothing below them.
//!
//! Invariants:
//! - Every call names its caller; every row it touches carries that caller's tenant.
//! - A reply is made only after what it says is durable: blob before pointer, pointer by compare-and-set.
//! - Commits on one session serialise through versions; a lost race is retried here, never overwritten.
//! - Dry run and live run share one planner; a live run executes the very plan it would have shown.

mod artifact;
mod calls;
mod commit;
mod counted;
mod discovery;
mod engine;
mod error;
mod gc;
mod indexed;
mod js;
mod live;
mod load;
mod meter;
mod open;
mod plans;
mod program;
mod ran;
mod retention;
mod reuse;
mod rows;
mod run;
mod service;
mod sessions;
mod shared;
mod slots;
mod steadies;
mod trace;
mod transport;
mod uri;

pub use artifact::{Artifact, ArtifactReturn, ListedRun, Resource};
pub use calls::{Call, CallStep, Exporter};
pub use discovery::{Access, DiscoverRequest, Discovered, Listed, discover};
pub use engine::{
    Became, Changed, Entry, Execution, FetchRule, HeapDiff, HeapInfo, InSession, JsSettings, Named, OutputPage,
    OutputRequest, Review, RunJs, State, Tags, Uncaught,
};
pub use error::{Error, JsError};
pub use gc::{Collected, Pass};
pub use js::{Fork, Forked, Lineage, NamedSession, Node};
pub use open::{Continuity, Door, ExecuteRequest, Executed, Newer, OpenRequest, Opened, SeedRequest, Taught};
pub use plans::ShownPlan;
pub use ports::scripts::Completion;
pub use program::{PlanRequest, Planned, Stages, stages};
pub use ran::{More, Operation, Ran, RunAnswer, RunRequest, Told};
pub use retention::Retention;
pub use reuse::SessionReuseKey;
pub use rows::{ExecuteBinding, Revision};
pub use run::TaskState;
pub use service::{Ports, Service};
pub use sessions::{SessionView, Space};
pub use uri::ResourceUri;

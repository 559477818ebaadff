//! The executor, which runs the steps of a plan against APIs and returns row sets and receipts. Independent reads run
//! concurrently, effects run one after another with a receipt each, lists are read page by page within budgets, and every row
//! set has a coverage.
//!
//! Invariants:
//! - An effect is sent only through `ports`, and only after its receipt is stored as open.
//! - The executor runs the shown plan unchanged and never exceeds a bound of the plan.
//! - A failed step stops only the steps that depend on it. A failed effect stops every later effect. Successful results are
//!   returned in both cases.

mod budget;
mod call;
mod coverage;
mod ctx;
mod data;
mod error;
mod outcome;
mod paging;
mod run;
mod step;
mod value;

pub use coverage::{Coverage, PartialReason};
pub use ctx::{Ctx, Effects, Operations, ProgressSink, StepProgress};
pub use error::{ApiProblem, OperationError, StepError, TemplateProblem};
pub use outcome::{Attached, Continuation, Outcome, ReturnResult, Rowset, StepTime};
pub use ports::receipts::{EffectId, EffectIntent, Receipt, Receipts, Resolved, State as ReceiptState};
pub use run::run;
pub use step::effect::{Sighting, look_again};
pub use step::pure::pure_step;
pub use tokio_util::sync::CancellationToken;

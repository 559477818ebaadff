//! The executor, which runs a plan on ports: independent reads run concurrently, effects run one after another with a
//! receipt each, lists are read over their pages within budgets, and every row set says how complete it is.
//!
//! Invariants:
//! - Every effect goes through `ports`, and only with an open receipt.
//! - The plan that runs is the plan that was shown: nothing is resolved or decided again, and no bound of it is
//!   exceeded.
//! - A failing step stops its dependants only, and a failing effect stops every later effect. The results that
//!   succeeded are returned.

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
pub use step::pure::pure_step;
pub use tokio_util::sync::CancellationToken;

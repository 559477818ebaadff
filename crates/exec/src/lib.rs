//! Runs a plan on ports: reads whose inputs are ready go side by side, lists are read over their pages within budgets, and
//! every rowset says how much of the truth it holds.
//!
//! Invariants:
//! - No effect happens here; each goes through `ports`.
//! - The plan that runs is the plan that was shown: nothing is resolved or decided again.
//! - A failing step stops its dependants only; everything that succeeded is returned.

mod call;
mod coverage;
mod ctx;
mod error;
mod outcome;
mod paging;
mod run;
mod step;

pub use coverage::{Coverage, Why};
pub use ctx::Ctx;
pub use error::{ApiProblem, StepError};
pub use outcome::{Finished, Outcome, Rowset};
pub use run::run;

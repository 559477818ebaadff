//! The use cases of the product, and the one way to call them.
//!
//! MCP tools, HTTP routes and commands build the same request (`calls`) and pass it to [`App::call`], which adds the trace, the
//! metrics, the log line and the guard against panics once for all of them. `admission` decides who may call at all.
//!
//! Invariants:
//! - No entry point calls `session` past `App`, so a call cannot miss its trace, its metrics or its permission.
//! - A request names what its caller wants and nothing about the transport it came over.

mod admission;
mod call;
pub mod calls;
mod error;

pub use admission::{Admission, NotAdmitted};
pub use call::{App, Call, CallSummary, Context, EntryPoint, ExecuteMode, Rendered};
pub use error::Error;

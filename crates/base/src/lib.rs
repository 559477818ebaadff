//! The types that every crate uses: ids, digests, positions in a text, diagnostics, limits, and HTTP requests as data.
//!
//! Invariants:
//! - No I/O, no async, no clock, no randomness, no global state.
//! - No function of this crate panics, whatever the input.
//! - A [`Secret`] can be used but not printed, logged or serialised.

mod diagnostic;
mod digest;
mod edit;
mod http;
mod id;
mod json;
mod limits;
mod printable;
mod secret;
mod similar;
mod span;
mod system_limit;
mod time;

pub use diagnostic::{Code, Diagnostic, Severity, render_for_model, render_for_people};
pub use digest::{Digest, DigestError};
pub use edit::{Edit, ReplacementPart, apply_edits};
pub use http::{Auth, FormPart, Method, Origin, OriginError, Pace, Payload, Request, Response};
pub use id::{
    CatalogId, ExecuteSessionId, ExecutionId, IdError, InstanceId, LogicalSessionId, Principal, RequestId, RunId, Slot,
    SlotError, TenantId,
};
pub use json::{canonical, depth_exceeds};
pub use limits::{ConnectionLimits, Limits};
pub use printable::{printable, quote, visible, visible_lines};
pub use secret::Secret;
pub use similar::{closest_name, similar_names};
pub use span::{LineIndex, SourceLocation, Span};
pub use system_limit::system_limit;
pub use time::Timestamp;

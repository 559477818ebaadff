//! The codes of calls that are refused before they leave.
//! Invariant: a code never changes its meaning, and each code has a page in `docs/errors/`. A test compares codes and
//! pages.

use base::Code;

/// A secret is not bound to the origin that would receive it.
pub const SECRET_NOT_BOUND: Code = Code(601);
/// A secret is too short to be recognised in an answer that echoes it.
pub const SECRET_TOO_SHORT: Code = Code(602);
/// A request would reach the server that sends it.
pub const OWN_SERVER: Code = Code(603);
/// A signed `fetch` asks for a part of an answer.
pub const PARTIAL_ANSWER: Code = Code(604);

/// Every code of this crate, in the order of their numbers.
pub const ALL: &[Code] = &[SECRET_NOT_BOUND, SECRET_TOO_SHORT, OWN_SERVER, PARTIAL_ANSWER];

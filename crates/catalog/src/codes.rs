//! Diagnostic codes of the catalog reader.
//! Invariant: a code never changes its meaning; each has a paragraph in `docs/errors.md` (a test compares).

use base::Code;

/// The text is not YAML, or has a key or shape that the format does not know.
pub const SHAPE: Code = Code(501);
/// A name that is defined nowhere, or twice.
pub const NAME: Code = Code(502);
/// An HTTP mapping that misses a key or uses something undeclared.
pub const MAPPING: Code = Code(503);
/// An entity that nothing reads.
pub const UNREACHABLE: Code = Code(504);
/// An origin that is not one.
pub const ORIGIN: Code = Code(505);

pub const ALL: &[Code] = &[SHAPE, NAME, MAPPING, UNREACHABLE, ORIGIN];

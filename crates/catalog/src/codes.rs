//! Diagnostic codes of the catalog reader.
//! Invariant: a code never changes its meaning; each has a page in `docs/errors/` (a test compares).

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

/// A template with a brace too many or too few.
pub const TEMPLATE: Code = Code(506);
/// Paging that is none of the forms, or where there are no pages.
pub const PAGING: Code = Code(507);
/// Two capabilities between which nothing decides.
pub const TWO_LISTS: Code = Code(508);

pub const ALL: &[Code] = &[SHAPE, NAME, MAPPING, UNREACHABLE, ORIGIN, TEMPLATE, PAGING, TWO_LISTS];

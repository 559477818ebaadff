//! The diagnostic codes of the catalog reader.
//! Invariant: a code never changes its meaning, and each code has a page in `docs/errors/`. A test compares codes and
//! pages.

use base::Code;

/// The text is not YAML, or has a key or a shape that the format does not know.
pub const SHAPE: Code = Code(501);
/// A name is not defined, is defined twice, or cannot be written in a program.
pub const NAME: Code = Code(502);
/// The mapping, which describes how a call becomes a request, lacks a part or uses an undeclared name.
pub const MAPPING: Code = Code(503);
/// No capability and no relation reads an entity.
pub const UNREACHABLE: Code = Code(504);
/// The origin is not valid, or would send a credential in plain text.
pub const ORIGIN: Code = Code(505);
/// A template has an unmatched brace or a hole that is not a parameter.
pub const TEMPLATE: Code = Code(506);
/// The paging has none of the known forms, or the capability has no pages.
pub const PAGING: Code = Code(507);
/// Two capabilities can serve the same expression of a program, so the expression is ambiguous.
pub const AMBIGUOUS: Code = Code(508);

/// Every code of this crate, in the order of their numbers.
pub const ALL: &[Code] = &[SHAPE, NAME, MAPPING, UNREACHABLE, ORIGIN, TEMPLATE, PAGING, AMBIGUOUS];

//! Program text to plan, one folder and one type per stage: `syntax` (text to [`syntax::tree::Program`]), `scope` (what the
//! session's names and symbols mean), `check` (tree to [`check::Checked`]), `plan` (checked program to [`plan::Plan`]).
//!
//! Invariants:
//! - No I/O, no async, no global state; no input makes it panic.
//! - Parsing always yields a tree. Only `check` makes a `Checked`, and `plan` cannot fail on one.
//! - Symbols are resolved against the scope, never by replacing text.

/// Of the language: a program may mean something else under another number.
pub const VERSION: u32 = 1;

pub mod check;
pub mod codes;
mod copy_lines;
mod ir;
pub mod plan;
pub mod scope;
pub mod syntax;

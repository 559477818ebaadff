//! The language of programs, from text to plan, with one folder and one type for each stage: `syntax` (text to
//! [`syntax::tree::Program`]), `scope` (the meaning of the session's names and symbols), `check` (tree to
//! [`check::Checked`]), `plan` (checked program to [`plan::Plan`]). `ir` holds the steps and values that `check` and
//! `plan` share.
//!
//! Invariants:
//! - There is no I/O, no async and no global state, and no input causes a panic.
//! - Parsing always yields a tree. Only `check` makes a `Checked`, and `plan` cannot fail on one.
//! - Symbols are resolved against the scope. The text of a program is never replaced.

/// The version of the language. The number changes when an existing program gets another meaning.
pub const VERSION: u32 = 1;

pub mod check;
pub mod codes;
mod copy_lines;
mod ir;
pub mod plan;
pub mod scope;
pub mod syntax;

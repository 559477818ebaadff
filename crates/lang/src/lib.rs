//! The language of programs, from text to plan. Each stage has a folder and a result type: `syntax` parses text to a
//! [`syntax::tree::Program`], `scope` resolves the names and symbols of a session, `check` makes a [`check::Checked`],
//! and `plan` makes a [`plan::Plan`]. `ir` has the steps and values that `check` and `plan` share.
//!
//! Terms of this crate: a *slot* is a field or a parameter that a program names (the slot of a session is called
//! `session_slot`). A *label* is the name that a program binds to an expression. A *primary* is the first element of an
//! expression, and the *parts* are the operations behind it. A *postfix* is a part that works on rows that have been
//! read. An *arm* is one alternative of a union type. A *placeholder* (`$`, `<<T`) marks a value that the author has to
//! fill in. A *taught line* is a line of the table that a session was taught. A *read per row* is a read that a `=>`
//! does for each row.
//!
//! Invariants:
//! - There is no I/O, no async code and no global state, and no input causes a panic.
//! - Parsing always returns a tree. Only `check` makes a `Checked`, and planning a `Checked` cannot fail.
//! - Symbols are resolved through the scope. The text of a program is never rewritten.

/// The version of the language. It increases when an existing program gets a new meaning.
pub const VERSION: u32 = 1;

pub mod check;
pub mod codes;
mod copy_lines;
mod ir;
pub mod plan;
pub mod scope;
pub mod syntax;

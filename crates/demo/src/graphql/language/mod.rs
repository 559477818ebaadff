//! The GraphQL language: text to tokens, tokens to documents and to type definitions.
//! Invariant: knows no schema; what is read here is grammatical and no more.

pub mod ast;
mod document;
mod lex;
mod parser;
mod types;

pub use document::document;
pub use types::definitions;

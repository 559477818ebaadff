//! An engine as a file: the guest's WebAssembly with the prelude in it, taken apart and compiled.
//! Invariant: an engine is known by what it does, not by where it came from: its name is the digest of the guest and of the
//! image it boots to, so one that was brought from elsewhere is either the same or has another name.

mod compile;
mod parts;

pub use compile::{CodeCache, config};
pub use parts::Parts;

/// These bytes are not an engine of ours.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("it is not WebAssembly: {0}")]
    Format(#[from] wasmparser::BinaryReaderError),
    #[error("it asks for more than an engine may: {0}")]
    Import(String),
    #[error("it is not built the way an engine is: {0}")]
    Shape(&'static str),
    #[error("it does not compile")]
    Compile(#[source] wasmtime::Error),
    #[error("it does not boot")]
    Boot(#[source] wasmtime::Error),
    #[error("its prelude fails: {0}")]
    Prelude(String),
}

//! Parses and compiles a guest. A guest file is the JavaScript engine as WebAssembly, with the prelude (the JavaScript
//! that defines the globals) in custom sections.
//! Invariant: the name of an engine is the digest of its guest and of its base image. So an imported guest either is
//! the same engine or has another name.

mod compile;
mod parts;

pub use compile::{CodeCache, config};
pub use parts::GuestParts;

/// The reason for which bytes are not a guest that this process can run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the JavaScript guest is not WebAssembly: {0}")]
    Format(#[from] wasmparser::BinaryReaderError),
    #[error("the JavaScript guest imports `{0}`; a guest may import from the module `tokamak` only")]
    Import(String),
    #[error("the JavaScript guest has a wrong form: {0}")]
    Shape(&'static str),
    #[error("the JavaScript guest does not compile")]
    Compile(#[source] wasmtime::Error),
    #[error("the JavaScript guest does not boot")]
    Boot(#[source] wasmtime::Error),
    #[error("the prelude of the JavaScript guest failed: {0}")]
    Prelude(String),
}

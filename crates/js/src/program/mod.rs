//! The program of an engine: takes apart and compiles a guest, which is WebAssembly with the prelude in it.
//! Invariant: an engine is identified by its content. Its name is the digest of the guest and of the image that the
//! guest boots to, so a guest that comes from outside is the same engine or has another name.

mod compile;
mod parts;

pub use compile::{CodeCache, config};
pub use parts::GuestParts;

/// Why bytes are not a guest that can run here.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the guest is not WebAssembly: {0}")]
    Format(#[from] wasmparser::BinaryReaderError),
    #[error("the guest imports {0}, which engines may not")]
    Import(String),
    #[error("the guest does not have the form of an engine: {0}")]
    Shape(&'static str),
    #[error("the guest does not compile")]
    Compile(#[source] wasmtime::Error),
    #[error("the guest does not boot")]
    Boot(#[source] wasmtime::Error),
    #[error("the prelude fails: {0}")]
    Prelude(String),
}

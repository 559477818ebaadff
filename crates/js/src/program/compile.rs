//! Native code of a guest, kept across starts.
//! Invariant: a file of native code runs with all our rights, so it is only read from a folder that nobody else may write to,
//! where it is ours and nobody else's to write, and only when it was made by this Wasmtime, for this kind of processor, with
//! these settings.
#![allow(unsafe_code)]

use std::fs::{self, DirBuilder, Metadata, OpenOptions, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::Digest;
use wasmtime::{Config, Engine, MemoryCreator, Module, OptLevel, RegallocAlgorithm};

use super::{Error, Parts};

/// The frames of the parser and of `JSON.parse` are many times larger here than in the guest's own stack of 4 MiB, whose end
/// has to come first: that is a RangeError, this one a trap.
const WASM_STACK: usize = 64 << 20;
/// Of address space, for each instance: no access needs a check then.
const RESERVED: u64 = 4 << 30;
const GUARD: u64 = 64 << 10;

pub fn config(memories: Arc<dyn MemoryCreator>) -> Config {
    let mut config = Config::new();
    config
        .with_host_memory(memories)
        .memory_reservation(RESERVED)
        .memory_guard_size(GUARD)
        .memory_may_move(false)
        .memory_init_cow(false)
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(WASM_STACK) // not used; Wasmtime wants it to be as large
        .cranelift_opt_level(OptLevel::Speed)
        .cranelift_regalloc_algorithm(RegallocAlgorithm::Backtracking)
        .wasm_backtrace_max_frames(None)
        .native_unwind_info(false)
        .generate_address_map(false);
    config
}

/// A private folder of compiled code; without one, every start compiles.
#[derive(Debug, Clone, Default)]
pub struct CodeCache(Option<PathBuf>);

impl CodeCache {
    /// A folder that cannot be made or that others may write to is not used.
    pub fn open(folder: Option<&Path>) -> Self {
        let Some(folder) = folder else { return Self(None) };
        match private(folder) {
            Ok(()) => Self(Some(folder.to_owned())),
            Err(error) => {
                tracing::warn!(folder = %folder.display(), %error, "compiled JavaScript engine is not cached");
                Self(None)
            }
        }
    }

    pub fn module(&self, engine: &Engine, guest: Digest, parts: &Parts) -> Result<Module, Error> {
        let file = self.0.as_ref().map(|folder| folder.join(name(engine, guest)));
        if let Some(module) = file.as_deref().and_then(|file| read(engine, file)) {
            return Ok(module);
        }
        let module = Module::new(engine, &parts.code).map_err(Error::Compile)?;
        if let Some(file) = file
            && let Err(error) = module.serialize().map_err(io::Error::other).and_then(|code| write(&file, &code))
        {
            tracing::warn!(file = %file.display(), %error, "compiled JavaScript engine is not cached");
        }
        Ok(module)
    }
}

/// The guest, and everything of this machine and build that its native code depends on.
fn name(engine: &Engine, guest: Digest) -> String {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{guest}-{:016x}.code", hasher.finish())
}

fn private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let about = fs::symlink_metadata(folder)?;
    if !about.is_dir() || !is_mine(&about) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not a folder of this user"));
    }
    // What others have put there before is not read (`read`), and not written to (`write`).
    if about.mode() & 0o077 != 0 {
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

fn is_mine(about: &Metadata) -> bool {
    // SAFETY: `geteuid` has no preconditions and cannot fail.
    about.uid() == unsafe { libc::geteuid() }
}

fn read(engine: &Engine, file: &Path) -> Option<Module> {
    // Looked at as it was opened: a name may lead elsewhere a moment later.
    let open = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(file);
    let (open, about) = match open.and_then(|open| open.metadata().map(|about| (open, about))) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!(file = %file.display(), %error, "compiled JavaScript engine is not usable; compiling again");
            return None;
        }
    };
    if !about.is_file() || !is_mine(&about) || about.mode() & 0o022 != 0 {
        tracing::warn!(file = %file.display(), "compiled JavaScript engine that others may write; compiling again");
        return None;
    }
    // SAFETY: the file is ours, nobody else may write it, it lies in a folder that only this user may write to (`private`)
    // under a name that holds the settings, the processor and the version it was compiled for, and was put there whole
    // (`write`).
    match unsafe { Module::deserialize_open_file(engine, open) } {
        Ok(module) => Some(module),
        Err(error) => {
            tracing::warn!(file = %file.display(), %error, "compiled JavaScript engine is not usable; compiling again");
            None
        }
    }
}

/// Whole or not at all: what a crash left must never be run. In a file of its own: one that is there already may lead elsewhere.
fn write(file: &Path, code: &[u8]) -> io::Result<()> {
    let made = file.with_extension(format!("{}.new", std::process::id()));
    let _ = fs::remove_file(&made);
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&made)?;
    new.write_all(code)?;
    new.sync_all()?;
    fs::rename(&made, file)
}

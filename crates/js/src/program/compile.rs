//! Compiles guests to native code and caches the code in a private folder, so that later starts do not compile.
//! Invariant: cached code runs with all rights of the process. So cached code is loaded only if the folder and the file
//! belong to this user, no other user can write to them, and the code was made by this version of Wasmtime, for this
//! kind of processor, with these settings.
#![allow(unsafe_code)]

use std::fs::{self, DirBuilder, Metadata, OpenOptions, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::Digest;
use wasmtime::{Config, Engine, MemoryCreator, Module, OptLevel, RegallocAlgorithm};

use super::{Error, GuestParts};

/// The native stack that a guest may use. Each native frame of the parser and of `JSON.parse` is many times larger than
/// its frame in the guest's own stack of 4 MiB. The guest's own stack must be exhausted first, because this is a
/// RangeError in the script, while the end of the native stack is a trap.
const NATIVE_STACK_BYTES: usize = 64 << 20;
/// The address space of each guest. Every 32-bit address is inside 4 GiB, so the compiled code needs no bounds checks.
const GUEST_ADDRESS_SPACE_BYTES: u64 = 4 << 30;
const GUARD_BYTES: u64 = 64 << 10;

pub fn config(memory_creator: Arc<dyn MemoryCreator>) -> Config {
    let mut config = Config::new();
    config
        .with_host_memory(memory_creator)
        .memory_reservation(GUEST_ADDRESS_SPACE_BYTES)
        .memory_guard_size(GUARD_BYTES)
        // A memory that `memory_creator` creates never moves.
        .memory_may_move(false)
        // The module `machine` maps heaps into memories, so Wasmtime must not map initial data.
        .memory_init_cow(false)
        // Epochs limit the time of a step. Fuel, the other way to limit it, would slow down every instruction.
        .epoch_interruption(true)
        .max_wasm_stack(NATIVE_STACK_BYTES)
        .async_stack_size(NATIVE_STACK_BYTES) // not used, but Wasmtime refuses a smaller one than `max_wasm_stack`
        .cranelift_opt_level(OptLevel::Speed)
        .cranelift_regalloc_algorithm(RegallocAlgorithm::Backtracking)
        .wasm_backtrace_max_frames(None)
        .native_unwind_info(false)
        .generate_address_map(false);
    config
}

/// A private folder of compiled code. `None` means that every start compiles.
#[derive(Debug, Clone, Default)]
pub struct CodeCache(Option<PathBuf>);

impl CodeCache {
    /// Opens the folder. If the folder cannot be created or belongs to another user, no folder is used and every start
    /// compiles.
    pub fn open(folder: Option<&Path>) -> Self {
        let Some(folder) = folder else { return Self(None) };
        match prepare_folder(folder) {
            Ok(()) => Self(Some(folder.to_owned())),
            Err(error) => {
                tracing::warn!(
                    folder = %folder.display(),
                    %error,
                    "the folder for compiled JavaScript engines is unusable, so every start compiles; make it a folder of this user"
                );
                Self(None)
            }
        }
    }

    /// Returns the compiled module of a guest, from the cache or by compiling it.
    pub fn module(&self, engine: &Engine, guest: Digest, parts: &GuestParts) -> Result<Module, Error> {
        let file = self.0.as_ref().map(|folder| folder.join(file_name(engine, guest)));
        if let Some(module) = file.as_deref().and_then(|file| load(engine, file)) {
            return Ok(module);
        }
        let module = Module::new(engine, &parts.code).map_err(Error::Compile)?;
        if let Some(file) = file
            && let Err(error) = module.serialize().map_err(io::Error::other).and_then(|code| store(&file, &code))
        {
            tracing::warn!(
                file = %file.display(),
                %error,
                "the compiled JavaScript engine could not be stored, so the next start compiles again"
            );
        }
        Ok(module)
    }
}

/// Returns a file name that is made of the digest of the guest and of a hash of all properties of this machine and
/// build that native code depends on.
fn file_name(engine: &Engine, guest: Digest) -> String {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{guest}-{:016x}.code", hasher.finish())
}

fn prepare_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // `symlink_metadata` does not follow links, so a link to a folder is refused.
    let metadata = fs::symlink_metadata(folder)?;
    if !metadata.is_dir() || !is_own(&metadata) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the path is not a folder that belongs to this user",
        ));
    }
    // Other users may have put files into the folder while it was open to them. `load` refuses such files, and `store`
    // writes to a new file only.
    if metadata.mode() & 0o077 != 0 {
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

fn is_own(metadata: &Metadata) -> bool {
    // SAFETY: `geteuid` has no preconditions and cannot fail.
    metadata.uid() == unsafe { libc::geteuid() }
}

fn load(engine: &Engine, path: &Path) -> Option<Module> {
    // The metadata is read from the open file and not from its path, because the path may lead to another file a moment
    // later. O_NOFOLLOW refuses a link, and O_NONBLOCK prevents that a pipe blocks the start.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let (file, metadata) = match opened.and_then(|file| file.metadata().map(|metadata| (file, metadata))) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!(
                file = %path.display(),
                %error,
                "the stored code of the JavaScript engine is unusable, so the engine is compiled again"
            );
            return None;
        }
    };
    if !metadata.is_file() || !is_own(&metadata) || metadata.mode() & 0o022 != 0 {
        tracing::warn!(
            file = %path.display(),
            "the file of the compiled JavaScript engine may belong to or be written by another user, so the engine is compiled again"
        );
        return None;
    }
    // SAFETY: the file belongs to this user, and no other user can write to the file or to its folder
    // (`prepare_folder`). The name of the file contains a hash of settings, processor and version, and the file was
    // complete when it got this name (`store`).
    match unsafe { Module::deserialize_open_file(engine, file) } {
        Ok(module) => Some(module),
        Err(error) => {
            tracing::warn!(
                file = %path.display(),
                %error,
                "the stored code of the JavaScript engine is unusable, so the engine is compiled again"
            );
            None
        }
    }
}

/// Writes the code to a temporary file and renames the file, so that a crash leaves no partial code under the final
/// name. The temporary file must be new, because an existing file could be a link to another file.
fn store(path: &Path, code: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension(format!("{}.new", std::process::id()));
    let _ = fs::remove_file(&temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(code)?;
    file.sync_all()?;
    fs::rename(&temporary, path)
}

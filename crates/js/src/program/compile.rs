//! Compiles guests to native code and caches the code in a private folder, so that later starts do not compile.
//! Invariant: cached code runs with all rights of the process. It is loaded only if the folder and the file belong to
//! this user, nobody else can write to them, and the code was made by this version of Wasmtime, for this kind of
//! processor, with these settings.
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

/// The native stack that a guest may use. The native frames of the parser and of `JSON.parse` are many times larger
/// than their frames in the guest's own stack of 4 MiB. That stack must be exhausted first: its end is a RangeError,
/// the end of this one is a trap.
const NATIVE_STACK_BYTES: usize = 64 << 20;
/// The address space of each guest. With 4 GiB, every 32-bit address is inside it, so no access needs a bounds check.
const RESERVED_BYTES: u64 = 4 << 30;
const GUARD_BYTES: u64 = 64 << 10;

pub fn config(memory_creator: Arc<dyn MemoryCreator>) -> Config {
    let mut config = Config::new();
    config
        .with_host_memory(memory_creator)
        .memory_reservation(RESERVED_BYTES)
        .memory_guard_size(GUARD_BYTES)
        // The memories that `memory_creator` makes never move.
        .memory_may_move(false)
        // Images are mapped by `machine`, and not by Wasmtime.
        .memory_init_cow(false)
        // Epochs bound time. Fuel would cost every instruction.
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

/// A private folder of compiled code. Without a folder, every start compiles.
#[derive(Debug, Clone, Default)]
pub struct CodeCache(Option<PathBuf>);

impl CodeCache {
    /// Opens the folder. A folder that cannot be created or that belongs to another user is not used, which only costs
    /// time.
    pub fn open(folder: Option<&Path>) -> Self {
        let Some(folder) = folder else { return Self(None) };
        match prepare_folder(folder) {
            Ok(()) => Self(Some(folder.to_owned())),
            Err(error) => {
                tracing::warn!(folder = %folder.display(), %error, "the compiled JavaScript engine is not cached");
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
            tracing::warn!(file = %file.display(), %error, "the compiled JavaScript engine is not cached");
        }
        Ok(module)
    }
}

/// Returns a name that covers the guest and everything of this machine and build that the native code depends on.
fn file_name(engine: &Engine, guest: Digest) -> String {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{guest}-{:016x}.code", hasher.finish())
}

fn prepare_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // `symlink_metadata`, so that a link to a folder is refused.
    let metadata = fs::symlink_metadata(folder)?;
    if !metadata.is_dir() || !is_own(&metadata) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not a folder of this user"));
    }
    // Others may have put files into an open folder. `load` refuses such files, and `store` writes to a new file only.
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
    // The open file is checked and not its path, because the path may lead to another file a moment later. O_NOFOLLOW
    // refuses a link, and O_NONBLOCK keeps a pipe from blocking the start.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let (file, metadata) = match opened.and_then(|file| file.metadata().map(|metadata| (file, metadata))) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!(
                file = %path.display(),
                %error,
                "the compiled JavaScript engine is unusable; compiling again"
            );
            return None;
        }
    };
    if !metadata.is_file() || !is_own(&metadata) || metadata.mode() & 0o022 != 0 {
        tracing::warn!(
            file = %path.display(),
            "the compiled JavaScript engine is not a private file of this user; compiling again"
        );
        return None;
    }
    // SAFETY: the file belongs to this user and nobody else can write it. It is in a folder that only this user can
    // write to (`prepare_folder`), its name contains settings, processor and version, and it was complete when it got
    // that name (`store`).
    match unsafe { Module::deserialize_open_file(engine, file) } {
        Ok(module) => Some(module),
        Err(error) => {
            tracing::warn!(
                file = %path.display(),
                %error,
                "the compiled JavaScript engine is unusable; compiling again"
            );
            None
        }
    }
}

/// Writes the file under a temporary name and renames it, so that a crash leaves no partial code under the final name.
/// The temporary file must be new, because an existing one could be a link to another place.
fn store(path: &Path, code: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension(format!("{}.new", std::process::id()));
    let _ = fs::remove_file(&temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(code)?;
    file.sync_all()?;
    fs::rename(&temporary, path)
}

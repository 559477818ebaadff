//! Compiles a guest: QuickJS-NG's C sources (from a crates.io package that Cargo.lock pins) with our patch, shim and
//! prelude.
//! Invariant: the same inputs give the same bytes, in any folder and on any day, because the digest of the bytes names
//! the engine. `build.rs` compiles the guest of this build. Tests compile it again in another folder, and compile other
//! guests.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "compiler.rs"]
mod compiler;
#[path = "patch.rs"]
mod patch;
#[path = "prelude.rs"]
mod prelude;

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A failure that a person has to resolve.
#[derive(Debug)]
enum BuildError {
    /// Cargo does not know where the package with the C sources is.
    NoSources,
    /// The compiler could not be started.
    NoStart { program: OsString, cause: io::Error },
    /// The compiler failed with this output.
    Compiler(Vec<u8>),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSources => write!(
                f,
                "`cargo metadata --locked` does not list {PACKAGE}; run `cargo fetch --locked` and build again"
            ),
            Self::NoStart { program, cause } => write!(f, "{} does not start: {cause}", program.to_string_lossy()),
            // The directive `cargo::error`, which `build.rs` prints, holds one line.
            Self::Compiler(output) => {
                write!(f, "the guest does not compile: {}", String::from_utf8_lossy(output).replace('\n', " | "))
            }
        }
    }
}

impl Error for BuildError {}

const PACKAGE: &str = "libquickjs-ng-sys-0.14.0";
const SOURCES: [&str; 3] = ["libregexp.c", "libunicode.c", "dtoa.c"];

/// The options of one guest.
pub struct Build {
    pub compiler_flags: &'static [&'static str],
    /// The stack is at the beginning of the memory, so another size changes every other address.
    pub stack_bytes: u32,
    pub memory_bytes: u32,
}

/// The options of the guest that becomes part of the binary.
pub const RELEASE_BUILD: Build =
    Build { compiler_flags: &["-O3", "-msimd128"], stack_bytes: 4 << 20, memory_bytes: 5 << 20 };

/// The folders of a build. None of these paths may become part of the guest's bytes.
pub struct BuildPaths {
    pub shim: PathBuf,
    pub prelude: PathBuf,
    pub quickjs: PathBuf,
    /// The folder for temporary files.
    pub work: PathBuf,
}

impl BuildPaths {
    /// Returns the folders of the crate at `crate_folder`.
    pub fn for_crate(crate_folder: &Path, work: PathBuf) -> Result<Self> {
        let quickjs = package_folder(crate_folder)?.join("embed/quickjs");
        Ok(Self { shim: crate_folder.join("guest"), prelude: crate_folder.join("prelude"), quickjs, work })
    }
}

pub fn build_guest(paths: &BuildPaths, build: &Build) -> Result<Vec<u8>> {
    fs::create_dir_all(&paths.work)?;
    let patched = patch::apply(fs::read_to_string(paths.quickjs.join("quickjs.c"))?)?;
    fs::write(paths.work.join("quickjs.c"), patched)?;
    let without_prelude = paths.work.join("bare.wasm");
    compile(paths, build, &without_prelude)?;
    prelude::with_prelude(fs::read(&without_prelude)?, &paths.prelude)
}

/// Returns the folder of the package with the C sources. The package belongs to no build graph, so only `cargo
/// metadata` lists it.
fn package_folder(crate_folder: &Path) -> Result<PathBuf> {
    let cargo = env::var("CARGO")?;
    for offline in [true, false] {
        let mut metadata = Command::new(&cargo);
        metadata
            .args(["metadata", "--format-version", "1", "--locked", "--manifest-path"])
            .arg(crate_folder.join("Cargo.toml"));
        if offline {
            metadata.arg("--offline");
        }
        let output = metadata.output()?;
        if let Some(folder) = folder_in_metadata(&String::from_utf8_lossy(&output.stdout)) {
            return Ok(folder);
        }
    }
    Err(BuildError::NoSources.into())
}

fn folder_in_metadata(metadata: &str) -> Option<PathBuf> {
    let manifest = format!("{PACKAGE}/Cargo.toml\"");
    let end = metadata.find(&manifest)? + PACKAGE.len();
    let start = metadata[..end].rfind('"')? + 1;
    Some(PathBuf::from(&metadata[start..end]))
}

fn compile(paths: &BuildPaths, build: &Build, output_file: &Path) -> Result<()> {
    let BuildPaths { shim, quickjs, work, .. } = paths;
    let compiler = compiler::find()?;
    let mut command = Command::new(&compiler.program);
    command.args(&compiler.arguments);
    // The bytes must not depend on this machine, so they contain no paths and no debug information, and the compiler's
    // caches are in the work folder.
    command.env("ZIG_GLOBAL_CACHE_DIR", work.join("cache")).env("ZIG_LOCAL_CACHE_DIR", work.join("cache"));
    command.arg("-std=gnu11").args(build.compiler_flags);
    command.args(["-mbulk-memory", "-DNDEBUG", "-D_GNU_SOURCE", "-funsigned-char", "-g0", "-w"]);
    command.args(["-fno-sanitize=all", "-mexec-model=reactor"]);
    for (path, replacement) in [(shim, "guest"), (quickjs, "quickjs"), (work, "work")] {
        let mut map = OsString::from("-ffile-prefix-map=");
        map.push(path);
        map.push("=");
        map.push(replacement);
        command.arg(map);
    }
    for folder in [shim, work, quickjs] {
        command.arg("-I").arg(folder);
    }
    command.arg(shim.join("tokamak.c"));
    command.args(SOURCES.map(|name| quickjs.join(name)));
    command.arg("-Wl,--strip-all");
    command.arg(format!("-Wl,-z,stack-size={}", build.stack_bytes));
    command.arg(format!("-Wl,--initial-memory={}", build.memory_bytes)).args(compiler.linker_flags);
    command.arg("-o").arg(output_file);
    let output = command.output().map_err(|cause| BuildError::NoStart { program: compiler.program, cause })?;
    if !output.status.success() {
        return Err(BuildError::Compiler(output.stderr).into());
    }
    Ok(())
}

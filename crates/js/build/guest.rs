//! Makes a guest: QuickJS-NG's sources (a crates.io package that Cargo.lock pins) with our patch and shim, to WebAssembly.
//! Invariant: the same inputs give the same bytes, whatever the folder and the day; their digest names the engine. `build.rs`
//! makes the one of this build; tests make it again, and make others.

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

/// What only a person can mend.
#[derive(Debug)]
enum Failed {
    NoSources,
    NoStart {
        program: OsString,
        why: io::Error,
    },
    /// What the compiler said.
    Guest(Vec<u8>),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSources => write!(
                f,
                "`cargo metadata --locked` does not tell where {PACKAGE} is; run `cargo fetch --locked` and build again"
            ),
            Self::NoStart { program, why } => write!(f, "{} does not start: {why}", program.to_string_lossy()),
            // Cargo takes an error of one line.
            Self::Guest(said) => {
                write!(f, "the guest does not compile: {}", String::from_utf8_lossy(said).replace('\n', " | "))
            }
        }
    }
}

impl Error for Failed {}

const PACKAGE: &str = "libquickjs-ng-sys-0.14.0";
const SOURCES: [&str; 3] = ["libregexp.c", "libunicode.c", "dtoa.c"];

/// How the code is made, and how the memory begins.
pub struct Build {
    pub code: &'static [&'static str],
    /// The stack lies at the beginning of memory: another size moves everything else.
    pub stack_bytes: u32,
    pub memory_bytes: u32,
}

/// The one that goes into the binary.
pub const OURS: Build = Build { code: &["-O3", "-msimd128"], stack_bytes: 4 << 20, memory_bytes: 5 << 20 };

/// Where things lie, none of which may enter the bytes.
pub struct Places {
    pub shim: PathBuf,
    pub prelude: PathBuf,
    pub quickjs: PathBuf,
    /// What comes and goes on the way.
    pub work: PathBuf,
}

impl Places {
    /// Of the crate at `here`.
    pub fn of(here: &Path, work: PathBuf) -> Result<Self> {
        let quickjs = sources(here)?.join("embed/quickjs");
        Ok(Self { shim: here.join("guest"), prelude: here.join("prelude"), quickjs, work })
    }
}

pub fn make(places: &Places, build: &Build) -> Result<Vec<u8>> {
    fs::create_dir_all(&places.work)?;
    let patched = patch::apply(fs::read_to_string(places.quickjs.join("quickjs.c"))?)?;
    fs::write(places.work.join("quickjs.c"), patched)?;
    let bare = places.work.join("bare.wasm");
    compile(places, build, &bare)?;
    prelude::with_prelude(fs::read(&bare)?, &places.prelude)
}

/// Where Cargo keeps the package whose sources we compile. It is not part of any build graph, so only `metadata` tells.
fn sources(here: &Path) -> Result<PathBuf> {
    let cargo = env::var("CARGO")?;
    for offline in [true, false] {
        let mut metadata = Command::new(&cargo);
        metadata
            .args(["metadata", "--format-version", "1", "--locked", "--manifest-path"])
            .arg(here.join("Cargo.toml"));
        if offline {
            metadata.arg("--offline");
        }
        let answer = metadata.output()?;
        if let Some(folder) = folder_of(&String::from_utf8_lossy(&answer.stdout)) {
            return Ok(folder);
        }
    }
    Err(Failed::NoSources.into())
}

fn folder_of(metadata: &str) -> Option<PathBuf> {
    let manifest = format!("{PACKAGE}/Cargo.toml\"");
    let end = metadata.find(&manifest)? + PACKAGE.len();
    let start = metadata[..end].rfind('"')? + 1;
    Some(PathBuf::from(&metadata[start..end]))
}

fn compile(places: &Places, build: &Build, into: &Path) -> Result<()> {
    let Places { shim, quickjs, work, .. } = places;
    let compiler = compiler::find()?;
    let mut command = Command::new(&compiler.program);
    command.args(&compiler.arguments);
    // Nothing of this machine may enter the bytes: no paths, no debug information, caches of its own.
    command.env("ZIG_GLOBAL_CACHE_DIR", work.join("cache")).env("ZIG_LOCAL_CACHE_DIR", work.join("cache"));
    command.arg("-std=gnu11").args(build.code);
    command.args(["-mbulk-memory", "-DNDEBUG", "-D_GNU_SOURCE", "-funsigned-char", "-g0", "-w"]);
    command.args(["-fno-sanitize=all", "-mexec-model=reactor"]);
    for (from, to) in [(shim, "guest"), (quickjs, "quickjs"), (work, "work")] {
        let mut map = OsString::from("-ffile-prefix-map=");
        map.push(from);
        map.push("=");
        map.push(to);
        command.arg(map);
    }
    for folder in [shim, work, quickjs] {
        command.arg("-I").arg(folder);
    }
    command.arg(shim.join("tokamak.c"));
    command.args(SOURCES.map(|name| quickjs.join(name)));
    command.arg("-Wl,--strip-all");
    command.arg(format!("-Wl,-z,stack-size={}", build.stack_bytes));
    command.arg(format!("-Wl,--initial-memory={}", build.memory_bytes)).args(compiler.link);
    command.arg("-o").arg(into);
    let answer = command.output().map_err(|why| Failed::NoStart { program: compiler.program, why })?;
    if !answer.status.success() {
        return Err(Failed::Guest(answer.stderr).into());
    }
    Ok(())
}

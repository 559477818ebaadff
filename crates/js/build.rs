//! Builds the guest: QuickJS-NG's sources (a crates.io package that Cargo.lock pins) with our patch and shim, to WebAssembly.
//! Invariant: the same inputs give the same bytes, whatever the folder and the day; their digest names the engine.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

#[path = "build/compiler.rs"]
mod compiler;
#[path = "build/patch.rs"]
mod patch;
#[path = "build/prelude.rs"]
mod prelude;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

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

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error={error}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<()> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for input in ["build.rs", "build", "guest", "prelude"] {
        println!("cargo::rerun-if-changed={input}");
    }
    let quickjs = sources(&here)?.join("embed/quickjs");
    let work = out.join("guest");
    fs::create_dir_all(&work)?;
    let patched = patch::apply(fs::read_to_string(quickjs.join("quickjs.c"))?)?;
    fs::write(work.join("quickjs.c"), patched)?;

    let bare = work.join("bare.wasm");
    compile(&here.join("guest"), &quickjs, &work, &bare)?;
    let guest = prelude::with_prelude(fs::read(&bare)?, &here.join("prelude"))?;
    fs::write(out.join("guest.wasm"), guest)?;
    Ok(())
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

fn compile(guest: &Path, quickjs: &Path, work: &Path, into: &Path) -> Result<()> {
    let compiler = compiler::find()?;
    let mut command = Command::new(&compiler.program);
    command.args(&compiler.arguments);
    // Nothing of this machine may enter the bytes: no paths, no debug information, caches of its own.
    command.env("ZIG_GLOBAL_CACHE_DIR", work.join("cache")).env("ZIG_LOCAL_CACHE_DIR", work.join("cache"));
    command.args([
        "-std=gnu11",
        "-O3",
        "-msimd128",
        "-mbulk-memory",
        "-DNDEBUG",
        "-D_GNU_SOURCE",
        "-funsigned-char",
        "-g0",
        "-w",
    ]);
    command.args(["-fno-sanitize=all", "-mexec-model=reactor"]);
    for (from, to) in [(guest, "guest"), (quickjs, "quickjs"), (work, "work")] {
        let mut map = OsString::from("-ffile-prefix-map=");
        map.push(from);
        map.push("=");
        map.push(to);
        command.arg(map);
    }
    for folder in [guest, work, quickjs] {
        command.arg("-I").arg(folder);
    }
    command.arg(guest.join("tokamak.c"));
    command.args(SOURCES.map(|name| quickjs.join(name)));
    command.args(["-Wl,--strip-all", "-Wl,-z,stack-size=4194304", "-Wl,--initial-memory=5242880"]).args(compiler.link);
    command.arg("-o").arg(into);
    let answer = command.output().map_err(|why| Failed::NoStart { program: compiler.program, why })?;
    if !answer.status.success() {
        return Err(Failed::Guest(answer.stderr).into());
    }
    Ok(())
}

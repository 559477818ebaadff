//! Finds a compiler for WebAssembly: `$WASI_SDK_PATH`, else `zig`, else the wheel that `make` installs, else `python3
//! -m ziglang`.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Compiler {
    pub program: OsString,
    /// The arguments that make `program` a C compiler for WebAssembly.
    pub arguments: Vec<&'static str>,
    /// Linker flags that place the stack below the data. An overflow then leaves the memory, which traps, and
    /// overwrites no data. Zig does so by default and does not accept the flag.
    pub linker_flags: &'static [&'static str],
}

const TARGET: [&str; 2] = ["-target", "wasm32-wasi"];

/// No compiler was found in any of the four places.
#[derive(Debug)]
pub struct NoCompiler;

impl fmt::Display for NoCompiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "no compiler for WebAssembly: run `make` once (it installs one into .tools), or set WASI_SDK_PATH, or put zig \
             on the PATH",
        )
    }
}

impl Error for NoCompiler {}

pub fn find() -> Result<Compiler, NoCompiler> {
    if let Some(sdk) = env::var_os("WASI_SDK_PATH") {
        let clang = Path::new(&sdk).join("bin/clang");
        return Ok(Compiler {
            program: clang.into(),
            arguments: TARGET.to_vec(),
            linker_flags: &["-Wl,--stack-first"],
        });
    }
    if succeeds(Command::new("zig").arg("version")) {
        return Ok(zig("zig".into(), &["cc"]));
    }
    let wheel = installed_wheel();
    if wheel.is_file() {
        return Ok(zig(wheel.into(), &["cc"]));
    }
    if succeeds(Command::new("python3").args(["-m", "ziglang", "version"])) {
        return Ok(zig("python3".into(), &["-m", "ziglang", "cc"]));
    }
    Err(NoCompiler)
}

fn zig(program: OsString, command: &[&'static str]) -> Compiler {
    Compiler { program, arguments: [command, &TARGET[..]].concat(), linker_flags: &[] }
}

/// Returns the path at which `scripts/prerequisites.sh` installs zig.
fn installed_wheel() -> PathBuf {
    let crate_folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    crate_folder.join("../../.tools/ziglang/ziglang/zig")
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

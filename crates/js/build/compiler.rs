//! Finds a compiler for WebAssembly: the first of `$WASI_SDK_PATH`, `zig`, the wheel that `make` installs, `python3 -m ziglang`.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Compiler {
    pub program: OsString,
    pub arguments: Vec<&'static str>,
    /// The stack lies below the data, so that it runs into the end of memory and not into what the program holds. Zig does so
    /// by itself, and does not know the word.
    pub link: &'static [&'static str],
}

const TARGET: [&str; 2] = ["-target", "wasm32-wasi"];

/// None of the places has one.
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
        return Ok(Compiler { program: clang.into(), arguments: TARGET.to_vec(), link: &["-Wl,--stack-first"] });
    }
    if starts(Command::new("zig").arg("version")) {
        return Ok(Compiler { program: "zig".into(), arguments: [&["cc"], &TARGET[..]].concat(), link: &[] });
    }
    let wheel = wheel();
    if wheel.is_file() {
        return Ok(Compiler { program: wheel.into(), arguments: [&["cc"], &TARGET[..]].concat(), link: &[] });
    }
    if starts(Command::new("python3").args(["-m", "ziglang", "version"])) {
        return Ok(Compiler {
            program: "python3".into(),
            arguments: [&["-m", "ziglang", "cc"], &TARGET[..]].concat(),
            link: &[],
        });
    }
    Err(NoCompiler)
}

/// Where `scripts/prerequisites.sh` puts it.
fn wheel() -> PathBuf {
    let crates = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    crates.join("../../.tools/ziglang/ziglang/zig")
}

fn starts(command: &mut Command) -> bool {
    command.output().is_ok_and(|answer| answer.status.success())
}

//! Builds the guest of this build, which becomes part of the binary; `build/guest.rs` has the steps.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

#[path = "build/guest.rs"]
mod guest;

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error={error}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> guest::Result<()> {
    let crate_folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out_folder = PathBuf::from(env::var("OUT_DIR")?);
    for input in ["build.rs", "build", "guest", "prelude"] {
        println!("cargo::rerun-if-changed={input}");
    }
    println!("cargo::rerun-if-env-changed=WASI_SDK_PATH");
    let paths = guest::BuildPaths::for_crate(&crate_folder, out_folder.join("guest"))?;
    fs::write(out_folder.join("guest.wasm"), guest::build_guest(&paths, &guest::RELEASE_BUILD)?)?;
    Ok(())
}

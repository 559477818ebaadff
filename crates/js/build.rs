//! Builds the guest that goes into the binary; `build/guest.rs` tells how one is made.

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
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for input in ["build.rs", "build", "guest", "prelude"] {
        println!("cargo::rerun-if-changed={input}");
    }
    println!("cargo::rerun-if-env-changed=WASI_SDK_PATH");
    let places = guest::Places::of(&here, out.join("guest"))?;
    fs::write(out.join("guest.wasm"), guest::make(&places, &guest::OURS)?)?;
    Ok(())
}

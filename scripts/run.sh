#!/usr/bin/env bash
# `make run`: install what is missing, build in release, serve.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prerequisites.sh

need_rust
need_c_compiler
need_wasm_compiler
say "building tokamak in release (the first build takes a few minutes)"
cargo build --release --locked --package cli
say "starting the server"
exec "$(target_dir)/release/tokamak" serve --connect-help "$@"

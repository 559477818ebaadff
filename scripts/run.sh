#!/usr/bin/env bash
# `make run`: installs what is missing, builds with the profile `quick` (Cargo.toml), and serves.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prerequisites.sh

need_rust
need_c_compiler
need_wasm_compiler
say "building tokamak without link-time optimisation (the first build takes about seven minutes on two cores)"
cargo build --profile quick --locked --package cli
say "starting the server"
exec "$(target_dir)/quick/tokamak" serve --connect-help "$@"

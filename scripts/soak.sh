#!/usr/bin/env bash
# `make soak`: the kill test at length, on the release binary.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prerequisites.sh

need_rust
need_c_compiler
cargo build --release --package cli --locked
KILLS=${KILLS:-5000} TOKAMAK="$(target_dir)/release/tokamak" tests/e2e/run.sh kills

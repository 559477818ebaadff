#!/usr/bin/env bash
# `make soak`: runs the kill tests for a long time, with the release binary.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prerequisites.sh

need_rust
need_c_compiler
cargo build --release --package cli --locked
cargo build --package testapi --locked
export TOKAMAK="$(target_dir)/release/tokamak" TEST_API="$(target_dir)/debug/test-api"
export KILLS=${KILLS:-5000} JS_KILLS=${JS_KILLS:-1000} JS_WAITS=${JS_WAITS:-2000}
tests/e2e/run.sh kills -s

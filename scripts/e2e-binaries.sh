#!/usr/bin/env bash
# Builds the two binaries of the end-to-end suites: the product, and one with the fixtures of the conformance suite.
# Invariant: `tokamak` is always the product; only `server` and `cli` are compiled twice.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prerequisites.sh

debug="$(target_dir)/debug"
cargo build --package cli --locked --quiet --features conformance-fixtures
cp -f "$debug/tokamak" "$debug/tokamak-fixtures"
cargo build --package cli --locked --quiet

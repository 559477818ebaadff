#!/usr/bin/env bash
# `make bench`: builds every benchmark in release, runs it and prints ratios side by side. docs/benchmarks.md has the results.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prerequisites.sh

need_rust
need_c_compiler
need_wasm_compiler
say "building in release and measuring"
for bench in round_trip sessions runs pages allocations catalogs; do
  cargo bench --locked --quiet --package cli --bench "$bench"
done
for bench in front waves discovery; do
  cargo bench --locked --quiet --package teach --bench "$bench"
done
cargo bench --locked --quiet --package exec --bench rows
cargo bench --locked --quiet --package store --bench indexes
TOKAMAK_QJS=$(scripts/qjs.sh) cargo bench --locked --quiet --package js --bench heaps
benches/tokens.sh

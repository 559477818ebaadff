#!/usr/bin/env bash
# `make check`: format, lints, tidy, unit and golden tests. Run it before every commit; `make test` runs it first.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prerequisites.sh

started=$SECONDS
step() { printf '\n== %s  (%ss)\n' "$*" "$((SECONDS - started))"; }

step "prerequisites"
need_rust
need_c_compiler
need_wasm_compiler
for tool in fmt clippy; do
  cargo $tool --version >/dev/null 2>&1 || stop "cargo $tool is missing; run \`rustup component add rustfmt clippy\` and then make again."
done

step "format"
cargo fmt --all --check

step "tidy: layers, headers, rings; licences of dependencies"
cargo xtask tidy
cargo xtask licences
cargo xtask tokens

if git rev-parse --verify --quiet origin/main >/dev/null; then
  step "subjects of the commits that are not in origin/main yet"
  cargo xtask commits
fi

step "clippy, warnings are errors"
cargo clippy --workspace --all-targets --locked --quiet -- -D warnings

step "unit, golden and integration tests"
if cargo nextest --version >/dev/null 2>&1; then
  cargo nextest run --workspace --locked --no-fail-fast --status-level fail --final-status-level fail
else
  cargo test --workspace --locked --no-fail-fast --quiet
fi

step "checked"

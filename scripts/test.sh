#!/usr/bin/env bash
# `make test`: runs every check and every test. CI runs this script.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prerequisites.sh

# Incremental folders speed up the next build of the same tree. A clean clone and a CI build once, and would only fill the disk.
if [ -n "${CI:-}" ] || [ ! -d "$(target_dir)" ]; then export CARGO_INCREMENTAL=0; fi

started=$SECONDS
step() { printf '\n== %s  (%ss)\n' "$*" "$((SECONDS - started))"; }

scripts/check.sh

step "import: twenty real specifications, and the drafts against hand-made catalogs"
scripts/e2e-binaries.sh
TOKAMAK="$(target_dir)/debug/tokamak" scripts/corpus.sh twenty

step "end-to-end: the real binary, clients and servers that we did not write"
TOKAMAK="$(target_dir)/debug/tokamak" tests/e2e/run.sh --durations 30

step "all passed"

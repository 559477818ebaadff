#!/usr/bin/env bash
# Builds the binaries of the end-to-end suites: the product, the test server of the MCP conformance suite, and the test API.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prerequisites.sh

# The tests are among the targets, although nobody runs them here: with them cargo uses the same features of every dependency as
# `make check`, so everything from tokio upwards is already built. Without them it would be built a second time.
cargo build --workspace --bins --examples --tests --locked --quiet

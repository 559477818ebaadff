#!/usr/bin/env bash
# Builds the binaries of the end-to-end suites: the product, the test server of the MCP conformance suite, and the test API.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prerequisites.sh

cargo build --package cli --locked --quiet
cargo build --package server --example conformance-server --locked --quiet
cargo build --package testapi --locked --quiet

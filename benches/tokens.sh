#!/usr/bin/env bash
# Compares the tokens that a model reads for the same operations: our table, FastMCP's tool schemas, the OpenAPI document itself.
# `make bench` runs this script; docs/benchmarks.md has the results. The other tools come from npm and PyPI into $TOOLS.
# TOKAMAK names the binary, which is built if it is not set; COUNT is a command that prints the o200k tokens of its standard input.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prerequisites.sh

COUNT=${COUNT:-cargo run -q --release -p xtask -- count}
TOOLS=${TOOLS:-.tools/tokens}
FASTMCP=${FASTMCP:-4.1.2}
OCTOKIT=${OCTOKIT:-23.0.2}
export TOKAMAK COUNT

command -v npm >/dev/null || stop "npm is missing (it fetches GitHub's OpenAPI document); install Node.js and run make bench again."
command -v python3 >/dev/null || stop "python3 is missing (FastMCP is a Python package); install version 3.10 or newer and run make bench again."
mkdir -p "$TOOLS"
# The binary is always built, because an old one would be measured as the current one.
if [ -z "${TOKAMAK:-}" ]; then
  need_rust
  cargo build --release --locked --quiet --package cli
  TOKAMAK=$(target_dir)/release/tokamak
fi

spec=$TOOLS/octokit-$OCTOKIT
if [ ! -f "$spec/package/generated/api.github.com.json" ]; then
  say "fetching @octokit/openapi $OCTOKIT"
  mkdir -p "$spec"
  packed=$(npm pack --silent --pack-destination "$spec" "@octokit/openapi@$OCTOKIT" | tail -n 1)
  tar -xzf "$spec/$packed" -C "$spec" package/package.json package/generated/api.github.com.json
  rm "$spec/$packed"
fi

venv=$TOOLS/fastmcp-$FASTMCP
# The mark is written last, so that an incomplete installation is repeated.
if [ ! -f "$venv/installed" ]; then
  say "installing fastmcp $FASTMCP"
  python3 -m venv --clear "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "fastmcp==$FASTMCP"
  touch "$venv/installed"
fi

"$venv/bin/python" benches/tokens.py "$spec/package"

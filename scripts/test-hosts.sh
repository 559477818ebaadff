#!/usr/bin/env bash
# `make test-hosts`: drives Claude Code and Codex with a model that follows a script. `make test` leaves it out, because the hosts
# take 785 MB. `scripts/test-hosts.sh codex` runs one host.
# Invariant: the hosts are installed under $TOOLS and removed at the end (KEEP_HOSTS=1 keeps them); they only reach this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prerequisites.sh

need_rust
need_c_compiler
TOOLS=${TOOLS:-$PWD/.tools}
mkdir -p "$TOOLS"
TOOLS=$(cd "$TOOLS" && pwd)
export TOOLS
export HOSTS="$TOOLS/hosts"

free_mb=$(df -Pm "$TOOLS" | awk 'NR == 2 {print $4}')
if [ ! -d "$HOSTS" ] && [ "$free_mb" -lt 2000 ]; then
  stop "the hosts need 2 GB of $TOOLS, which has $free_mb MB"
fi
tests/e2e/setup.sh
node="$TOOLS/e2e-node/node_modules/node/bin"
work=$(mktemp -d)
clean_up() {
  rm -rf "$work"
  [ -n "${KEEP_HOSTS:-}" ] || rm -rf "$HOSTS"
}
trap clean_up EXIT

mkdir -p "$HOSTS"
cp tests/hosts/package.json tests/hosts/package-lock.json "$HOSTS/"
PATH="$node:$PATH" npm ci --prefix "$HOSTS" --ignore-scripts --no-audit --no-fund --loglevel=error
# The package's own installer puts the program in place. Scripts of other packages are never run.
(cd "$HOSTS/node_modules/@anthropic-ai/claude-code" && "$node/node" install.cjs)
cargo build --package cli --locked --quiet
cargo build --package testapi --locked --quiet

TOKAMAK="$(target_dir)/debug/tokamak"
TOKAMAK=$(cd "$(dirname "$TOKAMAK")" && pwd)/tokamak
export TOKAMAK PATH="$node:$PATH" TMPDIR="$work" PYTHONDONTWRITEBYTECODE=1
unset TOKAMAK_DATA TOKAMAK_CONFIG TOKAMAK_SECRETS_KEY RUST_LOG
timeout --kill-after=10 900 python3 tests/hosts/hosts.py "$@"

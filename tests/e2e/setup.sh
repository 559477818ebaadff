#!/usr/bin/env bash
# Installs what the end-to-end tests need into $TOOLS (default: .tools in the repository).
# Invariants: nothing outside $TOOLS changes, except packages of the system that are missing and that root may install; a second run
# with the same pins does nothing. The tools are in $TOOLS/e2e-python (requirements.txt) and $TOOLS/e2e-node (node/).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TOOLS=${TOOLS:-$(cd "$here/../.." && pwd)/.tools}
mkdir -p "$TOOLS"
TOOLS=$(cd "$TOOLS" && pwd)
PYTHON_HOME="$TOOLS/e2e-python"
NODE_HOME="$TOOLS/e2e-node"

main() {
  need_python
  local interpreter python_pin node_pin
  interpreter=$(python3 -c 'import sys; print(sys.executable, sys.version_info[:3])')
  python_pin="$(cksum <"$here/requirements.txt") $interpreter $PYTHON_HOME"
  if ! is_installed "$PYTHON_HOME" "$python_pin"; then
    say "installing pytest, the MCP client and the servers of requirements.txt into $PYTHON_HOME (400 MB)"
    install_python
    mark_installed "$PYTHON_HOME" "$python_pin"
  fi
  node_pin="$(cat "$here/node/package.json" "$here/node/package-lock.json" | cksum) $NODE_HOME"
  if ! is_installed "$NODE_HOME" "$node_pin"; then
    need_npm
    say "installing Node 22, the MCP inspector, the MCP conformance suite and a GraphQL server into $NODE_HOME (300 MB)"
    install_node
    mark_installed "$NODE_HOME" "$node_pin"
  fi
}

say() { printf 'setup: %s\n' "$*" >&2; }

refuse() {
  say "$*"
  exit 1
}

is_installed() { [ "$(cat "$1/.installed" 2>/dev/null)" = "$2" ]; }
mark_installed() { printf '%s\n' "$2" >"$1/.installed"; }

# --- Python

need_python() {
  if ! command -v python3 >/dev/null; then
    system_package "Python 3.11 or newer is missing" python3 python3-venv
  fi
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    refuse "$(python3 --version) is too old: install Python 3.11 or newer and put it on the PATH"
}

install_python() {
  if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    system_package "this Python cannot make virtual environments" python3-venv
  fi
  rm -rf "$PYTHON_HOME"
  python3 -m venv "$PYTHON_HOME"
  # Only built packages: no compiler is needed, and nothing runs at installation.
  fetch "the Python packages" "$PYTHON_HOME/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 \
    --only-binary=:all: -r "$here/requirements.txt"
}

# --- Node

need_npm() {
  if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
    system_package "npm is missing" nodejs npm
  fi
}

# `install` and not `ci`: the lock pins every package, but the optional native parts depend on the machine, and none is needed.
# Scripts of packages do not run, except the one that fetches the Node binary of this machine, which is called by name.
install_node() {
  rm -rf "$NODE_HOME"
  mkdir -p "$NODE_HOME"
  cp "$here/node/package.json" "$here/node/package-lock.json" "$NODE_HOME/"
  fetch "the Node packages" npm install --prefix "$NODE_HOME" --omit=optional --ignore-scripts --no-audit --no-fund
  cd "$NODE_HOME/node_modules/node"
  quietly node installArchSpecificPackage.js
  cd "$here"
  "$NODE_HOME/node_modules/node/bin/node" --version | grep -q '^v22\.' || refuse "npm did not deliver Node 22"
}

# --- both

# Installs with apt-get where that is possible (root on Debian), else says what to install.
system_package() {
  local why=$1
  shift
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    refuse "$why: install $* with your package manager and run this again"
  fi
  say "$why; apt-get install $*"
  quietly apt-get update
  DEBIAN_FRONTEND=noninteractive quietly apt-get install --yes --no-install-recommends "$@"
}

# $1 names what comes from a package registry; the rest is the command that brings it.
fetch() {
  local what=$1
  shift
  (quietly "$@") || refuse "$what could not be installed; is the package registry reachable from here?"
}

# Prints the output of a command only when it fails.
quietly() {
  local log
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    refuse "failed: $*"
  fi
  rm -f "$log"
}

main

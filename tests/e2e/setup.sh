#!/usr/bin/env bash
# Installs what the end-to-end suites need into $TOOLS (default: .tools in the repository).
# Invariants: nothing outside $TOOLS is touched, except packages of the system that are missing and that root may
# install; a second run with the same pins does nothing; the tools end up in $TOOLS/e2e-python,
# $TOOLS/e2e-http (a validator and a fuzzer of OpenAPI), $TOOLS/e2e-servers (real servers to call, with the versions of
# foreign/requirements.txt), $TOOLS/e2e-s3 (a server of the S3 protocol) and $TOOLS/e2e-node.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TOOLS=${TOOLS:-$(cd "$here/../.." && pwd)/.tools}
mkdir -p "$TOOLS"
TOOLS=$(cd "$TOOLS" && pwd)

MCP_CLIENT="mcp==2.3.0"
HTTP_TOOLS="openapi-spec-validator==0.9.0 schemathesis==4.32.5"
# Not `moto[server]`, which brings 160 MB for other services.
S3_SERVER="moto[s3]==5.2.5 flask==3.1.3 flask-cors==6.0.5"
PYTHON_HOME="$TOOLS/e2e-python"
HTTP_HOME="$TOOLS/e2e-http"
SERVERS_HOME="$TOOLS/e2e-servers"
S3_HOME="$TOOLS/e2e-s3"
NODE_HOME="$TOOLS/e2e-node"

main() {
  need_python
  local interpreter python_pin http_pin servers_pin s3_pin node_pin
  interpreter=$(python3 -c 'import sys; print(sys.executable, sys.version_info[:3])')
  python_pin="$MCP_CLIENT $interpreter $PYTHON_HOME"
  if ! done_before "$PYTHON_HOME" "$python_pin"; then
    say "installing the Python MCP client ($MCP_CLIENT) into $PYTHON_HOME"
    install_python
    remember "$PYTHON_HOME" "$python_pin"
  fi
  http_pin="$HTTP_TOOLS $interpreter $HTTP_HOME"
  if ! done_before "$HTTP_HOME" "$http_pin"; then
    say "installing $HTTP_TOOLS into $HTTP_HOME (110 MB)"
    install_http
    remember "$HTTP_HOME" "$http_pin"
  fi
  servers_pin="$(cksum <"$here/foreign/requirements.txt") $interpreter $SERVERS_HOME"
  if ! done_before "$SERVERS_HOME" "$servers_pin"; then
    say "installing Jupyter Server and etcd into $SERVERS_HOME (140 MB)"
    install_servers
    remember "$SERVERS_HOME" "$servers_pin"
  fi
  s3_pin="$S3_SERVER $interpreter $S3_HOME"
  if ! done_before "$S3_HOME" "$s3_pin"; then
    say "installing $S3_SERVER into $S3_HOME (160 MB)"
    install_s3
    remember "$S3_HOME" "$s3_pin"
  fi
  node_pin="$(cat "$here/node/package.json" "$here/node/package-lock.json" | cksum) $NODE_HOME"
  if ! done_before "$NODE_HOME" "$node_pin"; then
    need_npm
    say "installing Node 22, the MCP inspector, the MCP conformance suite and a GraphQL server into $NODE_HOME (300 MB)"
    install_node
    remember "$NODE_HOME" "$node_pin"
  fi
}

say() { printf 'setup: %s\n' "$*" >&2; }

refuse() {
  say "$*"
  exit 1
}

done_before() { [ "$(cat "$1/.installed" 2>/dev/null)" = "$2" ]; }
remember() { printf '%s\n' "$2" >"$1/.installed"; }

# --- Python

need_python() {
  if ! command -v python3 >/dev/null; then
    system_package "Python 3.10 or newer is missing" python3 python3-venv
  fi
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    refuse "$(python3 --version) is too old: install Python 3.10 or newer and put it on the PATH"
}

install_python() {
  virtual_environment "$PYTHON_HOME"
  fetch "the Python MCP client" pip_of "$PYTHON_HOME" "$MCP_CLIENT"
}

install_http() {
  virtual_environment "$HTTP_HOME"
  # Two words, two packages.
  # shellcheck disable=SC2086
  fetch "the OpenAPI tools" pip_of "$HTTP_HOME" $HTTP_TOOLS
}

# Nothing is compiled here: every one of them comes built.
install_servers() {
  virtual_environment "$SERVERS_HOME"
  fetch "Jupyter Server and etcd" pip_of "$SERVERS_HOME" --only-binary=:all: -r "$here/foreign/requirements.txt"
}

install_s3() {
  virtual_environment "$S3_HOME"
  # Three words, three packages.
  # shellcheck disable=SC2086
  fetch "the S3 server" pip_of "$S3_HOME" $S3_SERVER
}

virtual_environment() {
  if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    system_package "this Python cannot make virtual environments" python3-venv
  fi
  rm -rf "$1"
  python3 -m venv "$1"
}

pip_of() {
  local home=$1
  shift
  "$home/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 "$@"
}

# --- Node

need_npm() {
  if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
    system_package "npm is missing" nodejs npm
  fi
}

# `install`, not `ci`: the lock pins every package, but which optional native parts exist depends on the machine; none
# is needed.
# Scripts of packages do not run: the one that is needed (it fetches the Node binary of this machine) is called by name.
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

# Debian and its kin, as root: install; else say what is wanted.
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

# $1 what comes from a package registry, then the command that brings it.
fetch() {
  local what=$1
  shift
  (quietly "$@") || refuse "$what could not be installed; is the package registry reachable from here?"
}

# Output only when it fails.
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

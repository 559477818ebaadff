#!/usr/bin/env bash
# Makes sure that what the build needs is here, installing what can be installed; else says what is missing in one sentence.
# Sourced by the other scripts.

say() { printf '== %s\n' "$*"; }
stop() { printf 'error: %s\n' "$*" >&2; exit 1; }

# apt_install WHAT-FOR PACKAGE…
apt_install() {
  local purpose=$1; shift
  command -v apt-get >/dev/null || stop "$purpose is missing and there is no apt-get here; install $* with your package manager and run make again."
  local sudo=""
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || stop "$purpose is missing; run \`sudo apt-get install $*\` and then make again."
    sudo="sudo -n"
  fi
  say "installing $* ($purpose)"
  local log; log=$(mktemp)
  if ! { $sudo env DEBIAN_FRONTEND=noninteractive apt-get update && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    stop "$purpose is missing and \`apt-get install $*\` failed; see the lines above."
  fi
  rm -f "$log"
}

need_rust() {
  command -v cargo >/dev/null || { [ -x "$HOME/.cargo/bin/cargo" ] && PATH="$HOME/.cargo/bin:$PATH"; }
  command -v cargo >/dev/null || stop "Rust is missing; install version 1.95 or newer (rustup.rs) and run make again."
  local version; version=$(rustc --version 2>/dev/null | awk '{print $2}')
  [ -n "$version" ] || stop "rustc does not start; if rustup is installed elsewhere, set RUSTUP_HOME and CARGO_HOME."
  [ "$(printf '%s\n' 1.95.0 "${version%%-*}" | sort -V | head -n 1)" = 1.95.0 ] \
    || stop "Rust $version is too old; install version 1.95 or newer (rustup update) and run make again."
}

need_c_compiler() {
  command -v cc >/dev/null || apt_install "a C compiler (SQLite and the TLS code are C)" gcc libc6-dev
}

# The folder that cargo builds into, whatever the environment says.
target_dir() { printf '%s\n' "${CARGO_TARGET_DIR:-target}"; }

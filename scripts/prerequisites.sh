#!/usr/bin/env bash
# Checks the prerequisites of the build, installs the missing ones where it can, and otherwise names the missing one and the remedy.
# The other scripts source this file.

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
  local version; version=$(rustc --version 2>/dev/null | awk '{print $2}') || true
  [ -n "$version" ] || stop "rustc does not start; if rustup is installed elsewhere, set RUSTUP_HOME and CARGO_HOME."
  [ "$(printf '%s\n' 1.95.0 "${version%%-*}" | sort -V | head -n 1)" = 1.95.0 ] \
    || stop "Rust $version is too old; install version 1.95 or newer (rustup update) and run make again."
}

need_c_compiler() {
  command -v cc >/dev/null || apt_install "a C compiler (SQLite and the TLS code are C)" gcc libc6-dev
}

# The JavaScript engine is C compiled to WebAssembly. crates/js/build/compiler.rs searches the same places in this order.
ZIG=0.17.0
need_wasm_compiler() {
  if [ -n "${WASI_SDK_PATH:-}" ]; then
    [ -x "$WASI_SDK_PATH/bin/clang" ] || stop "WASI_SDK_PATH is set, but $WASI_SDK_PATH/bin/clang does not exist."
    return
  fi
  command -v zig >/dev/null && return
  [ "$(cat .tools/ziglang/version 2>/dev/null)" = "$ZIG" ] && return
  local missing="a compiler for WebAssembly is missing (the JavaScript engine is C)"
  command -v python3 >/dev/null || stop "$missing; install python3 with pip, or zig, or set WASI_SDK_PATH, and run make again."
  say "installing the compiler for WebAssembly (ziglang $ZIG from PyPI) into .tools"
  mkdir -p .tools
  local new; new=$(mktemp -d .tools/ziglang.XXXXXX)
  local log; log=$(mktemp)
  if ! python3 -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --only-binary :all: --target "$new" "ziglang==$ZIG" >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    rm -rf "$new"
    stop "$missing and \`python3 -m pip install ziglang==$ZIG\` failed; see the lines above, or install zig, or set WASI_SDK_PATH."
  fi
  rm -f "$log"
  printf '%s\n' "$ZIG" >"$new/version"
  rm -rf .tools/ziglang
  mv "$new" .tools/ziglang
}

# Prints the folder that cargo builds into.
target_dir() { printf '%s\n' "${CARGO_TARGET_DIR:-target}"; }

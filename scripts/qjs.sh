#!/usr/bin/env bash
# Builds QuickJS-NG for this machine on first use and prints its path. `make ecmascript` and `make bench` compare the guest with it.
# The sources are those of the guest without our patch. The program is stored in $TOOLS (default: .tools).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prerequisites.sh
need_rust
need_c_compiler

folder="${TOOLS:-.tools}/ecmascript"
mkdir -p "$folder"
program="$(cd "$folder" && pwd)/qjs"
sources=$(cargo metadata --format-version 1 --locked --manifest-path crates/js/Cargo.toml \
  | grep -o '"[^"]*/libquickjs-ng-sys-[0-9.]*/Cargo.toml"' | head -n 1 | tr -d '"')
sources="$(dirname "$sources")/embed/quickjs"
if [ "$(cat "$program.from" 2>/dev/null)" != "$sources" ]; then
  say "building QuickJS-NG for this machine" >&2
  (cd "$sources" && cc -O2 -D_GNU_SOURCE -funsigned-char -w -I. qjs.c quickjs.c quickjs-libc.c libregexp.c libunicode.c dtoa.c \
    gen/repl.c gen/standalone.c -lm -lpthread -ldl -o "$program")
  printf '%s\n' "$sources" >"$program.from"
fi
printf '%s\n' "$program"

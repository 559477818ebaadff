#!/usr/bin/env bash
# Prints the path of QuickJS-NG for this machine, built on first use from the sources that the guest is made of, without our
# patch: what the guest is compared with, by `make ecmascript` and by `make bench`. $TOOLS is where it is kept (default: .tools).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prerequisites.sh
need_rust
need_c_compiler

kept="${TOOLS:-.tools}/ecmascript"
mkdir -p "$kept"
built="$(cd "$kept" && pwd)/qjs"
sources=$(cargo metadata --format-version 1 --locked --manifest-path crates/js/Cargo.toml \
  | grep -o '"[^"]*/libquickjs-ng-sys-[0-9.]*/Cargo.toml"' | head -n 1 | tr -d '"')
sources="$(dirname "$sources")/embed/quickjs"
if [ "$(cat "$built.from" 2>/dev/null)" != "$sources" ]; then
  say "building QuickJS-NG for this machine" >&2
  (cd "$sources" && cc -O2 -D_GNU_SOURCE -funsigned-char -w -I. qjs.c quickjs.c quickjs-libc.c libregexp.c libunicode.c dtoa.c \
    gen/repl.c gen/standalone.c -lm -lpthread -ldl -o "$built")
  printf '%s\n' "$sources" >"$built.from"
fi
printf '%s\n' "$built"

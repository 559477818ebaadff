#!/usr/bin/env bash
# `make ecmascript`: the language and the globals against the suites of others. QuickJS-NG's own tests and Test262, each file in
# three ways: straight through, stored and restored between harness and test and at every await, and in a native build of the same
# sources; and the web-platform tests of the globals. Nothing of the suites is kept in the tree.
#   scripts/ecmascript.sh [quickjs] [test262] [wpt]     all of them without an argument
#   ECMASCRIPT_EVERY=25   of Test262, every 25th file     ECMASCRIPT_ONLY=built-ins/Map   files with this in their name
# $TOOLS is where they are unpacked (default: .tools). TEST262 and WPT name folders that are there already.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prerequisites.sh

# SpiderMonkey's sources carry Test262, Node's the web-platform tests; Debian has both under names that say their bytes.
DEBIAN=http://deb.debian.org/debian/pool/main
MOZJS=m/mozjs128/mozjs128_128.14.0.orig.tar.xz
MOZJS_SHA256=41cca35149710ce45fbabc5fefcf86a01fdf833fdb783941964fca3a55fb72dd
NODE=n/nodejs/nodejs_20.19.2+dfsg.orig.tar.xz
NODE_SHA256=5e5559381ad031d245a8efa403458abbb73755f74c3e6380f185a4dd342b7949

TOOLS=${TOOLS:-.tools}
kept="$TOOLS/ecmascript"
mkdir -p "$kept"
kept=$(cd "$kept" && pwd)

# fetch NAME PATH SHA256 PART: unpacks a part of a source package, once.
fetch() {
  [ "$(cat "$kept/$1/.fetched" 2>/dev/null)" = "$3" ] && return
  say "fetching $(basename "$2")"
  rm -rf "${kept:?}/$1" && mkdir -p "$kept/$1"
  curl --fail --silent --show-error --location --max-time 900 -o "$kept/$1.tar.xz" "$DEBIAN/$2" \
    || stop "$DEBIAN/$2 cannot be fetched; unpack another copy and name it with TEST262 or WPT."
  echo "$3  $kept/$1.tar.xz" | sha256sum --check --quiet || stop "$DEBIAN/$2 is not the file it was."
  # As root, tar would set the owner that the archive names.
  tar --no-same-owner -xJf "$kept/$1.tar.xz" -C "$kept/$1" --wildcards "$4"
  rm -f "$kept/$1.tar.xz"
  printf '%s\n' "$3" >"$kept/$1/.fetched"
}

# The sources that the guest is made of, without our patch, for this machine.
native() {
  TOKAMAK_QJS=$(TOOLS="$TOOLS" scripts/qjs.sh)
  export TOKAMAK_QJS
}

# run FILTER: one test of `js`, with what it prints.
# Optimised: the whole of Test262 is then a quarter of an hour, not some hours.
run() { cargo test --release --locked --quiet --package js --test it -- --include-ignored --nocapture "$1"; }

need_rust
need_c_compiler
need_wasm_compiler
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(quickjs test262 wpt)
for suite in "${suites[@]}"; do
  case "$suite" in
    quickjs)
      native
      run ecmascript::quickjs
      ;;
    test262)
      native
      [ -n "${TEST262:-}" ] || { fetch test262 "$MOZJS" "$MOZJS_SHA256" '*/js/src/tests/test262/*'; TEST262=$(echo "$kept"/test262/*/js/src/tests/test262); }
      export TEST262
      run ecmascript::test262
      ;;
    wpt)
      [ -n "${WPT:-}" ] || { fetch wpt "$NODE" "$NODE_SHA256" '*/test/fixtures/wpt/*'; WPT=$(echo "$kept"/wpt/*/test/fixtures/wpt); }
      export WPT
      run web::wpt
      ;;
    *) stop "no suite $suite; one of quickjs, test262, wpt" ;;
  esac
done

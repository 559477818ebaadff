#!/usr/bin/env bash
# `make ecmascript`: tests the language and the globals with public suites. Each file of QuickJS-NG's own tests and of Test262 runs
# in three ways: without interruption; stored and restored between harness and test and at every await; and in a native build of the
# same sources. The web-platform tests cover the globals. The tree holds no file of these suites.
#   scripts/ecmascript.sh [quickjs] [test262] [wpt]     runs all of them without an argument
#   ECMASCRIPT_EVERY=25   runs every 25th file of Test262     ECMASCRIPT_ONLY=built-ins/Map   runs files with this in their name
# The suites are unpacked into $TOOLS (default: .tools). TEST262 and WPT name folders that already hold them.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prerequisites.sh

# SpiderMonkey's sources contain Test262, and Node's contain the web-platform tests. Debian keeps both at fixed addresses.
DEBIAN=http://deb.debian.org/debian/pool/main
MOZJS=m/mozjs128/mozjs128_128.14.0.orig.tar.xz
MOZJS_SHA256=41cca35149710ce45fbabc5fefcf86a01fdf833fdb783941964fca3a55fb72dd
NODE=n/nodejs/nodejs_20.19.2+dfsg.orig.tar.xz
NODE_SHA256=5e5559381ad031d245a8efa403458abbb73755f74c3e6380f185a4dd342b7949

TOOLS=${TOOLS:-.tools}
suites_folder="$TOOLS/ecmascript"
mkdir -p "$suites_folder"
suites_folder=$(cd "$suites_folder" && pwd)

# fetch NAME PATH SHA256 PART: unpacks a part of a source package, unless it was unpacked before.
fetch() {
  [ "$(cat "$suites_folder/$1/.fetched" 2>/dev/null)" = "$3" ] && return
  say "fetching $(basename "$2")"
  rm -rf "${suites_folder:?}/$1" && mkdir -p "$suites_folder/$1"
  curl --fail --silent --show-error --location --max-time 900 -o "$suites_folder/$1.tar.xz" "$DEBIAN/$2" \
    || stop "$DEBIAN/$2 cannot be fetched; unpack another copy and name it with TEST262 or WPT."
  echo "$3  $suites_folder/$1.tar.xz" | sha256sum --check --quiet || stop "$DEBIAN/$2 has another checksum than expected; it may have been damaged on the way."
  # As root, tar would set the owner that the archive names.
  tar --no-same-owner -xJf "$suites_folder/$1.tar.xz" -C "$suites_folder/$1" --wildcards "$4"
  rm -f "$suites_folder/$1.tar.xz"
  printf '%s\n' "$3" >"$suites_folder/$1/.fetched"
}

# Builds the engine's sources for this machine, without our patch.
build_native() {
  TOKAMAK_QJS=$(TOOLS="$TOOLS" scripts/qjs.sh)
  export TOKAMAK_QJS
}

# run FILTER: runs the tests of `js` that match, and shows their output. The build is optimised, because the whole of Test262 then
# takes a quarter of an hour instead of hours.
run() { cargo test --release --locked --quiet --package js --test it -- --include-ignored --nocapture "$1"; }

need_rust
need_c_compiler
need_wasm_compiler
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(quickjs test262 wpt)
for suite in "${suites[@]}"; do
  case "$suite" in
    quickjs)
      build_native
      run ecmascript::quickjs
      ;;
    test262)
      build_native
      [ -n "${TEST262:-}" ] || { fetch test262 "$MOZJS" "$MOZJS_SHA256" '*/js/src/tests/test262/*'; TEST262=$(echo "$suites_folder"/test262/*/js/src/tests/test262); }
      export TEST262
      run ecmascript::test262
      ;;
    wpt)
      [ -n "${WPT:-}" ] || { fetch wpt "$NODE" "$NODE_SHA256" '*/test/fixtures/wpt/*'; WPT=$(echo "$suites_folder"/wpt/*/test/fixtures/wpt); }
      export WPT
      run web::wpt
      ;;
    *) stop "no suite $suite; one of quickjs, test262, wpt" ;;
  esac
done

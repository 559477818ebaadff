#!/usr/bin/env bash
# Runs the end-to-end tests with pytest and passes its arguments on:
#   run.sh                       everything: two workers, then the tests that need the machine for themselves
#   run.sh tenants -k revoked    part of it
# $TOKAMAK is the binary (default: target/debug/tokamak), $CONFORMANCE_SERVER the test server of the MCP conformance suite (default:
# examples/conformance-server beside the binary), $TEST_API the test API (default: test-api beside the binary), $TOOLS the folder of
# the tools (default: .tools), $WORKERS the number of workers (default: 2).
# Invariants: nothing that was started is left running, and no file is left outside $TOOLS; the last line counts all tests.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
export TOKAMAK=${TOKAMAK:-$repository/target/debug/tokamak}
TOOLS=${TOOLS:-$repository/.tools}
mkdir -p "$TOOLS"
TOOLS=$(cd "$TOOLS" && pwd)
export TOOLS

die() {
  echo "run.sh: $*" >&2
  exit 1
}

[ -x "$TOKAMAK" ] || die "no binary at $TOKAMAK; build it (cargo build -p cli) or set TOKAMAK"
TOKAMAK=$(cd "$(dirname "$TOKAMAK")" && pwd)/$(basename "$TOKAMAK")
export CONFORMANCE_SERVER=${CONFORMANCE_SERVER:-$(dirname "$TOKAMAK")/examples/conformance-server}
export TEST_API=${TEST_API:-$(dirname "$TOKAMAK")/test-api}
"$here/setup.sh" || die "the tools are not installed"

# Nothing of the caller's home, settings or proxies reaches a test, and all files are in one folder that is removed.
WORK=$(mktemp -d)
CHILD=
clean_up() {
  # pytest ends its servers when it gets the signal.
  [ -n "$CHILD" ] && kill "$CHILD" 2>/dev/null && wait "$CHILD" 2>/dev/null
  rm -rf "$WORK"
}
trap 'clean_up' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir "$WORK/home" "$WORK/tmp"
export HOME="$WORK/home" TMPDIR="$WORK/tmp" PYTHONDONTWRITEBYTECODE=1
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost
unset "${!AWS_@}" TOKAMAK_DATA TOKAMAK_CONFIG TOKAMAK_SECRETS_KEY RUST_LOG XDG_DATA_HOME XDG_CONFIG_HOME
export PATH="$TOOLS/e2e-node/node_modules/node/bin:$TOOLS/e2e-node/node_modules/.bin:$PATH"

# Runs pytest and adds its counts; 5 is its exit code when no test was selected.
PASSED=0 FAILED=0 RUNS=0
run_pytest() {
  "$TOOLS/e2e-python/bin/python" -m pytest -c "$here/pytest.ini" --rootdir "$here" "$@" > >(tee "$WORK/output") &
  CHILD=$!
  wait "$CHILD"
  local code=$?
  CHILD=
  sleep 0.2 # tee writes the last lines
  [ $code -eq 5 ] && return
  RUNS=$((RUNS + 1))
  PASSED=$((PASSED + $(count passed)))
  FAILED=$((FAILED + $(count failed) + $(count 'errors?')))
  # A run that did not come to its closing line failed too.
  [ $code -eq 0 ] || [ $FAILED -gt 0 ] || FAILED=1
}

# The number before a word of pytest's closing line.
count() { tail -n 1 "$WORK/output" | grep -oE "[0-9]+ $1" | grep -oE '[0-9]+' || echo 0; }

cd "$here" || exit 1
case " $* " in
  *" --collect-only "* | *" --co "* | *" --help "* | *" --markers "* | *" --fixtures "*)
    exec "$TOOLS/e2e-python/bin/python" -m pytest "$@"
    ;;
esac
if [[ " $* " == *" -m "* ]]; then
  # The caller chooses by marker.
  run_pytest "$@"
  SKIP_SERIAL=1
else
  run_pytest -m "not serial" -n "${WORKERS:-2}" --dist loadscope "$@"
fi
case " $* " in
  *" -x "* | *" --exitfirst "* | *" --maxfail"*) [ $FAILED -eq 0 ] || SKIP_SERIAL=1 ;;
esac
[ -n "${SKIP_SERIAL:-}" ] || run_pytest -m serial "$@"
echo "$PASSED passed, $FAILED failed"
[ $FAILED -eq 0 ] && [ $PASSED -gt 0 ]

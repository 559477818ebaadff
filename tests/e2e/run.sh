#!/usr/bin/env bash
# Runs the end-to-end suites against one binary: run.sh [clients|typescript|inspector|conformance|foreign|http|effects|calls|tenants|hostile|faults|clock|readme|kills|js|js_damage|js_gc|js_fetch|js_fair|js_kills|js_hostile|s3|s3_lies]...
# $TOKAMAK is the binary (default: target/debug/tokamak), $TOKAMAK_FIXTURES one built with `--features conformance-fixtures`
# (default: $TOKAMAK-fixtures); $TOOLS is where setup.sh installs (default: .tools).
# Invariants: one line for each check; nothing that was started is left running and no file is left outside $TOOLS.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
export TOKAMAK=${TOKAMAK:-$repository/target/debug/tokamak}
export TOKAMAK_FIXTURES=${TOKAMAK_FIXTURES:-$TOKAMAK-fixtures}
TOOLS=${TOOLS:-$repository/.tools}
mkdir -p "$TOOLS"
TOOLS=$(cd "$TOOLS" && pwd)
export TOOLS
# A suite that takes longer hangs.
SECONDS_FOR_A_SUITE=${SECONDS_FOR_A_SUITE:-150}
ALL="clients typescript inspector conformance foreign http effects calls tenants hostile faults clock readme kills js js_damage js_gc js_fetch js_fair js_kills js_hostile s3 s3_lies"

main() {
  check_binary
  local suites="${*:-$ALL}" suite
  for suite in $suites; do
    [[ " $ALL " == *" $suite "* ]] || die "no suite $suite; one of: $ALL"
  done
  [[ " $suites " != *" conformance "* ]] || check_fixtures
  # These need nothing but Python.
  [[ " tenants hostile faults clock readme kills js js_damage js_gc js_fetch js_fair js_kills js_hostile " == *" $suites "* ]] || "$here/setup.sh" || die "the tools are not installed"
  private_surroundings
  for suite in $suites; do
    run_suite "$suite"
  done
  local passed failed
  passed=$(grep -c '^ok ' "$WORK/lines")
  failed=$(grep -c '^FAIL ' "$WORK/lines")
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

check_binary() {
  [ -x "$TOKAMAK" ] || die "no binary at $TOKAMAK; build it (cargo build -p cli) or set TOKAMAK"
  TOKAMAK=$(cd "$(dirname "$TOKAMAK")" && pwd)/$(basename "$TOKAMAK")
}

check_fixtures() {
  [ -x "$TOKAMAK_FIXTURES" ] ||
    die "no binary with fixtures at $TOKAMAK_FIXTURES; scripts/e2e-binaries.sh builds both, or set TOKAMAK_FIXTURES"
  TOKAMAK_FIXTURES=$(cd "$(dirname "$TOKAMAK_FIXTURES")" && pwd)/$(basename "$TOKAMAK_FIXTURES")
}

# Nothing of the caller's home, settings or proxies reaches a suite; all files are in one folder that goes away.
private_surroundings() {
  WORK=$(mktemp -d)
  CHILD=
  trap 'clean_up' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  mkdir "$WORK/home" "$WORK/tmp"
  : >"$WORK/lines"
  export HOME="$WORK/home" TMPDIR="$WORK/tmp" PYTHONDONTWRITEBYTECODE=1
  export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost
  unset "${!AWS_@}" TOKAMAK_DATA TOKAMAK_CONFIG TOKAMAK_SECRETS_KEY RUST_LOG XDG_DATA_HOME XDG_CONFIG_HOME
}

clean_up() {
  # `timeout` passes the signal on to everything the suite started.
  [ -n "$CHILD" ] && kill "$CHILD" 2>/dev/null && wait "$CHILD" 2>/dev/null
  rm -rf "$WORK"
}

run_suite() {
  local suite=$1 started=$SECONDS code
  local node="$TOOLS/e2e-node/node_modules"
  local -a command
  local seconds=$SECONDS_FOR_A_SUITE
  # Its length is a number of kills: 300, or what $KILLS says.
  [ "$suite" = kills ] && seconds=$((120 + ${KILLS:-300} * 3))
  [ "$suite" = js_kills ] && seconds=$((180 + ${JS_KILLS:-60} * 4 + ${JS_WAITS:-200}))
  # And a number of runs of each hostile program: 3, or what $HOSTILE_TIMES says.
  [ "$suite" = js_hostile ] && seconds=$((200 + ${HOSTILE_TIMES:-3} * 20))
  case $suite in
    clients | effects | calls | foreign) command=("$TOOLS/e2e-python/bin/python" "$here/$suite.py") ;;
    typescript) command=("$node/node/bin/node" "$here/typescript.mjs") ;;
    s3 | s3_lies) command=("$TOOLS/e2e-s3/bin/python" "$here/$suite.py") ;;
    http) command=("$TOOLS/e2e-http/bin/python" "$here/http_api.py") ;;
    tenants | hostile | faults | clock | readme | kills | js | js_damage | js_gc | js_fetch | js_fair | js_kills | js_hostile) command=(python3 "$here/$suite.py") ;;
    *) command=("$here/$suite.sh") ;;
  esac
  PATH="$node/node/bin:$node/.bin:$PATH" timeout --kill-after=10 "$seconds" "${command[@]}" \
    > >(tee -a "$WORK/lines") 2>"$WORK/stderr" &
  CHILD=$!
  wait "$CHILD"
  code=$?
  CHILD=
  sleep 0.1 # the last lines of `tee`
  # 1 is a suite that said what failed; anything else, and a 1 that said nothing, is the suite itself.
  if [ $code -gt 1 ] || { [ $code -eq 1 ] && ! grep -q "^FAIL $suite: " "$WORK/lines"; }; then
    cat "$WORK/stderr" >&2
    echo "FAIL $suite: the suite ended with $code after $((SECONDS - started)) s" | tee -a "$WORK/lines"
  fi
  echo "# $suite: $((SECONDS - started)) s"
}

die() {
  echo "run.sh: $*" >&2
  exit 1
}

main "$@"

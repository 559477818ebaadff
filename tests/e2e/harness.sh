# shellcheck shell=bash disable=SC2034
# What the shell suites stand on: a server to test and one line for each check. Sourced, not run.
# Invariants: the server ends with the suite; a suite sets $SUITE first and ends with `finish`.

FAILED=0
SERVER=
trap 'stop_server' EXIT
trap 'exit 143' TERM INT

ok() { printf 'ok %s: %s\n' "$SUITE" "$1"; }

# $1 the check, $2 what is wrong
fail() {
  FAILED=$((FAILED + 1))
  printf 'FAIL %s: %s: %s\n' "$SUITE" "$1" "$(printf '%s' "$2" | tr '\n\t' '  ' | cut -c1-600)"
}

# Starts the server on a free port with a fresh data folder; sets $URL and $DATA. $1 another binary, the rest its arguments.
start_server() {
  local binary=${1:-$TOKAMAK} log waited=0
  DATA=$(mktemp -d)
  log=$(mktemp)
  "$binary" serve --port 0 --data "$DATA" "${@:2}" </dev/null 2>"$log" &
  SERVER=$!
  until grep -q '^ready ' "$log"; do
    waited=$((waited + 1))
    if [ $waited -gt 400 ] || ! kill -0 "$SERVER" 2>/dev/null; then
      fail "the server starts" "$(cat "$log")"
      finish
    fi
    sleep 0.05
  done
  URL=$(sed -n '1s/^ready \([^ ]*\) .*/\1/p' "$log")/mcp
}

stop_server() {
  if [ -n "$SERVER" ]; then
    kill -KILL "$SERVER" 2>/dev/null
    wait "$SERVER" 2>/dev/null
    SERVER=
  fi
}

finish() { [ "$FAILED" -eq 0 ] && exit 0 || exit 1; }

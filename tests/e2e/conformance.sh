#!/usr/bin/env bash
# The official conformance suite: what each revision requires of a server, less what we do not claim.
# Invariant: a scenario passes, or conformance-expected-failures.yml says why not; an entry that passes fails. With the fixtures
# that the suite asks for by name, everything passes.
set -uo pipefail
SUITE=conformance
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/harness.sh"

BASELINE="$here/conformance-expected-failures.yml"
# A build that also has what the suite asks for by name; the product has none of it.
FIXTURES=${TOKAMAK_FIXTURES:-$TOKAMAK-fixtures}
# Entries of the baseline that some run came across.
MET=none

main() {
  start_server
  required 2026-07-28
  required 2025-11-25
  # Not scored by their revisions, but they need no fixture, so we hold them.
  alone http-header-validation 2026-07-28
  alone server-session-lifecycle 2025-11-25
  alone server-session-lifecycle 2025-03-26
  no_dead_entries
  stop_server
  without_fixtures
  start_server "$FIXTURES" --conformance-fixtures
  everything 2026-07-28
  everything 2025-11-25
  finish
}

# The binary that is given to people knows nothing of them.
without_fixtures() {
  local title="the product has no fixtures" out
  if out=$("$TOKAMAK" serve --conformance-fixtures 2>&1 </dev/null); then
    fail "$title" "it takes --conformance-fixtures"
  elif [[ $out != *"unexpected argument"* ]]; then
    fail "$title" "$out"
  elif grep -qa test_input_required_result "$TOKAMAK"; then
    fail "$title" "their names are in the binary"
  else
    ok "$title"
  fi
}

# With fixtures: whatever a revision asks of a server, scored or not, and no failure is excused.
everything() {
  local revision=$1 results out code name
  results=$(mktemp -d)
  out=$(conform --requirements "$revision" -o "$results")
  code=$?
  for name in $(scenarios "$revision") $(unscored "$revision"); do
    if [[ $out == *$'\n'"✓ $name: "* ]]; then
      ok "fixtures, $revision: $name"
    else
      fail "fixtures, $revision: $name" "$(why "$results" "$name")"
    fi
  done
  if [ $code -eq 0 ]; then
    ok "fixtures, $revision: nothing fails"
  else
    fail "fixtures, $revision" "exit $code: $(printf '%s' "$out" | tail -5)"
  fi
}

required() {
  local revision=$1 results out code name
  results=$(mktemp -d)
  out=$(conform --requirements "$revision" --expected-failures "$BASELINE" -o "$results")
  code=$?
  local expected stale unexpected
  expected=$(listed "$out" 'Expected failures')
  stale=$(listed "$out" 'Stale baseline entries')
  unexpected=$(listed "$out" 'Unexpected failures (')
  MET="$MET"$'\n'"$expected"$'\n'"$stale"
  for name in $(scenarios "$revision"); do
    if is_in "$name" "$stale" "$unexpected" "$expected"; then
      continue
    elif [[ $out == *$'\n'"✓ $name: "* ]]; then
      ok "$revision: $name"
    else
      fail "$revision: $name" "it was not run"
    fi
  done
  for name in $(printf '%s\n' "$expected" | sed -n 's/:.*//p' | sort -u); do
    is_in "$name" "$unexpected" || ok "$revision: $name, less $(printf '%s\n' "$expected" | grep -c "^$name:") checks"
  done
  for name in $stale; do
    fail "$revision: $name" "it passes, so take it out of $(basename "$BASELINE")"
  done
  for name in $unexpected; do
    fail "$revision: $name" "$(why "$results" "${name%%:*}")"
  done
  if [ $code -eq 0 ] && [ -n "$expected" ]; then
    ok "$revision: what fails is what we do not claim ($(printf '%s\n' "$expected" | wc -l) entries)"
  elif [ -z "$stale$unexpected" ]; then
    fail "$revision" "exit $code: $(printf '%s' "$out" | tail -5)"
  fi
}

alone() {
  local scenario=$1 revision=$2 results out
  results=$(mktemp -d)
  if out=$(conform --scenario "$scenario" --spec-version "$revision" -o "$results"); then
    ok "$revision: $scenario (not scored)"
  else
    fail "$revision: $scenario (not scored)" "$(why "$results" "$scenario") $(printf '%s' "$out" | tail -1)"
  fi
}

no_dead_entries() {
  local dead
  dead=$(sed -n 's/^  - //p' "$BASELINE" | grep -vxF "$MET")
  if [ -z "$dead" ]; then
    ok "every entry of the baseline was met"
  else
    fail "every entry of the baseline was met" "no revision runs: $dead"
  fi
}

# What a revision requires of a server.
scenarios() {
  conformance list --server --requirements "$1" | sed -n '/^Server scenarios/,/^$/s/^  - //p'
}

# What it runs beside that. Left out: `server-sse-polling` wants a tool that closes its own stream, which the SDK lets no tool do.
unscored() {
  conformance list --server --requirements "$1" | sed -n 's/^    - \(.*\) \[server\]$/\1/p' | grep -vx server-sse-polling
}

conform() { timeout 100 conformance server --url "$URL" "$@" 2>&1 | sed 's/\x1b\[[0-9;]*m//g'; }

# The names under one heading of the baseline report.
listed() {
  printf '%s\n' "$1" | awk -v heading="$2" 'index($0, heading) == 1 {on = 1; next} /^$/ {on = 0} on {print $2}'
}

# $1 a scenario; the rest are lists of `scenario` and `scenario:check`
is_in() {
  local name=$1
  shift
  printf '%s\n' "$@" | grep -qxE "$name(:.*)?"
}

# What the checks of a scenario say that did not pass.
why() {
  cat "$1"/server-"$2"-*/checks.json 2>/dev/null | python3 -c '
import json, sys
for check in json.load(sys.stdin):
    if check["status"] in ("FAILURE", "WARNING") and not (check.get("details") or {}).get("untestable"):
        print(check["id"] + " (" + check["status"] + "):", check.get("errorMessage"))'
}

main

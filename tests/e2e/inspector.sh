#!/usr/bin/env bash
# The official inspector's command line: lists and calls the tools in both eras, over HTTP and over stdio.
# Invariant: each call is a new connection, so what works here works for a host that reconnects before every call.
set -uo pipefail
SUITE=inspector
. "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

TOOL_NAMES="plasm_context discover_capabilities plasm plasm_run read_artifact list_registry"
TOOL_NAMES+=" run_js get_execution get_execution_output cancel_execution list_executions list_sessions list_session_snapshots"
TOOL_NAMES+=" get_heap_tags set_heap_tags delete_heap_tags query_heaps_by_tags fork_session promote_session rewind_session diff_heaps"

PROGRAM='Project[key]'
ROWS='\nkey\nAPI\nDOC\nMOB\nOPS\nSEC\nWEB"'

main() {
  local era
  for era in modern legacy; do
    start_server
    whole_path "http $era" "$era" --server-url "$URL" --transport http
    stop_server
    DATA=$(mktemp -d)
    whole_path "stdio $era" "$era" --transport stdio "$TOKAMAK" serve --stdio --data "$DATA"
  done
  finish
}

# $1 what it is called, $2 the era, the rest is the server
whole_path() {
  local at=$1 era=$2 ref=s0
  shift 2
  strict_list "$at" "$era" "$@"
  # shellcheck disable=SC2016
  expect "$at: plasm_context teaches" '`s0`\n\n```\n' "$era" \
    --tool-name plasm_context --tool-args-json '{"intent":"inspector","seeds":[{"api":"demo","entity":"Project"}]}' "$@"
  # With a transport session, slots belong to it, and each call here is a new one: only the canonical id lasts.
  [ "$at" = "http legacy" ] && ref=$(canonical_id "$@")
  expect "$at: plasm plans" '"text":"plan ok' "$era" \
    --tool-name plasm --tool-args-json "{\"logical_session_ref\":\"$ref\",\"program\":\"$PROGRAM\"}" "$@"
  expect "$at: plasm_run runs" "$ROWS" "$era" \
    --tool-name plasm_run --tool-args-json "{\"logical_session_ref\":\"$ref\",\"program\":\"$PROGRAM\"}" "$@"
  expect "$at: read_artifact reads" "$ROWS" "$era" \
    --tool-name read_artifact --tool-args-json "{\"uri\":\"plasm://session/$ref/r/1\"}" "$@"
  refused "$at: an unknown slot is an error with what to do" "$era" \
    --tool-name plasm --tool-args-json '{"logical_session_ref":"s9","program":"Project"}' "$@"
}

strict_list() {
  local title="$1: tools/list has no portability problem under --strict" era=$2 out names
  shift 2
  if ! out=$(inspect "$era" --method tools/list --strict "$@"); then
    fail "$title" "$out $(problems)"
  elif [ -n "$(problems)" ]; then
    fail "$title" "$(problems)"
  else
    names=$(printf '%s' "$out" | grep -o '"name":"[a-z_]*","title"' | cut -d'"' -f4 | xargs)
    if [ "$names" = "$TOOL_NAMES" ]; then
      ok "$title"
    else
      fail "$title" "the tools are: $names"
    fi
  fi
}

# $1 the check, $2 what the answer contains, $3 the era
expect() {
  local title=$1 wanted=$2 era=$3 out
  shift 3
  if ! out=$(inspect "$era" --method tools/call "$@"); then
    fail "$title" "$out $(problems)"
  elif [[ $out != *"$wanted"* ]]; then
    fail "$title" "no $wanted in $out"
  else
    ok "$title"
  fi
}

# The inspector ends with 5 when a tool answers isError.
refused() {
  local title=$1 era=$2 out code
  shift 2
  out=$(inspect "$era" --method tools/call "$@")
  code=$?
  if [ $code -ne 5 ] || [[ $out != *"unknown_slot: "*"call plasm_context"* ]]; then
    fail "$title" "exit $code: $out"
  else
    ok "$title"
  fi
}

# The modern era has no transport session and shows the id; the session is the same, being found by its intent.
canonical_id() {
  inspect modern --method tools/call --tool-name plasm_context \
    --tool-args-json '{"intent":"inspector","seeds":[{"api":"demo","entity":"Project"}]}' "$@" |
    sed -n 's/.*"logical_session_id":"\([^"]*\)".*/\1/p'
}

inspect() {
  local era=$1
  shift
  timeout 30 inspector --cli --protocol-era "$era" --format json "$@" 2>"$TMPDIR/inspector.err" </dev/null
}

# What the inspector said beside the answer; a stdio server's own lines are not meant.
problems() { grep -v -e '^ready stdio' -e '^{"timestamp"' "$TMPDIR/inspector.err"; }

main

#!/usr/bin/env bash
# `make fuzz`: runs each target of fuzz/ for FUZZ_SECONDS (60), with the golden cases as seeds. `scripts/fuzz.sh parser` runs one.
# Findings are stored in <target>/fuzz/findings and fail the run. No sanitizer is used: the fuzzed code has no `unsafe`, so a
# finding is a panic, an overflow, a failed assertion, or too much time or memory. Without a sanitizer the stable compiler suffices.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prerequisites.sh

need_rust
need_c_compiler
need_wasm_compiler
command -v c++ >/dev/null || command -v g++ >/dev/null || apt_install "a C++ compiler (libFuzzer is C++)" g++
work="$(target_dir)/fuzz"
mkdir -p "$work"
work="$(cd "$work" && pwd)"
tool="$work/tool/bin/cargo-fuzz"
if ! command -v cargo-fuzz >/dev/null && [ ! -x "$tool" ]; then
  say "installing cargo-fuzz into $work/tool (once)"
  CARGO_TARGET_DIR="$work/tool/build" cargo install --quiet --locked --version 0.13.2 --root "$work/tool" cargo-fuzz \
    || stop "cargo-fuzz could not be installed; \`cargo install cargo-fuzz\` says why."
fi
PATH="$work/tool/bin:$PATH"

# seeds TARGET FILE…: writes the input of each golden case to a file of its own.
seeds() {
  local into="$work/corpus/$1"; shift
  mkdir -p "$into"
  awk -v into="$into" '
    FNR == 1 { file = FILENAME; gsub(/[^A-Za-z0-9]/, "_", file); n = 0; input = 1; if (out) close(out); out = into "/seed_" file "_0"; printf "" > out }
    /^===( |$)/ { close(out); n++; input = 1; out = into "/seed_" file "_" n; printf "" > out; next }
    /^---$/ { input = 0; next }
    /^#!/ { next }
    input { print > out }
  ' "$@"
}

targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(lexer parser checker catalog heap_image links redaction envelope handles)
seconds="${FUZZ_SECONDS:-60}"
failed=0
for target in "${targets[@]}"; do
  options=(-max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 -verbosity=0)
  case "$target" in
    catalog) mkdir -p "$work/corpus/catalog"; cp catalogs/*.yaml tests/catalogs/*.yaml tests/catalog/every.yaml tests/lang/*.yaml tests/lang/catalogs/*.yaml "$work/corpus/catalog/"; options+=(-max_len=65536) ;;
    # The target makes valid objects itself, so it needs no seeds.
    heap_image) mkdir -p "$work/corpus/heap_image"; options+=(-max_len=4096) ;;
    links | redaction) mkdir -p "$work/corpus/$target"; options+=(-max_len=4096 -dict="$PWD/fuzz/escapes.dict") ;;
    envelope)
      mkdir -p "$work/corpus/envelope"
      printf '%s' '{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","arguments":{"id":[1]}}}' >"$work/corpus/envelope/call"
      printf '%s' '{"params":{"a":"\\","b":"{\"id\":3}"},"id": -7 ,"method":"x","jsonrpc":"2.0"}' >"$work/corpus/envelope/late_id"
      options+=(-max_len=4096) ;;
    handles)
      mkdir -p "$work/corpus/handles"
      printf '%s' 'plasm://session/s0/r/1#result' >"$work/corpus/handles/run"
      printf '%s' 's12' >"$work/corpus/handles/slot"
      printf '%s' '3df6d414-4ce0-409f-87bd-d689b1c3b387' >"$work/corpus/handles/uuid"
      printf "plasm://execute/%064d/3df6d414-4ce0-409f-87bd-d689b1c3b387/run/3df6d414-4ce0-409f-87bd-d689b1c3b387" 0 >"$work/corpus/handles/canonical"
      options+=(-max_len=512) ;;
    *) seeds "$target" tests/lang/*/*.case tests/run/*.case; options+=(-max_len=8192 -dict="$PWD/fuzz/program.dict") ;;
  esac
  mkdir -p "$work/findings/$target"
  say "fuzzing $target for $seconds s"
  if CARGO_TARGET_DIR="$work/build" cargo fuzz run --sanitizer none "$target" "$work/corpus/$target" -- \
    "${options[@]}" -artifact_prefix="$work/findings/$target/" >"$work/$target.log" 2>&1; then
    grep -E 'number_of_executed_units|average_exec_per_sec' "$work/$target.log" || true
  else
    failed=1
    grep -vE '^\s+#|^INFO' "$work/$target.log" | tail -n 25
    say "$target: a finding is stored in $work/findings/$target; $work/$target.log has the whole output"
  fi
done
[ "$failed" -eq 0 ] || stop "the fuzzer found something; see above."

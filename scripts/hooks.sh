#!/usr/bin/env bash
# `make hooks`: installs the hooks of scripts/hooks into this clone. A hook that is already there and differs is left alone.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/prerequisites.sh

folder=$(git rev-parse --git-path hooks)
mkdir -p "$folder"
for hook in scripts/hooks/*; do
  name=$(basename "$hook")
  if [ -e "$folder/$name" ] && ! cmp -s "$hook" "$folder/$name"; then
    stop "$folder/$name already exists and is another hook; remove it and run make hooks again."
  fi
  install -m 755 "$hook" "$folder/$name"
  say "installed $folder/$name"
done

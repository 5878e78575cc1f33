#!/usr/bin/env bash
# Greets whoever is named, so that the quickstart project has something to map.
set -euo pipefail
printf 'Hello, %s.\n' "${1:-world}"

#!/usr/bin/env bash
# The one check: format, lints, layers, tests, conformance.
# Ends with the totals of the tests and the line of the conformance check.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
export CARGO_TERM_COLOR=never
log="$(mktemp)"
trap 'rm -f "$log"' EXIT

cargo fmt --all --check
cargo clippy --workspace --all-targets -- -D warnings
cargo xtask layers
tests=0
if cargo nextest --version >/dev/null 2>&1; then
    cargo nextest run --workspace --no-fail-fast 2>&1 | tee "$log" || tests=$?
else
    cargo test --workspace --no-fail-fast 2>&1 | tee "$log" || tests=$?
fi
awk '/^ *Summary \[|^test result: / {
    for (i = 2; i <= NF; i++) {
        if ($i ~ /^passed/) passed += $(i - 1)
        if ($i ~ /^(failed|timed|exec)/) failed += $(i - 1)
    }
} END { printf "%d passed, %d failed\n", passed, failed }' "$log"
# Elsewhere the tests that need Linux do not exist, and what they show would count as not shown.
[ "$(uname -s)" != Linux ] || cargo xtask conform
exit "$tests"

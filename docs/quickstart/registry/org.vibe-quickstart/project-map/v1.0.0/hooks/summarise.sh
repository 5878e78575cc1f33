#!/usr/bin/env bash
# Counts the project's files by kind, prints the summary and keeps it in report/summary.txt.
# Hidden files and folders that other tools fill are left out. Running it again counts again.
set -euo pipefail
export LC_ALL=C

mkdir -p report
kinds="$(
    cd "$VIBE_PROJECT_ROOT"
    find . \( -name '.?*' -o -name vibedeps -o -name node_modules -o -name target \) -prune \
        -o -type f -print |
        sed -e 's|.*/||' -e '/\./!s|.*|(none)|' -e 's|.*\.|.|' |
        sort | uniq -c | sort -k1,1nr -k2,2
)"
{
    echo "Files by kind"
    awk '{ printf "%6d  %s\n", $1, $2; total += $1 } END { printf "%6d  in all\n", total }' \
        <<<"$kinds"
} >report/summary.txt

cat report/summary.txt

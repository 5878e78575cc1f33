#!/usr/bin/env bash
# Builds GUIDE.md, the chapters of guide/ in one file with a table of contents.
# Running it again gives the same file.
set -euo pipefail
export LC_ALL=C

{
    echo "# Guide"
    echo
    for chapter in guide/*.md; do
        IFS= read -r title <"$chapter"
        echo "- ${title#\# }"
    done
    for chapter in guide/*.md; do
        echo
        sed 's/^#/##/' "$chapter"
    done
} >GUIDE.md

echo "built GUIDE.md"

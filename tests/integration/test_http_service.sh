#!/usr/bin/env bash
# The example behind nginx checks every answer by itself; it exits 77 where nginx or curl is missing.
set -euo pipefail
output=$("$ASTER_SOURCE/examples/http_service/run" "$ASTER_BUILD") || { code=$?; echo "$output"; exit $code; }
echo "$output"
grep -q "the document is b's, whole" <<<"$output"

#!/usr/bin/env bash
# The snippets of docs/protect.md are run, in order, as a reader would: against an installed Aster, in an empty directory.
set -euo pipefail

if grep -qE '^(ASTER_SANITIZE:STRING=.+|ASTER_COVERAGE:BOOL=ON)' "$ASTER_BUILD/CMakeCache.txt"; then
    echo "skipped: an instrumented build is not installed"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$ASTER_BUILD" --prefix "$work/prefix" >"$work/install.log"
export HOME="$work" PATH="$work/prefix/bin:$PATH" PKG_CONFIG_PATH="$work/prefix/lib/pkgconfig" LD_LIBRARY_PATH="$work/prefix/lib"
mkdir "$work/empty"
awk '/^```sh$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$ASTER_SOURCE/docs/protect.md" >"$work/all.sh"
cd "$work/empty"
bash -e "$work/all.sh" >"$work/output" 2>&1 || { cat "$work/output"; echo "FAILED: a snippet ended with $?"; exit 1; }
cat "$work/output"
says() {
    grep -qF -- "$1" "$work/output" || { echo "FAILED: nothing said \"$1\""; exit 1; }
}
says "refused: no fence"
says "the store refuses stale writers"
says "published: catalog.json under epoch"
[ "$(cat catalog.json)" = '{"items": 3}' ] || { echo "FAILED: the file is another one"; exit 1; }
[ "$(sqlite3 shop.db 'SELECT group_concat(id) FROM invoice')" = B-1042 ] || { echo "FAILED: the table holds something else"; exit 1; }

#!/usr/bin/env bash
# The README's snippets are run, in order, as a user would: against an installed Aster, in an empty directory.
set -euo pipefail

if grep -qE '^(ASTER_SANITIZE:STRING=.+|ASTER_COVERAGE:BOOL=ON)' "$ASTER_BUILD/CMakeCache.txt"; then
    echo "skipped: an instrumented build is not installed"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "FAILED: $*" >&2
    cat "$work"/output-* >&2
    exit 1
}

cmake --install "$ASTER_BUILD" --prefix "$work/prefix" >"$work/install.log"
export HOME="$work" XDG_STATE_HOME="$work/state" PATH="$work/prefix/bin:$PATH" PKG_CONFIG_PATH="$work/prefix/lib/pkgconfig" LD_LIBRARY_PATH="$work/prefix/lib"
mkdir "$work/blocks" "$work/empty"
awk -v folder="$work/blocks" '
    /^```(sh|c)$/ { file = sprintf("%s/%02d.%s", folder, ++count, substr($0, 4)); next }
    /^```/ { file = "" }
    file != "" { print >file }' "$ASTER_SOURCE/README.md"
cd "$work/empty"
for block in "$work"/blocks/*; do
    case "$block" in
    *.c) cp "$block" pay.c ;;
    *.sh) bash "$block" >"$work/output-$(basename "$block")" 2>&1 || true ;; # some lines are meant to be refused
    esac
done

outputs=("$work"/output-*)
[ ${#outputs[@]} -eq 3 ] || fail "expected three shell blocks in README.md, found ${#outputs[@]}"
says() { # says N TEXT: block N printed TEXT
    grep -qF -- "$2" "${outputs[$1]}" || fail "shell block $1 did not print \"$2\""
}
says 0 "STALE_EPOCH"
says 0 "no such function: aster_guard"
[ "$(tail -n 1 "${outputs[0]}")" = "B-1042" ] || fail "the table holds something else than the README says"
says 1 "epoch 1"
says 2 "written"
[ "$(sqlite3 shop.db 'SELECT group_concat(id) FROM invoice')" = "B-1042" ] || fail "the protected table was changed"
[ "$(sqlite3 shop.db 'SELECT count(*) FROM paid')" = 1 ] || fail "the C program did not write"
[ "$(./pay)" = written ] || fail "the C program's lease was not released"

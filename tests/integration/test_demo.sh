#!/usr/bin/env bash
# The demo must show what it says, keep the evidence, and be able to fail.
set -euo pipefail

aster=${ASTER_BIN:?path of the aster program}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$work"' EXIT
cd "$work"
unset ASTER_DEMO_SABOTAGE NO_COLOR || true
export TMPDIR=$work

fail() {
    echo "FAILED: $1" >&2
    [ $# -lt 2 ] || sed 's/^/    /' "$2" >&2
    exit 1
}

# No worker process may remain whose arguments name the directory.
leaves_no_process() {
    local proc
    for proc in /proc/[0-9]*; do
        if { tr '\0' ' ' <"$proc/cmdline"; } 2>/dev/null | grep -q "demo worker .* $2"; then
            fail "$1: process ${proc#/proc/} is left: $(tr '\0' ' ' <"$proc/cmdline")"
        fi
    done
}

is_pdf() {
    [ "$(head -c 5 "$1")" = "%PDF-" ] || fail "$1 does not begin as a PDF"
    tail -c 16 "$1" | grep -q '%%EOF' || fail "$1 does not end as a PDF"
}

the_demo_shows_the_rejected_write_and_succeeds() {
    local started=$SECONDS
    "$aster" demo --out shown >shown.txt 2>shown.err || fail "the demo did not succeed" shown.txt
    echo "the demo took $((SECONDS - started)) s"
    grep -q 'late write REJECTED: STALE_EPOCH' shown.txt || fail "no rejected write in the timeline" shown.txt
    grep -q 'late write ACCEPTED' shown.txt || fail "no corruption in the control run" shown.txt
    grep -q 'expectations were met' shown.txt || fail "no verdict" shown.txt
    ! grep -q $'\033' shown.txt || fail "colours although it is no terminal" shown.txt
    leaves_no_process "after the demo" "$work/shown/"
}

the_stores_and_files_agree_with_what_was_shown() {
    python3 - "$work/shown" <<'PY'
import sqlite3, sys, xml.dom.minidom
out = sys.argv[1]

def invoice(name):
    db = sqlite3.connect(f"file:{out}/{name}?mode=ro", uri=True)
    row = db.execute("SELECT published_by, epoch, total_cents, pdf FROM invoice").fetchall()
    net = db.execute("SELECT sum(quantity * unit_cents) FROM order_line").fetchone()[0]
    assert len(row) == 1, row
    return row[0], net + (net * 19 + 50) // 100

(by, epoch, total, pdf), order = invoice("invoices.db")
assert (by, epoch, total) == ("worker-B", 2, order), (by, epoch, total, order)
assert pdf == open(f"{out}/rendered-by-B.pdf", "rb").read()
assert pdf == open(f"{out}/invoice-in-store.pdf", "rb").read()
assert pdf != open(f"{out}/rendered-by-A.pdf", "rb").read()

(by, epoch, total, pdf), order = invoice("control.db")
assert by == "worker-A" and total != order, (by, total, order)
assert pdf == open(f"{out}/control-by-A.pdf", "rb").read()

picture = xml.dom.minidom.parse(f"{out}/demo-timeline.svg")
assert picture.documentElement.tagName == "svg"
words = " ".join(node.firstChild.data for node in picture.getElementsByTagName("text") if node.firstChild)
for wanted in ("late write REJECTED", "late write ACCEPTED", "epoch 1", "epoch 2", "expectations were met"):
    assert wanted in words, wanted
PY
    is_pdf shown/invoice-in-store.pdf
    is_pdf shown/rendered-by-A.pdf
    if command -v pdftotext >/dev/null; then
        pdftotext -layout shown/invoice-in-store.pdf invoice.txt
        grep -q 'B-1042' invoice.txt || fail "the invoice has no number" invoice.txt
        grep -q 'worker-B under epoch 2' invoice.txt || fail "the invoice was not rendered by B" invoice.txt
    fi
}

a_write_of_the_protected_table_by_another_program_is_refused() {
    command -v sqlite3 >/dev/null || return 0
    local runtime # a sanitized extension needs it in the program that loads the extension
    runtime=$(ldd "${ASTER_EXTENSION:?}.so" | awk '/lib(asan|tsan)/ { print $3; exit }')
    if ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$runtime sqlite3 -bail -cmd ".load $ASTER_EXTENSION" shown/invoices.db \
        "UPDATE invoice SET total_cents = 1" 2>raw.txt; then
        fail "the sqlite3 shell changed the protected table"
    fi
    grep -q 'NO_FENCE\|NOT_HELD\|STALE_EPOCH' raw.txt || fail "the refusal does not name its reason" raw.txt
}

without_the_fence_the_demo_fails_and_says_what_failed() {
    local code=0
    wait "$sabotaged" || code=$?
    [ "$code" -eq 1 ] || fail "the demo succeeds although the fence is not checked" broken.json
    python3 - broken.json <<'PY'
import json, sys
demo = json.load(open(sys.argv[1]))
unmet = {e["name"] for e in demo["expectations"] if not e["met"]}
assert demo["met"] is False
for name in ("fenced.late-write-rejected", "fenced.unchanged", "fenced.up-to-date", "fenced.exit-codes"):
    assert name in unmet, (name, unmet)
others = {name for name in unmet if not name.startswith("fenced.")}
assert not others, others
kinds = [(e["actor"], e["kind"]) for e in demo["acts"][0]["events"]]
assert ("worker A", "corrupted") in kinds and ("worker A", "rejected") not in kinds, kinds
PY
    leaves_no_process "after the sabotaged demo" "$work/broken/"
}

an_interrupt_leaves_no_process_and_no_files() {
    local pid code=0
    mkdir interrupted
    TMPDIR=$work/interrupted "$aster" demo >interrupted.txt 2>interrupted.err &
    pid=$!
    for _ in $(seq 200); do
        grep -q 'worker A  SIGSTOP' interrupted.txt && break
        sleep 0.1
    done
    grep -q 'worker A  SIGSTOP' interrupted.txt || fail "worker A was never stopped" interrupted.txt
    kill -TERM "$pid"
    wait "$pid" || code=$?
    [ "$code" -eq 143 ] || fail "exit status $code after SIGTERM instead of 143" interrupted.err
    leaves_no_process "after the interrupt" "$work/interrupted/"
    [ -z "$(ls -A interrupted)" ] || fail "files are left: $(ls -R interrupted)"
}

ASTER_DEMO_SABOTAGE=no-fence "$aster" demo --json --out broken >broken.json 2>broken.err &
sabotaged=$! # meanwhile
the_demo_shows_the_rejected_write_and_succeeds
the_stores_and_files_agree_with_what_was_shown
a_write_of_the_protected_table_by_another_program_is_refused
without_the_fence_the_demo_fails_and_says_what_failed
an_interrupt_leaves_no_process_and_no_files

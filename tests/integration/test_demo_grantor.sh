#!/usr/bin/env bash
# The demo over QUIC must show what it says, keep the evidence, leave nothing running, and be able to fail.
set -euo pipefail

aster=${ASTER_BIN:?path of the aster program}
[ -x "${ASTER_BUILD:?}/src/grantor/asterd" ] || exit 77 # a build without the server
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$work"' EXIT
cd "$work"
unset ASTER_DEMO_SABOTAGE ASTER_ASTERD NO_COLOR || true
export TMPDIR=$work

fail() {
    echo "FAILED: $1" >&2
    [ $# -lt 2 ] || sed 's/^/    /' "$2" >&2
    exit 1
}

# Neither a worker nor an asterd may remain whose arguments name the directory.
leaves_no_process() {
    local proc
    for proc in /proc/[0-9]*; do
        if { tr '\0' ' ' <"$proc/cmdline"; } 2>/dev/null | grep -q "\(demo worker\|asterd\) .*$2"; then
            fail "$1: process ${proc#/proc/} is left: $(tr '\0' ' ' <"$proc/cmdline")"
        fi
    done
}

the_late_write_of_a_worker_that_was_cut_off_is_refused() {
    local started=$SECONDS
    "$aster" demo --grantor --out shown >shown.txt 2>shown.err || fail "the demo did not succeed" shown.txt
    [ $((SECONDS - started)) -lt 60 ] || fail "the demo took $((SECONDS - started)) s"
    grep -q 'handle is LOST and supplies no fence' shown.txt || fail "A did not stop by itself" shown.txt
    grep -q 'late write REJECTED: STALE_EPOCH' shown.txt || fail "no rejected write in the timeline" shown.txt
    grep -q "renews B's lease under its epoch: NOT_HOLDER" shown.txt || fail "no refused impersonation" shown.txt
    grep -q 'expectations were met' shown.txt || fail "no verdict" shown.txt
    [ ! -s shown.err ] || fail "it said something on standard error" shown.err
    leaves_no_process "after the demo" "$work/shown/"
}

the_files_agree_with_what_was_shown() {
    cmp shown/invoice-in-store.pdf shown/rendered-by-B.pdf || fail "the grantor does not hold B's invoice"
    ! cmp -s shown/rendered-by-A.pdf shown/rendered-by-B.pdf || fail "both invoices are the same"
    grep -q 'event=takeover' shown/asterd.log || fail "asterd logged no takeover" shown/asterd.log
    grep -q 'event=fence-rejected' shown/asterd.log || fail "asterd logged no rejection" shown/asterd.log
    python3 - shown/demo-timeline.svg <<'PY'
import sys, xml.dom.minidom
picture = xml.dom.minidom.parse(sys.argv[1])
words = " ".join(node.firstChild.data for node in picture.getElementsByTagName("text") if node.firstChild)
for wanted in ("network cut", "grantor", "late write REJECTED", "epoch 2", "NOT_HOLDER", "expectations were met"):
    assert wanted in words, wanted
PY
    [ "$(find shown/grantor -name '*.key' -perm /077 | wc -l)" -eq 0 ] || fail "a key is readable by others"
}

# The history that the server kept says the same to the operator, after a restart.
the_server_remembers_it_after_a_restart() {
    local server port
    "$ASTER_BUILD/src/grantor/asterd" --config shown/grantor/asterd.conf 2>again.log &
    server=$!
    for _ in $(seq 200); do
        grep -q 'event=ready' again.log && break
        sleep 0.1
    done
    port=$(sed -nE 's/.*transport=quic address=127\.0\.0\.1:([0-9]+).*/\1/p' again.log)
    "$aster" history invoice/B-1042 --json --node shown/grantor/operator \
        --store "aster://$("$aster" node id --node shown/grantor/asterd)@127.0.0.1:$port" >history.jsonl ||
        fail "the restarted server does not answer" again.log
    kill "$server"
    wait "$server" || fail "the restarted server ended with $?" again.log
    python3 - history.jsonl "$("$aster" node id --node shown/grantor/worker-A)" \
        "$("$aster" node id --node shown/grantor/worker-B)" <<'PY'
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
a, b = sys.argv[2], sys.argv[3]
kinds = [(e["event"], e["actor"], e["epoch"]) for e in events]
assert kinds[0] == ("granted", a, 1), kinds
assert ("takeover", b, 2) in kinds and ("fence-rejected", a, 2) in kinds, kinds
assert kinds.index(("takeover", b, 2)) < kinds.index(("fence-rejected", a, 2)), kinds
PY
}

without_the_cut_the_demo_fails_and_says_what_failed() {
    local code=0
    wait "$sabotaged" || code=$?
    [ "$code" -eq 1 ] || fail "the demo succeeds although the network was not cut" broken.json
    python3 - broken.json <<'PY'
import json, sys
demo = json.load(open(sys.argv[1]))
unmet = {e["name"] for e in demo["expectations"] if not e["met"]}
assert demo["met"] is False
for name in ("takeover.late-write-rejected", "takeover.lost", "takeover.takeover", "takeover.played"):
    assert name in unmet, (name, unmet)
assert all(name.startswith("takeover.") for name in unmet), unmet
PY
    leaves_no_process "after the sabotaged demo" "$work/broken/"
}

an_interrupt_leaves_no_process_and_no_files() {
    local pid code=0
    mkdir interrupted
    TMPDIR=$work/interrupted "$aster" demo --grantor >interrupted.txt 2>interrupted.err &
    pid=$!
    for _ in $(seq 200); do
        grep -q 'its network is cut' interrupted.txt && break
        sleep 0.1
    done
    grep -q 'its network is cut' interrupted.txt || fail "worker A was never cut off" interrupted.txt
    kill -TERM "$pid"
    wait "$pid" || code=$?
    [ "$code" -eq 143 ] || fail "exit status $code after SIGTERM instead of 143" interrupted.err
    leaves_no_process "after the interrupt" "$work/interrupted/"
    [ -z "$(ls -A interrupted)" ] || fail "files are left: $(ls -R interrupted)"
}

without_an_asterd_it_says_what_to_do() {
    local code=0
    ASTER_ASTERD=$work/nowhere "$aster" demo --grantor --out absent >absent.txt 2>&1 || code=$?
    [ "$code" -eq 74 ] || fail "exit status $code without an asterd" absent.txt
    grep -q 'asterd did not start' absent.txt || fail "no message" absent.txt
}

ASTER_DEMO_SABOTAGE=no-cut "$aster" demo --grantor --json --out broken >broken.json 2>broken.err &
sabotaged=$! # meanwhile
the_late_write_of_a_worker_that_was_cut_off_is_refused
the_files_agree_with_what_was_shown
the_server_remembers_it_after_a_restart
without_the_cut_the_demo_fails_and_says_what_failed
an_interrupt_leaves_no_process_and_no_files
without_an_asterd_it_says_what_to_do

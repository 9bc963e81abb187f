#!/usr/bin/env bash
# redis_guard.sh [DIRECTORY]: what the guard costs a write in Redis: aster_set beside a plain SET, in turns, against a private
# Redis whose data is in DIRECTORY. Needs redis-server with its redis-benchmark.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d "${1:-.}/bench-redis-XXXXXX")
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$work"' EXIT
socket=$(realpath "$work")/socket
fence='aster:fence:{r}'

rate() { # rate CLIENTS COMMAND...: requests a second
    redis-benchmark -s "$socket" -n "$requests" -c "$1" --csv "${@:2}" | tail -n 1 | sed -E 's/.*","([0-9.]+)","[0-9.]+","[0-9.]+","[0-9.]+","[0-9.]+","[0-9.]+","[0-9.]+"$/\1/'
}
middle() { printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"; }

measure() { # measure NAME CLIENTS
    local plain=() guarded=()
    for _ in 1 2 3 4 5; do
        plain+=("$(rate "$2" SET k value-of-some-bytes)")
        guarded+=("$(rate "$2" FCALL aster_set 2 "$fence" k r 1 w value-of-some-bytes)")
    done
    awk -v name="$1" -v clients="$2" -v p="$(middle "${plain[@]}")" -v g="$(middle "${guarded[@]}")" 'BEGIN {
        verdict = g / p >= 0.9 ? "met" : "MISSED"
        printf "%s, %d client(s): SET %.0f/s, aster_set %.0f/s = %.2f x (bound 0.9): %s\n", name, clients, p, g, g / p, verdict }'
}

for mode in always none; do
    options=(--save "" --appendonly no)
    requests=100000
    if [ $mode = always ]; then
        options=(--save "" --appendonly yes --appendfsync always)
        requests=5000
    fi
    redis-server --port 0 --unixsocket "$socket" --dir "$work" "${options[@]}" >/dev/null &
    until redis-cli -s "$socket" ping >/dev/null 2>&1; do sleep 0.05; done
    redis-cli -s "$socket" -x FUNCTION LOAD REPLACE <"$here/../lua/aster.lua" >/dev/null
    redis-cli -s "$socket" FCALL aster_push 1 "$fence" r 1 w >/dev/null
    if [ $mode = always ]; then measure "every write synced" 1; else measure "no persistence" 1; fi
    if [ $mode = always ]; then measure "every write synced" 16; else measure "no persistence" 16; fi
    kill %% && wait %% || true
    rm -rf "$work"/*
done

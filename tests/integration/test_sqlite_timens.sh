#!/usr/bin/env bash
# Containers may shift CLOCK_BOOTTIME (time namespaces) while they share a store and the kernel's boot id: a lease runs out
# at the same instant for all of them.
set -u
if ! unshare -T --boottime 100000 true 2>/dev/null; then
    echo "skipped: no privilege to make a time namespace"
    exit 77
fi
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
export ASTER_STORE="sqlite:$directory/leases.db"
fail() {
    echo "FAILED: $*"
    exit 1
}
shifted() { # OFFSET COMMAND...: with a clock that is ahead by OFFSET seconds
    unshare -T --boottime "$1" "${@:2}"
}
denied() { # COMMAND...: exits 75 and shows a remaining time between 50 and 60 s
    local said
    said=$("$@" 2>&1) && fail "granted: $*"
    [[ $said =~ remaining\ 5[0-9]\.|remaining\ 60\.0 ]] || fail "\"$said\" does not show a remaining time of almost 60 s"
}

"$ASTER_BIN" acquire outside --ttl 60s --holder a >/dev/null || fail "the first acquire"
denied shifted 100000 "$ASTER_BIN" acquire outside --ttl 60s --holder b
denied shifted 5 "$ASTER_BIN" acquire outside --ttl 60s --holder b

shifted 100000 "$ASTER_BIN" acquire inside --ttl 60s --holder a >/dev/null || fail "the acquire in a namespace"
denied "$ASTER_BIN" acquire inside --ttl 60s --holder b
denied shifted 5 "$ASTER_BIN" acquire inside --ttl 60s --holder b
shifted 100000 "$ASTER_BIN" renew inside --epoch 1 --holder a >/dev/null || fail "the renewal in the namespace"
echo "passed"

# Shared by the scripts of this folder; source it, do not run it.
# shellcheck shell=bash disable=SC2034
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
step_names=()
step_seconds=()

# What a build needs, and what the whole suite needs on top.
packages_build=(gcc libc6-dev cmake ninja-build pkg-config libsqlite3-dev libjansson-dev libhpdf-dev libcmocka-dev
    libprotobuf-c-dev protobuf-c-compiler libngtcp2-dev libngtcp2-crypto-gnutls-dev libgnutls28-dev
    libconfuse-dev libmicrohttpd-dev libpq-dev libcurl4-gnutls-dev libhiredis-dev)
packages_test=(g++ clang clang-format curl dpkg-dev file libclang-common-14-dev libfaketime llvm nginx-light pgbouncer postgresql procps python3 redis-server
    scdoc sqlite3)

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "need root to run \"$*\": run this script as root, or install sudo"
    fi
}

apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" >"$root/build/apt.log" 2>&1
}

# need_packages NAME...: install the Debian packages that are missing; say nothing when none is.
need_packages() {
    command -v dpkg-query >/dev/null || return 0 # not Debian: CMake names what it misses
    local name missing=()
    for name in "$@"; do
        if [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" != installed ]; then
            missing+=("$name")
        fi
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    printf '==> installing %s\n' "${missing[*]}"
    mkdir -p "$root/build"
    # The lists may be missing (fresh image) or older than the mirror: refresh them only then.
    if ! apt_install "${missing[@]}"; then
        as_root apt-get update -qq >"$root/build/apt.log" 2>&1 ||
            { cat "$root/build/apt.log" >&2; die "apt-get update failed: check the network and /etc/apt/sources.list"; }
        apt_install "${missing[@]}" ||
            { cat "$root/build/apt.log" >&2; die "could not install: ${missing[*]}"; }
    fi
}

# step NAME COMMAND...: run one step; on success one line with its time, on failure stop. The times are kept for
# print_steps.
step() {
    local name=$1 start=$SECONDS
    shift
    printf '==> %s\n' "$name"
    "$@" || die "step failed: $name"
    step_names+=("$name")
    step_seconds+=($((SECONDS - start)))
    printf '    done in %d s\n' $((SECONDS - start))
}

print_steps() {
    local i
    printf '\n%-52s %8s\n' step seconds
    for i in "${!step_names[@]}"; do
        printf '%-52s %8d\n' "${step_names[$i]}" "${step_seconds[$i]}"
    done
    printf '%-52s %8d\n' total "$SECONDS"
}

# On a terminal: one line that shows how far Ninja is, and that is gone at the end. Elsewhere: nothing.
show_progress() {
    local line
    while IFS= read -r line; do
        if [ -t 1 ] && [[ $line == \[* ]]; then
            printf '\r\033[K    %s' "${line:0:74}"
        fi
    done
    [ ! -t 1 ] || printf '\r\033[K'
}

# build PRESET [CMAKE BUILD ARGUMENT...]: configure, then build; the log is in build/PRESET.log and its end is printed when
# something fails.
build() {
    local preset=$1 log
    shift
    log="$root/build/$preset.log"
    mkdir -p "$root/build"
    (
        cd "$root"
        if ! cmake --preset "$preset" >"$log" 2>&1 ||
            ! cmake --build --preset "$preset" "$@" 2>&1 | tee "$log" | show_progress; then
            tail -n 60 "$log" >&2
            exit 1
        fi
    )
}

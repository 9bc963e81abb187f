#!/usr/bin/env bash
# What `cmake --install` lays down is usable: by pkg-config, by find_package(Aster), from C11 and C++17, shared and
# static; the libraries export the public interface and nothing else; archives and Debian packages can be made.
set -euo pipefail

cache="$ASTER_BUILD/CMakeCache.txt"
if grep -qE '^(ASTER_SANITIZE:STRING=.+|ASTER_COVERAGE:BOOL=ON)' "$cache"; then
    echo "skipped: an instrumented build is not installed"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix="$work/prefix"
user="$ASTER_SOURCE/tests/integration/install"
fail() {
    echo "FAILED: $*" >&2
    exit 1
}
expect() { # expect TEXT COMMAND...: the last line the command prints
    local want=$1 got
    shift
    got=$("$@" | tail -n 1)
    [ "$got" = "$want" ] || fail "$* printed \"$got\" instead of \"$want\""
}

cmake --install "$ASTER_BUILD" --prefix "$prefix" >"$work/install.log"
for file in bin/aster bin/aster-conformance lib/libaster.so lib/libaster.a lib/libaster-sqlite.so lib/libaster-sqlite.a \
    lib/libaster-conformance.a lib/aster/aster.so include/aster/aster.h include/aster/sys/serializer.h \
    share/doc/aster/README.md share/man/man1/aster.1 share/bash-completion/completions/aster; do
    [ -e "$prefix/$file" ] || fail "not installed: $file"
done
# Whoever reads the installed guides can follow their links.
python3 - "$prefix/share/doc/aster" <<'PY' || fail "a link of the installed guides leads nowhere"
import os, re, sys
broken = []
for directory, _, names in os.walk(sys.argv[1]):
    for name in (n for n in names if n.endswith(".md")):
        text = re.sub(r"```.*?```", "", open(os.path.join(directory, name)).read(), flags=re.S)
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            if "://" not in target and not os.path.exists(os.path.join(directory, target)):
                broken.append(f"{os.path.join(directory, name)}: {target}")
print("\n".join(broken))
sys.exit(bool(broken))
PY
if grep -rn "$ASTER_SOURCE" "$prefix/include" "$prefix/lib/pkgconfig" "$prefix/lib/cmake"; then
    fail "installed files name the source tree"
fi

export PKG_CONFIG_PATH="$prefix/lib/pkgconfig" LD_LIBRARY_PATH="$prefix/lib"
# shellcheck disable=SC2046
{
    gcc -std=c11 -Wall -Wextra -Werror "$user/core.c" -o "$work/core" $(pkg-config --cflags --libs libaster)
    g++ -std=c++17 -Wall -Wextra -Werror "$user/store.cpp" -o "$work/store" \
        $(pkg-config --cflags --libs libaster-sqlite)
    gcc -std=c11 -Wall -Wextra -Werror "$user/suite.c" -o "$work/suite" \
        $(pkg-config --cflags --libs libaster-conformance)
}
expect STALE_EPOCH "$work/core"
expect NONE "$work/store" "$work/one.db"
"$work/suite" >"$work/suite.log" || { cat "$work/suite.log"; fail "the conformance suite over the installed library"; }

cmake -S "$user" -B "$work/project" -DCMAKE_PREFIX_PATH="$prefix" >"$work/cmake.log" || { cat "$work/cmake.log"; exit 1; }
cmake --build "$work/project" >"$work/cmake.log" || { cat "$work/cmake.log"; exit 1; }
expect STALE_EPOCH "$work/project/core"
expect STALE_EPOCH "$work/project/core_static"
expect NONE "$work/project/store" "$work/two.db"
expect NONE "$work/project/store_static" "$work/three.db"

exported() {
    nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort
}
declared() {
    sed -nE '/^ASTER_API/ s/.*[ *](aster_[a-z0-9_]+)\(.*/\1/p' "$@" | sort
}
same_symbols() { # same_symbols LIBRARY HEADER...
    local library=$1
    shift
    diff <(declared "$@") <(exported "$library") >"$work/symbols" ||
        { cat "$work/symbols"; fail "$library exports something else than its headers (< declared, > exported)"; }
}
mapfile -t core_headers < <(find "$prefix/include/aster" -name '*.h' ! -name sqlite.h ! -name grantor.h ! -name postgres.h ! -name conformance.h)
same_symbols "$prefix/lib/libaster.so" "${core_headers[@]}"
same_symbols "$prefix/lib/libaster-sqlite.so" "$prefix/include/aster/sqlite.h"
if [ -e "$prefix/sbin/asterd" ]; then
    for file in share/man/man8/asterd.8 share/man/man5/asterd.conf.5 lib/systemd/system/asterd.service lib/sysusers.d/aster.conf lib/tmpfiles.d/aster.conf; do
        [ -e "$prefix/$file" ] || fail "not installed: $file"
    done
fi
if [ -e "$prefix/lib/pkgconfig/libaster-grantor.pc" ]; then
    same_symbols "$prefix/lib/libaster-grantor.so" "$prefix/include/aster/grantor.h"
    # shellcheck disable=SC2046
    gcc -std=c11 -Wall -Wextra -Werror "$user/grantor.c" -o "$work/grantor" $(pkg-config --cflags --libs libaster-grantor)
    expect INVALID "$work/grantor"
    expect INVALID "$work/project/grantor"
fi

if [ -e "$prefix/lib/pkgconfig/libaster-postgres.pc" ]; then
    same_symbols "$prefix/lib/libaster-postgres.so" "$prefix/include/aster/postgres.h"
    # shellcheck disable=SC2046
    gcc -std=c11 -Wall -Wextra -Werror "$user/postgres.c" -o "$work/postgres" $(pkg-config --cflags --libs libaster-postgres)
    expect UNREACHABLE "$work/postgres"
    [ ! -e "$work/project/postgres" ] || expect UNREACHABLE "$work/project/postgres"
    cmp "$(pkg-config --variable=schema libaster-postgres)" <("$prefix/bin/aster" schema print postgres) ||
        fail "the installed schema is not the one that aster prints"
fi

[ "$("$ASTER_SOURCE/scripts/install" --help 2>&1)" = "install: usage: scripts/install [PREFIX]" ] ||
    fail "scripts/install takes an option for a prefix"

needed() {
    readelf -d "$1" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p'
}
needed "$prefix/lib/libaster.so" >"$work/needed"
! grep -vE '^(libc|libpthread|ld-linux.*)\.so' "$work/needed" ||
    fail "libaster links more than the C library"
expect "" bash -c "readelf -d '$prefix/lib/libaster.so' '$prefix/lib/libaster-sqlite.so' | grep -E 'RPATH|RUNPATH|TEXTREL'; true"

expect "$("$prefix/bin/aster" version | tail -n 1)" "$ASTER_BIN" version

(cd "$ASTER_BUILD" && cpack -B "$work/packages" -G TGZ >"$work/cpack.log" 2>&1) || { cat "$work/cpack.log"; exit 1; }
tar -tzf "$work"/packages/*.tar.gz >"$work/contents"
grep -q 'bin/aster$' "$work/contents" || fail "the archive has no bin/aster"
if command -v dpkg-shlibdeps >/dev/null; then
    (cd "$ASTER_BUILD" && cpack -B "$work/packages" -G DEB >"$work/cpack.log" 2>&1) || { cat "$work/cpack.log"; exit 1; }
    dpkg-deb --info "$work"/packages/aster_*.deb >"$work/control"
    grep -q 'Depends:.*libsqlite3-0' "$work/control" || { cat "$work/control"; fail "the package misses its dependency"; }
    dpkg-deb --contents "$work"/packages/aster-dev_*.deb >"$work/contents"
    grep -q 'usr/include/aster/aster.h' "$work/contents" || fail "aster-dev has no headers"
    dpkg-deb --contents "$work"/packages/aster_*.deb >"$work/contents"
    grep -q 'usr/lib/aster/aster.so' "$work/contents" || fail "the package has no SQLite extension"
fi

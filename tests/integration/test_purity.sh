#!/usr/bin/env bash
# The houses of src/ look only where they may, and the engine reaches no clock, random, thread, lock, file or socket.
set -euo pipefail
cd "$ASTER_SOURCE"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# house -> houses it may include from; its own is implied.
declare -A allowed=(
    [base]=""
    [engine]="base"
    [platform]="base"
    [serializer]="base engine platform"
    [lease]="base engine platform serializer"
    [json]=""
    [resource]="base engine platform serializer"
    [cli]="base engine platform serializer lease quic json"
    [journal]="base engine platform serializer"
    [journal/entry]="base engine"
    [wire]="base"
    [quic]="base engine platform wire"
    [grantor]="base engine platform wire quic json journal"
    [serializer/remote]="base engine platform serializer wire quic"
    [serializer/postgres]="base engine platform serializer"
)
c_headers=" inttypes.h limits.h stdalign.h stdarg.h stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h "
pure_headers=" bytes.h export.h fence.h limits.h operation.h serializer.h status.h transition.h version.h "
allowed_symbols=" __errno_location __stack_chk_fail _GLOBAL_OFFSET_TABLE_ free malloc memcmp memcpy memmove memset realloc
 __memcpy_chk __memset_chk __snprintf_chk __vsnprintf_chk snprintf strchr strcmp strlen strncmp strstr strerrordesc_np vsnprintf "

# Print every #include below $1/src that its house may not have.
violations() {
    local file house include target
    while IFS=: read -r file _ include; do
        house=${file#"$1"/src/}
        case $house in
        serializer/remote/*) house=serializer/remote ;;
        serializer/postgres/*) house=serializer/postgres ;;
        journal/entry*) house=journal/entry ;; # the bytes are as pure as the engine; who stores them is not
        *) house=${house%%/*} ;;
        esac
        [ -n "${allowed[$house]+x}" ] || { echo "$file: the house $house is not in the table of this test"; continue; }
        include=${include#*[<\"]}
        include=${include%%[>\"]*}
        target=${include%%/*}
        if [ -d "$1/src/$target" ] && [ "$include" != "$target" ]; then
            [[ $target == "${house%%/*}" || " ${allowed[$house]} " == *" $target "* ]] ||
                echo "$file includes $include: $house may not look into $target"
        elif [[ $house == engine || $house == base || $house == wire || $house == journal/entry ]]; then
            case $include in
            aster/lease/v1/grantor.pb-c.h | protobuf-c/protobuf-c.h)
                [ "$house" = wire ] || echo "$file includes $include, which only the wire knows" ;;
            aster/*) [[ $pure_headers == *" ${include#aster/} "* ]] || echo "$file includes $include, which is not pure" ;;
            *) [[ $c_headers == *" $include "* ]] || echo "$file includes $include, which is not allowed here" ;;
            esac
        fi
    done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include' "$1/src" --include='*.[ch]')
}

found=$(violations .)
if [ -n "$found" ]; then
    echo "$found"
    failed=1
fi

# A test that cannot fail proves nothing: planted violations must be seen.
expect_seen() { # expect_seen FILE INCLUDE
    rm -rf "$work/tree"
    mkdir -p "$work/tree"
    cp -r src "$work/tree/src"
    printf '#include %s\n' "$2" >>"$work/tree/src/$1"
    [[ $(violations "$work/tree") == *"$1"* ]] || { echo "a planted $2 in $1 went unnoticed"; failed=1; }
}
expect_seen engine/table.c '"platform/entropy.h"'
expect_seen engine/table.h '<time.h>'
expect_seen base/error.c '<pthread.h>'
expect_seen platform/clock.c '"serializer/call.h"'
expect_seen base/error.c '"engine/table.h"'
expect_seen wire/frame.c '"platform/entropy.h"'
expect_seen wire/frame.c '<time.h>'
expect_seen journal/entry.c '"platform/entropy.h"'
expect_seen journal/entry.h '<time.h>'
expect_seen journal/journal.h '"grantor/settings.h"'
expect_seen engine/table.c '<protobuf-c/protobuf-c.h>'

nm_of() { nm "$@" | sed -E 's/^[0-9a-f ]*//'; }
# Print the symbols that the archives need and do not define themselves, outside the list.
impure_symbols() {
    nm_of -u "$@" | awk '$1 == "U" {print $2}' | sort -u >"$work/needed"
    nm_of --defined-only "$@" | awk 'NF == 2 {print $2}' | sort -u >"$work/defined"
    comm -23 "$work/needed" "$work/defined" | while read -r symbol; do
        case $symbol in
        __asan_* | __ubsan_* | __tsan_* | __sanitizer_* | __gcov_* | __llvm_* | __sancov_*) ;; # instrumented builds
        *) [[ " $(tr '\n' ' ' <<<"$allowed_symbols") " == *" $symbol "* ]] || echo "$symbol" ;;
        esac
    done
}

engine=$ASTER_BUILD/src/libaster_engine_archive.a
base=$ASTER_BUILD/src/libaster_base_archive.a
for archive in "$engine" "$base"; do
    [ -f "$archive" ] || { echo "$archive is missing: build it first"; exit 1; }
done
found=$(impure_symbols "$engine" "$base")
if [ -n "$found" ]; then
    printf 'the engine reaches for:\n%s\n' "$found"
    failed=1
fi
wire=$ASTER_BUILD/src/libaster_wire_archive.a # only when the grantor is built
if [ -f "$wire" ]; then
    found=$(impure_symbols "$wire" "$engine" "$base" | grep -vE '^(protobuf_c_|__assert_fail$)' || true)
    if [ -n "$found" ]; then
        printf 'the wire reaches for:\n%s\n' "$found"
        failed=1
    fi
fi
entry=("$ASTER_BUILD"/src/CMakeFiles/aster_journal.dir/journal/entry*.o)
found=$(impure_symbols "${entry[@]}" "$engine" "$base")
if [ -n "$found" ]; then
    printf 'the journal entry reaches for:\n%s\n' "$found"
    failed=1
fi
printf '#include <time.h>\nlong planted(void);\nlong planted(void) { return (long)time(NULL); }\n' >"$work/planted.c"
${CC:-cc} -c "$work/planted.c" -o "$work/planted.o"
[ "$(impure_symbols "$engine" "$base" "$work/planted.o")" = time ] || { echo "a planted time() went unnoticed"; failed=1; }
exit "$failed"

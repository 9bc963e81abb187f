#!/usr/bin/env bash
# Every public header compiles alone as C11 and as C++17 with each installed compiler, its INIT macros are usable in both
# languages, and every exported function is documented directly above its declaration.
set -euo pipefail
cd "$ASTER_SOURCE"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(-Iinclude -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only)
failed=0

# A header of a library that is not installed has nobody to compile it.
unwanted=()
if pkg-config --exists libpq; then
    read -ra libpq < <(pkg-config --cflags-only-I libpq | sed 's/-I/-isystem /g')
    flags+=("${libpq[@]}")
else
    unwanted=(! -name postgres.h)
fi
headers=()
while IFS= read -r header; do
    headers+=("${header#include/}")
done < <(find include/aster -name '*.h' "${unwanted[@]}" | sort)
[ ${#headers[@]} -ge 15 ] || { echo "only ${#headers[@]} headers found"; exit 1; }

check() { # check COMPILER STANDARD LANGUAGE FILE
    command -v "$1" >/dev/null || return 0
    "$1" -x "$3" -std="$2" "${flags[@]}" "$4" || { echo "FAILED: $1 -std=$2: $(cat "$4")"; failed=1; }
}

check_everywhere() {
    check gcc c11 c "$1"
    check clang c11 c "$1"
    check g++ c++17 c++ "$1"
    check clang++ c++17 c++ "$1"
}

for header in "${headers[@]}"; do
    # Twice: the include guard holds.
    printf '#include "%s"\n#include "%s"\nextern int not_empty;\n' "$header" "$header" >"$work/alone.c"
    check_everywhere "$work/alone.c"
done

{
    printf '#include "%s"\n' "${headers[@]}"
    grep -rhoE '^#define ASTER_[A-Z_]+_INIT' include | sed -E 's/#define (ASTER_([A-Z_]+)_INIT)/\2 \1/' |
        while read -r noun macro; do
            printf 'struct aster_%s make_%s(void);\nstruct aster_%s make_%s(void)\n{\n    struct aster_%s x = %s;\n    return x;\n}\n' \
                "${noun,,}" "${noun,,}" "${noun,,}" "${noun,,}" "${noun,,}" "$macro"
        done
} >"$work/init.c"
check_everywhere "$work/init.c"

undocumented=$(awk '
    FNR == 1 { previous = "" }
    /^ASTER_API/ && previous !~ /\*\/[ \t]*$/ { printf "%s:%d: %s\n", FILENAME, FNR, $0 }
    { previous = $0 }' include/aster/*.h include/aster/sys/*.h)
if [ -n "$undocumented" ]; then
    printf 'exported without a comment directly above:\n%s\n' "$undocumented"
    failed=1
fi
exit "$failed"

#!/usr/bin/env bash
# What the documents name exists: paths, links, functions, subcommands of `aster`, and presets.
set -euo pipefail
cd "$ASTER_SOURCE"
failed=0
report() {
    echo "FAILED: $*"
    failed=1
}
guides=(README.md ARCHITECTURE.md CONTRIBUTING.md)
mapfile -t all < <(ls "${guides[@]}" CHANGELOG.md docs/*.md docs/adr/*.md)

# Words in capitals are placeholders (tests/unit/test_NOUN.c), build/ is made by the build.
checked=0
while read -r file path; do
    checked=$((checked + 1))
    [ -e "$path" ] || report "$file names $path, which does not exist"
done < <(grep -oE '(^|[^A-Za-z0-9_/.])(\.ci|bench|cmake|docs|examples|include|man|packaging|scripts|sql|src|tests)/[A-Za-z0-9_./-]*' \
    "${all[@]}" | sed -E 's/^([^:]*):[^A-Za-z0-9_.]?/\1 /; s/[.]$//' | grep -vE ' .*[A-Z]{3,}' | grep -vE '\.md [^ ]*\.md$')
[ "$checked" -ge 40 ] || report "only $checked paths found: is the pattern still right?"

for file in "${all[@]}"; do
    while read -r link; do
        case "$link" in
        http*) ;;
        *) [ -e "$(dirname "$file")/${link%%#*}" ] || report "$file links to $link, which does not exist" ;;
        esac
    done < <(grep -oE '\]\([^)]+\)' "$file" | sed -E 's/^\]\(//; s/\)$//')
done

while read -r function; do
    grep -rqE "\b$function\(" include src || report "the documents name $function(), which is not declared"
done < <(grep -ohE '\baster_[a-z0-9_]+\(' "${all[@]}" | tr -d '(' | sort -u)

while read -r command; do
    "$ASTER_BIN" "$command" --help >/dev/null 2>&1 || report "a document names \`aster $command\`, which is no command"
done < <(grep -ohE '(`|^ *|\| )aster [a-z]+\b' "${all[@]}" | sed -E 's/.*aster //' | sort -u)

while read -r command; do
    grep -qE "^\*(.*[ *])?$command\*" man/aster.1.scd || report "man/aster.1.scd does not describe $command"
done < <("$ASTER_BIN" help | sed -nE 's/^  ([a-z]+) {2,}.*/\1/p')

while read -r preset; do
    grep -q "\"name\": \"$preset\"" CMakePresets.json || report "CONTRIBUTING.md names the preset $preset"
done < <(grep -oE -- '--preset [a-z-]+' CONTRIBUTING.md | cut -d' ' -f2 | sort -u)

# The tests that docs/faults.md and docs/security.md promise: functions in C, Python and shell, and scenarios of the
# conformance suite.
named=0
while read -r name; do
    named=$((named + 1))
    grep -rqE "((static void|def) |^)$name\(|\{\"$name\"" tests --include='*.c' --include='*.py' --include='*.sh' ||
        report "a document names the test \"$name\", which does not exist"
done < <(sed -nE 's/^\| .* \| ([^|]*) \|$/\1/p' docs/faults.md docs/security.md | grep -oE '`[^`]+`' | tr -d '`' | sort -u)
[ "$named" -ge 100 ] || report "only $named tests found in docs/faults.md and docs/security.md: is the pattern right?"

lines=$(wc -l <ARCHITECTURE.md)
[ "$lines" -le 150 ] || report "ARCHITECTURE.md has $lines lines: keep it to 150, move detail to docs/"
exit "$failed"

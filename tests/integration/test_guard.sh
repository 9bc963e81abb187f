#!/bin/bash
# Programs that know nothing of Aster but the extension are held to the fence: the sqlite3 shell, and Python.
set -u
for program in sqlite3 python3 "$ASTER_BIN"; do
    command -v "$program" >/dev/null || { echo "skipped: no $program"; exit 77; }
done
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
db=$directory/shop.db
failures=0

# A sanitized extension needs its runtime in the program that loads it.
runtime=$(ldd "$ASTER_EXTENSION.so" | awk '/lib(asan|tsan)/ { print $3; exit }')
shell() { ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$runtime sqlite3 -bail "$@"; }
guarded() { shell "$db" ".load $ASTER_EXTENSION" "$@" 2>&1; }

expect() { # DESCRIPTION PATTERN TEXT
    if [[ $3 != *"$2"* ]]; then
        echo "FAILED: $1: expected '$2' in: $3"
        failures=$((failures + 1))
    fi
}

sqlite3 "$db" <"$ASTER_SOURCE/sql/sqlite/schema.sql"
sqlite3 "$db" "CREATE TABLE invoice (id INTEGER PRIMARY KEY, text TEXT);
    INSERT INTO invoice VALUES (1, 'draft');
    INSERT INTO aster_lease VALUES ('shop', 3, 1, 'b', 10000, 0, x'', 0, 'a', 1, zeroblob(16), '', 0, 0, 0, 0, 0, '', 0);"
"$ASTER_BIN" schema print sqlite --protect invoice --resource shop >"$directory/protect.sql" || exit 1
sqlite3 "$db" <"$directory/protect.sql" || exit 1

expect "the shell without the extension" "no such function: aster_guard__load_aster_extension" \
    "$(sqlite3 "$db" "UPDATE invoice SET text = 'plain'" 2>&1)"
expect "no fence declared" "aster: NO_FENCE" "$(guarded "UPDATE invoice SET text = 'none'")"
expect "a stale fence" "aster: STALE_EPOCH: resource 'shop' carried epoch 1, current epoch 3" \
    "$(guarded "SELECT aster_fence('shop', 1, 'a')" "INSERT OR REPLACE INTO invoice VALUES (1, 'stale')")"
expect "a stale fence deleting everything" "aster: STALE_EPOCH" \
    "$(guarded "SELECT aster_fence('shop', 1, 'a')" "DELETE FROM invoice")"
expect "the epoch with another name" "aster: NOT_HOLDER" \
    "$(guarded "SELECT aster_fence('shop', 3, 'a')" "UPDATE invoice SET text = 'thief'")"
expect "nothing was changed" "1|draft" "$(sqlite3 "$db" "SELECT * FROM invoice")"

expect "Python without the extension" "no such function: aster_guard__load_aster_extension" "$(python3 - "$db" <<'PY' 2>&1
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
for sql in ("INSERT INTO invoice VALUES (2, 'python')", "REPLACE INTO invoice VALUES (1, 'python')",
            "DELETE FROM invoice"):
    try:
        connection.execute(sql)
        connection.commit()
        print("let through:", sql)
        sys.exit(1)
    except sqlite3.OperationalError as error:
        message = error
print(message)
PY
)"
expect "nothing was changed by Python" "1|draft" "$(sqlite3 "$db" "SELECT * FROM invoice")"

# Where Python's sqlite3 may load extensions.
if [ -z "$runtime" ] && python3 -c "import sqlite3; sqlite3.connect(':memory:').enable_load_extension" 2>/dev/null; then
    expect "Python with the extension" "aster: STALE_EPOCH" "$(python3 - "$db" "$ASTER_EXTENSION" <<'PY' 2>&1
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.enable_load_extension(True)
connection.load_extension(sys.argv[2])
connection.execute("SELECT aster_fence('shop', 1, 'a')")
connection.execute("UPDATE invoice SET text = 'python'")
PY
)"
fi

expect "the current fence" "2" \
    "$(guarded "SELECT aster_fence('shop', 3, 'b')" "INSERT INTO invoice VALUES (2, 'final')" "SELECT count(*) FROM invoice")"
[ $failures -eq 0 ] && echo "ok"
exit $((failures > 0))

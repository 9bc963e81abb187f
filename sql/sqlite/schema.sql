-- Aster's own tables, beside the user's in one database file. Applied in one transaction by aster_sqlite_open(); safe
-- to apply again. Names are compared byte by byte.

-- One row about the store. `floor` is the greatest epoch of a forgotten resource: where a resource that has no row
-- starts. `resources` counts the rows of aster_lease. `boot_id` is the boot whose clock the rows were last armed on.
CREATE TABLE IF NOT EXISTS aster_meta (
    id             INTEGER PRIMARY KEY CHECK (id = 1),
    schema_version INTEGER NOT NULL,
    floor          INTEGER NOT NULL,
    resources      INTEGER NOT NULL,
    boot_id        TEXT NOT NULL
);
INSERT OR IGNORE INTO aster_meta VALUES (1, 1, 0, 0, '');

-- One row per resource. `checksum` covers every column above it; a row that does not match is refused. The columns
-- below it are volatile: when the lease was granted (nanoseconds of CLOCK_BOOTTIME in the boot `boot_id`; another boot
-- means a full ttl from now) and since when, by the wall clock, for display.
CREATE TABLE IF NOT EXISTS aster_lease (
    resource         TEXT COLLATE BINARY PRIMARY KEY NOT NULL,
    epoch            INTEGER NOT NULL,
    held             INTEGER NOT NULL,
    holder           TEXT COLLATE BINARY NOT NULL,
    ttl_ms           INTEGER NOT NULL,
    lease_revision   INTEGER NOT NULL,
    value            BLOB NOT NULL,
    value_revision   INTEGER NOT NULL,
    last_holder      TEXT COLLATE BINARY NOT NULL,
    last_epoch_held  INTEGER NOT NULL,
    request_id       BLOB NOT NULL,
    request_caller   TEXT COLLATE BINARY NOT NULL,
    request_kind     INTEGER NOT NULL,
    request_takeover INTEGER NOT NULL,
    request_epoch    INTEGER NOT NULL,
    checksum         INTEGER NOT NULL,
    granted_at_ns    INTEGER NOT NULL,
    boot_id          TEXT NOT NULL,
    since_unix_ms    INTEGER NOT NULL
) WITHOUT ROWID;

-- What was decided, oldest first; `kind` and `reason` are numbered as in aster/serializer.h and aster/fence.h. The
-- oldest rows are deleted, never the newest, so a revision is never used again.
CREATE TABLE IF NOT EXISTS aster_audit (
    revision      INTEGER PRIMARY KEY,
    unix_ms       INTEGER NOT NULL,
    kind          INTEGER NOT NULL,
    reason        INTEGER NOT NULL,
    resource      TEXT COLLATE BINARY NOT NULL,
    actor         TEXT COLLATE BINARY NOT NULL,
    previous      TEXT COLLATE BINARY NOT NULL,
    epoch         INTEGER NOT NULL,
    carried_epoch INTEGER NOT NULL
);

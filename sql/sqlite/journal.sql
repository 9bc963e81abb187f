-- The tables of a grantor's journal (asterd --journal sqlite:PATH): a file of its own, open in one process at a time.

-- One row. Entries up to position `folded` are in the other tables; `floor` is the greatest epoch of a removed resource.
CREATE TABLE meta (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    folded INTEGER NOT NULL,
    floor  INTEGER NOT NULL
);
INSERT INTO meta VALUES (1, 0, 0);

-- What was appended and not folded yet, without gaps from folded + 1 on (src/journal/entry.h).
CREATE TABLE entries (
    position INTEGER PRIMARY KEY,
    entry    BLOB NOT NULL
);

-- The rows as of position `folded`, each with its check (src/engine/codec.h).
CREATE TABLE rows (
    resource BLOB PRIMARY KEY,
    row      BLOB NOT NULL
) WITHOUT ROWID;

-- The history as of position `folded`, many events to a row, each row an entry of events only; `revision` is the last
-- one's. The oldest go first.
CREATE TABLE events (
    revision INTEGER PRIMARY KEY,
    entry    BLOB NOT NULL
);

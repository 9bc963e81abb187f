-- Aster in PostgreSQL 13 or newer: the tables. One transaction, from here to the COMMIT in 08_grants.sql; safe to apply
-- again. Apply it as the role that is to own the schema: it must be able to create a schema here, and the roles
-- aster_worker and aster_operator unless somebody has created them before.
BEGIN;
SELECT pg_advisory_xact_lock(7090762741562240370); -- one migration at a time
SELECT set_config('aster.schema_version', '1', true);

DO $$
DECLARE
    found bigint;
BEGIN
    IF current_setting('server_version_num')::int < 130000 THEN
        RAISE EXCEPTION 'aster: PostgreSQL % is too old: 13 or newer is needed', current_setting('server_version')
            USING ERRCODE = 'LF102';
    END IF;
    IF getdatabaseencoding() <> 'UTF8' THEN
        RAISE EXCEPTION 'aster: this database is encoded in %: names are UTF-8, use a database in UTF8',
            getdatabaseencoding() USING ERRCODE = 'LF102';
    END IF;
    IF to_regclass('aster.meta') IS NOT NULL THEN
        EXECUTE 'SELECT max(version) FROM aster.meta' INTO found;
        IF found > current_setting('aster.schema_version')::bigint THEN
            RAISE EXCEPTION 'aster: the schema is of version %, this migration of version %: use the newer Aster', found,
                current_setting('aster.schema_version') USING ERRCODE = 'LF102';
        END IF;
    END IF;
END
$$;

CREATE SCHEMA IF NOT EXISTS aster;
REVOKE ALL ON SCHEMA aster FROM PUBLIC;

-- Roles belong to the whole cluster, so another database may have made them.
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['aster_worker', 'aster_operator'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
        END IF;
    END LOOP;
END
$$;

-- One row about the store. `floor` is the greatest epoch of a forgotten resource: where a resource without a row starts.
-- The limits may be changed by the owner of the schema.
CREATE TABLE IF NOT EXISTS aster.meta (
    id              boolean PRIMARY KEY DEFAULT true CHECK (id),
    version         bigint NOT NULL,
    checksum        text, -- of the functions, see aster.verify()
    floor           bigint NOT NULL DEFAULT 0 CHECK (floor >= 0),
    ttl_min_ms      bigint NOT NULL DEFAULT 100 CHECK (ttl_min_ms >= 1),
    ttl_max_ms      bigint NOT NULL DEFAULT 86400000 CHECK (ttl_max_ms BETWEEN ttl_min_ms AND 4294967295),
    value_max_bytes bigint NOT NULL DEFAULT 65536 CHECK (value_max_bytes BETWEEN 0 AND 65536),
    resources_max   bigint CHECK (resources_max > 0), -- NULL: no limit; a limit makes new resources cost a count
    history_max     bigint NOT NULL DEFAULT 10000 CHECK (history_max >= 0),
    -- How long a transaction that declared a fence, or changed a lease, may stand idle before PostgreSQL ends it.
    idle_limit      interval NOT NULL DEFAULT '10 s' CHECK (idle_limit >= '100 ms')
);

-- One row per resource. No index but the key, so that every change can be a HOT update. `holder` is the role that holds,
-- or "role/instance"; empty when free. `expires_at` is by this server's clock, read after the row was locked.
CREATE TABLE IF NOT EXISTS aster.lease (
    resource         text COLLATE "C" PRIMARY KEY,
    epoch            bigint NOT NULL, -- no CHECK: it would be parsed again by every statement
    held             boolean NOT NULL,
    holder           text COLLATE "C" NOT NULL,
    ttl_ms           bigint NOT NULL,
    expires_at       timestamptz NOT NULL,
    since            timestamptz NOT NULL,
    lease_revision   bigint NOT NULL,
    value            bytea NOT NULL,
    value_revision   bigint NOT NULL,
    last_holder      text COLLATE "C" NOT NULL,
    last_epoch_held  bigint NOT NULL,
    request_id       uuid,
    request_caller   text COLLATE "C" NOT NULL,
    request_kind     text COLLATE "C" NOT NULL,
    request_takeover boolean NOT NULL,
    request_epoch    bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500,
        autovacuum_multixact_freeze_max_age = 20000000);

-- What was decided, oldest first. Written in the same transaction as the decision; the oldest rows are deleted.
CREATE TABLE IF NOT EXISTS aster.audit (
    revision      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at            timestamptz NOT NULL,
    kind          text COLLATE "C" NOT NULL,
    reason        text COLLATE "C" NOT NULL,
    resource      text COLLATE "C" NOT NULL,
    actor         text COLLATE "C" NOT NULL,
    previous      text COLLATE "C" NOT NULL,
    epoch         bigint NOT NULL,
    carried_epoch bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);

-- Which tables aster.protect() guards: aster.verify() compares it with the triggers that are there.
CREATE TABLE IF NOT EXISTS aster.protected (
    target     regclass PRIMARY KEY,
    resource   text COLLATE "C",
    expression text COLLATE "C",
    CHECK ((resource IS NULL) <> (expression IS NULL))
);

-- When somebody first looked after the server's last start. Unlogged on purpose: a crash, or the promotion of a standby,
-- empties it, and an empty table means that renewals may have been lost or that another clock rules now.
CREATE UNLOGGED TABLE IF NOT EXISTS aster.boot (
    id      boolean PRIMARY KEY DEFAULT true CHECK (id),
    at      timestamptz NOT NULL,
    started timestamptz NOT NULL
);

-- Who waits for which resource to be freed, so that a release with nobody waiting needs no NOTIFY (whose commits are
-- serialised by PostgreSQL). Unlogged: whoever waits polls as well.
CREATE UNLOGGED TABLE IF NOT EXISTS aster.waiter (
    resource text COLLATE "C" PRIMARY KEY,
    until    timestamptz NOT NULL
) WITH (fillfactor = 50);

DO $$
BEGIN
    IF to_regtype('aster.decision') IS NULL THEN
        -- An advisory view of a row, stale the moment it is returned: nothing may gate a write on it.
        CREATE TYPE aster.snapshot AS (
            resource text, epoch bigint, held boolean, holder text, ttl interval, remaining interval, since timestamptz,
            lease_revision bigint, value bytea, value_revision bigint, last_holder text, last_epoch_held bigint);
        -- The answer to an operation. `granted` false is an answer, not an error; `reason` says why.
        CREATE TYPE aster.decision AS (
            granted boolean, reason text, epoch bigint, takeover boolean, replayed boolean, carried_epoch bigint,
            resource text, held boolean, holder text, ttl interval, remaining interval, since timestamptz,
            lease_revision bigint, value bytea, value_revision bigint, last_holder text, last_epoch_held bigint);
        -- May the write run? `reason` NONE means yes.
        CREATE TYPE aster.verdict AS (reason text, carried_epoch bigint, current_epoch bigint);
        CREATE TYPE aster.finding AS (level text, object text, finding text);
    END IF;
END
$$;

INSERT INTO aster.meta (version) VALUES (current_setting('aster.schema_version')::bigint) ON CONFLICT DO NOTHING;
INSERT INTO aster.boot (at, started) VALUES (clock_timestamp(), pg_postmaster_start_time()) ON CONFLICT DO NOTHING;

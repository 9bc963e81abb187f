-- The fenced value of a resource, and looking at rows and at their history.

-- Store a value of up to 64 KiB if the fence rule passes and nobody changed the value since. `fence_holder` is the instance
-- that the fence names, when it was handed on; a fence in another's hands is worth nothing.
CREATE OR REPLACE FUNCTION aster.put(resource text, epoch bigint, value_revision bigint, value bytea,
                                     instance text DEFAULT '', request_id uuid DEFAULT NULL, fence_holder text DEFAULT NULL)
RETURNS aster.decision LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    cur aster.lease;
    me text := aster.identity(instance);
    named text := aster.identity(coalesce(fence_holder, instance));
    verdict text;
    told bigint;
BEGIN
    IF aster.is_odd(resource, instance) THEN
        PERFORM aster.arguments_check(resource, instance);
    END IF;
    PERFORM aster.value_check(coalesce(value, ''));
    IF aster.is_casual() THEN
        PERFORM aster.change_begin();
    END IF;
    LOOP
        SELECT * INTO cur FROM aster.lease AS l
            WHERE l.resource = put.resource AND l.held AND l.epoch = put.epoch AND l.holder = me AND l.holder = named
              AND l.value_revision = put.value_revision
            FOR NO KEY UPDATE;
        EXIT WHEN FOUND;
        cur := aster.row_of(resource);
        IF request_id IS NOT NULL AND aster.is_repeat(cur, request_id, me, 'put') THEN
            RETURN aster.grant_again(cur, epoch);
        END IF;
        verdict := aster.fence_rule(cur, epoch, me, named);
        IF verdict <> 'NONE' THEN
            told := aster.audit_add('fence-rejected', verdict, resource, me, '', cur.epoch, epoch);
            RETURN aster.deny(cur, verdict, epoch);
        END IF;
        IF cur.value_revision IS DISTINCT FROM put.value_revision THEN
            RETURN aster.deny(cur, 'REVISION_MISMATCH', epoch);
        END IF;
    END LOOP;
    IF request_id IS NOT NULL AND aster.is_repeat(cur, request_id, me, 'put') THEN
        RETURN aster.grant_again(cur, epoch);
    END IF;
    IF cur.value_revision = 9223372036854775807 THEN
        PERFORM aster.exhausted(resource, 'value_revision');
    END IF;
    UPDATE aster.lease AS l
        SET value = coalesce(put.value, ''), value_revision = l.value_revision + 1, request_id = put.request_id,
            request_caller = me, request_kind = 'put', request_takeover = false, request_epoch = l.epoch
        WHERE l.resource = put.resource
        RETURNING * INTO cur;
    cur.expires_at := aster.deadline(cur, clock_timestamp());
    RETURN aster.answer(cur, true, 'NONE', false, false, cur.epoch, epoch, clock_timestamp());
END
$$;

CREATE OR REPLACE FUNCTION aster.snapshot_of(cur aster.lease) RETURNS aster.snapshot LANGUAGE plpgsql AS $$
DECLARE
    now timestamptz := clock_timestamp();
    shown aster.decision;
BEGIN
    cur.expires_at := aster.deadline(cur, now);
    shown := aster.answer(cur, true, 'NONE', false, false, cur.epoch, 0, now);
    RETURN ROW(shown.resource, shown.epoch, shown.held, shown.holder, shown.ttl, shown.remaining, shown.since,
               shown.lease_revision, shown.value, shown.value_revision, shown.last_holder,
               shown.last_epoch_held)::aster.snapshot;
END
$$;

CREATE OR REPLACE FUNCTION aster.inspect(resource text) RETURNS aster.snapshot
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF aster.is_odd(resource, '') THEN
        PERFORM aster.arguments_check(resource, '');
    END IF;
    RETURN aster.snapshot_of(aster.row_of(resource));
END
$$;

-- The rows whose name starts with `prefix`, held or free, in byte order; the first `most` of those after `after`.
CREATE OR REPLACE FUNCTION aster.list(prefix text DEFAULT '', after text DEFAULT '', most bigint DEFAULT NULL)
RETURNS SETOF aster.snapshot LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    cur aster.lease;
BEGIN
    FOR cur IN SELECT * FROM aster.lease AS l
               WHERE l.resource >= prefix COLLATE "C" AND l.resource > after COLLATE "C"
                 AND starts_with(l.resource, prefix)
               ORDER BY l.resource LIMIT most LOOP
        RETURN NEXT aster.snapshot_of(cur);
    END LOOP;
END
$$;

-- Remove the row of a free resource. Its epochs are never used again: the floor is raised to the last of them. The floor is
-- locked first, as row_make() locks it, so that the two cannot wait for each other.
CREATE OR REPLACE FUNCTION aster.forget(resource text) RETURNS aster.decision
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    cur aster.lease;
    last_epoch bigint;
    told bigint;
BEGIN
    IF aster.is_odd(resource, '') THEN
        PERFORM aster.arguments_check(resource, '');
    END IF;
    cur := aster.row_of(resource);
    IF cur.held THEN
        RETURN aster.deny(cur, 'HELD_BY_OTHER', 0);
    END IF;
    IF aster.is_casual() THEN
        PERFORM aster.change_begin();
    END IF;
    PERFORM FROM aster.meta AS m FOR NO KEY UPDATE;
    DELETE FROM aster.lease AS l WHERE l.resource = forget.resource AND NOT l.held RETURNING l.epoch INTO last_epoch;
    cur := aster.row_of(resource);
    IF cur.held THEN
        RETURN aster.deny(cur, 'HELD_BY_OTHER', 0);
    END IF;
    IF last_epoch IS NOT NULL THEN
        UPDATE aster.meta AS m SET floor = greatest(m.floor, last_epoch);
        told := aster.audit_add('forgotten', 'NONE', resource, aster.identity(''), '', last_epoch, 0);
        cur := aster.row_of(resource);
    END IF;
    RETURN aster.answer(cur, true, 'NONE', false, false, coalesce(last_epoch, cur.epoch), 0, clock_timestamp());
END
$$;

-- What was decided, oldest first; the newest `newest` of what matches, NULL = all that is kept.
CREATE OR REPLACE FUNCTION aster.history(resource text DEFAULT NULL, after_revision bigint DEFAULT 0,
                                         newest bigint DEFAULT NULL) RETURNS SETOF aster.audit
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT found.* FROM
        (SELECT * FROM aster.audit AS a
         WHERE a.revision > after_revision AND (history.resource IS NULL OR a.resource = history.resource)
         ORDER BY a.revision DESC LIMIT newest) AS found
        ORDER BY found.revision;
END
$$;

-- The version of the schema, for clients that must not guess.
CREATE OR REPLACE FUNCTION aster.version() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT m.version FROM aster.meta AS m $$;

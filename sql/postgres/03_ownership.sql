-- Who owns what. The lock modes do the fencing: a guarded transaction holds FOR KEY SHARE on the row until it ends, which
-- FOR NO KEY UPDATE (renew, put) passes and FOR UPDATE (acquire, release, revoke, expire, forget) waits for. Each operation
-- locks only a row that it is going to change; a refusal reads, locks nothing and waits for nobody. The clock is read
-- after the lock.

CREATE OR REPLACE FUNCTION aster.acquire(resource text, ttl interval, instance text DEFAULT '',
                                         take_over_own boolean DEFAULT false, request_id uuid DEFAULT NULL,
                                         waiting interval DEFAULT NULL)
RETURNS aster.decision LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    me text := aster.identity(instance);
    length_ms bigint := round(date_part('epoch', ttl) * 1000);
    found_held boolean;
    found_holder text;
    found_epoch bigint;
    found_request uuid;
    ends timestamptz;
    now timestamptz;
    revision bigint;
    given aster.decision;
BEGIN
    IF aster.is_odd(resource, instance) THEN
        PERFORM aster.arguments_check(resource, instance);
    END IF;
    IF aster.is_casual() THEN
        PERFORM aster.change_begin();
    END IF;
    LOOP
        SELECT l.held, l.holder, l.epoch, l.request_id, l.expires_at
            INTO found_held, found_holder, found_epoch, found_request, ends
            FROM aster.lease AS l
            WHERE l.resource = acquire.resource
              AND (NOT l.held OR l.expires_at <= clock_timestamp() OR (take_over_own AND l.holder = me))
              AND EXISTS (SELECT FROM aster.meta AS m WHERE length_ms BETWEEN m.ttl_min_ms AND m.ttl_max_ms)
            FOR UPDATE;
        now := clock_timestamp();
        EXIT WHEN FOUND AND (request_id = found_request) IS NOT TRUE
            AND (NOT found_held OR (take_over_own AND found_holder = me));
        given := aster.acquire_otherwise(resource, ttl, me, take_over_own, request_id, waiting);
        IF given.reason IS NOT NULL THEN
            RETURN given;
        END IF;
        EXIT WHEN FOUND;
    END LOOP;
    IF found_epoch = 9223372036854775807 THEN
        PERFORM aster.exhausted(resource, 'epoch');
    END IF;
    UPDATE aster.lease AS l
        SET epoch = l.epoch + 1, held = true, holder = me, ttl_ms = length_ms,
            expires_at = now + length_ms * interval '1 ms', since = now,
            last_holder = CASE WHEN l.held THEN l.holder ELSE l.last_holder END,
            last_epoch_held = CASE WHEN l.held THEN l.epoch ELSE l.last_epoch_held END,
            request_id = acquire.request_id, request_caller = me, request_kind = 'acquire',
            request_takeover = l.held, request_epoch = l.epoch + 1
        WHERE l.resource = acquire.resource
        RETURNING (aster.answer(l, true, 'NONE', l.request_takeover, false, l.epoch, 0, now)).* INTO given;
    INSERT INTO aster.audit AS a (at, kind, reason, resource, actor, previous, epoch, carried_epoch)
        VALUES (now, CASE WHEN found_held THEN 'takeover' ELSE 'granted' END, 'NONE', acquire.resource, me, found_holder,
                given.epoch, 0)
        RETURNING a.revision INTO revision;
    IF revision % 256 = 0 THEN
        PERFORM aster.history_prune(revision);
    END IF;
    RETURN given;
END
$$;

-- Everything about an acquire but the common case: the answer, or one without a reason when the row is to be granted, or to be
-- looked at again.
CREATE OR REPLACE FUNCTION aster.acquire_otherwise(resource text, ttl interval, me text, take_over_own boolean,
                                                   request_id uuid, waiting interval)
RETURNS aster.decision LANGUAGE plpgsql AS $$
DECLARE
    cur aster.lease;
    now timestamptz;
BEGIN
    PERFORM aster.ttl_ms(ttl);
    SELECT * INTO cur FROM aster.lease AS l WHERE l.resource = acquire_otherwise.resource;
    IF NOT FOUND THEN
        PERFORM aster.row_make(resource);
        RETURN NULL;
    END IF;
    IF request_id IS NOT NULL AND aster.is_repeat(cur, request_id, me, 'acquire') THEN
        RETURN aster.grant_again(cur, 0);
    END IF;
    now := clock_timestamp();
    IF NOT cur.held OR (take_over_own AND cur.holder = me) OR (cur.expires_at <= now AND aster.deadline(cur, now) <= now) THEN
        RETURN NULL;
    END IF;
    PERFORM aster.denial_note(cur, now);
    PERFORM aster.wait_note(resource, now + waiting);
    RETURN aster.deny(cur, 'HELD_BY_OTHER', 0);
END
$$;

CREATE OR REPLACE FUNCTION aster.renew(resource text, epoch bigint, instance text DEFAULT '', request_id uuid DEFAULT NULL)
RETURNS aster.decision LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    cur aster.lease;
    me text := aster.identity(instance);
    now timestamptz;
    reason text;
    found_request uuid;
    found_revision bigint;
    ends timestamptz;
    given aster.decision;
BEGIN
    IF aster.is_odd(resource, instance) THEN
        PERFORM aster.arguments_check(resource, instance);
    END IF;
    IF current_setting('idle_in_transaction_session_timeout') = '0' THEN
        PERFORM aster.idle_bound();
    END IF;
    LOOP
        SELECT l.request_id, l.expires_at, l.lease_revision INTO found_request, ends, found_revision FROM aster.lease AS l
            WHERE l.resource = renew.resource AND l.held AND l.epoch = renew.epoch AND l.holder = me
            FOR NO KEY UPDATE;
        now := clock_timestamp();
        EXIT WHEN FOUND AND ends > now AND (request_id = found_request) IS NOT TRUE;
        cur := aster.row_of(resource);
        IF request_id IS NOT NULL AND aster.is_repeat(cur, request_id, me, 'renew') THEN
            RETURN aster.grant_again(cur, epoch);
        END IF;
        reason := CASE WHEN NOT cur.held THEN 'NOT_HELD' WHEN cur.epoch <> epoch THEN 'EPOCH_MISMATCH'
                       WHEN cur.holder <> me THEN 'NOT_HOLDER' WHEN aster.deadline(cur, now) <= now THEN 'EXPIRED' END;
        IF reason IS NOT NULL THEN
            RETURN aster.deny(cur, reason, epoch);
        END IF;
        EXIT WHEN FOUND;
    END LOOP;
    IF found_revision = 9223372036854775807 THEN
        PERFORM aster.exhausted(resource, 'lease_revision');
    END IF;
    UPDATE aster.lease AS l
        SET expires_at = now + l.ttl_ms * interval '1 ms', lease_revision = l.lease_revision + 1,
            request_id = renew.request_id, request_caller = me, request_kind = 'renew', request_takeover = false,
            request_epoch = l.epoch
        WHERE l.resource = renew.resource
        RETURNING (aster.answer(l, true, 'NONE', false, false, l.epoch, renew.epoch, now)).* INTO given;
    RETURN given;
END
$$;

-- Without a value: the lease ends. With one: the value is stored and the fence advanced, or neither.
CREATE OR REPLACE FUNCTION aster.release(resource text, epoch bigint, instance text DEFAULT '',
                                         request_id uuid DEFAULT NULL, value bytea DEFAULT NULL,
                                         value_revision bigint DEFAULT NULL)
RETURNS aster.decision LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    cur aster.lease;
    me text := aster.identity(instance);
    now timestamptz;
    reason text;
    found_request uuid;
    found_revision bigint;
    revision bigint;
    given aster.decision;
BEGIN
    IF aster.is_odd(resource, instance) THEN
        PERFORM aster.arguments_check(resource, instance);
    END IF;
    IF value IS NOT NULL THEN
        PERFORM aster.value_check(value);
    END IF;
    IF aster.is_casual() THEN
        PERFORM aster.change_begin();
    END IF;
    LOOP
        SELECT l.request_id, l.value_revision INTO found_request, found_revision FROM aster.lease AS l
            WHERE l.resource = release.resource AND l.held AND l.epoch = release.epoch AND l.holder = me
              AND (release.value IS NULL OR l.value_revision = release.value_revision)
            FOR UPDATE;
        EXIT WHEN FOUND AND (request_id = found_request) IS NOT TRUE;
        cur := aster.row_of(resource);
        IF request_id IS NOT NULL AND aster.is_repeat(cur, request_id, me, 'release') THEN
            RETURN aster.grant_again(cur, epoch);
        END IF;
        reason := CASE WHEN cur.epoch <> epoch THEN 'EPOCH_MISMATCH'
                       WHEN NOT cur.held OR cur.holder <> me THEN 'NOT_HOLDER'
                       WHEN value IS NOT NULL AND cur.value_revision IS DISTINCT FROM release.value_revision
                           THEN 'REVISION_MISMATCH' END;
        IF reason IS NOT NULL THEN
            RETURN aster.deny(cur, reason, epoch);
        END IF;
        EXIT WHEN FOUND;
    END LOOP;
    IF epoch = 9223372036854775807 THEN
        PERFORM aster.exhausted(resource, 'epoch');
    ELSIF value IS NOT NULL AND found_revision = 9223372036854775807 THEN
        PERFORM aster.exhausted(resource, 'value_revision');
    END IF;
    now := clock_timestamp();
    UPDATE aster.lease AS l
        SET epoch = l.epoch + 1, held = false, holder = '', expires_at = '-infinity', since = now, last_holder = me,
            last_epoch_held = l.epoch, value = coalesce(release.value, l.value),
            value_revision = l.value_revision + (release.value IS NOT NULL)::int, request_id = release.request_id,
            request_caller = me, request_kind = 'release', request_takeover = false, request_epoch = l.epoch + 1
        WHERE l.resource = release.resource
        RETURNING (aster.answer(l, true, 'NONE', false, false, l.epoch, release.epoch, now)).* INTO given;
    INSERT INTO aster.audit AS a (at, kind, reason, resource, actor, previous, epoch, carried_epoch)
        VALUES (now, 'released', 'NONE', release.resource, me, '', given.epoch, 0)
        RETURNING a.revision INTO revision;
    IF revision % 256 = 0 THEN
        PERFORM aster.history_prune(revision);
    END IF;
    IF EXISTS (SELECT FROM aster.waiter AS w WHERE w.resource = release.resource AND w.until > now) THEN
        PERFORM pg_notify('aster_freed', resource);
    END IF;
    RETURN given;
END
$$;

-- For the role aster_operator. Ends whatever lease there is; with an expected epoch, only that one.
CREATE OR REPLACE FUNCTION aster.revoke(resource text, expected_epoch bigint DEFAULT NULL, instance text DEFAULT '',
                                        request_id uuid DEFAULT NULL)
RETURNS aster.decision LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    cur aster.lease;
    me text := aster.identity(instance);
    carried bigint := coalesce(expected_epoch, 0);
    previous text;
    told bigint;
BEGIN
    IF aster.is_odd(resource, instance) THEN
        PERFORM aster.arguments_check(resource, instance);
    END IF;
    IF NOT aster.is_operator() THEN
        RETURN aster.deny_unauthorized(resource, me, carried);
    END IF;
    IF aster.is_casual() THEN
        PERFORM aster.change_begin();
    END IF;
    LOOP
        SELECT * INTO cur FROM aster.lease AS l
            WHERE l.resource = revoke.resource AND (expected_epoch IS NULL OR l.epoch = expected_epoch)
            FOR UPDATE;
        EXIT WHEN FOUND;
        cur := aster.row_of(resource);
        IF request_id IS NOT NULL AND aster.is_repeat(cur, request_id, me, 'revoke') THEN
            RETURN aster.grant_again(cur, carried);
        END IF;
        IF cur.epoch <> expected_epoch THEN
            RETURN aster.deny(cur, 'EPOCH_MISMATCH', carried);
        END IF;
        PERFORM aster.row_make(resource);
    END LOOP;
    IF request_id IS NOT NULL AND aster.is_repeat(cur, request_id, me, 'revoke') THEN
        RETURN aster.grant_again(cur, carried);
    END IF;
    previous := cur.holder;
    cur := aster.row_free(cur, 'revoke', me, request_id);
    told := aster.audit_add('revoked', 'NONE', resource, me, previous, cur.epoch, 0);
    RETURN aster.answer(cur, true, 'NONE', false, false, cur.epoch, carried, clock_timestamp());
END
$$;

-- For the role aster_operator: end exactly the lease that this epoch and lease revision name, if it is still that one.
CREATE OR REPLACE FUNCTION aster.expire(resource text, epoch bigint, lease_revision bigint)
RETURNS aster.decision LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    cur aster.lease;
    previous text;
    told bigint;
BEGIN
    IF aster.is_odd(resource, '') THEN
        PERFORM aster.arguments_check(resource, '');
    END IF;
    IF NOT aster.is_operator() THEN
        RETURN aster.deny_unauthorized(resource, aster.identity(''), epoch);
    END IF;
    IF aster.is_casual() THEN
        PERFORM aster.change_begin();
    END IF;
    SELECT * INTO cur FROM aster.lease AS l
        WHERE l.resource = expire.resource AND l.held AND l.epoch = expire.epoch
          AND l.lease_revision = expire.lease_revision
        FOR UPDATE;
    IF NOT FOUND THEN
        cur := aster.row_of(resource);
        RETURN aster.deny(cur, CASE WHEN cur.held THEN 'EPOCH_MISMATCH' ELSE 'NOT_HELD' END, epoch);
    END IF;
    previous := cur.holder;
    cur := aster.row_free(cur, NULL, NULL, NULL);
    told := aster.audit_add('expired', 'NONE', resource, '', previous, cur.epoch, 0);
    RETURN aster.answer(cur, true, 'NONE', false, false, cur.epoch, epoch, clock_timestamp());
END
$$;

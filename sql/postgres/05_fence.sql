-- The fence, at the resource: checked in the writing transaction, on a row that stays locked until that transaction ends.

-- May `writer` write under (resource, epoch, holder `named`)? Without a look at expiry.
CREATE OR REPLACE FUNCTION aster.fence_rule(cur aster.lease, epoch bigint, writer text, named text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN epoch < cur.epoch THEN 'STALE_EPOCH' WHEN epoch > cur.epoch THEN 'FUTURE_EPOCH'
                WHEN NOT cur.held THEN 'NOT_HELD' WHEN cur.holder <> writer OR cur.holder <> named THEN 'NOT_HOLDER'
                ELSE 'NONE' END
$$;

-- Judge a fence and, when it is good, keep the row locked against a takeover until the transaction ends. FOR KEY SHARE waits
-- for a change of ownership that is under way, sees what became of it at READ COMMITTED, and fails with a serialization
-- error at the stricter levels; renewals pass it. An expired lease is refused, or one holder's many transactions
-- could keep a takeover waiting for ever.
CREATE OR REPLACE FUNCTION aster.judge(resource text, epoch bigint, writer text, named text) RETURNS aster.verdict
LANGUAGE plpgsql AS $$
DECLARE
    cur aster.lease;
    found_reason text;
    now timestamptz;
BEGIN
    IF epoch IS NULL OR epoch < 0 THEN
        PERFORM aster.fault('22023', format('epoch is %s: it must be 0 or more', coalesce(epoch::text, 'NULL')),
                            'carry the epoch that acquire() gave');
    END IF;
    LOOP
        SELECT l.epoch, l.held, l.holder, l.ttl_ms, l.expires_at
            INTO cur.epoch, cur.held, cur.holder, cur.ttl_ms, cur.expires_at
            FROM aster.lease AS l
            WHERE l.resource = judge.resource AND l.epoch = judge.epoch AND l.held AND l.holder = writer
              AND l.holder = named
            FOR KEY SHARE;
        IF FOUND THEN
            now := clock_timestamp();
            RETURN ROW(CASE WHEN cur.expires_at > now OR aster.deadline(cur, now) > now THEN 'NONE' ELSE 'EXPIRED' END,
                       epoch, cur.epoch)::aster.verdict;
        END IF;
        cur := aster.row_of(resource);
        found_reason := aster.fence_rule(cur, epoch, writer, named);
        IF found_reason <> 'NONE' THEN
            RETURN ROW(found_reason, epoch, cur.epoch)::aster.verdict;
        END IF;
    END LOOP;
END
$$;

-- A rejected write, as an error with a SQLSTATE for each reason, LF003 to LF011, numbered as in aster/fence.h. The detail is
-- for programs, the hint for people.
CREATE OR REPLACE FUNCTION aster.reject(resource text, verdict aster.verdict) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    reason text := verdict.reason;
    carried text := coalesce('epoch ' || verdict.carried_epoch, 'no fence');
BEGIN
    RAISE EXCEPTION USING
        ERRCODE = CASE reason WHEN 'NOT_HOLDER' THEN 'LF003' WHEN 'EXPIRED' THEN 'LF004' WHEN 'NOT_HELD' THEN 'LF005'
                  WHEN 'STALE_EPOCH' THEN 'LF008' WHEN 'FUTURE_EPOCH' THEN 'LF009' WHEN 'WRONG_RESOURCE' THEN 'LF010'
                  WHEN 'NO_FENCE' THEN 'LF011' END,
        MESSAGE = format('aster: %s: resource ''%s'' carried %s, current epoch %s', reason, resource, carried,
                         verdict.current_epoch),
        DETAIL = jsonb_build_object('reason', reason, 'resource', resource, 'carried_epoch', verdict.carried_epoch,
                                    'current_epoch', verdict.current_epoch)::text,
        HINT = CASE reason
            WHEN 'NO_FENCE' THEN 'declare the fence first in this transaction: SELECT aster.fence(resource, epoch)'
            WHEN 'WRONG_RESOURCE' THEN 'this transaction declared the fence of another resource'
            WHEN 'FUTURE_EPOCH' THEN 'the database is older than the fence: was it restored from a backup?'
            WHEN 'NOT_HELD' THEN 'nobody holds the lease: acquire it and declare the new fence'
            WHEN 'NOT_HOLDER' THEN 'another identity holds this epoch: acquire the lease and declare the new fence'
            WHEN 'EXPIRED' THEN 'renew in time, or acquire again and read the data anew before writing'
            ELSE 'this writer''s lease is over: acquire again and read the data anew before writing' END;
END
$$;

-- The declarations of this transaction, in a setting that ends with it: RS resource US epoch US instance, once per resource.
-- Names hold no control characters. Forging it gains nothing: the guard judges what it says like any fence.
CREATE OR REPLACE FUNCTION aster.declare(resource text, epoch bigint, instance text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    declared text := coalesce(current_setting('aster.fences', true), '');
    earlier text := E'\x1e' || resource || E'\x1f';
    from_here int := strpos(declared, earlier);
BEGIN
    IF from_here > 0 THEN
        declared := left(declared, from_here - 1)
            || substr(declared, from_here + length(earlier) + length(split_part(split_part(declared, earlier, 2), E'\x1e', 1)));
    END IF;
    PERFORM set_config('aster.fences', declared || earlier || epoch || E'\x1f' || coalesce(instance, ''), true);
END
$$;

-- Declare the fence of this transaction, first in it. Raises an error when the fence is not the current one. One look-up
-- answers for the common case; whatever it does not find good goes to judge() for the reason.
CREATE OR REPLACE FUNCTION aster.fence(resource text, epoch bigint, instance text DEFAULT '') RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    me text := aster.identity(instance);
    declared text := current_setting('aster.fences', true);
    ends timestamptz;
    idle_ms text;
    verdict aster.verdict;
    done text;
BEGIN
    IF aster.is_odd(resource, instance) THEN
        PERFORM aster.arguments_check(resource, instance);
    END IF;
    SELECT l.expires_at, (SELECT ceil(date_part('epoch', m.idle_limit) * 1000)::bigint FROM aster.meta AS m)
        INTO ends, idle_ms FROM aster.lease AS l
        WHERE l.resource = fence.resource AND l.epoch = fence.epoch AND l.held AND l.holder = me FOR KEY SHARE;
    IF ends IS NULL OR ends <= clock_timestamp() THEN
        verdict := aster.judge(resource, epoch, me, me);
        IF verdict.reason <> 'NONE' THEN
            PERFORM aster.reject(resource, verdict);
        END IF;
    END IF;
    IF idle_ms IS NOT NULL AND current_setting('idle_in_transaction_session_timeout') = '0' THEN
        done := set_config('idle_in_transaction_session_timeout', idle_ms, true);
    ELSE
        PERFORM aster.idle_bound();
    END IF;
    IF declared IS NULL OR declared = '' THEN
        done := set_config('aster.fences', E'\x1e' || resource || E'\x1f' || epoch || E'\x1f' || coalesce(instance, ''), true);
    ELSE
        PERFORM aster.declare(resource, epoch, instance);
    END IF;
    RETURN epoch;
END
$$;

-- The same from the text that `aster run` hands to a command as ASTER_FENCE: aster1:EPOCH:INSTANCE:RESOURCE, the names with
-- %XX for what is not plain.
CREATE OR REPLACE FUNCTION aster.fence(fence_text text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF fence_text !~ '^aster1:[0-9]{1,19}:([A-Za-z0-9._~/@-]|%[0-9A-F]{2})+:([A-Za-z0-9._~/@-]|%[0-9A-F]{2})+$' THEN
        PERFORM aster.fault('22023', 'this is no fence', 'hand on ASTER_FENCE as it is: aster1:EPOCH:INSTANCE:RESOURCE');
    END IF;
    RETURN aster.fence(aster.unescape(split_part(fence_text, ':', 4)), split_part(fence_text, ':', 2)::bigint,
                       aster.unescape(split_part(fence_text, ':', 3)));
END
$$;

CREATE OR REPLACE FUNCTION aster.unescape(escaped text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT convert_from(string_agg(CASE WHEN length(part[1]) = 3 THEN decode(substr(part[1], 2), 'hex')
                                        ELSE convert_to(part[1], 'UTF8') END, ''::bytea ORDER BY at), 'UTF8')
    FROM regexp_matches(escaped, '%[0-9A-F]{2}|[^%]', 'g') WITH ORDINALITY AS found(part, at)
$$;

-- The same answer as a row instead of an error, so that the transaction can commit the record of a rejection: a rejection
-- that is raised is rolled back with everything else, and stands in the server's log only.
CREATE OR REPLACE FUNCTION aster.check_fence(resource text, epoch bigint, instance text DEFAULT '',
                                             fence_holder text DEFAULT NULL)
RETURNS aster.verdict LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    me text := aster.identity(instance);
    verdict aster.verdict;
BEGIN
    IF aster.is_odd(resource, instance) THEN
        PERFORM aster.arguments_check(resource, instance);
    END IF;
    PERFORM aster.idle_bound();
    verdict := aster.judge(resource, epoch, me, aster.identity(coalesce(fence_holder, instance)));
    IF verdict.reason = 'NONE' THEN
        PERFORM aster.declare(resource, epoch, instance);
    ELSE
        PERFORM aster.audit_add('fence-rejected', verdict.reason, resource, me, '', verdict.current_epoch, epoch);
    END IF;
    RETURN verdict;
END
$$;

-- What this transaction declared for `resource`: its epoch US its instance, or ''. A setting that has ended reads '' and not
-- NULL, so both mean that nothing was declared.
CREATE OR REPLACE FUNCTION aster.declared(resource text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT split_part(split_part(coalesce(current_setting('aster.fences', true), ''), E'\x1e' || resource || E'\x1f', 2),
                      E'\x1e', 1)
$$;

-- What the triggers ask: has this transaction declared the current fence of `resource`?
CREATE OR REPLACE FUNCTION aster.guard(resource text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own text := aster.declared(resource);
    me text := aster.identity(split_part(own, E'\x1f', 2));
    ends timestamptz;
    verdict aster.verdict;
BEGIN
    IF own <> '' THEN
        SELECT l.expires_at INTO ends FROM aster.lease AS l
            WHERE l.resource = guard.resource AND l.epoch = split_part(own, E'\x1f', 1)::bigint AND l.held AND l.holder = me
            FOR KEY SHARE;
        IF ends > clock_timestamp() THEN
            RETURN;
        END IF;
        verdict := aster.judge(resource, split_part(own, E'\x1f', 1)::bigint, me, me);
    ELSIF resource IS NULL THEN
        PERFORM aster.fault('LF011', 'NO_FENCE: the expression that protects this table gives NULL for this row',
                            'write a row whose resource is named');
    ELSE
        verdict := ROW(CASE WHEN coalesce(current_setting('aster.fences', true), '') = '' THEN 'NO_FENCE'
                            ELSE 'WRONG_RESOURCE' END, NULL, (aster.row_of(resource)).epoch);
    END IF;
    IF verdict.reason <> 'NONE' THEN
        PERFORM aster.reject(resource, verdict);
    END IF;
END
$$;

-- Every kind of write of a table without partitions, parents or children passes one check per statement. The body is that of
-- guard(), which spares a second call.
CREATE OR REPLACE FUNCTION aster.guard_write() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own text := aster.declared(TG_ARGV[0]);
    me text := aster.identity(split_part(own, E'\x1f', 2));
    ends timestamptz;
BEGIN
    IF own <> '' THEN
        SELECT l.expires_at INTO ends FROM aster.lease AS l
            WHERE l.resource = TG_ARGV[0] AND l.epoch = split_part(own, E'\x1f', 1)::bigint AND l.held AND l.holder = me
            FOR KEY SHARE;
    END IF;
    IF ends IS NULL OR ends <= clock_timestamp() THEN
        PERFORM aster.guard(TG_ARGV[0]);
    END IF;
    RETURN NULL;
END
$$;

-- What the operations share. Nobody is granted these; they run inside the functions that are.

CREATE OR REPLACE FUNCTION aster.fault(state text, message text, hint text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = state, MESSAGE = 'aster: ' || message, HINT = hint;
END
$$;

CREATE OR REPLACE FUNCTION aster.name_check(name text, role text, bytes_max int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF name IS NULL OR name = '' THEN
        PERFORM aster.fault('22023', format('%s is empty', role), format('give 1 to %s bytes', bytes_max));
    ELSIF octet_length(name) > bytes_max THEN
        PERFORM aster.fault('22023', format('%s is %s bytes long, the limit is %s', role, octet_length(name), bytes_max),
                            'shorten the name');
    ELSIF name ~ '[\u0001-\u001f\u007f-\u009f]' THEN
        PERFORM aster.fault('22023', format('%s has a control character', role), 'use printable UTF-8');
    END IF;
END
$$;

-- Who is asking: the role that logged in, and the instance that it says it is. A role's name may hold no slash, so that
-- no instance of one role can be taken for another role.
CREATE OR REPLACE FUNCTION aster.identity(instance text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN instance IS NULL OR instance = '' THEN session_user::text ELSE session_user || '/' || instance END
$$;

-- The arguments that every operation has. The first look is an expression that the planner folds into its caller.
CREATE OR REPLACE FUNCTION aster.is_odd(resource text, instance text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT resource IS NULL OR octet_length(resource) NOT BETWEEN 1 AND 512 OR octet_length(instance) > 256
        OR (resource || coalesce(instance, '')) ~ '[\u0001-\u001f\u007f-\u009f]'
        OR session_user::text ~ '[\u0001-\u001f\u007f-\u009f/]'
$$;

CREATE OR REPLACE FUNCTION aster.arguments_check(resource text, instance text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM aster.name_check(resource, 'resource', 512);
    PERFORM aster.name_check('-' || coalesce(instance, ''), 'instance', 257); -- it may be empty
    PERFORM aster.fault('22023', format('the name of role "%s" has a slash or a control character', session_user),
                        'log in as a role without one');
END
$$;

-- A transaction that holds locks of Aster's may not stand idle for ever.
CREATE OR REPLACE FUNCTION aster.idle_bound() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    own interval := current_setting('idle_in_transaction_session_timeout')::interval;
    most interval;
BEGIN
    SELECT m.idle_limit INTO STRICT most FROM aster.meta AS m;
    IF own = '0' OR own > most THEN
        PERFORM set_config('idle_in_transaction_session_timeout',
                           ceil(extract(epoch FROM most) * 1000)::bigint::text, true);
    END IF;
END
$$;

-- A change of ownership is acknowledged after it is synced, whatever the session's default is. The first look is cheap.
CREATE OR REPLACE FUNCTION aster.is_casual() RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT current_setting('synchronous_commit') = 'off' OR current_setting('idle_in_transaction_session_timeout') = '0'
$$;

CREATE OR REPLACE FUNCTION aster.change_begin() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    PERFORM aster.idle_bound();
END
$$;

CREATE OR REPLACE FUNCTION aster.ttl_ms(ttl interval) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    ms numeric := round(extract(epoch FROM ttl)::numeric * 1000);
    limits aster.meta;
BEGIN
    SELECT * INTO STRICT limits FROM aster.meta;
    IF ms IS NULL OR ms < limits.ttl_min_ms OR ms > limits.ttl_max_ms THEN
        PERFORM aster.fault('22023', format('ttl is %s ms, allowed are ttl_min %s ms to ttl_max %s ms', ms,
                                            limits.ttl_min_ms, limits.ttl_max_ms),
                            'choose a ttl in that range, for example interval ''30 s''');
    END IF;
    RETURN ms;
END
$$;

-- Since when this server has been serving without a break: from the first look after a start or a crash. Every held row
-- counts as granted no earlier.
CREATE OR REPLACE FUNCTION aster.armed_at(now timestamptz) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
    marked timestamptz;
BEGIN
    SELECT b.at INTO marked FROM aster.boot AS b WHERE b.started = pg_postmaster_start_time();
    IF NOT FOUND AND current_setting('transaction_read_only') = 'off' THEN
        INSERT INTO aster.boot AS b (at, started) VALUES (now, pg_postmaster_start_time())
            ON CONFLICT ON CONSTRAINT boot_pkey DO UPDATE SET at = excluded.at, started = excluded.started
            WHERE b.started <> excluded.started;
    END IF;
    RETURN coalesce(marked, now);
END
$$;

-- When the lease ends. Only a row that looks expired is worth the look at what happened to the server; a start in the future
-- was before the wall clock was set back.
CREATE OR REPLACE FUNCTION aster.deadline(cur aster.lease, now timestamptz) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
    armed timestamptz;
BEGIN
    IF cur.held AND cur.expires_at <= now THEN
        armed := aster.armed_at(now);
        RETURN greatest(cur.expires_at, CASE WHEN armed <= now THEN armed + cur.ttl_ms * interval '1 ms' END);
    END IF;
    RETURN cur.expires_at;
END
$$;

-- Somebody looked at a lease that keeps others out. It must not do so for longer than its ttl from here, also when the server
-- has just come back from a crash, or when its wall clock was set back.
CREATE OR REPLACE FUNCTION aster.denial_note(cur aster.lease, now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM aster.armed_at(now);
    IF cur.expires_at > now + cur.ttl_ms * interval '1 ms' THEN
        UPDATE aster.lease AS l SET expires_at = now + l.ttl_ms * interval '1 ms'
            WHERE l.resource = cur.resource AND l.epoch = cur.epoch AND l.expires_at = cur.expires_at;
    END IF;
END
$$;

-- The row as it is committed now, or what stands for a row that does not exist.
CREATE OR REPLACE FUNCTION aster.row_of(resource text) RETURNS aster.lease LANGUAGE plpgsql AS $$
DECLARE
    cur aster.lease;
BEGIN
    SELECT * INTO cur FROM aster.lease AS l WHERE l.resource = row_of.resource;
    IF NOT FOUND THEN
        SELECT row_of.resource, m.floor, false, '', 0, '-infinity', '-infinity', 0, '', 0, '', 0, NULL, '', '', false, 0
            INTO STRICT cur FROM aster.meta AS m;
    END IF;
    RETURN cur;
END
$$;

-- Make the row of a resource that has none. The floor stays locked until the end of the transaction: whoever forgets
-- another resource meanwhile waits, so the epoch cannot be one that was used before, at any isolation level.
CREATE OR REPLACE FUNCTION aster.row_make(resource text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    meta aster.meta;
BEGIN
    SELECT * INTO STRICT meta FROM aster.meta AS m FOR SHARE;
    IF meta.resources_max IS NOT NULL AND meta.resources_max <=
        (SELECT count(*) FROM (SELECT FROM aster.lease LIMIT meta.resources_max) AS counted) THEN
        PERFORM aster.fault('54000', format('resources_max is %s and that many have a row', meta.resources_max),
                            'forget some, or raise it in aster.meta');
    END IF;
    INSERT INTO aster.lease VALUES (row_make.resource, meta.floor, false, '', 0, '-infinity', clock_timestamp(), 0, '', 0,
                                    '', 0, NULL, '', '', false, 0) ON CONFLICT DO NOTHING;
    RETURN FOUND;
END
$$;

-- Is this the last applied request again, from the same caller?
CREATE OR REPLACE FUNCTION aster.is_repeat(cur aster.lease, request_id uuid, caller text, kind text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    IF request_id IS DISTINCT FROM cur.request_id OR caller <> cur.request_caller THEN
        RETURN false;
    ELSIF kind <> cur.request_kind THEN
        PERFORM aster.fault('22023', format('the request id was used for %s already and comes again with %s',
                                            cur.request_kind, kind),
                            'make a new random id for every operation, repeat it only for a retry');
    END IF;
    RETURN true;
END
$$;

CREATE OR REPLACE FUNCTION aster.exhausted(resource text, counter text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM aster.fault('LF101', format('COUNTER_EXHAUSTED: %s of "%s" is at its limit 9223372036854775807', counter,
                                        resource),
                        'nothing was changed; use a new resource name');
END
$$;

CREATE OR REPLACE FUNCTION aster.answer(cur aster.lease, granted boolean, reason text, takeover boolean, replayed boolean,
                                        epoch bigint, carried_epoch bigint, now timestamptz) RETURNS aster.decision
LANGUAGE sql IMMUTABLE AS $$
    SELECT ROW(granted, reason, epoch, takeover, replayed, carried_epoch, cur.resource, cur.held, cur.holder,
               cur.ttl_ms * interval '1 ms',
               CASE WHEN cur.held THEN least(greatest(cur.expires_at - now, interval '0'), cur.ttl_ms * interval '1 ms')
                    ELSE interval '0' END,
               nullif(cur.since, '-infinity'), cur.lease_revision, cur.value, cur.value_revision, cur.last_holder,
               cur.last_epoch_held)::aster.decision
$$;

CREATE OR REPLACE FUNCTION aster.grant_again(cur aster.lease, carried_epoch bigint) RETURNS aster.decision
LANGUAGE plpgsql AS $$
DECLARE
    now timestamptz := clock_timestamp();
BEGIN
    cur.expires_at := aster.deadline(cur, now);
    RETURN aster.answer(cur, true, 'NONE', cur.request_takeover, true, cur.request_epoch, carried_epoch, now);
END
$$;

CREATE OR REPLACE FUNCTION aster.deny(cur aster.lease, reason text, carried_epoch bigint) RETURNS aster.decision
LANGUAGE plpgsql AS $$
DECLARE
    now timestamptz := clock_timestamp();
BEGIN
    cur.expires_at := aster.deadline(cur, now);
    RETURN aster.answer(cur, false, reason, false, false, cur.epoch, carried_epoch, now);
END
$$;

-- Deleting a page of old lines at a time costs less than one line at a time. Two do not wait for each other; and at the
-- stricter levels a snapshot taken earlier would only make it fail.
CREATE OR REPLACE FUNCTION aster.history_prune(newest bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') = 'read committed' THEN
        DELETE FROM aster.audit AS a WHERE a.revision IN
            (SELECT o.revision FROM aster.audit AS o
             WHERE o.revision <= newest - (SELECT m.history_max FROM aster.meta AS m) ORDER BY o.revision
             FOR UPDATE SKIP LOCKED);
    END IF;
END
$$;

-- One line of the history, in the transaction of what it tells.
CREATE OR REPLACE FUNCTION aster.audit_add(kind text, reason text, resource text, actor text, previous text, epoch bigint,
                                           carried_epoch bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    newest bigint;
BEGIN
    INSERT INTO aster.audit AS a (at, kind, reason, resource, actor, previous, epoch, carried_epoch)
        VALUES (clock_timestamp(), audit_add.kind, audit_add.reason, audit_add.resource, audit_add.actor,
                audit_add.previous, audit_add.epoch, audit_add.carried_epoch)
        RETURNING a.revision INTO newest;
    IF newest % 256 = 0 THEN
        PERFORM aster.history_prune(newest);
    END IF;
    RETURN newest;
END
$$;

-- A refusal for want of a right: it uses up no epoch and shows nothing of the row but its epoch.
CREATE OR REPLACE FUNCTION aster.deny_unauthorized(resource text, actor text, carried_epoch bigint) RETURNS aster.decision
LANGUAGE plpgsql AS $$
DECLARE
    shown aster.lease;
    cur aster.lease := aster.row_of(resource);
BEGIN
    PERFORM aster.audit_add('unauthorized', 'UNAUTHORIZED', resource, actor, '', cur.epoch, carried_epoch);
    shown.resource := resource;
    shown.epoch := cur.epoch;
    RETURN aster.answer(shown, false, 'UNAUTHORIZED', false, false, cur.epoch, carried_epoch, clock_timestamp());
END
$$;

CREATE OR REPLACE FUNCTION aster.is_operator() RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT pg_has_role(session_user, 'aster_operator', 'MEMBER')
$$;

-- Whoever waits is told by NOTIFY aster_freed when the row is freed within that time.
CREATE OR REPLACE FUNCTION aster.wait_note(resource text, until timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF until IS NOT NULL THEN
        INSERT INTO aster.waiter AS w VALUES (wait_note.resource, wait_note.until)
            ON CONFLICT ON CONSTRAINT waiter_pkey DO UPDATE SET until = excluded.until WHERE w.until < excluded.until;
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION aster.value_check(value bytea) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    most bigint;
BEGIN
    IF value IS NOT NULL THEN
        SELECT m.value_max_bytes INTO STRICT most FROM aster.meta AS m;
        IF octet_length(value) > most THEN
            PERFORM aster.fault('22023', format('value is %s bytes long, value_max_bytes is %s', octet_length(value), most),
                                'keep large data elsewhere and put its name here');
        END IF;
    END IF;
END
$$;

-- End the lease in a row that is locked FOR UPDATE: free, one epoch later, remembering who held. `kind` NULL is the
-- serializer's own doing and no request: the memory of the last request outlives it.
CREATE OR REPLACE FUNCTION aster.row_free(cur aster.lease, kind text, caller text, request_id uuid)
RETURNS aster.lease LANGUAGE plpgsql AS $$
DECLARE
    freed aster.lease;
BEGIN
    IF cur.epoch = 9223372036854775807 THEN
        PERFORM aster.exhausted(cur.resource, 'epoch');
    END IF;
    UPDATE aster.lease AS l
        SET epoch = l.epoch + 1, held = false, holder = '', expires_at = '-infinity', since = clock_timestamp(),
            last_holder = CASE WHEN l.held THEN l.holder ELSE l.last_holder END,
            last_epoch_held = CASE WHEN l.held THEN l.epoch ELSE l.last_epoch_held END,
            request_id = CASE WHEN kind IS NULL THEN l.request_id ELSE row_free.request_id END,
            request_caller = coalesce(caller, l.request_caller), request_kind = coalesce(kind, l.request_kind),
            request_takeover = l.request_takeover AND kind IS NULL,
            request_epoch = CASE WHEN kind IS NULL THEN l.request_epoch ELSE l.epoch + 1 END
        WHERE l.resource = cur.resource
        RETURNING * INTO freed;
    IF EXISTS (SELECT FROM aster.waiter AS w WHERE w.resource = cur.resource AND w.until > clock_timestamp()) THEN
        PERFORM pg_notify('aster_freed', cur.resource);
    END IF;
    RETURN freed;
END
$$;

-- What goes round the guard, as far as the catalogue tells. FAIL: a write can pass unchecked, or a decision can be lost.
-- WARN: somebody has the right to take the guard away. OK: looked at and good.

CREATE OR REPLACE FUNCTION aster.verify_triggers(target regclass, expression text) RETURNS SETOF aster.finding
LANGUAGE plpgsql AS $$
DECLARE
    member regclass;
    name text;
    guard pg_trigger;
    by_row boolean := expression IS NOT NULL OR aster.is_related(target);
    again text := format('; run aster.protect(%L, ...) again', target::text);
BEGIN
    FOR member IN SELECT aster.family(target) LOOP
        FOREACH name IN ARRAY ARRAY['aster_guard_write', 'aster_guard_truncate'] LOOP
            SELECT * INTO guard FROM pg_trigger AS t WHERE t.tgrelid = member AND t.tgname = name;
            IF NOT FOUND THEN
                RETURN NEXT ROW('FAIL', member::text, format('trigger %s is missing', name) || again)::aster.finding;
            ELSIF guard.tgenabled <> 'A' THEN
                RETURN NEXT ROW('FAIL', member::text, format('trigger %s is not ENABLE ALWAYS: a session in replica mode '
                    'goes round it, or everybody does', name) || again)::aster.finding;
            ELSIF name = 'aster_guard_write' AND by_row AND guard.tgtype & 1 = 0 THEN
                RETURN NEXT ROW('FAIL', member::text, 'the table has become a partition, a parent or a child, and its '
                    'guard looks at statements that name it only' || again)::aster.finding;
            ELSIF guard.tgtype & 28 <> 28 AND name = 'aster_guard_write' OR guard.tgqual IS NOT NULL
                OR guard.tgfoid NOT IN (SELECT p.oid FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
                    WHERE n.nspname = 'aster' AND p.proname IN ('guard_write', 'guard_truncate')
                       OR expression IS NOT NULL AND p.proname = 'aster_guard_' || target::oid) THEN
                RETURN NEXT ROW('FAIL', member::text, format('trigger %s was altered', name) || again)::aster.finding;
            END IF;
        END LOOP;
    END LOOP;
END
$$;

-- Who could take the triggers off: the owner, whoever may become the owner, and superusers.
CREATE OR REPLACE FUNCTION aster.verify_owner(target regclass) RETURNS SETOF aster.finding LANGUAGE plpgsql AS $$
DECLARE
    who text;
BEGIN
    SELECT string_agg(quote_ident(r.rolname), ', ' ORDER BY r.rolname) INTO who
        FROM pg_roles AS r, pg_class AS c
        WHERE c.oid = target AND r.rolcanlogin AND NOT r.rolsuper AND pg_has_role(r.oid, c.relowner, 'MEMBER');
    IF who IS NOT NULL THEN
        RETURN NEXT ROW('WARN', target::text, format('%s may log in and owns the table or may become its owner, so it can '
            'take the guard off: give it to a role that nobody logs in as', who))::aster.finding;
    END IF;
    IF EXISTS (SELECT FROM pg_subscription_rel AS s WHERE s.srrelid = target) THEN
        RETURN NEXT ROW('FAIL', target::text, 'a subscription writes this table, with no fence: protect the table where '
            'the writes come from')::aster.finding;
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION aster.verify_schema() RETURNS SETOF aster.finding LANGUAGE plpgsql AS $$
DECLARE
    meta aster.meta;
    who text;
    age bigint;
BEGIN
    SELECT * INTO STRICT meta FROM aster.meta;
    IF meta.checksum IS DISTINCT FROM aster.functions_checksum() THEN
        RETURN NEXT ROW('FAIL', 'schema aster', 'a function differs from what was applied: apply the schema again'
            )::aster.finding;
    END IF;
    SELECT string_agg(p.proname, ', ') INTO who FROM pg_proc AS p
        WHERE p.pronamespace = 'aster'::regnamespace AND has_function_privilege('public', p.oid, 'EXECUTE');
    IF who IS NOT NULL THEN
        RETURN NEXT ROW('FAIL', 'schema aster', format('PUBLIC may execute %s: apply the schema again', who)
            )::aster.finding;
    END IF;
    SELECT string_agg(DISTINCT quote_ident(r.rolname), ', ') INTO who
        FROM pg_roles AS r, pg_class AS c
        WHERE c.relnamespace = 'aster'::regnamespace AND c.relkind = 'r' AND c.relname <> 'protected'
          AND NOT r.rolsuper AND r.rolname NOT LIKE 'pg\_%' AND NOT pg_has_role(r.oid, c.relowner, 'MEMBER')
          AND has_table_privilege(r.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE');
    IF who IS NOT NULL THEN
        RETURN NEXT ROW('FAIL', 'schema aster', format('%s may write the tables of Aster: revoke that', who))::aster.finding;
    END IF;
    SELECT string_agg(quote_ident(r.rolname), ', ' ORDER BY r.rolname) INTO who
        FROM pg_roles AS r, pg_namespace AS n
        WHERE n.nspname = 'aster' AND r.rolcanlogin AND NOT r.rolsuper AND pg_has_role(r.oid, n.nspowner, 'MEMBER');
    IF who IS NOT NULL THEN
        RETURN NEXT ROW('WARN', 'schema aster', format('%s may log in and owns the schema or may become its owner', who)
            )::aster.finding;
    END IF;
    SELECT max(mxid_age(c.relminmxid)) INTO age FROM pg_class AS c WHERE c.oid = 'aster.lease'::regclass;
    IF age > 100000000 THEN
        RETURN NEXT ROW('WARN', 'aster.lease', format('%s multixacts old: is autovacuum held up by a long transaction?',
            age))::aster.finding;
    END IF;
    IF current_setting('fsync') = 'off' OR current_setting('full_page_writes') = 'off' THEN
        RETURN NEXT ROW('FAIL', 'server', 'fsync or full_page_writes is off: a power cut can lose acknowledged grants'
            )::aster.finding;
    END IF;
END
$$;

-- All of it; with `target`, that one table must be among what is protected.
CREATE OR REPLACE FUNCTION aster.verify(target regclass DEFAULT NULL) RETURNS SETOF aster.finding
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    entry aster.protected;
    bad aster.finding;
    is_good boolean;
BEGIN
    is_good := true;
    FOR bad IN SELECT * FROM aster.verify_schema() LOOP
        is_good := is_good AND bad.level <> 'FAIL';
        RETURN NEXT bad;
    END LOOP;
    IF is_good THEN
        RETURN NEXT ROW('OK', 'schema aster', format('version %s, as applied', (SELECT m.version FROM aster.meta AS m))
            )::aster.finding;
    END IF;
    IF target IS NOT NULL AND NOT EXISTS (SELECT FROM aster.protected AS p WHERE p.target = verify.target) THEN
        RETURN NEXT ROW('FAIL', target::text, 'is not protected: aster.protect() it')::aster.finding;
    END IF;
    FOR entry IN SELECT * FROM aster.protected AS p WHERE verify.target IS NULL OR p.target = verify.target
                 ORDER BY p.target LOOP
        IF NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = entry.target) THEN
            RETURN NEXT ROW('WARN', entry.target::text, 'was protected and is no longer there')::aster.finding;
            CONTINUE;
        END IF;
        is_good := true;
        FOR bad IN SELECT * FROM aster.verify_triggers(entry.target, entry.expression)
                   UNION ALL SELECT * FROM aster.verify_owner(entry.target) LOOP
            is_good := is_good AND bad.level <> 'FAIL';
            RETURN NEXT bad;
        END LOOP;
        IF is_good THEN
            RETURN NEXT ROW('OK', entry.target::text, 'is protected by the fence of '
                || coalesce(entry.resource, 'the resource ' || entry.expression))::aster.finding;
        END IF;
    END LOOP;
END
$$;

-- A digest of every function of the schema and of what it may do.
CREATE OR REPLACE FUNCTION aster.functions_checksum() RETURNS text LANGUAGE sql STABLE AS $$
    SELECT md5(string_agg(concat_ws('|', p.oid::regprocedure, p.prosrc, p.prosecdef, p.proconfig), E'\n'
                          ORDER BY p.oid::regprocedure::text COLLATE "C"))
    FROM pg_proc AS p WHERE p.pronamespace = 'aster'::regnamespace
$$;

-- Protecting a table of yours. These run with the caller's own rights: only the owner of a table can protect it.

-- Where each row has a resource of its own, no single fence covers TRUNCATE.
CREATE OR REPLACE FUNCTION aster.guard_truncate() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM aster.fault('LF011', format('NO_FENCE: TRUNCATE would go round the fences of the rows of %I.%I',
                                        TG_TABLE_SCHEMA, TG_TABLE_NAME), 'use DELETE, or aster.unprotect() the table first');
END
$$;

-- The table and everything that is written through it: partitions and children.
CREATE OR REPLACE FUNCTION aster.family(target regclass) RETURNS SETOF regclass LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE member(id) AS (
        SELECT target::oid UNION SELECT i.inhrelid FROM pg_inherits AS i JOIN member AS m ON i.inhparent = m.id)
    SELECT id::regclass FROM member
$$;

-- A statement trigger fires for the table that the statement names, so it would miss a write through a parent or into a
-- child: there the check is per row.
CREATE OR REPLACE FUNCTION aster.is_related(target regclass) RETURNS boolean LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM pg_inherits AS i WHERE target IN (i.inhrelid, i.inhparent))
        OR EXISTS (SELECT FROM pg_class AS c WHERE c.oid = target AND c.relkind = 'p')
$$;

-- Take the guard's triggers off a table and its family, and the function that was made for them.
CREATE OR REPLACE FUNCTION aster.guards_drop(target regclass) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT t.tgname, t.tgrelid::regclass AS relation FROM pg_trigger AS t
        WHERE t.tgrelid IN (SELECT aster.family(target)) AND t.tgparentid = 0 AND NOT t.tgisinternal
          AND t.tgname IN ('aster_guard_write', 'aster_guard_truncate')
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', found.tgname, found.relation);
    END LOOP;
    FOR found IN
        SELECT p.oid::regprocedure AS made FROM pg_proc AS p
        JOIN pg_class AS c ON c.relnamespace = p.pronamespace
        WHERE c.oid = target AND p.proname = 'aster_guard_' || target::oid AND p.pronargs = 0
    LOOP
        EXECUTE format('DROP FUNCTION %s', found.made);
    END LOOP;
END
$$;

-- A trigger function in the table's schema that computes the resource of a row with `expression`, an SQL expression over the
-- columns of the table. It runs with the writer's own rights, so an expression gives nobody any.
CREATE OR REPLACE FUNCTION aster.guard_make(target regclass, expression text) RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    own_schema text;
    table_name text;
    made text;
    resource_of text;
BEGIN
    SELECT n.nspname, c.relname INTO STRICT own_schema, table_name
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = target;
    EXECUTE format('SELECT (%s)::text FROM %s WHERE false', expression, target); -- its mistakes show here
    made := format('%I.%I', own_schema, 'aster_guard_' || target::oid);
    resource_of := format('(SELECT (%s)::text FROM (SELECT (%%s).*) AS %I)', expression, table_name);
    EXECUTE format($make$
CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, %I, pg_temp AS %L
$make$, made, own_schema, format($source$
#variable_conflict use_column
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM aster.guard(%s);
    END IF;
    IF TG_OP <> 'DELETE' AND (TG_OP = 'INSERT' OR NEW IS DISTINCT FROM OLD) THEN
        PERFORM aster.guard(%s);
    END IF;
    RETURN NULL;
END
$source$, format(resource_of, 'OLD'), format(resource_of, 'NEW')));
    EXECUTE format('REVOKE ALL ON FUNCTION %s() FROM PUBLIC', made);
    RETURN made;
END
$body$;

-- Let a write of `target` through only in a transaction that declared the current fence: of `resource`, or, with
-- `expression`, of the resource that this SQL expression over the row's columns names, for example
-- 'invoice/' || id. Run it again after a partition or a child was added; aster.verify() says when.
CREATE OR REPLACE FUNCTION aster.protect(target regclass, resource text DEFAULT NULL, expression text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kind "char";
    persistence "char";
    own_schema text;
    member regclass;
    guard_call text;
    level text := 'BEFORE INSERT OR UPDATE OR DELETE ON %s FOR EACH STATEMENT';
BEGIN
    IF (resource IS NULL) = (expression IS NULL) THEN
        PERFORM aster.fault('22023', 'protect() takes a resource or an expression', 'give exactly one of the two');
    END IF;
    SELECT c.relkind, c.relpersistence, n.nspname INTO STRICT kind, persistence, own_schema
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = target;
    IF kind NOT IN ('r', 'p') OR persistence = 't' OR own_schema IN ('aster', 'pg_catalog', 'information_schema') THEN
        PERFORM aster.fault('22023', format('%s cannot be protected', target),
                            'name an ordinary or a partitioned table of yours; for a view, the tables that it reads');
    END IF;
    PERFORM aster.guards_drop(target);
    IF expression IS NULL THEN
        PERFORM aster.name_check(resource, 'resource', 512);
        guard_call := format('aster.guard_write(%L)', resource);
    ELSE
        guard_call := aster.guard_make(target, expression) || '()';
    END IF;
    IF expression IS NOT NULL OR aster.is_related(target) THEN
        level := 'AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW'; -- after: what other triggers made of the row
    END IF;
    FOR member IN SELECT aster.family(target) LOOP
        -- Partitions get a copy of their parent's row trigger by themselves, those that come later too.
        IF NOT EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = member AND t.tgname = 'aster_guard_write') THEN
            EXECUTE format('CREATE TRIGGER aster_guard_write ' || level || ' EXECUTE FUNCTION %s', member, guard_call);
        END IF;
        EXECUTE format('CREATE TRIGGER aster_guard_truncate BEFORE TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION %s',
                       member, CASE WHEN expression IS NULL THEN guard_call ELSE 'aster.guard_truncate()' END);
    END LOOP;
    FOR member IN SELECT aster.family(target) LOOP -- also under session_replication_role = replica
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER aster_guard_write', member);
        EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER aster_guard_truncate', member);
    END LOOP;
    INSERT INTO aster.protected VALUES (target, protect.resource, protect.expression)
        ON CONFLICT ON CONSTRAINT protected_pkey
        DO UPDATE SET resource = excluded.resource, expression = excluded.expression;
END
$$;

CREATE OR REPLACE FUNCTION aster.unprotect(target regclass) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM aster.guards_drop(target);
    DELETE FROM aster.protected AS p WHERE p.target = unprotect.target;
END
$$;

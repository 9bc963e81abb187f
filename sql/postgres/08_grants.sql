-- Who may call what. Nothing is executable by PUBLIC; helpers are executable by nobody but the owner.
--   GRANT aster_worker TO app;         acquire, renew, release, put, forget, look, declare a fence
--   GRANT aster_operator TO admin;     also revoke and expire, read the history, protect tables
REVOKE ALL ON ALL TABLES IN SCHEMA aster FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA aster FROM PUBLIC;
GRANT USAGE ON SCHEMA aster TO aster_worker, aster_operator;

-- revoke() and expire() ask for the role aster_operator themselves, so that an attempt is answered and recorded.
GRANT EXECUTE ON FUNCTION
    aster.acquire(text, interval, text, boolean, uuid, interval), aster.renew(text, bigint, text, uuid),
    aster.release(text, bigint, text, uuid, bytea, bigint), aster.revoke(text, bigint, text, uuid),
    aster.expire(text, bigint, bigint), aster.put(text, bigint, bigint, bytea, text, uuid, text), aster.inspect(text),
    aster.list(text, text, bigint), aster.forget(text), aster.fence(text, bigint, text), aster.fence(text),
    aster.check_fence(text, bigint, text, text), aster.guard(text),
    aster.version()
    TO aster_worker, aster_operator;
GRANT EXECUTE ON FUNCTION aster.history(text, bigint, bigint), aster.verify(regclass), aster.protect(regclass, text, text),
    aster.unprotect(regclass), aster.guards_drop(regclass), aster.guard_make(regclass, text), aster.family(regclass),
    aster.is_related(regclass), aster.guard_write(), aster.guard_truncate(),
    aster.name_check(text, text, int), aster.fault(text, text, text)
    TO aster_operator;
GRANT SELECT, INSERT, UPDATE, DELETE ON aster.protected TO aster_operator;

-- What aster.verify() compares with: the functions as they are at the end of this migration.
UPDATE aster.meta SET version = current_setting('aster.schema_version')::bigint, checksum = aster.functions_checksum();
COMMIT;

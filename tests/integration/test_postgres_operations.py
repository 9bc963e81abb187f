"""The operations of the PostgreSQL schema: every predicate in its order, every counter, repeats, the floor, the takeover
story, the history, who may do what, and the migration itself."""
import os
import subprocess
import sys
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from support.postgres import LEVELS, Error, migrate, refused, run_tests, until  # noqa: E402

MAX = 9223372036854775807
SHORT = "150 ms"  # a ttl that a test waits out


def acquire(session, resource, ttl="30 s", instance="", own=False, request=None, waiting=None):
    return session.one("SELECT * FROM aster.acquire($1, $2, $3, $4, $5, $6)", resource, ttl, instance, own, request, waiting)


def renew(session, resource, epoch, instance="", request=None):
    return session.one("SELECT * FROM aster.renew($1, $2, $3, $4)", resource, epoch, instance, request)


def release(session, resource, epoch, instance="", request=None, value=None, revision=None):
    return session.one("SELECT * FROM aster.release($1, $2, $3, $4, $5, $6)", resource, epoch, instance, request, value,
                       revision)


def revoke(session, resource, epoch=None):
    return session.one("SELECT * FROM aster.revoke($1, $2)", resource, epoch)


def put(session, resource, epoch, revision, value, instance="", request=None, fence_holder=None):
    return session.one("SELECT * FROM aster.put($1, $2, $3, $4, $5, $6, $7)", resource, epoch, revision, value, instance,
                       request, fence_holder)


def inspect(session, resource):
    return session.one("SELECT * FROM aster.inspect($1)", resource)


def forget(session, resource):
    return session.one("SELECT * FROM aster.forget($1)", resource)


def wait_out(session, resource):
    """Until the lease has ended by the server's clock; nobody's else is looked at."""
    until(lambda: inspect(session, resource).remaining == "00:00:00")


def sides(cluster):
    return cluster.session("a"), cluster.session("b"), cluster.session("op")


def test_acquire_is_denied_while_held_also_to_oneself_and_tells_who_holds(cluster):
    a, b, _ = sides(cluster)
    granted = acquire(a, "acquire")
    assert (granted.granted, granted.reason, granted.epoch, granted.takeover) == ("t", "NONE", "1", "f"), granted
    assert (granted.holder, granted.held, granted.ttl) == ("a", "t", "00:00:30")
    for session in (a, b):
        denied = acquire(session, "acquire", "5 s")
        assert (denied.granted, denied.reason, denied.epoch, denied.holder) == ("f", "HELD_BY_OTHER", "1", "a")
        assert "00:00:25" < denied.remaining <= "00:00:30", "the holder's ttl decides, not the candidate's"


def test_a_takeover_tells_the_story_and_the_holders_ttl_decides_when(cluster):
    a, b, op = sides(cluster)
    acquire(a, "takeover", SHORT, "x")
    put(a, "takeover", 1, 0, "\\x6869", "x")
    assert acquire(b, "takeover", "100 ms").reason == "HELD_BY_OTHER"
    wait_out(b, "takeover")
    granted = acquire(b, "takeover")
    assert (granted.granted, granted.epoch, granted.takeover) == ("t", "2", "t"), granted
    assert (granted.last_holder, granted.last_epoch_held) == ("a/x", "1")
    assert (granted.value, granted.value_revision) == ("\\x6869", "1")
    assert [e.kind for e in op.query("SELECT * FROM aster.history('takeover')")] == ["granted", "takeover"]
    assert op.query("SELECT * FROM aster.history('takeover')")[1].previous == "a/x"


def test_take_over_own_gives_a_new_epoch_to_the_same_identity_only(cluster):
    a, b, _ = sides(cluster)
    acquire(a, "own", instance="one")
    assert acquire(a, "own", instance="two", own=True).reason == "HELD_BY_OTHER"
    assert acquire(b, "own", instance="one", own=True).reason == "HELD_BY_OTHER"
    again = acquire(a, "own", instance="one", own=True)
    assert (again.granted, again.epoch, again.takeover, again.last_epoch_held) == ("t", "2", "t", "1")


def test_renew_is_refused_in_the_order_of_the_rules(cluster):
    a, b, _ = sides(cluster)
    assert renew(a, "renew", 0).reason == "NOT_HELD"
    acquire(a, "renew", SHORT)
    assert renew(b, "renew", 2).reason == "EPOCH_MISMATCH"
    assert renew(b, "renew", 1).reason == "NOT_HOLDER"
    assert renew(a, "renew", 1, "other instance").reason == "NOT_HOLDER"
    good = renew(a, "renew", 1)
    assert (good.granted, good.epoch, good.lease_revision, good.carried_epoch) == ("t", "1", "1", "1")
    wait_out(a, "renew")
    late = renew(a, "renew", 1)
    assert (late.reason, late.remaining, late.lease_revision) == ("EXPIRED", "00:00:00", "1")
    assert renew(b, "renew", 1).reason == "NOT_HOLDER", "before expiry is looked at"


def test_renewals_keep_a_lease_alive(cluster):
    a, b, _ = sides(cluster)
    acquire(a, "alive", "400 ms")
    end = time.monotonic() + 1.2
    revision = 0
    while time.monotonic() < end:
        revision += 1
        answer = renew(a, "alive", 1)
        assert (answer.granted, answer.lease_revision) == ("t", str(revision)), answer
        assert acquire(b, "alive").reason == "HELD_BY_OTHER"
        time.sleep(0.05)


def test_release_looks_at_epoch_then_holder_and_not_at_expiry(cluster):
    a, b, op = sides(cluster)
    acquire(a, "release", SHORT)
    assert release(b, "release", 2).reason == "EPOCH_MISMATCH"
    assert release(b, "release", 1).reason == "NOT_HOLDER"
    wait_out(a, "release")
    freed = release(a, "release", 1)
    assert (freed.granted, freed.epoch, freed.held, freed.holder, freed.last_holder) == ("t", "2", "f", "", "a")
    assert release(a, "release", 1).reason == "EPOCH_MISMATCH"
    assert release(a, "release", 2).reason == "NOT_HOLDER"
    assert acquire(b, "release").epoch == "3"


def test_release_with_a_value_stores_it_and_frees_or_neither(cluster):
    a, b, _ = sides(cluster)
    acquire(a, "valued")
    assert release(a, "valued", 1, value="\\x01", revision=1).reason == "REVISION_MISMATCH"
    assert release(a, "valued", 1, value="\\x01").reason == "REVISION_MISMATCH"
    row = inspect(a, "valued")
    assert (row.held, row.epoch, row.value, row.value_revision) == ("t", "1", "\\x", "0")
    freed = release(a, "valued", 1, value="\\x01", revision=0)
    assert (freed.granted, freed.epoch, freed.value, freed.value_revision) == ("t", "2", "\\x01", "1")


def test_revoke_asks_for_the_operator_and_for_the_expected_epoch(cluster):
    a, b, op = sides(cluster)
    acquire(a, "revoke")
    refusal = revoke(b, "revoke")
    assert (refusal.granted, refusal.reason, refusal.epoch, refusal.holder) == ("f", "UNAUTHORIZED", "1", None)
    assert inspect(a, "revoke").epoch == "1"
    assert revoke(op, "revoke", 7).reason == "EPOCH_MISMATCH"
    done = revoke(op, "revoke", 1)
    assert (done.granted, done.epoch, done.held, done.last_holder) == ("t", "2", "f", "a")
    assert renew(a, "revoke", 1).reason == "NOT_HELD"
    assert revoke(op, "revoke").epoch == "3", "a free row moves on too"
    assert revoke(op, "never seen").epoch == "1"
    kinds = [(e.kind, e.actor, e.previous) for e in op.query("SELECT * FROM aster.history('revoke')")]
    assert kinds == [("granted", "a", ""), ("unauthorized", "b", ""), ("revoked", "op", "a"), ("revoked", "op", "")], kinds


def test_expire_ends_exactly_the_lease_that_was_judged(cluster):
    a, b, op = sides(cluster)
    expire = lambda who, epoch, revision: who.one("SELECT * FROM aster.expire('expire', $1, $2)", epoch, revision)
    assert expire(op, 0, 0).reason == "NOT_HELD"
    acquire(a, "expire", request=str(uuid.uuid4()))
    renew(a, "expire", 1)
    assert expire(a, 1, 1).reason == "UNAUTHORIZED"
    assert expire(op, 1, 0).reason == "EPOCH_MISMATCH", "it was renewed after the judgement"
    assert expire(op, 2, 1).reason == "EPOCH_MISMATCH"
    done = expire(op, 1, 1)
    assert (done.granted, done.epoch, done.held, done.last_holder, done.last_epoch_held) == ("t", "2", "f", "a", "1")
    event = op.query("SELECT * FROM aster.history('expire')")[-1]
    assert (event.kind, event.actor, event.previous, event.epoch) == ("expired", "", "a", "2")


def test_put_is_held_to_the_fence_rule_in_its_order(cluster):
    a, b, op = sides(cluster)
    assert put(a, "put", 0, 0, "x").reason == "NOT_HELD"
    assert put(a, "put", 1, 0, "x").reason == "FUTURE_EPOCH"
    acquire(a, "put")
    assert put(b, "put", 0, 9, "x").reason == "STALE_EPOCH"
    assert put(b, "put", 2, 9, "x").reason == "FUTURE_EPOCH"
    assert put(b, "put", 1, 9, "x").reason == "NOT_HOLDER"
    assert put(a, "put", 1, 0, "x", fence_holder="another").reason == "NOT_HOLDER"
    assert put(a, "put", 1, 9, "x").reason == "REVISION_MISMATCH"
    assert put(a, "put", 1, None, "x").reason == "REVISION_MISMATCH"
    before = inspect(a, "put").lease_revision
    good = put(a, "put", 1, 0, "x")
    assert (good.granted, good.value, good.value_revision, good.lease_revision) == ("t", "\\x78", "1", before)
    rejected = [(e.reason, e.epoch, e.carried_epoch) for e in op.query("SELECT * FROM aster.history('put')")
                if e.kind == "fence-rejected"]
    assert rejected == [("NOT_HELD", "0", "0"), ("FUTURE_EPOCH", "0", "1"), ("STALE_EPOCH", "1", "0"),
                        ("FUTURE_EPOCH", "1", "2"), ("NOT_HOLDER", "1", "1"), ("NOT_HOLDER", "1", "1")], rejected


def test_a_repeated_request_gets_the_same_decision_and_has_no_second_effect(cluster):
    a, b, op = sides(cluster)
    ids = {k: str(uuid.uuid4()) for k in ("acquire", "renew", "put", "release", "revoke")}
    first = acquire(a, "repeat", request=ids["acquire"])
    again = acquire(a, "repeat", request=ids["acquire"])
    assert (again.granted, again.replayed, again.epoch) == ("t", "t", first.epoch)
    assert acquire(b, "repeat", request=ids["acquire"]).reason == "HELD_BY_OTHER", "the id is the caller's own"
    renew(a, "repeat", 1, request=ids["renew"])
    assert (renew(a, "repeat", 1, request=ids["renew"]).replayed, inspect(a, "repeat").lease_revision) == ("t", "1")
    put(a, "repeat", 1, 0, "x", request=ids["put"])
    assert (put(a, "repeat", 1, 0, "x", request=ids["put"]).replayed, inspect(a, "repeat").value_revision) == ("t", "1")
    release(a, "repeat", 1, request=ids["release"])
    back = release(a, "repeat", 1, request=ids["release"])
    assert (back.granted, back.replayed, back.epoch, back.carried_epoch) == ("t", "t", "2", "1")
    refused("22023", a, "SELECT * FROM aster.acquire('repeat', '1 s', '', false, $1)", ids["release"])
    revoked = op.one("SELECT * FROM aster.revoke('repeat', NULL, '', $1)", ids["revoke"])
    assert op.one("SELECT * FROM aster.revoke('repeat', NULL, '', $1)", ids["revoke"]).epoch == revoked.epoch == "3"
    kinds = [e.kind for e in op.query("SELECT * FROM aster.history('repeat')")]
    assert kinds == ["granted", "released", "revoked"], kinds


def test_a_release_that_is_retried_late_cannot_end_a_newer_lease(cluster):
    a, _, _ = sides(cluster)
    request = str(uuid.uuid4())
    acquire(a, "late")
    release(a, "late", 1, request=request)
    assert acquire(a, "late").epoch == "3"
    assert release(a, "late", 1, request=request).reason == "EPOCH_MISMATCH"
    assert inspect(a, "late").held == "t"


def test_counters_at_their_end_change_nothing(cluster):
    a, b, op = sides(cluster)
    admin = cluster.session()
    acquire(a, "end")
    admin.query("UPDATE aster.lease SET epoch = $1 WHERE resource = 'end'", MAX - 1)
    assert release(a, "end", MAX - 1).epoch == str(MAX), "the last one"
    refused("LF101", a, "SELECT * FROM aster.acquire('end', '1 s')")
    refused("LF101", op, "SELECT * FROM aster.revoke('end')")
    admin.query("UPDATE aster.lease SET held = true, holder = 'a', expires_at = now() + '1 day' WHERE resource = 'end'")
    refused("LF101", a, "SELECT * FROM aster.release('end', $1)", MAX)
    row = inspect(a, "end")
    assert (row.epoch, row.held) == (str(MAX), "t")
    for column, call in (("lease_revision", "aster.renew('end', $1)"), ("value_revision", f"aster.put('end', $1, {MAX}, 'x')")):
        admin.query(f"UPDATE aster.lease SET {column} = $1 WHERE resource = 'end'", MAX)
        assert "COUNTER_EXHAUSTED: " + column in refused("LF101", a, f"SELECT * FROM {call}", MAX).message


def test_names_are_compared_byte_by_byte_and_odd_ones_are_refused(cluster):
    a, _, _ = sides(cluster)
    names = ["a/b", "a_b", "a%2Fb", "A/B", "caf\u00e9", "cafe\u0301", "a/b ", "x" * 512]
    assert all(acquire(a, name).granted == "t" for name in names)
    listed = [row.resource for row in a.query("SELECT resource FROM aster.list('a')")]
    assert listed == sorted(listed, key=lambda n: n.encode()) and {"a/b", "a/b ", "a_b", "a%2Fb"} <= set(listed)
    for odd in ("", "x" * 513, "tab\t", "\u0085", "\u007f", None):
        refused("22023", a, "SELECT * FROM aster.acquire($1, '1 s')", odd)
    refused("22023", a, "SELECT * FROM aster.acquire('r', '1 s', $1)", "x" * 257)
    refused("22023", a, "SELECT * FROM aster.acquire('r', '1 s', $1)", "line\nfeed")
    assert acquire(a, "long instance", instance="x" * 256).holder == "a/" + "x" * 256


def test_a_role_cannot_pass_for_an_instance_of_another(cluster):
    admin = cluster.session()
    admin.query('CREATE ROLE "a/x" LOGIN; GRANT aster_worker TO "a/x"')
    refused("22023", cluster.session("a/x"), "SELECT * FROM aster.acquire('slash', '1 s')")


def test_limits_are_errors_that_name_limit_and_value(cluster):
    a, _, _ = sides(cluster)
    admin = cluster.session()
    for bad in ("0 s", "99 ms", "24 hours 1 s", "-1 s", "1000 years", None):
        error = refused("22023", a, "SELECT * FROM aster.acquire('ttl', $1)", bad)
        assert "ttl_min 100 ms to ttl_max 86400000 ms" in error.message, error.message
    acquire(a, "value")
    big = refused("22023", a, "SELECT * FROM aster.put('value', 1, 0, repeat('x', 65537)::bytea)")
    assert "65537 bytes long, value_max_bytes is 65536" in big.message
    assert put(a, "value", 1, 0, "x" * 65536).granted == "t"
    rows = admin.value("SELECT count(*) FROM aster.lease")
    admin.query("UPDATE aster.meta SET resources_max = $1", rows)
    try:
        assert f"resources_max is {rows}" in refused("54000", a, "SELECT * FROM aster.acquire('one more', '1 s')").message
        assert acquire(a, "value").reason == "HELD_BY_OTHER", "rows that are there go on"
    finally:
        admin.query("UPDATE aster.meta SET resources_max = NULL")


def test_the_history_is_bounded_and_can_be_read_on(cluster):
    a, _, op = sides(cluster)
    admin = cluster.session()
    admin.query("UPDATE aster.meta SET history_max = 100")
    for _ in range(160):
        epoch = acquire(a, "history").epoch
        release(a, "history", epoch)
    kept = op.query("SELECT * FROM aster.history()")
    assert len(kept) < 100 + 256, len(kept)
    revisions = [int(e.revision) for e in kept]
    assert revisions == sorted(set(revisions))
    newest = op.query("SELECT * FROM aster.history(newest => 3)")
    assert [e.revision for e in newest] == [e.revision for e in kept[-3:]]
    after = op.query("SELECT * FROM aster.history('history', $1)", revisions[-3])
    assert [int(e.revision) for e in after] == revisions[-2:]
    admin.query("UPDATE aster.meta SET history_max = 10000")


def test_who_waits_is_told_when_the_row_is_freed_and_nobody_else_is(cluster):
    a, b, _ = sides(cluster)
    b.query("LISTEN aster_freed")
    acquire(a, "awaited")
    release(a, "awaited", 1)
    acquire(a, "awaited")
    assert acquire(b, "awaited", waiting="10 s").reason == "HELD_BY_OTHER"
    assert b.notifications() == [], "nobody waited when it was freed first"
    release(a, "awaited", 3)
    until(lambda: b.query("SELECT 1") and b.notifications() == ["awaited"])
    assert acquire(b, "awaited", waiting="10 s").epoch == "5"


def test_nothing_is_executable_by_public_and_helpers_by_nobody(cluster):
    admin, stranger, a, op = (cluster.session(who) for who in ("postgres", "stranger", "a", "op"))
    refused("42501", stranger, "SELECT * FROM aster.acquire('r', '1 s')")
    refused("42501", stranger, "SELECT * FROM aster.inspect('r')")
    for table in ("meta", "lease", "audit", "protected", "boot", "waiter"):
        refused("42501", a, f"SELECT 1 FROM aster.{table}")
        refused("42501", a, f"DELETE FROM aster.{table}")
    refused("42501", a, "SELECT * FROM aster.history()")
    refused("42501", a, "SELECT aster.protect('aster.lease', 'x')")
    public = admin.query("SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'aster'::regnamespace "
                         "AND has_function_privilege('public', p.oid, 'EXECUTE')")
    assert public == []
    helpers = {r.proname for r in admin.query(
        "SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'aster'::regnamespace "
        "AND has_function_privilege('aster_worker', p.oid, 'EXECUTE')")}
    assert helpers == {"acquire", "renew", "release", "revoke", "expire", "put", "inspect", "list", "forget", "fence",
                       "check_fence", "guard", "version"}, helpers
    loose = admin.query("SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'aster'::regnamespace AND p.prosecdef "
                        "AND NOT coalesce(p.proconfig, '{}') @> '{\"search_path=pg_catalog, pg_temp\"}'")
    assert loose == [], loose


def test_a_hostile_search_path_changes_nothing(cluster):
    """A caller's own functions and operators of the same name are not called with the rights of the schema's owner."""
    admin, a = cluster.session(), cluster.session("a")
    admin.query("CREATE SCHEMA evil; GRANT ALL ON SCHEMA evil TO a")
    a.query("CREATE FUNCTION evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'infinity'::timestamptz $$;"
            "CREATE FUNCTION evil.pg_has_role(name, text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;"
            "CREATE FUNCTION evil.pg_has_role(name, name, text) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;"
            "SET search_path = evil, pg_catalog")
    acquire(cluster.session("b"), "path")
    assert acquire(a, "path").reason == "HELD_BY_OTHER"
    assert revoke(a, "path").reason == "UNAUTHORIZED"


CONTEND = """
CREATE TABLE given (resource text, epoch bigint, at bigint GENERATED ALWAYS AS IDENTITY);
GRANT INSERT ON given TO a, b;
CREATE PROCEDURE contend(number int, grants int) LANGUAGE plpgsql AS $$
DECLARE
    answer aster.decision;
    name text;
    done int := 0;
BEGIN
    WHILE done < grants LOOP
        name := 'contended ' || (done + number) % 3;
        answer := aster.acquire(name, '30 s', number::text);
        IF answer.granted THEN
            INSERT INTO given VALUES (name, answer.epoch);
            COMMIT;
            answer := aster.release(name, answer.epoch, number::text);
            done := done + 1;
        END IF;
        COMMIT;
    END LOOP;
END
$$"""


def test_8_contenders_with_1000_grants_are_unique_and_gapless(cluster):
    """Each grants and releases the same three resources: the epochs that were given are all different, and none missing."""
    admin = cluster.session()
    admin.query("ALTER SYSTEM SET fsync = off")  # the order is looked at here, not the disk
    admin.query("SELECT pg_reload_conf()")
    admin.query(CONTEND)
    contenders = [cluster.session("a" if number % 2 else "b") for number in range(8)]
    running = [session.in_background(f"CALL contend({number}, 1000)") for number, session in enumerate(contenders)]
    for each in running:
        each.result(120)
    assert admin.value("SELECT count(*) FROM given") == "8000"
    odd = admin.query("SELECT resource FROM given GROUP BY resource HAVING count(DISTINCT epoch) <> count(*) "
                      "OR max(epoch) <> 2 * count(*) - 1 OR min(epoch) <> 1")
    assert odd == [], odd
    late = admin.query("SELECT 1 FROM (SELECT epoch - lag(epoch) OVER (PARTITION BY resource ORDER BY at) AS step FROM given) s "
                       "WHERE step <> 2")
    assert late == [], "given in another order than that of the epochs"
    admin.query("ALTER SYSTEM RESET fsync")
    admin.query("SELECT pg_reload_conf()")


def test_the_migration_can_be_run_again_and_refuses_a_newer_schema(cluster):
    admin, a = cluster.session(), cluster.session("a")
    acquire(a, "kept over the migration")
    migrate(admin)
    assert inspect(a, "kept over the migration").held == "t"
    levels = {f.level for f in admin.query("SELECT * FROM aster.verify()")}
    assert "FAIL" not in levels, levels
    admin.query("UPDATE aster.meta SET version = 999")
    try:
        migrate(admin)
        raise AssertionError("a newer schema was overwritten")
    except Error as error:
        assert error.state == "LF102" and "999" in error.message, error
    admin.query("ROLLBACK; UPDATE aster.meta SET version = 1")
    assert inspect(a, "kept over the migration").held == "t"


# What forgets comes late: it raises the floor, and with it the epochs at which new resources start.
def test_epochs_go_on_after_forget_and_forget_needs_a_free_row(cluster):
    a, b, op = sides(cluster)
    acquire(a, "forget")
    assert forget(b, "forget").reason == "HELD_BY_OTHER"
    release(a, "forget", 1)
    gone = forget(b, "forget")
    assert (gone.granted, gone.epoch) == ("t", "2")
    assert forget(b, "forget").granted == "t", "again, without effect"
    assert inspect(a, "forget").epoch == inspect(a, "another that never was").epoch
    assert int(acquire(a, "forget").epoch) >= 3
    assert int(acquire(a, "a new one").epoch) >= 3, "the floor is the whole store's"
    assert a.one("SELECT * FROM aster.check_fence('forget', 1)").reason == "STALE_EPOCH"
    assert [e.kind for e in op.query("SELECT * FROM aster.history('forget')")][:3] == ["granted", "released", "forgotten"]


def test_no_isolation_level_lets_a_forgotten_epoch_come_back(cluster):
    """A transaction whose snapshot is older than the whole life of a resource must not start it at the old floor."""
    a, b, _ = sides(cluster)
    for level in LEVELS:
        name = "old snapshot " + level
        b.begin(level)
        b.query("SELECT 1 FROM aster.inspect($1)", name)
        last = int(acquire(a, name).epoch)
        release(a, name, last)
        forget(a, name)
        try:
            answer = acquire(b, name)
            assert int(answer.epoch) > last, (level, answer)
            assert level == "READ COMMITTED", "the old snapshot cannot know the floor"
        except Error as error:
            assert error.state == "40001" and level != "READ COMMITTED", (level, error)
        b.query("ROLLBACK")


def test_a_database_that_is_not_utf8_is_refused(cluster):
    cluster.session().query("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    latin = cluster.session(database="latin")
    try:
        migrate(latin)
        raise AssertionError("names could be mangled")
    except Error as error:
        assert error.state == "LF102" and "LATIN1" in error.message


def test_psql_runs_it_as_the_documentation_says(cluster):
    script = "SELECT epoch FROM aster.acquire('catalog/current', interval '30 s')"
    done = subprocess.run([os.path.join(cluster.bin, "psql"), "-AtX", cluster.info("a"), "-c", script], check=True,
                          stdout=subprocess.PIPE, text=True)
    assert int(done.stdout) > 0


if __name__ == "__main__":
    run_tests(globals())

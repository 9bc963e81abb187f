"""The guard of a protected table in PostgreSQL: what passes, what is refused and with which SQLSTATE, that no stale
transaction commits at any isolation level, and that nothing goes round it without aster.verify() saying so."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from support.postgres import LEVELS, STALE, Error, is_waiting, refused, run_tests, until  # noqa: E402


def acquire(session, resource, ttl="30 s", instance=""):
    row = session.one("SELECT granted, epoch FROM aster.acquire($1, $2, $3)", resource, ttl, instance)
    assert row.granted == "t", row
    return int(row.epoch)


def wait_out(session, resource):
    until(lambda: session.value("SELECT remaining FROM aster.inspect($1)", resource) == "00:00:00")


def fence(session, resource, epoch, instance=""):
    session.query("SELECT aster.fence($1, $2, $3)", resource, epoch, instance)


def make_table(cluster, name, body="id int PRIMARY KEY, note text", protect=True):
    """A table of the superuser's that workers may write, protected by the resource of its own name."""
    admin = cluster.session()
    admin.query(f"SET client_min_messages = warning; DROP TABLE IF EXISTS {name} CASCADE")
    admin.query(f"CREATE TABLE {name} ({body}); INSERT INTO {name} (id, note) VALUES (1, 'first')")
    admin.query(f"GRANT ALL ON {name} TO a, b, op")
    if protect:
        admin.query(f"SELECT aster.protect('{name}', '{name}')")
    return admin


def write(session, name, note):
    session.query(f"UPDATE {name} SET note = '{note}' WHERE id = 1")


def note(cluster, name):
    session = cluster.session(keep=False)
    value = session.value(f"SELECT note FROM {name} WHERE id = 1")
    session.close()
    return value


def at_each_level(cluster, resource):
    """Fresh sessions and a fresh table for each isolation level."""
    for number, level in enumerate(LEVELS):
        name = f"{resource}_{number}"
        make_table(cluster, name)
        yield name, level, cluster.session("a"), cluster.session("b")


def test_each_rejection_has_its_sqlstate_and_says_both_epochs(cluster):
    make_table(cluster, "states")
    a, b, op = cluster.session("a"), cluster.session("b"), cluster.session("op")
    update = "UPDATE states SET note = 'x' WHERE id = 1"
    epoch = acquire(a, "states")
    other = acquire(a, "states other")

    def attempt(session, state, reason, carried, current, resource="states", how="SELECT aster.fence($1, $2, '')"):
        session.query("BEGIN")
        error = refused(state, session, how, resource, carried)
        session.query("ROLLBACK")
        assert f"aster: {reason}: resource '{resource}' carried epoch {carried}, current epoch {current}" == error.message
        assert json.loads(error.detail) == {"reason": reason, "resource": resource, "carried_epoch": carried,
                                            "current_epoch": current}

    attempt(a, "LF008", "STALE_EPOCH", epoch - 1, epoch)
    attempt(a, "LF009", "FUTURE_EPOCH", epoch + 1, epoch)
    attempt(b, "LF003", "NOT_HOLDER", epoch, epoch)
    op.query("SELECT aster.revoke('states')")
    attempt(a, "LF005", "NOT_HELD", epoch + 1, epoch + 1)
    assert "no fence, current epoch 2" in refused("LF011", a, update).message
    a.query("BEGIN")
    fence(a, "states other", other)
    assert "WRONG_RESOURCE" in refused("LF010", a, update).message
    a.query("ROLLBACK")
    epoch = acquire(a, "states", "100 ms")
    wait_out(a, "states")
    attempt(a, "LF004", "EXPIRED", epoch, epoch)
    a.query("BEGIN")
    refused("22023", a, "SELECT aster.fence('states', -1)")
    a.query("ROLLBACK")
    assert note(cluster, "states") == "first"


def test_the_current_holder_writes_and_nobody_else_does(cluster):
    for name, level, a, b in at_each_level(cluster, "writes"):
        epoch = acquire(a, name, instance="w1")
        a.begin(level)
        fence(a, name, epoch, "w1")
        write(a, name, level)
        a.query("COMMIT")
        assert note(cluster, name) == level
        b.begin(level)
        refused("LF003", b, "SELECT aster.fence($1, $2, $3)", name, epoch, "w1")
        b.query("ROLLBACK")
        a.begin(level)
        refused("LF011", a, f"UPDATE {name} SET note = 'unfenced'")
        a.query("ROLLBACK")


def test_a_stale_writer_is_refused_after_a_takeover(cluster):
    for name, level, a, b in at_each_level(cluster, "stale"):
        old = acquire(a, name, "100 ms")
        wait_out(a, name)
        new = acquire(b, name)
        a.begin(level)
        refused("LF008", a, "SELECT aster.fence($1, $2)", name, old)
        a.query("ROLLBACK")
        b.begin(level)
        fence(b, name, new)
        write(b, name, "new holder")
        b.query("COMMIT")
        assert note(cluster, name) == "new holder"


def test_a_takeover_between_snapshot_and_write_stops_the_old_transaction(cluster):
    """The snapshot is older than the takeover, and older than a renewal before it: a plain SELECT would still show the old
    epoch. Row locks look past the snapshot."""
    for name, level, a, b in at_each_level(cluster, "snapshot"):
        for renewals in (0, 2):
            old = acquire(a, name, "100 ms")
            a.begin(level)
            a.query("SELECT 1")  # the snapshot of the stricter levels
            other = cluster.session("a")
            for _ in range(renewals):
                other.query("SELECT aster.renew($1, $2)", name, old)
            other.close()
            wait_out(b, name)
            new = acquire(b, name, "100 ms")
            refused(STALE, a, "SELECT aster.fence($1, $2)", name, old)
            a.query("ROLLBACK")
            assert note(cluster, name) == "first"
            b.query("SELECT aster.release($1, $2)", name, new)


def test_forging_the_setting_gains_nothing(cluster):
    for name, level, a, b in at_each_level(cluster, "forged"):
        old = acquire(a, name, "100 ms")
        wait_out(a, name)
        a.begin(level)
        a.query("SELECT 1")
        new = acquire(b, name)
        for epoch, states in ((old, STALE), (new, ("LF003", "LF009", "40001")), (new + 1, ("LF009", "40001"))):
            a.query("SAVEPOINT s")
            a.query("SELECT set_config('aster.fences', E'\\x1e' || $1 || E'\\x1f' || $2 || E'\\x1f', true)", name, epoch)
            refused(states, a, f"UPDATE {name} SET note = 'forged'")
            a.query("ROLLBACK TO s")
        a.query("ROLLBACK")
        assert note(cluster, name) == "first"


def test_control_a_plain_select_check_passes_a_stale_epoch(cluster):
    """The trap itself, so that the tests above are known to show something."""
    make_table(cluster, "plain", protect=False)
    a, b = cluster.session("a"), cluster.session("b")
    admin = cluster.session()
    for level, fooled in zip(LEVELS, (False, True, True)):
        old = acquire(a, "plain", "100 ms")
        a.begin(level)
        admin_view = "SELECT epoch FROM aster.inspect('plain')"
        a.query(admin_view)
        wait_out(b, "plain")
        new = acquire(b, "plain", "100 ms")
        seen = int(a.value(admin_view))
        assert (seen == old) == fooled, (level, seen, old, new)
        if fooled:
            write(a, "plain", "stale " + level)
            a.query("COMMIT")
            assert admin.value("SELECT note FROM plain") == "stale " + level
        else:
            a.query("ROLLBACK")
        b.query("SELECT aster.release('plain', $1)", new)


def test_a_takeover_waits_for_the_old_holders_open_transaction_and_a_renewal_does_not(cluster):
    for name, level, a, b in at_each_level(cluster, "waits"):
        observer, renewer = cluster.session(), cluster.session("a")
        epoch = acquire(a, name, "300 ms")
        a.begin(level)
        fence(a, name, epoch)
        write(a, name, "in time")
        assert renewer.one("SELECT * FROM aster.renew($1, $2)", name, epoch).granted == "t"
        wait_out(b, name)
        taking = b.in_background("SELECT * FROM aster.acquire($1, '30 s')", name)
        until(lambda: is_waiting(observer, b))
        a.query("COMMIT")
        taken = taking.result()[0]
        assert (taken.granted, int(taken.epoch)) == ("t", epoch + 1)
        assert taken.remaining == "00:00:30", "the clock was read after the wait"
        assert note(cluster, name) == "in time", "ordered before the takeover"
        a.begin(level)
        refused(STALE, a, "SELECT aster.fence($1, $2)", name, epoch)
        a.query("ROLLBACK")


def test_release_and_revoke_wait_for_open_writes_of_the_same_epoch(cluster):
    for name, level, a, b in at_each_level(cluster, "revoked"):
        observer, op = cluster.session(), cluster.session("op")
        epoch = acquire(a, name)
        a.begin(level)
        fence(a, name, epoch)
        write(a, name, "before the revoke")
        revoking = op.in_background("SELECT * FROM aster.revoke($1)", name)
        until(lambda: is_waiting(observer, op))
        a.query("COMMIT")
        assert revoking.result()[0].granted == "t"
        a.begin(level)
        refused(STALE, a, "SELECT aster.fence($1, $2)", name, epoch)
        a.query("ROLLBACK")
        assert note(cluster, name) == "before the revoke"


def test_a_guard_meets_a_takeover_that_is_under_way(cluster):
    """The writer comes while the takeover is decided and not committed: it waits, and is refused."""
    for name, level, a, b in at_each_level(cluster, "meets"):
        observer = cluster.session()
        old = acquire(a, name, "100 ms")
        wait_out(b, name)
        a.begin(level)
        a.query("SELECT 1")
        b.query("BEGIN")
        acquire(b, name)
        writing = a.in_background("SELECT aster.fence($1, $2)", name, old)
        until(lambda: is_waiting(observer, a))
        b.query("COMMIT")
        try:
            writing.result()
            raise AssertionError("a stale fence passed at " + level)
        except Error as error:
            assert error.state in STALE + ("LF004",), error
        a.query("ROLLBACK")


def test_writing_and_releasing_in_one_transaction_works_also_while_somebody_waits(cluster):
    for name, level, a, b in at_each_level(cluster, "both"):
        observer = cluster.session()
        epoch = acquire(a, name, "200 ms")
        a.begin(level)
        fence(a, name, epoch)
        write(a, name, "last words")
        wait_out(b, name)
        taking = b.in_background("SELECT * FROM aster.acquire($1, '30 s')", name)
        until(lambda: is_waiting(observer, b))
        a.query("SELECT aster.release($1, $2)", name, epoch)
        a.query("COMMIT")
        assert int(taking.result()[0].epoch) == epoch + 2
        assert note(cluster, name) == "last words"


def test_an_expired_holder_cannot_starve_the_takeover(cluster):
    """Transactions of an expired holder that overlap for ever would keep FOR UPDATE waiting for ever."""
    for name, level, a, b in at_each_level(cluster, "starved"):
        epoch = acquire(a, name, "150 ms")
        writers = [cluster.session("a") for _ in range(2)]
        writers[0].begin(level)
        fence(writers[0], name, epoch)
        wait_out(a, name)
        taking = b.in_background("SELECT * FROM aster.acquire($1, '30 s')", name)
        for turn in range(1, 6):  # the next one begins before the last one has ended
            now, last = writers[turn % 2], writers[(turn - 1) % 2]
            now.begin(level)
            refused(STALE + ("LF004",), now, "SELECT aster.fence($1, $2)", name, epoch)
            last.query("ROLLBACK")
        writers[1].query("ROLLBACK")
        assert int(taking.result()[0].epoch) == epoch + 1


def test_an_open_transaction_cannot_write_on_past_its_lease(cluster):
    for name, level, a, b in at_each_level(cluster, "past"):
        epoch = acquire(a, name, "200 ms")
        a.begin(level)
        fence(a, name, epoch)
        write(a, name, "early")
        wait_out(b, name)
        refused("LF004", a, f"UPDATE {name} SET note = 'late'")
        a.query("ROLLBACK")
        assert note(cluster, name) == "first"


def test_an_idle_holder_is_ended_by_the_timeout_that_fence_sets(cluster):
    admin = cluster.session()
    admin.query("UPDATE aster.meta SET idle_limit = '300 ms'")
    for name, level, a, b in at_each_level(cluster, "idle"):
        epoch = acquire(a, name, "100 ms")
        a.begin(level)
        fence(a, name, epoch)
        write(a, name, "never committed")
        wait_out(b, name)
        started = time.monotonic()
        assert acquire(b, name) == epoch + 1  # waits until the server has ended the idle session
        assert time.monotonic() - started < 10
        refused(("25P03", "57P05", "08006"), a, "COMMIT")
        assert note(cluster, name) == "first"
        b.query("SET idle_in_transaction_session_timeout = '100 ms'; BEGIN")
        fence(b, name, epoch + 1)
        assert b.value("SHOW idle_in_transaction_session_timeout") == "100ms", "a stricter one of the session's stays"
        b.query("COMMIT; RESET idle_in_transaction_session_timeout")
        assert b.value("SHOW idle_in_transaction_session_timeout") == "0", "only the transaction was bound"
    admin.query("UPDATE aster.meta SET idle_limit = '10 s'")


def test_a_declaration_ends_with_its_transaction(cluster):
    """A setting that has ended reads '' in its session, and NULL in one that never had it."""
    for name, level, a, b in at_each_level(cluster, "ended"):
        epoch = acquire(a, name)
        for ending in ("COMMIT", "ROLLBACK"):
            a.begin(level)
            fence(a, name, epoch)
            a.query(ending)
            assert a.value("SELECT current_setting('aster.fences', true)") == ""
            a.begin(level)
            refused("LF011", a, f"UPDATE {name} SET note = 'x'")
            a.query("ROLLBACK")
        assert b.value("SELECT current_setting('aster.fences', true)") is None
        refused("LF011", b, f"UPDATE {name} SET note = 'x'")
        a.begin(level)
        a.query("SAVEPOINT s")
        fence(a, name, epoch)
        a.query("ROLLBACK TO s")
        refused("LF011", a, f"UPDATE {name} SET note = 'x'")
        a.query("ROLLBACK")


def test_one_transaction_can_declare_several_fences(cluster):
    admin = make_table(cluster, "orders")
    make_table(cluster, "invoices")
    a = cluster.session("a")
    orders, invoices = acquire(a, "orders", instance="x"), acquire(a, "invoices")
    a.query("BEGIN")
    fence(a, "orders", orders, "x")
    fence(a, "invoices", invoices)
    fence(a, "orders", orders, "x")
    a.query("UPDATE orders SET note = 'a'; UPDATE invoices SET note = 'b'")
    a.query("COMMIT")
    assert admin.value("SELECT note FROM orders") == "a" and admin.value("SELECT note FROM invoices") == "b"


def test_the_fence_text_of_aster_run_is_taken_as_it_is(cluster):
    make_table(cluster, "textual")
    admin, a = cluster.session(), cluster.session("a")
    admin.query("SELECT aster.protect('textual', 'caf\u00e9:50% off')")
    epoch = acquire(a, "caf\u00e9:50% off", instance="w 1")
    a.query("BEGIN")
    a.query("SELECT aster.fence($1)", f"aster1:{epoch}:w%201:caf%C3%A9%3A50%25%20off")
    write(a, "textual", "by text")
    a.query("COMMIT")
    for bad in ("", "aster1:1:w1", "aster1:x:w1:r", "aster1:1:w 1:r", "aster2:1:w:r", "aster1:1:w:r:s"):
        a.query("BEGIN")
        refused("22023", a, "SELECT aster.fence($1)", bad)
        a.query("ROLLBACK")


def test_check_fence_answers_and_leaves_a_record(cluster):
    make_table(cluster, "checked")
    a, b, op = cluster.session("a"), cluster.session("b"), cluster.session("op")
    epoch = acquire(a, "checked")
    b.query("BEGIN")
    verdict = b.one("SELECT * FROM aster.check_fence('checked', $1)", epoch)
    assert (verdict.reason, verdict.carried_epoch, verdict.current_epoch) == ("NOT_HOLDER", str(epoch), str(epoch))
    b.query("COMMIT")
    event = op.query("SELECT * FROM aster.history('checked')")[-1]
    assert (event.kind, event.reason, event.actor, event.carried_epoch) == ("fence-rejected", "NOT_HOLDER", "b", str(epoch))
    a.query("BEGIN")
    assert a.one("SELECT * FROM aster.check_fence('checked', $1)", epoch).reason == "NONE"
    write(a, "checked", "declared by the check")
    a.query("COMMIT")
    assert note(cluster, "checked") == "declared by the check"


def test_no_kind_of_statement_goes_round_the_guard(cluster):
    for name, level, a, b in at_each_level(cluster, "kinds"):
        statements = [f"INSERT INTO {name} VALUES (2, 'x')", f"UPDATE {name} SET note = 'x'", f"DELETE FROM {name}",
                      f"TRUNCATE {name}", f"INSERT INTO {name} VALUES (1, 'x') ON CONFLICT DO NOTHING",
                      f"INSERT INTO {name} VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET note = 'x'",
                      f"WITH w AS (UPDATE {name} SET note = 'x' RETURNING 1) SELECT * FROM w",
                      f"WITH w AS (DELETE FROM {name} RETURNING 1) SELECT 1", f"COPY {name} FROM STDIN",
                      f"DO $$ BEGIN UPDATE {name} SET note = 'x'; END $$",
                      f"PREPARE p AS UPDATE {name} SET note = 'x'; EXECUTE p"]
        if int(a.value("SHOW server_version_num")) >= 150000:
            statements.append(f"MERGE INTO {name} t USING (VALUES (1)) v(i) ON t.id = v.i WHEN MATCHED THEN DELETE")
        for statement in statements:
            a.begin(level)
            try:
                if statement.startswith("COPY"):
                    a.copy_in(statement, "3\tx\n")
                else:
                    a.query(statement)
                raise AssertionError(f"{statement} passed at {level}")
            except Error as error:
                assert error.state == "LF011", (statement, error)
            a.query("ROLLBACK; DEALLOCATE ALL")
        assert note(cluster, name) == "first"


def test_replica_mode_does_not_turn_the_guard_off(cluster):
    for name, level, a, b in at_each_level(cluster, "replica"):
        admin = cluster.session()
        admin.query("SET session_replication_role = replica")
        admin.begin(level)
        refused("LF011", admin, f"UPDATE {name} SET note = 'x'")
        admin.query("ROLLBACK")
        refused("LF011", admin, f"TRUNCATE {name}")


def test_a_foreign_key_that_cascades_is_held_to_the_fence(cluster):
    admin = make_table(cluster, "parent_key", protect=False)
    make_table(cluster, "child_key", "id int PRIMARY KEY REFERENCES parent_key ON DELETE CASCADE, note text")
    refused("LF011", admin, "DELETE FROM parent_key")
    refused("LF011", admin, "TRUNCATE parent_key CASCADE")
    assert note(cluster, "child_key") == "first"


def test_partitions_are_guarded_also_those_that_come_later(cluster):
    for number, level in enumerate(LEVELS):
        name = f"parts_{number}"
        admin, a = cluster.session(), cluster.session("a")
        admin.query(f"CREATE TABLE {name} (id int, note text) PARTITION BY RANGE (id);"
                    f"CREATE TABLE {name}_low PARTITION OF {name} FOR VALUES FROM (0) TO (10);"
                    f"INSERT INTO {name} VALUES (1, 'first'); SELECT aster.protect('{name}', '{name}');"
                    f"CREATE TABLE {name}_high PARTITION OF {name} FOR VALUES FROM (10) TO (20);"
                    f"GRANT ALL ON {name}, {name}_low, {name}_high TO a")
        epoch = acquire(a, name)
        for statement in (f"UPDATE {name} SET note = 'x'", f"UPDATE {name}_low SET note = 'x'", f"DELETE FROM {name}",
                          f"INSERT INTO {name} VALUES (11, 'x')", f"INSERT INTO {name}_high VALUES (11, 'x')",
                          f"UPDATE {name} SET id = 12", f"TRUNCATE {name}", f"TRUNCATE {name}_low"):
            a.begin(level)
            refused("LF011", a, statement)
            a.query("ROLLBACK")
        found = admin.query(f"SELECT * FROM aster.verify('{name}')")
        assert [(f.level, f.object) for f in found if f.level == "FAIL"] == [("FAIL", f"public.{name}_high")], found
        assert "TRUNCATE" in found[-1].finding or "aster_guard_truncate is missing" in str(found)
        admin.query(f"SELECT aster.protect('{name}', '{name}')")
        assert not [f for f in admin.query(f"SELECT * FROM aster.verify('{name}')") if f.level == "FAIL"]
        refused("LF011", a, f"TRUNCATE {name}_high")
        a.begin(level)
        fence(a, name, epoch)
        a.query(f"INSERT INTO {name} VALUES (11, 'in'); UPDATE {name} SET id = 12 WHERE id = 1; TRUNCATE {name}_low")
        a.query("COMMIT")
        assert admin.value(f"SELECT count(*) FROM {name}_high") == "2"


def test_children_and_parents_are_no_way_round(cluster):
    admin = make_table(cluster, "elder", protect=False)
    admin.query("CREATE TABLE younger () INHERITS (elder); INSERT INTO younger VALUES (5, 'child')")
    admin.query("SELECT aster.protect('younger', 'younger')")
    refused("LF011", admin, "UPDATE elder SET note = 'through the parent' WHERE id = 5")
    admin.query("SELECT aster.protect('elder', 'elder')")
    refused("LF011", admin, "UPDATE younger SET note = 'x'")
    make_table(cluster, "adopted")
    admin.query("ALTER TABLE adopted INHERIT elder")
    failed = [f.finding for f in admin.query("SELECT * FROM aster.verify('adopted')") if f.level == "FAIL"]
    assert len(failed) == 1 and "has become a partition" in failed[0], failed
    admin.query("SELECT aster.protect('adopted', 'adopted')")
    refused("LF011", admin, "UPDATE elder SET note = 'through the parent' WHERE id = 1")


def test_each_row_can_have_a_resource_of_its_own(cluster):
    for number, level in enumerate(LEVELS):
        name = f"rows_{number}"
        admin = make_table(cluster, name, "id int PRIMARY KEY, note text, twice int GENERATED ALWAYS AS (id * 2) STORED",
                           protect=False)
        admin.query(f"SELECT aster.protect('{name}', expression => $$'{name}/' || id$$)")
        a, b = cluster.session("a"), cluster.session("b")
        first, second = acquire(a, f"{name}/1"), acquire(b, f"{name}/2")
        for session, number, epoch in ((a, 1, first), (b, 2, second)):
            session.begin(level)
            fence(session, f"{name}/{number}", epoch)
            session.query(f"INSERT INTO {name} VALUES ({number}, 'mine') ON CONFLICT (id) DO UPDATE SET note = 'mine'")
        a.query("COMMIT")
        b.query("COMMIT")
        a.begin(level)
        fence(a, f"{name}/1", first)
        a.query("SAVEPOINT s")
        for statement in (f"UPDATE {name} SET note = 'x'", f"UPDATE {name} SET note = 'x' WHERE id = 2",
                          f"UPDATE {name} SET id = 3 WHERE id = 1", f"DELETE FROM {name}", f"INSERT INTO {name} VALUES (9, 'x')"):
            refused("LF010", a, statement)
            a.query("ROLLBACK TO s")
        refused("LF011", a, f"TRUNCATE {name}")
        a.query("ROLLBACK TO s")
        a.query(f"DELETE FROM {name} WHERE id = 1")
        a.query("COMMIT")
        assert admin.value(f"SELECT count(*) FROM {name}") == "1"


def test_a_trigger_of_the_users_cannot_move_a_row_past_the_guard(cluster):
    admin = make_table(cluster, "moved", protect=False)
    admin.query("CREATE FUNCTION move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := 99; RETURN NEW; END $$;"
                "CREATE TRIGGER zzz BEFORE INSERT ON moved FOR EACH ROW EXECUTE FUNCTION move();"
                "SELECT aster.protect('moved', expression => $$'moved/' || id$$)")
    a = cluster.session("a")
    epoch = acquire(a, "moved/7")
    a.query("BEGIN")
    fence(a, "moved/7", epoch)
    assert "moved/99" in refused("LF010", a, "INSERT INTO moved VALUES (7, 'x')").message
    a.query("ROLLBACK")


def test_an_expression_without_a_name_refuses_and_a_wrong_one_is_refused_at_once(cluster):
    admin = make_table(cluster, "nameless", protect=False)
    refused("42703", admin, "SELECT aster.protect('nameless', expression => 'no_such_column')")
    admin.query("SELECT aster.protect('nameless', expression => 'note')")
    assert "gives NULL" in refused("LF011", admin, "INSERT INTO nameless VALUES (2, NULL)").message
    refused("22023", admin, "SELECT aster.protect('nameless')")
    refused("22023", admin, "SELECT aster.protect('nameless', 'r', 'note')")
    admin.query("CREATE VIEW seen AS SELECT * FROM nameless; CREATE TEMP TABLE passing (id int)")
    refused("22023", admin, "SELECT aster.protect('seen', 'r')")
    refused("22023", admin, "SELECT aster.protect('passing', 'r')")
    refused("22023", admin, "SELECT aster.protect('aster.lease', 'r')")


def test_only_the_owner_protects_and_unprotect_takes_everything_back(cluster):
    admin = make_table(cluster, "owned", protect=False)
    op = cluster.session("op")
    refused("42501", op, "SELECT aster.protect('owned', 'owned')")
    admin.query("ALTER TABLE owned OWNER TO op; GRANT CREATE ON SCHEMA public TO op")
    op.query("SELECT aster.protect('owned', expression => $$'owned/' || id$$)")
    refused("LF011", op, "UPDATE owned SET note = 'x'")
    op.query("SELECT aster.protect('owned', 'owned')")
    refused("LF011", op, "UPDATE owned SET note = 'x'")
    op.query("SELECT aster.unprotect('owned')")
    op.query("UPDATE owned SET note = 'free again'")
    assert admin.value("SELECT count(*) FROM pg_proc WHERE proname = 'aster_guard_' || 'owned'::regclass::oid") == "0"
    assert admin.value("SELECT count(*) FROM aster.protected WHERE target = 'owned'::regclass") == "0"


def findings(session, table=None):
    return [(f.level, f.finding) for f in session.query("SELECT * FROM aster.verify($1)", table) if f.level != "OK"]


def test_verify_reports_what_goes_round_the_guard(cluster):
    admin = make_table(cluster, "verified")
    assert findings(admin, "verified") == [], findings(admin, "verified")

    def finds(change, level, words, undo):
        admin.query(change)
        found = findings(admin, "verified")
        assert any(l == level and words in f for l, f in found), (change, found)
        admin.query(undo)
        assert findings(admin, "verified") == [], (undo, findings(admin, "verified"))

    again = "SELECT aster.protect('verified', 'verified')"
    finds("ALTER TABLE verified DISABLE TRIGGER aster_guard_write", "FAIL", "is not ENABLE ALWAYS", again)
    finds("ALTER TABLE verified ENABLE TRIGGER aster_guard_truncate", "FAIL", "replica mode", again)
    finds("DROP TRIGGER aster_guard_write ON verified", "FAIL", "aster_guard_write is missing", again)
    finds("DROP TRIGGER aster_guard_write ON verified; CREATE TRIGGER aster_guard_write BEFORE INSERT ON verified FOR EACH "
          "STATEMENT EXECUTE FUNCTION aster.guard_write('verified'); ALTER TABLE verified ENABLE ALWAYS TRIGGER "
          "aster_guard_write", "FAIL", "was altered", again)
    finds("CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$; DROP TRIGGER "
          "aster_guard_write ON verified; CREATE TRIGGER aster_guard_write BEFORE INSERT OR UPDATE OR DELETE ON verified FOR "
          "EACH STATEMENT EXECUTE FUNCTION nothing(); ALTER TABLE verified ENABLE ALWAYS TRIGGER aster_guard_write", "FAIL",
          "was altered", again)
    finds("CREATE ROLE landlord LOGIN; GRANT ALL ON SCHEMA public TO landlord; ALTER TABLE verified OWNER TO landlord",
          "WARN", "landlord may log in and owns the table", "ALTER TABLE verified OWNER TO postgres")
    finds("GRANT UPDATE ON aster.lease TO a", "FAIL", "a may write the tables of Aster", "REVOKE UPDATE ON aster.lease FROM a")
    finds("GRANT EXECUTE ON FUNCTION aster.fence(text) TO PUBLIC", "FAIL", "PUBLIC may execute",
          "REVOKE EXECUTE ON FUNCTION aster.fence(text) FROM PUBLIC")
    source = admin.value("SELECT pg_get_functiondef('aster.guard(text)'::regprocedure)")
    finds("CREATE OR REPLACE FUNCTION aster.guard(resource text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN END $$", "FAIL",
          "differs from what was applied", source)
    admin.query("DELETE FROM aster.protected WHERE target = 'verified'::regclass")
    assert any("is not protected" in f for _, f in findings(admin, "verified"))


def test_the_owner_who_logs_in_can_go_round_and_verify_says_so(cluster):
    """Documented, not prevented: PostgreSQL lets an owner do anything to its table."""
    admin = make_table(cluster, "bypass")
    admin.query("CREATE ROLE owner_in LOGIN; GRANT ALL ON SCHEMA public TO owner_in; ALTER TABLE bypass OWNER TO owner_in")
    owner = cluster.session("owner_in")
    owner.query("ALTER TABLE bypass DISABLE TRIGGER ALL")
    write(owner, "bypass", "went round")
    found = findings(admin, "bypass")
    assert any(l == "WARN" and "owner_in" in f for l, f in found) and any(l == "FAIL" for l, f in found), found


def test_multixacts_of_many_guards_are_given_back_by_vacuum(cluster):
    """Guards of one holder share the row's lock, and renewals pass them: each such meeting makes a multixact."""
    make_table(cluster, "multi")
    admin, a = cluster.session(), cluster.session("a")
    epoch = acquire(a, "multi")
    guards = [cluster.session("a") for _ in range(4)]
    before = int(admin.value("SELECT next_multixact_id FROM pg_control_checkpoint()"))
    for _ in range(50):
        for guard in guards:
            guard.query("BEGIN")
            fence(guard, "multi", epoch)
        assert a.one("SELECT * FROM aster.renew('multi', $1)", epoch).granted == "t"
        for guard in guards:
            guard.query("COMMIT")
    admin.query("CHECKPOINT")
    made = int(admin.value("SELECT next_multixact_id FROM pg_control_checkpoint()")) - before
    assert made >= 50, "the test makes none, so it shows nothing"
    admin.query("VACUUM (FREEZE) aster.lease")
    age = int(admin.value("SELECT mxid_age(relminmxid) FROM pg_class WHERE oid = 'aster.lease'::regclass"))
    assert age <= 1, f"{age} multixacts are kept"
    options = admin.value("SELECT reloptions FROM pg_class WHERE oid = 'aster.lease'::regclass")
    assert "autovacuum_multixact_freeze_max_age=20000000" in options


if __name__ == "__main__":
    run_tests(globals())

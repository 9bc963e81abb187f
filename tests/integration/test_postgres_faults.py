"""PostgreSQL when things die, stop and go wrong: kill -9 of clients, of a backend and of the postmaster, clocks that are an
hour off, PgBouncer between client and server, and updates that must not be lost."""
import glob
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from support.postgres import LEVELS, STALE, Bouncer, Cluster, Error, Session, prepare, refused, run_tests, until  # noqa: E402

FAKETIME = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), None)
CLIENT = os.path.join(os.path.dirname(__file__), "..", "support", "postgres_list_client.py")


def acquire(session, resource, ttl="30 s", instance=""):
    return session.one("SELECT * FROM aster.acquire($1, $2, $3)", resource, ttl, instance)


def make_table(cluster, name):
    session = cluster.session()
    session.query(f"CREATE TABLE {name} (id int PRIMARY KEY, note text); INSERT INTO {name} VALUES (1, 'first');"
                  f"GRANT ALL ON {name} TO a, b; SELECT aster.protect('{name}', '{name}')")
    return session


def test_a_grant_is_synced_whatever_the_sessions_default_is(cluster):
    a = cluster.session("a")
    a.query("SET synchronous_commit = off")
    for call in ("aster.acquire('synced', '30 s')", "aster.put('synced', 1, 0, 'x')", "aster.release('synced', 1)",
                 "aster.forget('synced')"):
        a.query("BEGIN")
        assert a.one(f"SELECT * FROM {call}").granted == "t"
        assert a.value("SHOW synchronous_commit") == "on", call
        a.query("COMMIT")
    assert a.value("SHOW synchronous_commit") == "off"


def test_after_kill_9_of_postgresql_no_grant_is_lost_and_no_stale_write_is_in(cluster):
    """Kills between any two statements of a transaction. Every row is armed anew: a dead holder's takeover comes one ttl
    after the restart, a live one just renews."""
    make_table(cluster, "killed")
    statements = ("BEGIN", "SELECT aster.fence('killed', {epoch})", "UPDATE killed SET note = '{epoch}'", "COMMIT")
    for cut in range(len(statements) + 1):
        a = cluster.session("a")
        granted = acquire(a, "killed", "400 ms")
        assert granted.granted == "t", granted
        other = acquire(a, f"other {cut}")
        for statement in statements[:cut]:
            a.query(statement.format(epoch=granted.epoch))
        cluster.kill()
        cluster.start()
        admin, b = cluster.session(), cluster.session("b")
        row = b.one("SELECT * FROM aster.inspect('killed')")
        assert (row.held, row.epoch, row.holder) == ("t", granted.epoch, "a"), "an acknowledged grant is gone"
        assert b.one("SELECT * FROM aster.inspect($1)", f"other {cut}").epoch == other.epoch
        committed = admin.value("SELECT note FROM killed") == granted.epoch
        assert committed == (cut == len(statements)), cut
        assert acquire(b, "killed").reason == "HELD_BY_OTHER", "armed anew"
        assert cluster.session("a").one("SELECT * FROM aster.renew('killed', $1)", granted.epoch).granted == "t"
        until(lambda: b.value("SELECT remaining FROM aster.inspect('killed')") == "00:00:00")
        taken = acquire(b, "killed")
        assert int(taken.epoch) == int(granted.epoch) + 1 and taken.last_holder == "a"
        late = cluster.session("a")
        late.query("BEGIN")
        refused("LF008", late, "SELECT aster.fence('killed', $1)", granted.epoch)
        b.query("SELECT aster.release('killed', $1)", taken.epoch)
        cluster.close_sessions()


def test_a_crash_of_one_backend_arms_every_row_anew(cluster):
    """The postmaster goes on with its old start time, but what was not synced, like renewals, may be gone."""
    a, b = cluster.session("a"), cluster.session("b")
    granted = acquire(a, "backend", "1 s")
    os.kill(int(a.pid), signal.SIGKILL)
    until(b.closed_by_server)
    cluster.until_ready()
    b, admin = cluster.session("b"), cluster.session()
    assert admin.value("SELECT count(*) FROM aster.boot") == "0", "a crash empties unlogged tables"
    admin.query("UPDATE aster.lease SET expires_at = now() - interval '1 s' WHERE resource = 'backend'")
    denied = acquire(b, "backend")
    assert denied.reason == "HELD_BY_OTHER" and denied.remaining > "00:00:00.9", denied
    assert cluster.session("a").one("SELECT * FROM aster.renew('backend', $1)", granted.epoch).granted == "t"
    admin.query("UPDATE aster.lease SET expires_at = now() - interval '1 s' WHERE resource = 'backend'")
    started = time.monotonic()
    until(lambda: acquire(b, "backend").granted == "t")
    assert time.monotonic() - started < 5, "a look at the row is what it is armed from"


def test_kill_9_of_a_client_leaves_nothing_behind(cluster):
    admin = make_table(cluster, "client")
    program = ("import os, signal, sys; sys.path.insert(0, sys.argv[1]); from support.postgres import Session; "
               "s = Session(sys.argv[2]); e = s.value(\"SELECT epoch FROM aster.acquire('client', '200 ms')\"); s.query('BEGIN'); "
               "s.query('SELECT aster.fence(\\'client\\', $1)', e); s.query(\"UPDATE client SET note = 'half'\"); "
               "os.kill(os.getpid(), signal.SIGKILL)")
    done = subprocess.run([sys.executable, "-c", program, os.path.join(os.path.dirname(__file__), ".."), cluster.info("a")],
                          check=False)
    assert done.returncode == -signal.SIGKILL
    b = cluster.session("b")
    until(lambda: b.value("SELECT remaining FROM aster.inspect('client')") == "00:00:00")
    assert acquire(b, "client").granted == "t"
    assert admin.value("SELECT note FROM client") == "first"


def psql(cluster, user, sql, offset=None):
    """psql with a wall clock that is off; what it prints."""
    environment = dict(os.environ)
    if offset:
        environment.update(LD_PRELOAD=FAKETIME, FAKETIME=offset)
    return subprocess.run([os.path.join(cluster.bin, "psql"), "-AtXq", cluster.info(user), "-c", sql], env=environment,
                          check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def test_clocks_of_clients_that_are_an_hour_off_change_nothing(cluster):
    assert FAKETIME, "libfaketime is not installed"
    admin = cluster.session()
    for number, (holder, contender) in enumerate((("-1h", "+1h"), ("+1h", "-1h"))):
        name = f"skewed {number}"
        epoch = psql(cluster, "a", f"SELECT epoch FROM aster.acquire('{name}', '1200 ms')", holder)
        assert psql(cluster, "b", f"SELECT reason FROM aster.acquire('{name}', '10 s')", contender) == "HELD_BY_OTHER"
        assert psql(cluster, "a", f"SELECT granted FROM aster.renew('{name}', {epoch})", holder) == "t"
        deadline = admin.value("SELECT expires_at FROM aster.lease WHERE resource = $1", name)
        b = cluster.session("b")
        until(lambda: acquire(b, name, "10 s").granted == "t")
        late = admin.value("SELECT extract(epoch FROM since - $1::timestamptz) FROM aster.lease WHERE resource = $2", deadline, name)
        assert 0 <= float(late) < 1, f"taken over {late} s after the end by the server's clock"


def test_a_wall_clock_that_is_set_does_no_more_than_delay_or_hasten_a_takeover(_):
    """PostgreSQL has no other clock. Back: a takeover comes one ttl after the first look. Forward: it comes early, and the
    fence holds."""
    assert FAKETIME, "libfaketime is not installed"
    with Cluster(environment=clock_environment("+0")) as cluster:
        prepare(cluster)
        make_table(cluster, "jump")
        a, b = cluster.session("a"), cluster.session("b")
        first = acquire(a, "jump", "300 ms")
        set_clock(cluster, "-1h")
        a, b = cluster.session("a"), cluster.session("b")
        row = acquire(b, "jump", "300 ms")
        assert (row.reason, row.remaining) == ("HELD_BY_OTHER", "00:00:00.3"), row
        started = time.monotonic()
        until(lambda: acquire(b, "jump", "300 ms").granted == "t")
        assert time.monotonic() - started < 5
        set_clock(cluster, "+1h")
        a, b = cluster.session("a"), cluster.session("b")
        second = acquire(a, "jump", "30 s")
        assert second.granted == "t" and int(second.epoch) == int(first.epoch) + 2
        b.query("BEGIN")
        refused(STALE, b, "SELECT aster.fence('jump', $1)", int(second.epoch) - 1)


CLOCK = os.path.join("/tmp", f"aster-clock-{os.getpid()}")


def clock_environment(offset):
    with open(CLOCK, "w") as file:
        file.write(offset)
    os.chmod(CLOCK, 0o644)
    return {"LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": CLOCK, "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_RESET": "1"}


def set_clock(cluster, offset):
    clock_environment(offset)
    cluster.close_sessions()


def test_pgbouncer_in_transaction_mode_carries_no_fence_from_one_client_to_another(cluster):
    make_table(cluster, "pooled")
    bouncer = Bouncer(cluster)
    one, two = bouncer.session("a"), bouncer.session("a")
    epoch = acquire(one, "pooled", instance="one").epoch
    for level in LEVELS:
        one.begin(level)
        one.query("SELECT aster.fence('pooled', $1, 'one')", epoch)
        one.query("UPDATE pooled SET note = $1", level)
        server = one.value("SELECT pg_backend_pid()")
        one.query("COMMIT")
        two.begin(level)
        assert two.value("SELECT pg_backend_pid()") == server, "they share the one server, or the test shows nothing"
        refused("LF011", two, "UPDATE pooled SET note = 'by a borrowed fence'")
        two.query("ROLLBACK")
        refused("LF011", two, "UPDATE pooled SET note = 'outside a transaction'")
        two.begin(level)
        refused("LF003", two, "SELECT aster.fence('pooled', $1, 'two')", epoch)
        two.query("ROLLBACK")
        assert two.value("SHOW idle_in_transaction_session_timeout") == "0", "nor its timeout"
        assert one.one("SELECT * FROM aster.renew('pooled', $1, 'one')", epoch).granted == "t"
        assert two.value("SELECT note FROM pooled") == level
    for session in (one, two):
        session.close()
    bouncer.close()


class Clients:
    """Five clients of the list, which are stopped, continued and killed at random."""

    def __init__(self, cluster, guarded):
        self.cluster, self.guarded = cluster, "guarded" if guarded else "control"
        self.acknowledged = os.path.join(cluster.directory, "acknowledged-" + self.guarded)
        self.numbers = 0
        self.running = [self.start(instance) for instance in range(5)]

    def start(self, instance):
        self.numbers += 1_000_000
        return subprocess.Popen([sys.executable, CLIENT, self.cluster.info("ab"[instance % 2]), str(instance),
                                 str(self.numbers), self.acknowledged, self.guarded], stderr=subprocess.DEVNULL)

    def harass(self, seconds):
        """How often one was stopped for longer than the ttl."""
        pauses, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            instance = random.randrange(5)
            victim = self.running[instance]
            victim.send_signal(signal.SIGSTOP)
            time.sleep(random.uniform(0.21, 0.3))
            pauses += 1
            if random.random() < 0.1:
                victim.kill()
                victim.wait()
                self.running[instance] = self.start(instance)
            else:
                victim.send_signal(signal.SIGCONT)
                time.sleep(random.uniform(0, 0.05))
        return pauses

    def end(self):
        for client in self.running:
            client.kill()
            client.wait()
        with open(self.acknowledged) as file:
            return {int(line) for line in file if line.endswith("\n")}


def lost_updates(cluster, guarded, seconds):
    clients = Clients(cluster, guarded)
    try:
        until(lambda: os.path.exists(clients.acknowledged) and os.path.getsize(clients.acknowledged) > 0)
        pauses = clients.harass(seconds)
    finally:
        acknowledged = clients.end()
    table = "fenced_list" if guarded else "bare_list"
    session = cluster.session()
    until(lambda: session.value("SELECT count(*) FROM pg_stat_activity WHERE usename IN ('a', 'b')") == "0")
    items = session.value(f"SELECT items FROM {table}").strip("{}")
    there = [int(item) for item in items.split(",") if item]
    assert len(there) == len(set(there)), "an update was applied twice"
    return len(acknowledged - set(there)), len(acknowledged), pauses


def test_with_the_guard_no_update_is_lost_and_the_control_loses_some(cluster):
    """In the manner of Jepsen: 5 clients read, modify and write one list under the lease, with pauses and kills."""
    seed = random.randrange(1 << 32)
    random.seed(seed)
    cluster.session().query("CREATE TABLE fenced_list (items bigint[]); INSERT INTO fenced_list VALUES ('{}');"
                            "CREATE TABLE bare_list (items bigint[]); INSERT INTO bare_list VALUES ('{}');"
                            "GRANT ALL ON fenced_list, bare_list TO a, b; SELECT aster.protect('fenced_list', 'list')")
    lost, written, pauses = lost_updates(cluster, True, 4)
    print(f"   guarded: {lost} of {written} lost in {pauses} pauses, seed {seed}")
    assert lost == 0, f"{lost} of {written} acknowledged updates are gone, seed {seed}"
    assert written >= 20, f"only {written} updates: the test shows nothing"
    for _ in range(6):  # chance decides when a pause falls between read and write
        lost, written, pauses = lost_updates(cluster, False, 3)
        print(f"   control: {lost} of {written} lost in {pauses} pauses")
        if lost > 0:
            return
    raise AssertionError("the control lost nothing, so the guarded run shows nothing")


if __name__ == "__main__":
    run_tests(globals(), settings=("fsync = off",))  # kill -9 leaves the page cache: only the waiting is spared

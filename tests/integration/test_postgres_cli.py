"""The program `aster` over PostgreSQL: the schema, every command on a lease, a shell job that writes under its fence, and
what it says when something is wrong."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from support.cli import World  # noqa: E402
from support.postgres import run_tests  # noqa: E402


def world_of(cluster, user="op"):
    world = World()
    world.environment["ASTER_STORE"] = url(cluster, user)
    return world


def url(cluster, user, database="postgres"):
    return f"postgresql://{user}:not-for-the-eye@/{database}?host={cluster.directory}"


def psql(cluster, user, sql, database="postgres"):
    done = subprocess.run([os.path.join(cluster.bin, "psql"), "-AtXq", "-v", "ON_ERROR_STOP=1", cluster.info(user, database)],
                          input=sql, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout.strip(), done.stderr


def test_the_printed_schema_is_what_psql_applies(cluster):
    admin = cluster.session()
    admin.query("CREATE DATABASE printed")
    world = world_of(cluster)
    text = world.aster("schema", "print", "postgres", "--protect", "it's", "--resource", "o'clock/", "--row-column", "id").out
    code, _, err = psql(cluster, "postgres", "CREATE TABLE \"it's\" (id int, note text);\n"
                        + text.replace("aster.protect('it''s'", "aster.protect('\"it''s\"'"), "printed")
    assert code == 0, err
    other = cluster.session(database="printed")
    other.query("SELECT aster.acquire('o''clock/5', '30 s')")
    found = other.query("SELECT level FROM aster.verify('\"it''s\"')")
    assert {f.level for f in found} == {"OK"}, found
    world.close()


def test_apply_and_verify_protect_a_table(cluster):
    admin = cluster.session()
    admin.query("CREATE DATABASE applied")
    admin.close()
    table = cluster.session(database="applied")
    table.query("CREATE TABLE invoice (id int PRIMARY KEY, note text); CREATE TABLE loose (id int)")
    world = world_of(cluster)
    store = ("--store", url(cluster, "postgres", "applied"))
    said = world.aster("schema", "apply", "postgres", *store, "--protect", "invoice", "--resource", "billing").out
    assert "OK    public.invoice: is protected by the fence of billing" in said, said
    assert "FAIL" in world.aster("schema", "verify", "postgres", *store, "--protect", "loose", "--resource", "x", code=1).out
    table.query("ALTER TABLE invoice DISABLE TRIGGER aster_guard_write")
    answer = json.loads(world.aster("schema", "verify", "postgres", *store, "--json", code=1).out)
    assert not answer["intact"] and any(f["level"] == "FAIL" and f["object"] == "public.invoice" for f in answer["findings"])
    assert "not-for-the-eye" not in json.dumps(answer)
    world.aster("schema", "apply", "postgres", *store, "--protect", "invoice", "--expression", "'invoice/' || id")
    assert json.loads(world.aster("schema", "verify", "postgres", *store, "--json").out)["intact"]
    table.query("UPDATE aster.meta SET version = 999")
    assert "use the newer Aster" in world.aster("schema", "apply", "postgres", *store, code=78).err
    world.close()


def test_every_command_works_on_a_lease_in_postgresql(cluster):
    world = world_of(cluster)
    granted = json.loads(world.aster("acquire", "r", "--ttl", "30s", "--holder", "w1", "--json").out)
    epoch = str(granted["epoch"])
    assert world.inspect("r")["holder"] == "w1"
    assert "w1" in world.aster("acquire", "r", "--holder", "w2", code=75).err
    carried = ("--epoch", epoch, "--holder", "w1")
    world.aster("renew", "r", *carried)
    world.aster("put", "r", "hello", *carried)
    assert world.aster("get", "r").out.strip() == "hello"
    assert "r" in world.aster("list").out
    world.aster("release", "r", *carried)
    world.aster("release", "r", *carried, code=77)
    world.aster("acquire", "r", "--holder", "w1")
    world.aster("revoke", "r")
    world.aster("forget", "r")
    assert [e["event"] for e in world.history("r")] == ["granted", "released", "granted", "revoked", "forgotten"]
    assert "FAIL" not in world.aster("doctor").out
    world.aster("check", "store", world.environment["ASTER_STORE"])
    world.close()


def test_a_shell_job_writes_under_the_fence_that_it_was_given(cluster):
    admin = cluster.session()
    admin.query("CREATE TABLE job (id int PRIMARY KEY, note text); INSERT INTO job VALUES (1, ''); GRANT ALL ON job TO op;"
                "SELECT aster.protect('job', 'nightly job')")
    world = world_of(cluster)
    script = (f"{cluster.bin}/psql -Xq -v ON_ERROR_STOP=1 '{cluster.info('op')}' -c \"BEGIN; SELECT aster.fence('$ASTER_FENCE'); "
              "UPDATE job SET note = 'by $ASTER_EPOCH'; COMMIT\"")
    world.aster("run", "nightly job", "--", "sh", "-c", script)
    note = admin.value("SELECT note FROM job")
    assert note.startswith("by "), note
    code, _, err = psql(cluster, "op", f"BEGIN; SELECT aster.fence('nightly job', {note[3:]}); UPDATE job SET note = 'late'; COMMIT")
    assert code != 0 and "STALE_EPOCH" in err, err
    world.close()


def test_what_is_wrong_is_said_in_one_line_and_without_the_password(cluster):
    cluster.session().query("CREATE DATABASE bare")
    world = world_of(cluster)
    for store, code, words in ((url(cluster, "op", "bare"), 78, "aster schema apply postgres"),
                               (url(cluster, "stranger"), 78, "GRANT aster_worker"),
                               ("postgresql://op:not-for-the-eye@/postgres?host=/nowhere", 69, "PostgreSQL: "),
                               ("postgresql:op", 78, "postgresql://USER@HOST/DATABASE"),
                               ("postgresql://op:not-for-the-eye@/?nonsense=1", 78, "no connection string")):
        said = world.aster("inspect", "r", "--store", store, code=code).err
        assert words in said and said.count("\n") == 1, said
        assert "not-for-the-eye" not in said
    world.close()


if __name__ == "__main__":
    run_tests(globals(), each_version=False, programs=True)

#!/usr/bin/env python3
"""The file of asterd's journal: when the disk is full, when it is another's, and when asterd comes back to it."""
import contextlib
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["ASTER_SOURCE"], "tests", "support"))
import prometheus  # noqa: E402
from asterd import ASTERD, Asterd, Http, skip_without_asterd  # noqa: E402
from cli import ASTER, run_tests, until  # noqa: E402


def journal_of(world):
    return f'journal = "sqlite:{world.path("journal.db")}"'


def started(world, kept=None):
    server = Asterd(world, kept or journal_of(world))
    server.configure('http = "127.0.0.1:0"\n')
    server.start()
    server.await_ready()
    return server


def acquire(world, name, *options):
    return json.loads(world.aster("acquire", name, "--ttl", "1m", "--json", *options).out)["epoch"]


def full_disk(server):
    """Every write beyond the first kilobyte of a file fails; what undoes it."""
    limits = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
    return lambda: resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)


def refused(world, *arguments):
    """What a command said that had to fail, but not because of who holds what."""
    out = subprocess.run([ASTER, *arguments], env=world.environment, capture_output=True, text=True, check=False)
    assert out.returncode not in (0, 75, 77), out
    return out.stderr


def metrics(server):
    return prometheus.read(Http(server.http_port()).get("/metrics"))


def test_on_a_full_disk_grants_are_refused_with_the_reason_and_no_lease_is_lost(world):
    server = started(world)
    epoch = acquire(world, "held")
    room = full_disk(server)
    for i in range(3):
        said = refused(world, "acquire", f"new-{i}", "--ttl", "1m")
        assert "nothing was applied" in said and "journal" in said, said
        world.aster("renew", "held", "--epoch", str(epoch), "--holder", server.client)
    assert "nothing was applied" in refused(world, "release", "held", "--epoch", str(epoch), "--holder", server.client)
    row = world.inspect("held")
    assert row["held"] and row["epoch"] == epoch, row
    assert world.inspect("new-0")["epoch"] == 0
    server.await_line("level=error", "journal-failing", "renewals go on")
    seen = metrics(server)
    assert seen["aster_journal_failing"][1][""] == 1
    assert seen["aster_journal_failures_total"][1]['outcome="not-applied"'] >= 4
    room()
    assert acquire(world, "new-0") == 1  # no epoch was used up
    server.await_line("journal-works-again")
    assert metrics(server)["aster_journal_failing"][1][""] == 0
    world.aster("release", "held", "--epoch", str(epoch), "--holder", server.client)
    assert len([line for line in server.lines if "journal-failing" in line]) == 1  # not one for each
    assert server.end() == 0


def test_who_waits_outlives_a_full_disk(world):
    server = started(world)
    epoch = acquire(world, "held")
    waiter = world.start("acquire", "held", "--ttl", "1m", "--wait", "60s", "--json", stdout=subprocess.PIPE)
    until(lambda: metrics(server)["aster_operations_in_flight"][1][""] >= 1)
    room = full_disk(server)
    refused(world, "release", "held", "--epoch", str(epoch), "--holder", server.client)
    room()
    world.aster("release", "held", "--epoch", str(epoch), "--holder", server.client)
    out, _ = waiter.communicate(timeout=30)
    assert waiter.returncode == 0 and json.loads(out)["epoch"] == epoch + 2, out


def test_a_restart_finds_everything_and_tells_how_much(world):
    server = started(world)
    epoch = acquire(world, "held")
    world.aster("put", "held", "--epoch", str(epoch), "--holder", server.client, stdin=b"a value")
    freed = acquire(world, "freed")
    world.aster("release", "freed", "--epoch", str(freed), "--holder", server.client)
    before = world.aster("history", "--json").out
    for number in (signal.SIGTERM, signal.SIGKILL):
        server.process.send_signal(number)
        server.process.wait(30)
        server = started(world)
        server.await_line("journal-loaded", "rows=2")
        assert world.aster("history", "--json").out == before
        assert world.aster("get", "held").out == "a value"
        row = world.inspect("held")
        assert row["held"] and row["epoch"] == epoch and row["remaining_ms"] > 50000, row
        world.aster("renew", "held", "--epoch", str(epoch), "--holder", server.client)
    assert acquire(world, "freed") == freed + 2


def copied(source, to):
    for old in (to, to + "-wal", to + "-shm"):
        if os.path.exists(old):
            os.unlink(old)
    with contextlib.closing(sqlite3.connect(source)) as read, contextlib.closing(sqlite3.connect(to)) as write:
        read.backup(write)
    os.chmod(to, 0o600)


def test_an_old_copy_of_the_journal_lets_no_old_writer_through(world):
    journal, backup, to = (world.path(name) for name in ("journal.db", "backup.db", "catalog.json"))
    for text in ("old", "new", "late"):
        with open(world.path(text), "w", encoding="utf-8") as file:
            file.write(text)
    server = started(world)
    old = acquire(world, "catalog")
    world.aster("publish", "catalog", "old", "--to", to, "--epoch", str(old))
    assert server.end() == 0
    copied(journal, backup)
    server = started(world)
    new = acquire(world, "catalog", "--own")
    world.aster("publish", "catalog", "new", "--to", to, "--epoch", str(new))
    assert new == old + 1 and server.end() == 0
    copied(backup, journal)
    started(world)
    row = world.inspect("catalog")
    assert row["held"] and row["epoch"] == old, row  # the server itself cannot know better
    late = world.aster("publish", "catalog", "late", "--to", to, "--epoch", str(old), code=77)
    assert "STALE_EPOCH" in late.err, late.err
    with open(to, encoding="utf-8") as file:
        assert file.read() == "new"


def not_started(world, *arguments):
    out = subprocess.run([ASTERD, "--config", world.path("asterd.conf"), *arguments], capture_output=True, text=True,
                         timeout=30, check=False)
    assert out.returncode in (69, 78), out
    return out.stderr


def test_a_journal_has_one_server_and_is_no_store(world):
    server = started(world)
    acquire(world, "held")
    assert str(server.process.pid) in not_started(world)  # it says who has it
    place = "sqlite:" + world.path("journal.db")
    assert server.end() == 0
    assert "journal" in refused(world, "list", "--store", place)
    assert "journal" in not_started(world, "--store", place)
    world.aster("acquire", "other", "--ttl", "1m", "--store", "sqlite:" + world.database)
    assert "store" in not_started(world, "--journal", "sqlite:" + world.database)
    started(world)
    assert world.inspect("held")["held"]


def test_without_a_journal_it_says_so_loudly(world):
    server = started(world, 'journal = "none"')
    server.await_line("level=warning", "ready", "nothing survives")
    assert metrics(server)["aster_durable"][1][""] == 0
    assert server.end() == 0
    server = started(world)
    assert metrics(server)["aster_durable"][1][""] == 1


if __name__ == "__main__":
    skip_without_asterd()
    run_tests(globals())

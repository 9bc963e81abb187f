#!/usr/bin/env python3
"""`aster run` when the lease is lost, or the runner itself: no command survives into another's lease."""
import json
import os
import signal
import sqlite3
import sys
import time

sys.path.insert(0, os.path.join(os.environ["ASTER_SOURCE"], "tests", "support"))
from cli import SLOW, alive, boottime, run_tests, until  # noqa: E402

GROUP = "sleep 999 & echo $! >pid; wait"
STUBBORN = "trap '' TERM; (trap '' TERM; echo $(exec sh -c 'echo $PPID') >pid; while :; do sleep 0.05; done) & wait; wait"
ALLOWANCE = 3.0 if SLOW else 0.3


def start(world, *options, script=GROUP, resource="r"):
    """A run whose group's last member wrote its process id; both."""
    running = world.start("run", resource, *options, "--", "sh", "-c", script)
    return running, world.pid_in("pid")


class WriteLock:
    """Another program that keeps the store's write lock."""

    def __init__(self, world):
        self.db = sqlite3.connect(world.database, isolation_level=None, timeout=20)
        self.db.execute("BEGIN IMMEDIATE")

    def release(self):
        self.db.execute("ROLLBACK")
        self.db.close()


def test_a_revoke_ends_the_whole_group(world):
    running, pid = start(world, "--ttl", "1500ms")
    world.aster("revoke", "r")
    assert running.wait(10) == 76
    said = running.stderr.read().decode()
    assert said.count("\n") == 1 and "revoked" in said and "lease lost" in said, said
    assert not alive(pid)


def test_with_json_everything_that_happens_is_an_object(world):
    running, pid = start(world, "--ttl", "1500ms", "--json", script="echo its own >&2; " + GROUP)
    world.aster("revoke", "r")
    assert running.wait(10) == 76 and not alive(pid)
    said = running.stderr.read().decode().splitlines()
    said.remove("its own")
    events = [json.loads(line) for line in said]
    assert [e["event"] for e in events][0] == "acquired" and "lost" in [e["event"] for e in events], events
    assert all(e["resource"] == "r" and e["epoch"] == 1 and e["text"] and e["at"] for e in events), events
    done = [json.loads(line)["event"] for line in world.aster("run", "r", "--json", "--", "true").err.splitlines()]
    assert done == ["acquired", "released"], done


def test_a_command_that_releases_its_own_lease_is_told_so(world):
    said = world.aster("run", "r", "--", os.environ["ASTER_BIN"], "release", code=76).err
    assert said == "aster run: lease lost (epoch 1): it was released or revoked; noticed when the command had ended\n", said
    assert world.inspect("r")["held"] is False


def test_who_ignores_term_is_killed_after_the_grace(world):
    running, pid = start(world, "--ttl", "3s", "--grace", "400ms", "--renew", "200ms", script=STUBBORN)
    world.aster("revoke", "r")
    revoked = time.monotonic()
    assert running.wait(10) == 76, running.stderr.read()
    assert 0.3 < time.monotonic() - revoked < 1 + ALLOWANCE and not alive(pid)


def test_who_left_the_group_is_killed_too_when_the_lease_is_lost(world):
    script = "setsid sh -c 'echo $$ >pid; exec sleep 999' & wait"
    running, pid = start(world, "--ttl", "1500ms", script=script)
    assert os.getpgid(pid) == pid
    world.aster("revoke", "r")
    assert running.wait(10) == 76
    assert not alive(pid)


def test_on_lost_continue_leaves_the_command_alone_and_still_tells(world):
    running, pid = start(world, "--ttl", "1s", "--on-lost", "continue",
                         script="echo $$ >pid; sleep 2; echo done >finished; exit 3")
    world.aster("revoke", "r")
    assert running.wait(10) == 76
    assert os.path.exists(world.path("finished")) and not alive(pid)


def test_on_lost_kill_sends_no_term(world):
    script = "trap 'echo got >term' TERM; echo $$ >pid; while :; do sleep 0.05; done"
    running, pid = start(world, "--ttl", "1500ms", "--on-lost", "kill", script=script)
    world.aster("revoke", "r")
    assert running.wait(10) == 76 and not alive(pid) and not os.path.exists(world.path("term"))


def test_killing_the_runner_kills_the_group_and_the_lease_lapses_within_its_ttl(world):
    running, pid = start(world, "--ttl", "2s", script=STUBBORN)
    killed = boottime()
    running.kill()
    running.wait()
    assert until(lambda: not alive(pid)) - killed < 0.5 + ALLOWANCE
    revision = world.inspect("r")["lease_revision"]
    world.aster("run", "r", "--wait", "10s", "--", "true")
    assert boottime() - killed < 2 + 0.5 + ALLOWANCE, "the takeover came too late"
    row = world.inspect("r")
    assert row["lease_revision"] == revision, "somebody renewed for the dead"
    assert [e["event"] for e in world.history("r")] == ["granted", "takeover", "released"]


def test_a_stopped_runner_loses_its_group_before_anyone_is_granted(world):
    running, pid = start(world, "--ttl", "2s", script=STUBBORN)
    successor = world.start("run", "r", "--wait", "20s", "--", "sh", "-c",
                            "cut -d' ' -f1 /proc/uptime >granted; " f"ls -d /proc/{pid} >overlap 2>/dev/null; cat /proc/{pid}/stat >>overlap")
    time.sleep(0.3)
    running.send_signal(signal.SIGSTOP)
    ended = until(lambda: not alive(pid))
    assert successor.wait(20) in (0, 1)
    granted = float(open(world.path("granted")).read())
    assert ended <= granted + 0.01, f"the group lived until {ended}, the successor was granted at {granted}"
    running.send_signal(signal.SIGCONT)
    assert running.wait(10) == 76
    assert b"lease lost" in running.stderr.read()


def test_a_store_locked_for_less_than_the_lease_costs_nothing(world):
    running, pid = start(world, "--ttl", "3s", script="echo $$ >pid; exec sleep 3")
    lock = WriteLock(world)
    time.sleep(1)
    lock.release()
    assert running.wait(20) == 0, running.stderr.read()
    assert world.inspect("r")["epoch"] == 2


def test_a_store_locked_for_longer_ends_the_command_by_its_limit(world):
    """ttl 3 s: margin 300 ms, so KILL falls at 2.7 s after the last renewal that was sent, and TERM before."""
    script = "trap 'cut -d\" \" -f1 /proc/uptime >term' TERM; echo $$ >pid; while :; do sleep 0.02; done"
    running, pid = start(world, "--ttl", "3s", script=script)
    time.sleep(0.2)
    lock = WriteLock(world)
    last = granted_at(world)
    ended = until(lambda: not alive(pid))
    term = float(open(world.path("term")).read())
    assert term <= last + 2.7, f"TERM came {term - last:.2f} s after the last renewal"
    assert term >= last + 1.0, f"TERM came {term - last:.2f} s after the last renewal, long before the limit"
    assert ended <= last + 2.7 + ALLOWANCE, f"the command ended {ended - last:.2f} s after the last renewal"
    lock.release()
    started = time.monotonic()
    world.aster("run", "r", "--wait", "10s", "--", "true")
    assert time.monotonic() - started < 3 + ALLOWANCE, "the store is free, and nobody gets the lease"
    assert running.wait(20) == 76
    said = running.stderr.read().decode()
    assert "lease lost" in said and said.count("aster run: ") == 1, said


def granted_at(world):
    """When the row was last granted or renewed, in seconds of CLOCK_BOOTTIME."""
    db = sqlite3.connect(world.database)
    value = db.execute("SELECT granted_at_ns FROM aster_lease WHERE resource = 'r'").fetchone()[0] / 1e9
    db.close()
    return value


if __name__ == "__main__":
    run_tests(globals())

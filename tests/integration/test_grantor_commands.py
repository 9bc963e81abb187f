#!/usr/bin/env python3
"""Every command that works on leases, against a real asterd: what it prints, its JSON, its exit status, who may."""
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["ASTER_SOURCE"], "tests", "support"))
from cli import run_tests, until  # noqa: E402
from grantor import BOTH_WAYS, GrantorWorld  # noqa: E402


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_the_life_of_a_lease_and_its_value_as_json(world):
    a = world.ids["a"]
    granted = json.loads(world.aster("acquire", "invoice/1", "--ttl", "1m", "--json").out)
    assert granted["epoch"] == 1 and granted["row"]["holder"] == a, granted
    put = json.loads(world.aster("put", "invoice/1", "--epoch", "1", "--holder", a, "--json", stdin=b"paid").out)
    assert put["row"]["value_revision"] == 1, put
    assert world.aster("get", "invoice/1", env=world.by("b")).out == "paid"
    got = json.loads(world.aster("get", "invoice/1", "--json", env=world.by("b")).out)
    assert got["value_revision"] == 1 and got["value"] == "paid", got
    renewed = json.loads(world.aster("renew", "invoice/1", "--epoch", "1", "--holder", a, "--json").out)
    assert renewed["epoch"] == 1, renewed
    world.aster("acquire", "invoice/2", "--ttl", "1m", env=world.by("b"))
    listed = json.loads(world.aster("list", "invoice/", "--json").out)
    assert [(row["resource"], row["holder"]) for row in listed] == [("invoice/1", a), ("invoice/2", world.ids["b"])], listed
    assert json.loads(world.aster("list", "nothing/", "--json").out) == []
    world.aster("release", "invoice/1", "--epoch", "1", "--holder", a)
    events = lines(world.aster("history", "invoice/1", "--json").out)
    assert [(e["event"], e["actor"], e["epoch"]) for e in events] == [("granted", a, 1), ("released", a, 2)], events
    newest = lines(world.aster("history", "--limit", "1", "--json").out)
    assert [e["event"] for e in newest] == ["released"], newest
    assert world.inspect("invoice/1")["held"] is False


def test_watch_prints_decisions_as_they_come_also_after_a_restart(world):
    world.aster("acquire", "r", "--ttl", "1m")
    watch = world.start("watch", "r", "--json")
    history = world.start("history", "r", "--follow", "--json")
    assert json.loads(history.stdout.readline())["event"] == "granted"
    time.sleep(1)  # the watch begins at the present
    world.aster("revoke", "r", env=world.by("op"))
    world.aster("acquire", "other", "--ttl", "1m")
    for follower in (watch, history):
        event = json.loads(follower.stdout.readline())
        assert event["event"] == "revoked" and event["resource"] == "r" and event["actor"] == world.ids["op"], event
    world.kill_server()  # whoever follows outlasts that
    world.serve()
    world.aster("acquire", "r", "--ttl", "1m")
    for follower in (watch, history):
        event = json.loads(follower.stdout.readline())
        assert event["event"] == "granted" and event["epoch"] == 3, event
        follower.send_signal(signal.SIGTERM)
        follower.wait(10)
        assert follower.stdout.read() == b"", "it told of another resource"


def test_nobody_acts_as_anybody_else(world):
    a = world.ids["a"]
    world.aster("acquire", "r", "--ttl", "1m")
    b = world.by("b")
    assert "NOT_HOLDER" in world.aster("renew", "r", "--epoch", "1", "--holder", world.ids["b"], code=77, env=b).err
    assert "NOT_HOLDER" in world.aster("release", "r", "--epoch", "1", "--holder", world.ids["b"], code=77, env=b).err
    for command in ("renew", "release"):
        refused = world.aster(command, "r", "--epoch", "1", "--holder", a, code=64, env=b)
        assert world.ids["b"][:16] in refused.err, refused.err
    world.aster("put", "r", "--epoch", "1", "--holder", a, code=64, stdin=b"stolen", env=b)
    assert "UNAUTHORIZED" in world.aster("revoke", "r", code=77, env=b).err
    assert world.inspect("r")["epoch"] == 1 and world.inspect("r")["holder"] == a
    world.aster("revoke", "r", "--epoch", "7", code=77, env=world.by("op"))  # cannot break a newer holder
    world.aster("revoke", "r", "--epoch", "1", env=world.by("op"))
    assert "NOT_HELD" in world.aster("renew", "r", "--epoch", "1", "--holder", a, code=77).err
    assert [e["event"] for e in world.history("r")] == ["granted", "unauthorized", "revoked"], world.history("r")


def test_a_denied_acquire_says_who_holds_it_and_what_to_do(world):
    world.aster("acquire", "r", "--ttl", "1m")
    denied = world.aster("acquire", "r", code=75, env=world.by("b"))
    for word in ("HELD_BY_OTHER", "r is held by", world.ids["a"], "epoch 1", "since", "remaining"):
        assert word in denied.err, (word, denied.err)
    # Two processes of one node are one holder, and still only one of them has the lease.
    assert "HELD_BY_OTHER" in world.aster("run", "r", "--", "true", code=75).err
    taken = json.loads(world.aster("acquire", "r", "--own", "--ttl", "1m", "--json").out)
    assert taken["epoch"] == 2, taken


def test_at_a_grantor_the_holder_need_not_be_named(world):
    world.aster("acquire", "r", "--ttl", "1m")
    world.aster("renew", "r", "--epoch", "1")
    world.aster("put", "r", "--epoch", "1", stdin=b"mine")
    b = world.by("b")
    for command in ("renew", "release", "put"):
        assert "NOT_HOLDER" in world.aster(command, "r", "--epoch", "1", code=77, stdin=b"theirs", env=b).err
    assert world.aster("get", "r").out == "mine"
    taken = world.aster("acquire", "r", code=75)
    assert "aster acquire 'r' --own" in taken.err, taken.err
    world.aster("release", "r", "--epoch", "1")
    assert not world.inspect("r")["held"]


def test_who_has_no_right_to_acquire_is_refused_for_good(world):
    world.aster("node", "requires", "acquire", "--role", "worker", env=world.by("op"))
    for command in (("acquire", "r"), ("run", "r", "--wait", "20s", "--", "touch", "ran")):
        assert "UNAUTHORIZED" in world.aster(*command, code=77).err  # 75 would say that trying again may help
    assert not os.path.exists(world.path("ran"))
    world.aster("node", "role", world.ids["a"], "--add", "worker", env=world.by("op"))
    world.aster("run", "r", "--", "touch", "ran")
    assert os.path.exists(world.path("ran"))


def test_the_exit_status_says_what_is_wrong(world):
    closed = "127.0.0.1:1"
    unreachable = world.start("run", "r", "--", "touch", "ran", env=world.by("a", world.store(closed)))
    world.aster("acquire", "r", "--ttl", "1m")
    world.aster("run", "r", "--", "true", code=75, env=world.by("b"))
    lost = world.start("run", "other", "--ttl", "2s", "--", "sh", "-c", "echo $$ >pid; exec sleep 99")
    world.pid_in("pid")
    world.aster("revoke", "other", env=world.by("op"))
    assert lost.wait(20) == 76
    world.aster("release", "r", "--epoch", "1", "--holder", world.ids["b"], code=77, env=world.by("b"))
    world.aster("list", code=78, env=world.by("nobody"))
    world.aster("list", code=78, env=world.by("a", "aster://" + closed))
    assert unreachable.wait(30) == 69
    said = unreachable.stderr.read().decode().splitlines()
    # One line soon, so that nobody waits without knowing for what, and one in the end.
    assert len(said) == 2 and "still trying" in said[0] and closed in said[0], said
    assert "no grantor can be reached" in said[1] and not os.path.exists(world.path("ran")), said


def test_a_node_that_is_not_listed_is_refused_in_the_handshake(world):
    stranger = world.node("stranger")
    started = time.monotonic()
    refused = world.aster("inspect", "r", code=69, env=world.by("stranger"))
    assert "admit" in refused.err, refused.err
    assert time.monotonic() - started < 15, "it kept trying what cannot succeed"
    until(lambda: "event=peer-refused" in world.log() and stranger in world.log())
    # And a server that is not the one named is not believed.
    other = world.store().replace(world.ids["asterd"], world.ids["a"])
    assert world.aster("inspect", "r", code=69, env=world.by("a", other)).out == ""


def test_several_addresses_are_tried_in_turn(world):
    relay = world.relay()
    relay.dark(BOTH_WAYS)
    ways = world.store("127.0.0.1:1", relay.address, f"127.0.0.1:{world.port}")
    assert json.loads(world.aster("acquire", "r", "--ttl", "1m", "--json", env=world.by("a", ways)).out)["epoch"] == 1
    # A lease moves from a way that goes dark to one that leads there, under the same epoch.
    relay.dark(0)
    ways = world.store(relay.address, f"127.0.0.1:{world.port}")
    holder = world.start("run", "s", "--ttl", "20s", "--renew", "300ms", "--", "sh", "-c",
                         "echo $$ >pid; while [ ! -e done ]; do sleep 0.02; done", env=world.by("a", ways))
    world.pid_in("pid")
    relay.dark(BOTH_WAYS)
    revision = world.inspect("s")["lease_revision"]
    until(lambda: world.inspect("s")["lease_revision"] > revision + 1, 30)
    assert world.inspect("s")["epoch"] == 1
    open(world.path("done"), "w").close()
    assert holder.wait(30) == 0, holder.stderr.read()


def test_a_waiting_command_is_interrupted_and_leaves_no_waiter(world):
    world.aster("acquire", "r", "--ttl", "1m")
    waiting = world.start("run", "r", "--wait", "1m", "--", "true", env=world.by("b"))
    assert b"is held by" in waiting.stderr.readline()
    interrupted = time.monotonic()
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(20) == 130
    assert time.monotonic() - interrupted < 5
    world.aster("release", "r", "--epoch", "1", "--holder", world.ids["a"])
    row = world.inspect("r")
    assert row["held"] is False and row["epoch"] == 2, row


def test_an_expired_lease_cannot_be_renewed_and_a_forgotten_one_keeps_its_epochs(world):
    a = world.ids["a"]
    world.aster("acquire", "r", "--ttl", "100ms")
    until(lambda: not world.inspect("r")["held"] or world.inspect("r")["remaining_ms"] == 0)
    said = world.aster("renew", "r", "--epoch", "1", "--holder", a, code=77).err
    assert "EXPIRED" in said or "NOT_HELD" in said, said
    epoch = json.loads(world.aster("acquire", "r", "--ttl", "1m", "--json").out)["epoch"]
    assert epoch >= 2
    world.aster("put", "r", "--epoch", str(epoch), "--holder", a, stdin=b"kept")
    world.aster("release", "r", "--epoch", str(epoch), "--holder", a)
    world.aster("forget", "r")
    assert world.aster("get", "r", code=1).out == ""
    again = json.loads(world.aster("acquire", "r", "--ttl", "1m", "--json").out)["epoch"]
    assert again > epoch + 1, (epoch, again)
    late = world.aster("put", "r", "--epoch", str(epoch), "--holder", a, code=77, stdin=b"late").err
    assert "STALE_EPOCH" in late, late
    assert world.aster("get", "r", code=1).out == ""


def test_very_long_names_are_listed_whole(world):
    name = "deep/" * 100 + "ü" * 6
    assert len(name.encode()) == 512
    world.aster("acquire", name, "--ttl", "1m")
    assert name in world.aster("list").out
    assert json.loads(world.aster("list", "--json").out)[0]["resource"] == name
    assert json.loads(world.aster("list", name, "--json").out)[0]["resource"] == name
    assert world.history(name)[0]["event"] == "granted"
    assert world.aster("acquire", name + "x", code=64).err != ""


if __name__ == "__main__":
    run_tests(globals(), GrantorWorld)

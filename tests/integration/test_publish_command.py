"""`aster publish`: late writers, kill -9 at any moment, many publishers at once."""
import json
import os
import random
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.environ["ASTER_SOURCE"], "tests", "support"))
from cli import SLOW, World  # noqa: E402


def acquired(world, resource, holder):
    return json.loads(world.aster("acquire", resource, "--holder", holder, "--ttl", "60s", "--json").out)["epoch"]


def a_late_publisher_is_refused_and_the_file_stays(world):
    to = world.path("catalog.json")
    open(world.path("one"), "w").write("one")
    open(world.path("late"), "w").write("late")
    first = acquired(world, "catalog", "a")
    world.aster("publish", "catalog", "one", "--to", to, "--holder", "a", "--epoch", str(first))
    world.aster("release", "catalog", "--holder", "a", "--epoch", str(first))
    acquired(world, "catalog", "b")
    late = world.aster("publish", "catalog", "late", "--to", to, "--holder", "a", "--epoch", str(first), code=77)
    assert "STALE_EPOCH" in late.err and "was left as it is" in late.err, late.err
    assert open(to).read() == "one"
    assert not [name for name in os.listdir(world.directory) if ".aster-" in name]


def under_run_everything_comes_from_the_environment(world):
    to = world.path("report")
    world.aster("run", "nightly", "--", "sh", "-c", f"echo made | {os.environ['ASTER_BIN']} publish /dev/stdin --to {to}")
    assert open(to).read() == "made\n"
    world.aster("publish", "nightly", "x", "--holder", "a", "--epoch", "1", code=64)


def a_killed_publisher_leaves_the_old_file_or_the_new_one(world):
    to = world.path("big")
    contents = []
    for letter in "ab":
        open(world.path(letter), "w").write(letter * 3_000_000)
        contents.append(letter * 3_000_000)
    epoch = acquired(world, "big", "w")
    publish = ["publish", "big", "a", "--to", to, "--holder", "w", "--epoch", str(epoch)]
    world.aster(*publish)
    chooser = random.Random(4)
    killed = 0
    for round in range(10 if SLOW else 30):
        publish[2] = "ab"[round % 2]
        process = world.start(*publish)
        time.sleep(chooser.random() * 0.02)
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        assert open(to).read() in contents
    assert killed > 0
    world.aster(*publish)  # no lock was left behind


def of_many_publishers_every_file_is_whole_and_epochs_only_grow(world):
    """Two resources' worth of publishers on one path: only the newest fence's content may stand."""
    to = world.path("shared")
    epochs = []
    for number in range(5):
        holder = f"w{number}"
        epoch = acquired(world, "shared", holder)
        epochs.append((holder, epoch))
        open(world.path(holder), "w").write(f"{epoch}\n" * 10000)
        processes = [world.start("publish", "shared", h, "--to", to, "--holder", h, "--epoch", str(e)) for h, e in epochs]
        codes = [process.wait() for process in processes]
        assert codes[-1] == 0 and set(codes[:-1]) <= {77}, codes
        assert set(open(to).read().split()) == {str(epoch)}
        assert re.match(rf"aster1:{epoch}:", open(to + ".fence").read())
        world.aster("release", "shared", "--holder", holder, "--epoch", str(epoch))


for test in (a_late_publisher_is_refused_and_the_file_stays, under_run_everything_comes_from_the_environment,
             a_killed_publisher_leaves_the_old_file_or_the_new_one,
             of_many_publishers_every_file_is_whole_and_epochs_only_grow):
    world = World()
    try:
        test(world)
        print("ok", test.__name__)
    finally:
        world.close()

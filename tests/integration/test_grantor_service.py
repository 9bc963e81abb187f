#!/usr/bin/env python3
"""asterd under a service manager: the unit file's own command lines, and what the manager is told."""
import configparser
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["ASTER_SOURCE"], "tests", "support"))
from asterd import ASTERD, Asterd, skip_without_asterd  # noqa: E402
from cli import run_tests  # noqa: E402

UNIT = os.path.join(os.environ["ASTER_SOURCE"], "packaging", "asterd.service")


class Unit(configparser.RawConfigParser):
    """The unit as it is installed; a key that comes more than once keeps its last value."""

    def __init__(self):
        super().__init__(strict=False, interpolation=None)
        self.optionxform = str
        self.read(UNIT)

    def command(self, key, config, pid=0):
        words = [word.replace("$MAINPID", str(pid)) for word in shlex.split(self["Service"][key])]
        # systemd finds asterd in the directories of programs: the unit is the same for every prefix.
        assert words[0] == "asterd" or words[0].startswith("/"), words
        return [ASTERD if os.path.basename(word) == "asterd" else config if word == "/etc/aster/asterd.conf" else word
                for word in words]


class Manager:
    """The other end of NOTIFY_SOCKET."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.settimeout(20)
        self.address = address.replace("\0", "@")

    def next(self):
        return dict(line.split("=", 1) for line in self.socket.recv(4096).decode().splitlines())

    def await_key(self, key):
        """The next message with this key, and those before it."""
        before = []
        while key not in (message := self.next()):
            before.append(message)
        return message, before


def started(world, address, **environment):
    manager = Manager(address)
    server = Asterd(world)
    server.configure()
    server.start(command=Unit().command("ExecStart", server.config), NOTIFY_SOCKET=manager.address, **environment)
    return server, manager


def test_the_manager_is_told_when_it_serves_reloads_and_stops(world):
    server, manager = started(world, world.path("notify"))
    message, before = manager.await_key("READY")
    assert message == {"READY": "1", "STATUS": "Serving"} and before == []
    server.await_ready()
    world.aster("acquire", "catalog", "--ttl", "1m")  # READY was true
    before_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    subprocess.run(Unit().command("ExecReload", server.config, server.process.pid), check=True)
    message = manager.next()
    assert message["RELOADING"] == "1"
    assert before_us <= int(message["MONOTONIC_USEC"]) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    assert manager.next() == {"READY": "1", "STATUS": "Serving"}
    server.configure("nonsense = 1\n")
    server.process.send_signal(signal.SIGHUP)
    assert manager.next()["RELOADING"] == "1"
    message = manager.next()
    assert message["READY"] == "1" and "not reloaded" in message["STATUS"]
    server.process.send_signal(signal.SIGTERM)
    assert manager.next()["STOPPING"] == "1"
    assert server.process.wait(20) == 0


def test_the_watchdog_is_fed_twice_as_often_as_it_asks(world):
    server, manager = started(world, "\0aster-test-" + str(os.getpid()), WATCHDOG_USEC="400000")
    manager.await_key("READY")
    times = []
    while len(times) < 6:
        message, _ = manager.await_key("WATCHDOG")
        assert message["WATCHDOG"] == "1" and message["STATUS"].startswith("Serving, 0 operations")
        times.append(time.monotonic())
    assert 0.9 < times[-1] - times[0] < 4, times  # five beats of 0.2 s
    assert server.end() == 0


def test_a_watchdog_that_is_another_processes_is_left_alone(world):
    server, manager = started(world, world.path("notify"), WATCHDOG_USEC="100000", WATCHDOG_PID="1")
    manager.await_key("READY")
    server.process.send_signal(signal.SIGTERM)
    _, before = manager.await_key("STOPPING")
    assert before == []
    assert server.process.wait(20) == 0


def test_it_serves_without_a_manager_or_with_one_that_is_gone(world):
    for path in ("", world.path("nobody"), "relative", "@", "x" * 200):
        server = Asterd(world)
        server.configure()
        server.start(NOTIFY_SOCKET=path, WATCHDOG_USEC="100000")
        server.await_ready()
        assert server.end() == 0


def test_a_manager_that_does_not_read_is_not_waited_for(world):
    server, _ = started(world, world.path("notify"), WATCHDOG_USEC="2000")  # the socket's queue is full at once
    server.await_ready()
    time.sleep(0.3)  # some hundred beats
    world.aster("acquire", "catalog", "--ttl", "1m")
    assert server.end() == 0


def test_the_unit_waits_for_ready_and_is_confined(world):
    unit = Unit()["Service"]
    assert unit["Type"] == "notify" and int(unit["WatchdogSec"]) >= 10 and unit["Restart"] == "on-failure"
    assert unit["User"] == "aster" and unit["CapabilityBoundingSet"] == "" and unit["ProtectSystem"] == "strict"
    if not shutil.which("systemd-analyze"):
        return
    path = world.path("asterd.service")
    with open(UNIT, encoding="utf-8") as source, open(path, "w", encoding="utf-8") as copy:
        copy.write("".join(f"ExecStart={ASTERD}\n" if line.startswith("ExecStart=") else line for line in source))
    verified = subprocess.run(["systemd-analyze", "verify", "--man=no", path], stderr=subprocess.PIPE, check=False)
    assert verified.returncode == 0 and b"asterd.service" not in verified.stderr, verified.stderr
    judged = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--threshold=20", path],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if b"unrecognized option" not in judged.stdout:  # before systemd 250
        assert judged.returncode == 0, judged.stdout.decode()


if __name__ == "__main__":
    skip_without_asterd()
    run_tests(globals())

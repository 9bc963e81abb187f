#!/usr/bin/env python3
"""`aster run` while all is well: what the command gets, what comes back, signals, waiting."""
import os
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.environ["ASTER_SOURCE"], "tests", "support"))
from cli import ASTER, SLOW, run_tests, until  # noqa: E402


def test_the_command_finds_its_fence_in_the_environment(world):
    world.environment["ASTER_EPOCH"] = "from an outer run"
    said = world.aster("run", "the name", "--holder", "w 1", "--", "env").out
    found = dict(line.split("=", 1) for line in said.splitlines() if line.startswith("ASTER_"))
    assert found["ASTER_RESOURCE"] == "the name" and found["ASTER_EPOCH"] == "1", found
    assert found["ASTER_HOLDER"] == "w 1" and found["ASTER_STORE"] == "sqlite:" + world.database, found
    assert found["ASTER_FENCE"] == "aster1:1:w%201:the%20name", found
    assert said.count("ASTER_EPOCH=") == 1, said


def test_a_relative_store_still_works_after_the_command_changed_directory(world):
    world.environment["ASTER_STORE"] = "sqlite:here.db"
    script = f"cd / && {ASTER} check && echo v | {ASTER} put && {ASTER} renew"
    world.aster("run", "r", "--", "sh", "-ec", script)
    assert world.aster("get", "r").out == "v\n"


def test_the_default_holder_is_another_one_in_every_process(world):
    holders = {world.aster("run", "r", "--", "sh", "-c", "echo $ASTER_HOLDER").out for _ in range(3)}
    assert len(holders) == 3, holders


def test_the_exit_status_is_the_commands_own(world):
    for status in (0, 1, 7, 75, 255):
        world.aster("run", "r", "--", "sh", "-c", f"exit {status}", code=status)
    world.aster("run", "r", "--", "sh", "-c", "kill -9 $$", code=137)
    assert "nosuchcommand" in world.aster("run", "r", "--", "nosuchcommand", code=127).err
    world.aster("run", "r", "--", "/etc/passwd", code=126)
    assert world.inspect("r")["held"] is False, "the lease was not released"
    assert world.inspect("r")["epoch"] == 16


def test_it_holds_the_lease_until_the_command_has_ended(world):
    running = world.start("run", "r", "--ttl", "2400ms", "--", "sh", "-c", "echo $$ >pid; exec sleep 4")
    world.pid_in("pid")
    while running.poll() is None:
        row = world.inspect("r")
        assert row["held"] or running.wait(1) == 0, row
        time.sleep(0.05)
    assert running.returncode == 0
    row = world.inspect("r")
    assert row["epoch"] == 2 and row["lease_revision"] >= 3, row


def test_a_released_lease_can_be_had_again_at_once(world):
    started = time.monotonic()
    for _ in range(8):
        world.aster("run", "r", "--", "true")
    assert time.monotonic() - started < (20 if SLOW else 2), "8 short holders in sequence take too long"


def test_eight_at_once_take_turns(world):
    script = "mkdir inside && rmdir inside"  # fails when two are inside
    runs = [world.start("run", "r", "--wait", "60s", "--", "sh", "-ec", script) for _ in range(8)]
    for run in runs:
        assert run.wait(60) == 0, run.stderr.read()
    assert world.inspect("r")["epoch"] == 16


def test_a_waiter_says_who_holds_it_and_gets_it(world):
    world.aster("acquire", "r", "--holder", "w1", "--ttl", "3s")
    started = time.monotonic()
    said = world.aster("run", "r", "--wait", "10s", "--", "true").err
    assert "held by w1" in said and "since" in said and "remaining" in said, said
    assert time.monotonic() - started < (8 if SLOW else 4)


def test_a_wait_that_is_over_exits_75(world):
    world.aster("acquire", "r", "--holder", "w1", "--ttl", "60s")
    started = time.monotonic()
    world.aster("run", "r", "--wait", "300ms", "--", "true", code=75)
    assert time.monotonic() - started < (6 if SLOW else 2)


def test_a_signal_ends_the_wait_within_a_second_and_leaves_no_waiter(world):
    world.aster("acquire", "r", "--holder", "w1", "--ttl", "60s")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        waiter = world.start("run", "r", "--wait", "60s", "--", "touch", world.path("ran"))
        assert b"waiting" in waiter.stderr.readline()
        sent = time.monotonic()
        waiter.send_signal(number)
        assert waiter.wait(10) == 128 + number
        assert time.monotonic() - sent < 1, "too slow"
    world.aster("revoke", "r", "--epoch", "1")
    time.sleep(0.5)
    row = world.inspect("r")
    assert row["epoch"] == 2 and not row["held"] and not os.path.exists(world.path("ran")), row


def test_signals_reach_the_whole_group(world):
    script = "trap 'echo $0-$1 >>got-%s; exit 0' %s; echo $$ >pid-$0; while :; do sleep 0.05; done"
    for name in ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2"):
        inner = script % (name, name)
        running = world.start("run", "r", "--", "bash", "-c",
                              f"bash -c \"$1\" inner-{name} & exec bash -c \"$1\" outer-{name}", "x", inner)
        inner_pid = world.pid_in(f"pid-inner-{name}")
        world.pid_in(f"pid-outer-{name}")
        running.send_signal(getattr(signal, "SIG" + name))
        assert running.wait(10) == 0, running.stderr.read()
        reached = 1 if name in ("INT", "QUIT") else 2  # a shell makes its background jobs ignore these two
        until(lambda: len(open(world.path("got-" + name)).read().splitlines()) == reached)
        if reached == 1:
            os.kill(inner_pid, signal.SIGKILL)


def test_a_command_can_be_stopped_and_continued_and_keeps_its_lease(world):
    # exec: a shell that is about to vfork() would wait in state D for a child that was stopped before its exec
    running = world.start("run", "r", "--ttl", "3s", "--", "sh", "-c", "echo $$ >pid; exec sleep 5")
    pid = world.pid_in("pid")
    state = lambda: open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
    running.send_signal(signal.SIGTSTP)
    until(lambda: state() == "T")
    time.sleep(3.3)
    assert running.poll() is None and world.inspect("r")["held"]
    running.send_signal(signal.SIGCONT)
    assert running.wait(10) == 0, running.stderr.read()


def test_the_command_gets_the_terminal_and_gives_it_back(world):
    script = ('import os, sys; os.setsid(); fd = os.open(os.environ["TTY"], os.O_RDWR); '
              'import fcntl, termios; fcntl.ioctl(fd, termios.TIOCSCTTY, 0); [os.dup2(fd, i) for i in (0, 1, 2)]; '
              'import subprocess; '
              'code = subprocess.call(sys.argv[1:]); os.write(1, b"END %d %d\\n" % (code, os.tcgetpgrp(0) == os.getpgrp()))')
    main, tty = os.openpty()
    environment = dict(world.environment, TTY=os.ttyname(tty))
    inner = 'import os; print("FOREGROUND", os.tcgetpgrp(0) == os.getpgrp()); print("READ", input())'
    process = subprocess.Popen([sys.executable, "-c", script, ASTER, "run", "r", "--", sys.executable, "-c", inner],
                               env=environment)
    os.write(main, b"typed\n")
    said = b""
    while not (b"END" in said and said.endswith(b"\n")) and select.select([main], [], [], 20)[0]:
        said += os.read(main, 4096)
    process.kill()
    process.wait()
    os.close(tty)
    os.close(main)
    assert b"FOREGROUND True" in said and b"READ typed" in said and b"END 0 1" in said, said


def test_processes_that_the_command_leaves_behind_are_mentioned(world):
    script = "sleep 30 >/dev/null 2>&1 & echo $! >pid"
    said = world.aster("run", "r", "--", "sh", "-c", script).err
    assert "go on without the lease" in said and said.count("\n") == 1, said
    os.kill(world.pid_in("pid"), signal.SIGKILL)
    assert world.aster("run", "r", "--", "sh", "-c", "sleep 0.1 & wait").err == ""


def test_nothing_of_the_runner_leaks_into_the_command(world):
    said = world.aster("run", "r", "--", "sh", "-c", "ls /proc/self/fd; grep -E 'Sig(Blk|Ign)' /proc/self/status").out
    descriptors = [word for word in said.split() if word.isdigit() and len(word) < 5]
    assert set(descriptors) <= {"0", "1", "2", "3"}, said
    masks = [int(line.split()[1], 16) for line in said.splitlines() if line.startswith("SigBlk")]
    assert masks == [0], said


def test_an_inherited_ignore_of_sigchld_does_not_hide_the_end(world):
    ignoring = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    ended = subprocess.run([sys.executable, "-c", ignoring, ASTER, "run", "r", "--", "sh", "-c", "exit 3"],
                           env=world.environment, timeout=20)
    assert ended.returncode == 3, ended


if __name__ == "__main__":
    run_tests(globals())

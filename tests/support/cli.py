"""Driving the program `aster` as a user would: real processes, a store of its own, boot-time stamps."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

ASTER = os.environ["ASTER_BIN"]
SLOW = os.environ.get("ASTER_BUILD", "").rstrip("/").endswith(("asan-ubsan", "tsan"))


def boottime():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class World:
    """A fresh directory with a store; everything that was started is gone at the end."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="aster-cli-")
        self.database = os.path.join(self.directory, "leases.db")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("ASTER_") or k.endswith("_OPTIONS")}
        self.environment["ASTER_STORE"] = "sqlite:" + self.database
        self.started = []

    def path(self, name):
        return os.path.join(self.directory, name)

    def start(self, *arguments, **options):
        options.setdefault("env", self.environment)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("cwd", self.directory)
        process = subprocess.Popen([ASTER, *arguments], **options)
        self.started.append(process)
        return process

    def aster(self, *arguments, code=0, stdin=None, **options):
        """Run to the end, check the exit status, return what it printed."""
        options.setdefault("stdin", subprocess.PIPE if stdin is not None else subprocess.DEVNULL)
        process = self.start(*arguments, **options)
        out, err = process.communicate(stdin, timeout=60)
        assert process.returncode == code, (arguments, process.returncode, out, err)
        return Output(out, err)

    def inspect(self, resource):
        return json.loads(self.aster("inspect", resource, "--json").out)

    def history(self, resource):
        return [json.loads(line) for line in self.aster("history", resource, "--json").out.splitlines()]

    def pid_in(self, name, timeout=20):
        """The process id that a command wrote into a file, once it is there."""
        until(lambda: os.path.exists(self.path(name)) and open(self.path(name)).read().endswith("\n"), timeout)
        return int(open(self.path(name)).read())

    def close(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
            for stream in (process.stdout, process.stderr, process.stdin):
                if stream is not None:
                    stream.close()
        shutil.rmtree(self.directory, ignore_errors=True)


class Output:
    def __init__(self, out, err):
        self.out = out.decode(errors="replace") if out is not None else ""
        self.err = err.decode(errors="replace") if err is not None else ""


def until(condition, timeout=20):
    """Wait for a condition; when it became true, by CLOCK_BOOTTIME."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)
    return boottime()


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):  # the latter when it goes between open and read
        return False


def run_tests(namespace, kind=World):
    """Every function test_*(world) of the module, each in a world of its own."""
    for name, test in list(namespace.items()):
        if name.startswith("test_") and callable(test):
            world = kind()
            started = time.monotonic()
            try:
                test(world)
            except BaseException:
                print(f"FAILED {name}", file=sys.stderr, flush=True)
                raise
            finally:
                world.close()
            print(f"ok {name} {time.monotonic() - started:.1f} s", flush=True)

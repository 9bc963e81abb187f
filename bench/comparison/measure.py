"""One measurement each: a driver or a reference is run, and its line of JSON comes back."""
import fcntl
import json
import os
import random
import signal
import struct
import subprocess
import tempfile
import time


class Lock:
    """While it is held nobody else who uses the same file measures."""

    def __init__(self, path):
        self.file = open(path, "a") if path else None

    def __enter__(self):
        if self.file:
            fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        if self.file:
            fcntl.flock(self.file, fcntl.LOCK_UN)


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{os.path.basename(command[0])}: {done.stderr.strip() or done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def drive(server, *options, driver=None):
    return run([driver or server.driver_path, *server.arguments(), *options])


class Apart:
    """The server on one CPU and everything that is started here on another: how the scheduler places two processes that
    wait for each other makes more difference than what they do."""

    def __init__(self, server, cpus):
        self.server, self.cpus, self.all = server, cpus, os.sched_getaffinity(0)

    def place(self, server_cpus, own_cpus):
        for thread in os.listdir(f"/proc/{self.server.process.pid}/task"):
            os.sched_setaffinity(int(thread), server_cpus)
        os.sched_setaffinity(0, own_cpus)

    def __enter__(self):
        self.place({self.cpus[0]}, {self.cpus[1]})

    def __exit__(self, *_):
        self.place(self.all, self.all)


def reference(build, *arguments):
    return run([os.path.join(build, "bench", "peers", "reference"), *arguments])


def memory_per_lease(server, leases, variant):
    """Growth of the server's resident memory by `leases` held leases with names of 20 bytes, all included."""
    before = server.resident_bytes()
    drive(server, "--mode", "load", "--clients", 64, "--to", leases, "--ttl-ms", 7200000, "--variant", variant)
    return (server.resident_bytes() - before) / leases


class Told:
    """A driver whose lines are awaited."""

    def __init__(self, command):
        self.process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)

    def line(self, word):
        text = self.process.stdout.readline()
        if not text.startswith(word):
            raise RuntimeError(f"{self.process.args[0]} said {text!r} instead of {word}")
        return text

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def takeover(server, ttl_ms, variant, effective_ms):
    """Milliseconds from the end of a killed holder's ttl to the grant of its lease to somebody who waited; None when the
    kill met a renewal under way, of which nobody knows whether it counts."""
    common = [server.driver_path, *server.arguments(), "--variant", variant]
    resource = f"takeover-{random.getrandbits(48):x}"
    progress = tempfile.NamedTemporaryFile(dir="/dev/shm")
    holder = waiter = None
    try:
        holder = Told([*common, "--mode", "hold", "--resource", resource, "--ttl-ms", ttl_ms, "--progress", progress.name])
        holder.line("HELD")
        waiter = Told([*common, "--mode", "wait", "--resource", resource, "--ttl-ms", 60000])
        waiter.line("WAITING")
        time.sleep(0.05 + random.random() * ttl_ms / 3000)
        holder.process.send_signal(signal.SIGKILL)
        got_ns = int(waiter.line("GOT").split()[1])
        sending_ns, sent_ns = struct.unpack("2q", progress.read(16))
        waiter.process.wait(10)
        return (got_ns - sent_ns) / 1e6 - effective_ms if sending_ns == sent_ns else None
    finally:
        for told in (holder, waiter):
            if told:
                told.end()
        progress.close()

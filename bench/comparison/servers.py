"""The services that are compared: each on a port and in a directory of its own, stopped by the process id it got."""
import os
import shutil
import signal
import socket
import subprocess
import time


class Missing(Exception):
    """The service or its driver cannot be run here; the text tells what to install or build."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port, process, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the server on port {port} ended with {process.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"port {port} does not open")


class Server:
    program = package = driver = None
    key = "server"  # how bounds name it
    title = "server"

    def __init__(self, build, directory):
        self.build = build
        self.directory = os.path.join(directory, self.key)
        self.driver_path = os.path.join(build, "bench", "peers", self.driver)
        self.process = None
        self.port = None

    def check(self):
        if shutil.which(self.program) is None:
            raise Missing(f"{self.program} is not installed: install the package {self.package}")
        if not os.path.exists(self.driver_path):
            raise Missing(f"{self.driver} was not built: {self.driver_needs}")

    driver_needs = "build the release preset"

    def command(self):
        raise NotImplementedError

    def start(self):
        self.check()
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory)
        self.port = free_port()
        command = self.command()
        with open(os.path.join(self.directory, "log"), "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            self.wait()
        except RuntimeError as error:
            tail = open(os.path.join(self.directory, "log"), errors="replace").read()[-2000:]
            self.stop()
            raise RuntimeError(f"{self.title}: {error}\n{tail}") from None

    def wait(self):
        wait_for_port(self.port, self.process)

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def arguments(self):
        return ["--port", str(self.port), "--server-pids", str(self.process.pid)]

    def resident_bytes(self):
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("VmRSS"):
                return int(line.split()[1]) * 1024
        raise RuntimeError("no VmRSS")

    def version(self):
        out = subprocess.run([self.program, "--version"], capture_output=True, text=True).stdout
        return out.splitlines()[0].strip() if out else "unknown"


class Redis(Server):
    program, package, driver = "redis-server", "redis-server", "lease_redis"
    driver_needs = "install libhiredis-dev and configure again"
    persistence = ["--appendonly", "no"]

    def command(self):
        # No rewrite of the file during a run: it would only add noise.
        return ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.directory, "--save", "",
                "--auto-aof-rewrite-percentage", "0", "--maxclients", "20000", "--daemonize", "no", *self.persistence]


class RedisNone(Redis):
    key, title = "redis-none", "Redis, no persistence"


class RedisAlways(Redis):
    key, title = "redis-always", "Redis, appendfsync always"
    persistence = ["--appendonly", "yes", "--appendfsync", "always"]


class Etcd(Server):
    key, title = "etcd", "etcd, one node"
    program, package, driver = "etcd", "etcd-server", "lease_etcd"

    def command(self):
        client, peer = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{free_port()}"
        return ["etcd", "--name", "n1", "--data-dir", os.path.join(self.directory, "data"), "--listen-client-urls", client,
                "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                "--initial-cluster", f"n1={peer}", "--quota-backend-bytes", "8589934592", "--log-level", "warn",
                "--logger", "zap", "--log-outputs", "stderr"]

    def wait(self):
        super().wait()
        time.sleep(2)  # it elects itself

    def arguments(self):
        return [*super().arguments(), "--ttl-ms", "60000"]  # later options win


class Asterd(Server):
    driver = "lease_aster"
    driver_needs = "it needs libngtcp2-dev, libprotobuf-c-dev and libgnutls28-dev"

    def check(self):
        self.program = os.path.join(self.build, "src", "grantor", "asterd")
        for path in (self.program, self.driver_path):
            if not os.path.exists(path):
                raise Missing(f"{os.path.basename(path)} was not built: {self.driver_needs}")

    def node(self, name):
        """Make a node; its directory and its id."""
        directory = os.path.join(self.directory, name)
        aster = os.path.join(self.build, "src", "cli", "aster")
        subprocess.run([aster, "node", "new", name, "--node", directory], check=True, stdout=subprocess.DEVNULL)
        found = subprocess.run([aster, "node", "id", "--node", directory], check=True, capture_output=True, text=True)
        return directory, found.stdout.strip()

    def command(self):
        server, self.server_id = self.node("server")
        self.client, client_id = self.node("client")
        configuration = os.path.join(self.directory, "asterd.conf")
        with open(configuration, "w") as file:
            file.write(f'{self.store()}\nconnections-per-node-max = 1024\nnode-directory = "{server}"\n'
                       f'listen {{ quic = {{"127.0.0.1:{self.port}"}}\n tcp = {{"127.0.0.1:{self.port}"}} }}\n'
                       f'node "{client_id}" {{ name = "bench" }}\n')
        return [self.program, "--config", configuration]

    def arguments(self):
        return [*super().arguments(), "--node", self.client, "--server", self.server_id]

    def version(self):
        aster = os.path.join(self.build, "src", "cli", "aster")
        return subprocess.run([aster, "version"], capture_output=True, text=True).stdout.splitlines()[0]


class AsterdMemory(Asterd):
    key, title = "asterd-memory", "asterd, memory"

    def store(self):
        return 'journal = "none"'


class AsterdJournal(Asterd):
    key, title = "asterd-durable", "asterd, SQLite journal"

    def store(self):
        return f'journal = "sqlite:{os.path.join(self.directory, "journal.db")}"'


ALL = [AsterdMemory, AsterdJournal, RedisNone, RedisAlways, Etcd]

"""The program `aster` against a real asterd: the server, nodes that it knows, and a network that can go dark."""
import os
import re
import subprocess
import sys

from cli import ASTER, World, until

BUILD = os.environ["ASTER_BUILD"]
ASTERD = os.path.join(BUILD, "src", "grantor", "asterd")
RELAY = os.path.join(BUILD, "tests", "relay")
TO_SERVER, TO_CLIENT, BOTH_WAYS = 1, 2, 3

if not os.path.exists(ASTERD):
    sys.exit(77)  # a build without the server


class Relay:
    def __init__(self, world, address):
        self.process = subprocess.Popen([RELAY, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        world.started.append(self.process)
        self.address = self.process.stdout.readline().strip()

    def dark(self, ways):
        self.process.stdin.write(f"dark {ways}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "ok\n"


class GrantorWorld(World):
    """Nodes "a" and "b" without a role and the operator "op"; commands speak as "a" unless told otherwise."""

    def __init__(self):
        super().__init__()
        self.server = None
        self.port = 0
        self.ids = {name: self.node(name) for name in ("asterd", "a", "b", "op")}
        self.serve()
        self.environment["ASTER_NODE"] = self.path("a")
        self.environment["ASTER_STORE"] = self.store()

    def node(self, name):
        """Make a node's files; its id."""
        made = subprocess.run([ASTER, "node", "new", name, "--node", self.path(name)], env=self.environment,
                              capture_output=True, text=True, check=True)
        return made.stdout.strip()

    def serve(self):
        """Start asterd, on the port of before if there was one, and wait until it is ready."""
        with open(self.path("asterd.conf"), "w") as file:
            file.write(f'journal = "sqlite:{self.path("journal.db")}"\nnode-directory = "{self.path("asterd")}"\n'
                       f'listen {{ quic = {{"127.0.0.1:{self.port}"}} }}\n'
                       f'node "{self.ids["a"]}" {{ name = "a" }}\nnode "{self.ids["b"]}" {{ name = "b" }}\n'
                       f'node "{self.ids["op"]}" {{ roles = {{"operator"}} }}\n')
        with open(self.path("asterd.log"), "w") as log:
            self.server = subprocess.Popen([ASTERD, "--config", self.path("asterd.conf")], stderr=log)
        self.started.append(self.server)
        until(lambda: "event=ready" in self.log() or self.server.poll() is not None)
        self.port = int(re.search(r"transport=quic address=127\.0\.0\.1:(\d+)", self.log()).group(1))

    def log(self):
        with open(self.path("asterd.log")) as log:
            return log.read()

    def kill_server(self):
        self.server.kill()
        self.server.wait()

    def store(self, *addresses):
        """The store's name, by default straight to the server."""
        addresses = addresses or (f"127.0.0.1:{self.port}",)
        return "aster://" + ",".join(f"{self.ids['asterd']}@{address}" for address in addresses)

    def relay(self):
        return Relay(self, f"127.0.0.1:{self.port}")

    def by(self, node, store=None):
        """An environment in which commands speak as another node, perhaps over another way."""
        return dict(self.environment, ASTER_NODE=self.path(node), ASTER_STORE=store or self.store())

    def close(self):
        ended = self.server.poll()
        if ended is None:
            self.server.terminate()
            ended = self.server.wait(30)
        log = self.log()
        super().close()
        assert ended in (0, -9), f"asterd ended with {ended}:\n{log}"  # also a sanitizer's report

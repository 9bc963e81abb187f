"""A real asterd on the loopback, with one client that is admitted; both have keys of their own."""
import http.client
import json
import os
import re
import signal
import subprocess
import threading

from cli import ASTER, until

ASTERD = os.path.join(os.environ["ASTER_BUILD"], "src", "grantor", "asterd")


def skip_without_asterd():
    if not os.path.exists(ASTERD):
        print("this build has no asterd")
        raise SystemExit(77)


class Asterd:
    """In the directory of a World; World.close() ends it."""

    def __init__(self, world, kept='journal = "none"'):
        self.world = world
        self.config = world.path("asterd.conf")
        self.kept = kept
        self.id = self._node("server")
        self.client = self._node("client")
        self.lines = []
        self.process = None

    def _node(self, name):
        directory = self.world.path(name)
        words = ["id"] if os.path.exists(directory) else ["new", name]
        out = subprocess.run([ASTER, "node", *words, "--node", directory], check=True, stdout=subprocess.PIPE)
        return out.stdout.decode().strip()

    def configure(self, rest="", roles='"operator"'):
        with open(self.config, "w", encoding="utf-8") as config:
            config.write(f'{self.kept}\nnode-directory = "{self.world.path("server")}"\n'
                         'listen { quic = {"127.0.0.1:0"} }\n'
                         f'node "{self.client}" {{ name = "client" roles = {{{roles}}} }}\n{rest}')

    def start(self, *arguments, command=None, **environment):
        command = command or [ASTERD, "--config", self.config]
        self.lines = []
        self.process = subprocess.Popen([*command, *arguments], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                        env={**os.environ, **environment})
        self.world.started.append(self.process)
        self.reader = threading.Thread(target=self._read, args=(self.process.stderr, self.lines), daemon=True)
        self.reader.start()

    @staticmethod
    def _read(stream, lines):
        try:
            for line in stream:
                lines.append(line.decode(errors="surrogateescape"))
        except ValueError:
            pass  # closed at the end of the test

    def await_line(self, *texts):
        """The first line of the log that has all of these."""
        found = []

        def look():
            ended = self.process.poll() is not None and not self.reader.is_alive()  # and its last words are read
            found[:] = [line for line in list(self.lines) if all(text in line for text in texts)]
            return found or ended

        until(look)
        assert found, (texts, self.lines)
        return found[0]

    def await_ready(self):
        self.await_line("ready")
        self.port = int(re.search(r"127\.0\.0\.1:(\d+)", self.await_line("listening", "quic")).group(1))
        self.world.environment["ASTER_STORE"] = f"aster://{self.id}@127.0.0.1:{self.port}"
        self.world.environment["ASTER_NODE"] = self.world.path("client")

    def http_port(self):
        return int(re.search(r'port"?[=:](\d+)', self.await_line("listening", "http")).group(1))

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


class Http:
    """Requests to a port; an answer is (status, headers, body)."""

    def __init__(self, port):
        self.port = port

    def ask(self, path, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def get(self, path, **headers):
        status, _, body = self.ask(path, **headers)
        assert status == 200, (path, status, body)
        return body

    def json(self, path, status=200):
        got, headers, body = self.ask(path)
        assert got == status and headers["Content-Type"] == "application/json", (path, got, body)
        return json.loads(body)

"""A private Redis and a client that is just large enough for the tests."""
import atexit
import os
import shutil
import socket
import subprocess
import tempfile
import time


class RedisError(Exception):
    pass


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.socket.connect(path)
        self.input = self.socket.makefile("rb")

    def send(self, *words):
        encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(encoded) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in encoded))

    def receive(self):
        line = self.input.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server went away")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RedisError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.input.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.receive() for _ in range(int(rest))]
        return rest

    def __call__(self, *words):
        self.send(*words)
        return self.receive()

    def refusal(self, *words):
        """The first word of the error that the command is refused with."""
        try:
            answer = self(*words)
        except RedisError as error:
            return str(error).split()[0]
        raise AssertionError(f"{words} was not refused: {answer}")

    def close(self):
        self.input.close()
        self.socket.close()


class Redis:
    def __init__(self, *arguments):
        self.directory = tempfile.mkdtemp(prefix="aster-redis-")
        self.socket = os.path.join(self.directory, "socket")
        self.arguments = arguments
        self.clients = []
        atexit.register(self.close)  # also when a test fails
        self.start()

    @property
    def url(self):
        return "redis-socket:" + self.socket

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", self.directory, "--save", "",
             *self.arguments], stdout=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while True:
            try:
                if Client(self.socket).refusal("NO-SUCH-COMMAND") != "LOADING":
                    return
            except OSError:
                assert time.monotonic() < end and self.process.poll() is None, "redis-server did not start"
                time.sleep(0.02)

    def client(self):
        self.clients.append(Client(self.socket))
        return self.clients[-1]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        for client in self.clients:
            client.close()
        if self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

"""A private PostgreSQL, started by the test and gone with it, and sessions to it over libpq."""
import ctypes
import ctypes.util
import glob
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

SOURCE = os.environ["ASTER_SOURCE"]
MIGRATION = "".join(open(path).read() for path in sorted(glob.glob(os.path.join(SOURCE, "sql/postgres/*.sql"))))
PLAIN_SQL_ONLY = os.environ.get("ASTER_BUILD", "").rstrip("/").endswith(("asan-ubsan", "tsan"))
LEVELS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
STALE = ("LF008", "40001")  # what a writer whose epoch is over gets: by the rule, or because its snapshot is older

_pq = ctypes.CDLL(ctypes.util.find_library("pq") or "libpq.so.5")
for _name in ("PQconnectdb", "PQexec", "PQexecParams", "PQgetResult", "PQnotifies"):
    getattr(_pq, _name).restype = ctypes.c_void_p
for _name in ("PQerrorMessage", "PQgetvalue", "PQfname", "PQresultErrorField"):
    getattr(_pq, _name).restype = ctypes.c_char_p
_TUPLES_OK = 2
_COMMAND_OK = 1
_COPY_IN = 4


def versions():
    """The bin directories of the PostgreSQL versions of this machine, newest first."""
    found = glob.glob("/usr/lib/postgresql/*/bin") or [os.path.dirname(shutil.which("initdb") or "")]
    return sorted((d for d in found if os.path.exists(os.path.join(d, "initdb"))),
                  key=lambda d: int("0" + "".join(filter(str.isdigit, os.path.basename(os.path.dirname(d))))), reverse=True)


class Error(Exception):
    def __init__(self, state, message, detail):
        super().__init__(f"{state}: {message}")
        self.state, self.message, self.detail = state, message, detail


class Notification(ctypes.Structure):
    _fields_ = [("relname", ctypes.c_char_p), ("be_pid", ctypes.c_int), ("extra", ctypes.c_char_p)]


class Session:
    """One connection. query() gives rows of strings; ctypes lets other threads run meanwhile."""

    def __init__(self, info):
        self.handle = ctypes.c_void_p(_pq.PQconnectdb(info.encode()))
        if _pq.PQstatus(self.handle) != 0:
            message = _pq.PQerrorMessage(self.handle).decode()
            _pq.PQfinish(self.handle)
            raise Error("08006", message.strip(), None)
        self.pid = _pq.PQbackendPID(self.handle)

    def query(self, sql, *values):
        result = ctypes.c_void_p(self._execute(sql, values))
        try:
            return self._rows(result)
        finally:
            _pq.PQclear(result)

    def _execute(self, sql, values):
        if not values:
            return _pq.PQexec(self.handle, sql.encode())
        encoded = [None if v is None else str(v).encode() for v in values]
        array = (ctypes.c_char_p * len(values))(*encoded)
        return _pq.PQexecParams(self.handle, sql.encode(), len(values), None, array, None, None, 0)

    def _rows(self, result):
        status = _pq.PQresultStatus(result)
        if status == _TUPLES_OK:
            names = [_pq.PQfname(result, c).decode() for c in range(_pq.PQnfields(result))]
            return [Row((n, None if _pq.PQgetisnull(result, r, c) else _pq.PQgetvalue(result, r, c).decode())
                        for c, n in enumerate(names)) for r in range(_pq.PQntuples(result))]
        if status in (_COMMAND_OK, _COPY_IN):
            return []
        field = lambda code: (_pq.PQresultErrorField(result, ord(code)) or b"").decode()
        raise Error(field("C") or "08006", field("M") or _pq.PQerrorMessage(self.handle).decode(), field("D"))

    def one(self, sql, *values):
        rows = self.query(sql, *values)
        assert len(rows) == 1, rows
        return rows[0]

    def value(self, sql, *values):
        return next(iter(self.one(sql, *values).values()))

    def copy_in(self, sql, data):
        self.query(sql)
        _pq.PQputCopyData(self.handle, data.encode(), len(data.encode()))
        _pq.PQputCopyEnd(self.handle, None)
        result = ctypes.c_void_p(_pq.PQgetResult(self.handle))
        try:
            self._rows(result)
        finally:
            _pq.PQclear(result)
            while _pq.PQgetResult(self.handle):
                pass

    def notifications(self):
        _pq.PQconsumeInput(self.handle)
        found = []
        while at := _pq.PQnotifies(self.handle):
            found.append(ctypes.cast(at, ctypes.POINTER(Notification)).contents.extra.decode())
            _pq.PQfreemem(ctypes.c_void_p(at))
        return found

    def begin(self, level="READ COMMITTED"):
        self.query(f"BEGIN ISOLATION LEVEL {level}")

    def closed_by_server(self):
        try:
            self.query("SELECT 1")
            return False
        except Error:
            return True

    def in_background(self, sql, *values):
        return Background(self, sql, values)

    def close(self):
        if self.handle:
            _pq.PQfinish(self.handle)
            self.handle = None


class Row(dict):
    __getattr__ = dict.__getitem__


class Background(threading.Thread):
    """A statement that may have to wait for a lock."""

    def __init__(self, session, sql, values):
        super().__init__(daemon=True)
        self.work, self.rows, self.error = (session, sql, values), None, None
        self.start()

    def run(self):
        session, sql, values = self.work
        try:
            self.rows = session.query(sql, *values)
        except Error as error:
            self.error = error

    def result(self, timeout=20):
        self.join(timeout)
        assert not self.is_alive(), "the statement still waits"
        if self.error:
            raise self.error
        return self.rows


class Cluster:
    """PostgreSQL in a temporary directory, on a unix socket, never as root. `settings` are lines of postgresql.conf."""

    def __init__(self, bin_directory=None, settings=(), environment=None, name="aster-pg"):
        self.bin = bin_directory or versions()[0]
        self.directory = tempfile.mkdtemp(prefix=name + "-")
        self.data = os.path.join(self.directory, "data")
        self.user = self._unprivileged()
        self.environment = dict(os.environ, **(environment or {}))
        self.sessions, self.process = [], None
        if self.user:
            shutil.chown(self.directory, self.user)
        self.run("initdb", "-D", self.data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync")
        with open(os.path.join(self.data, "postgresql.conf"), "a") as conf:
            conf.write("\n".join(("listen_addresses = ''", f"unix_socket_directories = '{self.directory}'",
                                  "max_connections = 60", "shared_buffers = 16MB", "log_min_messages = warning",
                                  *settings, "")))
        self.start()

    @staticmethod
    def _unprivileged():
        if os.getuid() != 0:
            return None
        for name in ("postgres", "nobody"):
            try:
                return pwd.getpwnam(name).pw_name
            except KeyError:
                continue
        raise RuntimeError("no user to run PostgreSQL as")

    def _as_user(self):
        return {"user": self.user, "group": pwd.getpwnam(self.user).pw_gid, "extra_groups": []} if self.user else {}

    def run(self, program, *arguments):
        done = subprocess.run([os.path.join(self.bin, program), *arguments], env=self.environment, cwd=self.directory,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, **self._as_user())
        assert done.returncode == 0, done.stdout.decode()

    def start(self):
        log = open(os.path.join(self.directory, "log"), "ab")
        self.process = subprocess.Popen([os.path.join(self.bin, "postgres"), "-D", self.data], env=self.environment,
                                        cwd=self.directory, stdout=log, stderr=log, **self._as_user())
        log.close()
        self.until_ready()

    def until_ready(self):
        end = time.monotonic() + 60
        while True:
            try:
                self.session(keep=False).close()
                return
            except Error as error:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise RuntimeError(f"{error}\n" + open(os.path.join(self.directory, "log")).read()) from error
                time.sleep(0.02)

    def info(self, user="postgres", database="postgres", more=""):
        return f"host={self.directory} user={user} dbname={database} {more}"

    def session(self, user="postgres", database="postgres", more="", keep=True):
        made = Session(self.info(user, database, more))
        if keep:
            self.sessions.append(made)
        return made

    def log(self):
        return open(os.path.join(self.directory, "log"), errors="replace").read()

    def kill(self, how=signal.SIGKILL):
        """kill -9 of the postmaster; its children notice and end."""
        self.process.send_signal(how)
        self.process.wait()
        pid_file = os.path.join(self.data, "postmaster.pid")
        end = time.monotonic() + 20
        while how == signal.SIGKILL and _children_of(self.data) and time.monotonic() < end:
            time.sleep(0.02)
        if os.path.exists(pid_file):
            os.unlink(pid_file)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(30)

    def close_sessions(self):
        for session in self.sessions:
            session.close()
        self.sessions.clear()

    def close(self):
        self.close_sessions()
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Bouncer:
    """A real PgBouncer in transaction mode, with fewer servers than clients."""

    def __init__(self, cluster):
        self.directory = cluster.directory
        path = os.path.join(self.directory, "pgbouncer.ini")
        users = os.path.join(self.directory, "users.txt")
        with open(users, "w") as file:
            file.write("".join(f'"{u}" ""\n' for u in ("a", "b", "tester", "postgres")))
        with open(path, "w") as file:
            file.write(f"[databases]\n* = host={self.directory}\n[pgbouncer]\nlisten_addr =\nlisten_port = 6432\n"
                       f"unix_socket_dir = {self.directory}\nauth_type = trust\nauth_file = {users}\n"
                       f"pool_mode = transaction\ndefault_pool_size = 1\nlogfile = {self.directory}/pgbouncer.log\n"
                       f"pidfile = {self.directory}/pgbouncer.pid\n")
        program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
        self.process = subprocess.Popen([program, path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        **cluster._as_user())
        until(lambda: os.path.exists(os.path.join(self.directory, ".s.PGSQL.6432")))

    def info(self, user):
        return f"host={self.directory} port=6432 user={user} dbname=postgres"

    def session(self, user):
        return Session(self.info(user))

    def close(self):
        self.process.terminate()
        self.process.wait(20)


def _children_of(data):
    """Is a process of this cluster left? Each has its data directory as the working directory."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if os.readlink(f"/proc/{entry}/cwd") == data:
                    return True
            except OSError:
                continue
    return False


def migrate(session):
    session.query("SET client_min_messages = warning")
    session.query(MIGRATION)


def refused(states, session, sql, *values):
    """The statement must fail with one of these SQLSTATEs."""
    states = (states,) if isinstance(states, str) else states
    try:
        rows = session.query(sql, *values)
    except Error as error:
        assert error.state in states, f"{sql}: {error}, expected {states}"
        return error
    raise AssertionError(f"{sql}: passed with {rows}, expected {states}")


def until(condition, timeout=20):
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.005)


def is_waiting(observer, session):
    """Does this session's statement wait for a lock?"""
    return observer.value("SELECT count(*) FROM pg_locks WHERE pid = $1 AND NOT granted", session.pid) != "0"


def run_tests(namespace, *, settings=(), each_version=True, programs=False):
    """Every function test_*(cluster) of the module, on a cluster with the schema and four roles."""
    if not versions():
        print("skipped: PostgreSQL is not installed (package postgresql)")
        sys.exit(77)
    if PLAIN_SQL_ONLY and not programs:
        print("skipped: an instrumented build of the C code changes nothing about the SQL")
        sys.exit(77)
    only = sys.argv[1:]
    for bin_directory in versions() if each_version else versions()[:1]:
        with Cluster(bin_directory, settings) as cluster:
            prepare(cluster)
            for name, test in list(namespace.items()):
                if name.startswith("test_") and callable(test) and (not only or name in only):
                    started = time.monotonic()
                    try:
                        test(cluster)
                    except BaseException:
                        print(f"FAILED {name} ({bin_directory})\n{cluster.log()[-3000:]}", file=sys.stderr, flush=True)
                        raise
                    finally:
                        cluster.close_sessions()
                    print(f"ok {name} {time.monotonic() - started:.1f} s", flush=True)


def prepare(cluster):
    """The schema, workers a and b, an operator, and somebody without any rights."""
    admin = cluster.session()
    migrate(admin)
    for role, granted in (("a", "aster_worker"), ("b", "aster_worker"), ("op", "aster_operator"), ("stranger", None)):
        admin.query(f"CREATE ROLE {role} LOGIN")
        if granted:
            admin.query(f"GRANT {granted} TO {role}")
    admin.close()

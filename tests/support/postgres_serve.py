"""A private PostgreSQL with the schema for a test program in C: prints a line of connection string, then obeys one command
per line (restart, kill, stop, start, reset, bouncer, sql STATEMENT), answering each with a line, until its standard input ends."""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from support.postgres import Bouncer, Cluster, Error, prepare, versions  # noqa: E402

RESET = "TRUNCATE aster.lease, aster.audit, aster.waiter; UPDATE aster.meta SET floor = 0"


BOUNCERS = {}


def obey(cluster, command):
    if command == "restart":
        cluster.stop()
        cluster.start()
    elif command == "kill":
        cluster.kill()
        cluster.start()
    elif command == "stop":
        cluster.kill(signal.SIGQUIT)
    elif command == "start":
        cluster.start()
    elif command == "bouncer":
        return BOUNCERS.setdefault("it", Bouncer(cluster)).info("tester")
    else:
        session = cluster.session(keep=False)
        try:
            rows = session.query(RESET if command == "reset" else command.removeprefix("sql "))
            return " ".join(str(value) for row in rows for value in row.values())
        finally:
            session.close()
    return ""


def main():
    if not versions():
        print("absent", flush=True)
        return
    with Cluster(settings=("fsync = off",)) as cluster:
        prepare(cluster)
        admin = cluster.session(keep=False)
        admin.query("CREATE ROLE tester LOGIN; GRANT aster_worker, aster_operator TO tester; "
                    "CREATE TABLE note (id int PRIMARY KEY, text text); GRANT ALL ON note TO tester; "
                    "SELECT aster.protect('note', 'note')")
        admin.close()
        print(cluster.info("tester"), flush=True)
        for line in sys.stdin:
            try:
                print("ok " + obey(cluster, line.strip()), flush=True)
            except Error as error:
                print(f"error {error}", flush=True)
        for bouncer in BOUNCERS.values():
            bouncer.close()


if __name__ == "__main__":
    main()

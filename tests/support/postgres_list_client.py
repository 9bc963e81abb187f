"""One client of the lost-update test: read a list, think, write it back with one number more, under the lease and, unless
`control` says so, under the fence. What was acknowledged goes to a file, one number a line."""
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from support.postgres import LEVELS, Error, Session  # noqa: E402

TTL = "200 ms"


def append(session, number, instance, guarded, level):
    granted = session.one("SELECT granted, epoch FROM aster.acquire('list', $1, $2)", TTL, instance)
    if granted.granted != "t":
        time.sleep(random.uniform(0.001, 0.01))
        return False
    table = "fenced_list" if guarded else "bare_list"
    items = session.value(f"SELECT items FROM {table}")
    time.sleep(random.uniform(0, 0.02))  # where the pauses hurt
    session.begin(level)
    try:
        if guarded:
            session.query("SELECT aster.fence('list', $1, $2)", granted.epoch, instance)
        session.query(f"UPDATE {table} SET items = array_append($1::bigint[], $2)", items, number)
        session.query("COMMIT")
    except Error:
        session.query("ROLLBACK")
        return False
    session.query("SELECT aster.release('list', $1, $2)", granted.epoch, instance)
    return True


def main(info, instance, first, acknowledged, guarded):
    number = int(first)
    session = Session(info)
    out = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    while True:
        if append(session, number, instance, guarded == "guarded", LEVELS[number % 3]):
            os.write(out, b"%d\n" % number)
        number += 1


if __name__ == "__main__":
    main(*sys.argv[1:])

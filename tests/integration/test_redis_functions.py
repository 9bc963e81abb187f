"""The function library in a real Redis, and the commands that bring it there and tell it of grants."""
import json
import os
import random
import re
import shutil
import sys
import threading

sys.path.insert(0, os.path.join(os.environ["ASTER_SOURCE"], "tests", "support"))
from cli import World  # noqa: E402
from redis import Redis, RedisError  # noqa: E402

if shutil.which("redis-server") is None:
    print("redis-server is not installed")
    sys.exit(77)

FENCE = "aster:fence:{r}"
LIBRARY = open(os.path.join(os.environ["ASTER_SOURCE"], "lua", "aster.lua")).read()


def loaded(*arguments):
    redis = Redis(*arguments)
    redis.client()("FUNCTION", "LOAD", LIBRARY)
    return redis, redis.client()


def push(client, epoch, holder, resource="r", key=FENCE):
    return client("FCALL", "aster_push", 1, key, resource, epoch, holder)


def the_fence_rule_in_its_order():
    redis, client = loaded()
    write = ("FCALL", "aster_set", 2, FENCE, "k", "r")
    assert client.refusal(*write, 1, "a", "v") == "ASTER_FUTURE_EPOCH"  # never pushed: nothing is let in
    assert push(client, 5, "b") == [1, b"5", b"b"]
    assert client.refusal(*write, 4, "a", "v") == "ASTER_STALE_EPOCH"
    assert client.refusal(*write, 4, "b", "v") == "ASTER_STALE_EPOCH"
    assert client.refusal(*write, 6, "b", "v") == "ASTER_FUTURE_EPOCH"
    assert client.refusal(*write, 5, "a", "v") == "ASTER_NOT_HOLDER"
    assert client.refusal("FCALL", "aster_set", 2, FENCE, "k", "s", 5, "b", "v") == "ASTER_WRONG_RESOURCE"
    assert client("GET", "k") is None
    assert client(*write, 5, "b", "v") == b"OK" and client("GET", "k") == b"v"
    push(client, 6, "")
    assert client.refusal(*write, 6, "b", "v") == "ASTER_NOT_HELD"
    assert client.refusal(*write, 5, "b", "v") == "ASTER_STALE_EPOCH"
    try:
        client(*write, 5, "b", "v")
    except RedisError as error:
        assert re.search("carried 5, current 6", str(error)), error
    redis.close()


def the_row_only_moves_forward():
    redis, client = loaded()
    push(client, 7, "a")
    assert push(client, 7, "a") == [0, b"7", b"a"]  # a repeated push, whose reply was lost
    assert push(client, 3, "x") == [0, b"7", b"a"]
    assert client.refusal("FCALL", "aster_push", 1, FENCE, "r", 7, "b") == "ASTER_CONFLICT"
    assert client.refusal("FCALL", "aster_push", 1, FENCE, "other", 9, "b") == "ASTER_WRONG_RESOURCE"
    assert client("FCALL", "aster_fence", 1, FENCE, "r") == [b"7", b"a"]
    assert client("FCALL", "aster_fence", 1, "aster:fence:{none}", "none") == [b"0", b""]
    redis.close()


def epochs_are_exact_beyond_what_a_double_holds():
    redis, client = loaded()
    for current, older in ((2**53 + 1, 2**53), (2**63 - 1, 2**63 - 2), (10**18, 999999999999999999)):
        key = f"aster:fence:{{{current}}}"
        push(client, current, "a", str(current), key)
        write = ("FCALL", "aster_set", 2, key, "k", current)
        assert client.refusal(*write, older, "a", "v") == "ASTER_STALE_EPOCH"
        assert client(*write, current, "a", "v") == b"OK"
    redis.close()


def arguments_of_any_kind_get_a_clear_refusal():
    redis, client = loaded()
    push(client, 1, "a")
    for epoch in ("", "-1", "1.0", "01", " 1", "1e3", "9223372036854775808", "99999999999999999999", "x"):
        assert client.refusal("FCALL", "aster_set", 2, FENCE, "k", "r", epoch, "a", "v") == "ASTER_INVALID", epoch
        assert client.refusal("FCALL", "aster_push", 1, FENCE, "r", epoch, "a") == "ASTER_INVALID", epoch
    for name in ("", "a\nb", "a\0b", "x" * 513):
        assert client.refusal("FCALL", "aster_push", 1, FENCE, name, 2, "a") == "ASTER_INVALID"
    assert client.refusal("FCALL", "aster_push", 1, FENCE, "r", 2, "h" * 257) == "ASTER_INVALID"
    assert client.refusal("FCALL", "aster_set", 2, FENCE, "k", "r", 1, "a") == "ASTER_INVALID"
    assert client.refusal("FCALL", "aster_set", 1, FENCE, "r", 1, "a", "v") == "ASTER_INVALID"
    assert client.refusal("FCALL", "aster_push", 0, "r", 1, "a") == "ASTER_INVALID"
    assert client.refusal("FCALL", "aster_hset", 2, FENCE, "h", "r", 1, "a", "f", "v", "g") == "ASTER_INVALID"
    assert client.refusal("FCALL", "aster_set", 2, FENCE, FENCE, "r", 1, "a", "v") == "ASTER_INVALID"
    assert client.refusal("FCALL", "aster_call", 1, FENCE, "r", 1, "a", "DEL", FENCE) == "ASTER_INVALID"
    assert client("FCALL", "aster_fence", 1, FENCE, "r") == [b"1", b"a"]
    redis.close()


def every_kind_of_write_runs_under_the_fence_and_only_then():
    redis, client = loaded()
    push(client, 1, "a")

    def write(function, keys, *arguments, epoch=1):
        return ("FCALL", "aster_" + function, 1 + len(keys), FENCE, *keys, "r", epoch, "a", *arguments)

    writes = [write("set", ["s"], "v", "EX", 100), write("hset", ["h"], "f", "1", "g", "2"), write("hdel", ["h"], "g"),
              write("call", ["l"], "RPUSH", "l", "1", "2"), write("del", ["l", "s"])]
    assert [client(*words) for words in writes] == [b"OK", 2, 1, 2, 2]
    assert client("HGETALL", "h") == [b"f", b"1"]
    many = [text for i in range(10000) for text in (f"f{i}", i)]
    assert client(*write("hset", ["big"], *many)) == 10000
    assert client(*write("hdel", ["big"], *many[0::2])) == 10000
    assert client.refusal(*write("call", ["l"], "NOSUCH")) == "ERR"
    push(client, 2, "b")
    for words in writes:
        assert client.refusal(*words) == "ASTER_STALE_EPOCH", words
    redis.close()


def after_a_push_no_older_write_lands():
    """Eight old holders write as fast as they can while epochs are pushed; every value names its epoch."""
    redis, pusher = loaded()
    push(pusher, 1, "w")
    landed = []
    stop = threading.Event()

    def old_holder(client):
        chooser = random.Random(id(client))
        while not stop.is_set():
            epoch = max(1, current[0] - chooser.randrange(3))
            try:
                client("FCALL", "aster_call", 2, FENCE, "log", "r", epoch, "w", "RPUSH", "log", epoch)
                landed.append(epoch)
            except RedisError as error:
                assert str(error).startswith(("ASTER_STALE_EPOCH", "ASTER_FUTURE_EPOCH")), error

    current = [1]
    threads = [threading.Thread(target=old_holder, args=(redis.client(),)) for _ in range(8)]
    for thread in threads:
        thread.daemon = True
        thread.start()
    for epoch in range(2, 300):
        current[0] = epoch
        push(pusher, epoch, "w")
    stop.set()
    for thread in threads:
        thread.join()
    log = [int(entry) for entry in pusher("LRANGE", "log", 0, -1)]
    assert log == sorted(log) and len(log) == len(landed) > 0, "an older epoch was written after a newer one"
    redis.close()


def with_appendfsync_always_a_kill_forgets_no_epoch():
    redis, client = loaded("--appendonly", "yes", "--appendfsync", "always")
    push(client, 41, "a")
    push(client, 42, "b")
    redis.kill()
    redis.start()
    client = redis.client()
    assert client("FCALL", "aster_fence", 1, FENCE, "r") == [b"42", b"b"]
    assert client.refusal("FCALL", "aster_set", 2, FENCE, "k", "r", 41, "a", "v") == "ASTER_STALE_EPOCH"
    redis.close()


def the_acl_of_the_documentation_does_what_it_says():
    """Writers cannot push or touch the fence rows; others cannot write at all; within its keys a writer's own direct
    write is let through, which the documentation says plainly."""
    redis, admin = loaded()
    push(admin, 1, "a")
    text = open(os.path.join(os.environ["ASTER_SOURCE"], "docs", "redis.md")).read()
    rules = re.findall(r"^ACL SETUSER (\w+) (.*)$", text, re.MULTILINE)
    assert {name for name, _ in rules} == {"publisher", "writer", "reader"}, rules
    clients = {}
    for name, rule in rules:
        admin("ACL", "SETUSER", name, *re.findall(r"\([^)]*\)|\S+", rule.replace(">SECRET", ">p")))
        clients[name] = redis.client()
        clients[name]("AUTH", name, "p")
    key = "app:k"
    assert clients["writer"]("FCALL", "aster_set", 2, FENCE, key, "r", 1, "a", "v") == b"OK"
    assert clients["writer"].refusal("FCALL", "aster_push", 1, FENCE, "r", 2, "a") != ""
    assert clients["writer"].refusal("DEL", FENCE) == "NOPERM"
    assert clients["writer"].refusal("FUNCTION", "DELETE", "aster") == "NOPERM"
    assert clients["writer"]("SET", key, "past the guard") == b"OK"
    assert push(clients["publisher"], 2, "b") == [1, b"2", b"b"]
    assert clients["publisher"].refusal("SET", key, "v") == "NOPERM"
    assert clients["reader"]("GET", key) == b"past the guard"
    assert clients["reader"].refusal("SET", key, "v") == "NOPERM"
    assert clients["reader"].refusal("FCALL", "aster_set", 2, FENCE, key, "r", 2, "b", "v") == "NOPERM"
    assert admin("FCALL", "aster_fence", 1, FENCE, "r") == [b"2", b"b"]
    redis.close()


def the_commands_load_push_and_show():
    redis, world = Redis(), World()
    to = ("--to", redis.url)
    not_loaded = world.aster("schema", "verify", "redis", *to, code=1)
    assert "not loaded" in not_loaded.out, not_loaded.out
    world.aster("acquire", "r", "--holder", "a", "--ttl", "60s")
    missing = world.aster("fence", "push", "r", *to, code=64)
    assert "aster schema apply redis" in missing.err, missing.err
    world.aster("schema", "apply", "redis", *to)
    assert "OK" in world.aster("schema", "apply", "redis", *to).out  # again
    assert world.aster("schema", "print", "redis").out == LIBRARY
    assert json.loads(world.aster("fence", "push", "r", *to, "--json").out) == \
        {"resource": "r", "epoch": 1, "holder": "a", "advanced": True}
    client = redis.client()
    assert client("FCALL", "aster_set", 2, FENCE, "k", "r", 1, "a", "v") == b"OK"
    world.aster("release", "r", "--holder", "a", "--epoch", "1")
    assert "held by nobody" in world.aster("fence", "push", "r", *to).out
    assert client.refusal("FCALL", "aster_set", 2, FENCE, "k", "r", 1, "a", "v") == "ASTER_STALE_EPOCH"
    push(client, 9, "x")
    assert "restored from a backup" in world.aster("fence", "push", "r", *to, code=77).err
    assert json.loads(world.aster("fence", "show", "r", *to, "--json").out)["epoch"] == 9
    client("FUNCTION", "LOAD", "REPLACE", LIBRARY + "-- changed\n")
    assert "another version" in world.aster("schema", "verify", "redis", *to, code=1).out
    world.close()
    redis.close()


def addresses_and_passwords():
    redis, world = Redis("--requirepass", "hunter2"), World()
    world.aster("fence", "show", "r", "--to", "redis-socket:" + redis.socket, code=64)
    secret = world.aster("schema", "verify", "redis", "--to", "redis://u:hunter2@127.0.0.1", code=64)
    assert "ASTER_REDIS_PASSWORD" in secret.err and "hunter2" not in secret.err, secret.err
    world.environment["ASTER_REDIS_PASSWORD"] = "hunter2"
    world.aster("schema", "apply", "redis", "--to", redis.url)
    assert "TLS" in world.aster("fence", "show", "r", "--to", "rediss://h", code=78).err
    for wrong in ("redis://", "redis://h:0", "redis://h:x", "redis://h/1", "http://h", "redis://[::1", "r"):
        world.aster("fence", "show", "r", "--to", wrong, code=64)
    world.aster("fence", "show", "r", "--to", "redis-socket:" + world.path("nowhere"), code=69)
    world.close()
    redis.close()


for test in (the_fence_rule_in_its_order, the_row_only_moves_forward, epochs_are_exact_beyond_what_a_double_holds,
             arguments_of_any_kind_get_a_clear_refusal, every_kind_of_write_runs_under_the_fence_and_only_then,
             after_a_push_no_older_write_lands, with_appendfsync_always_a_kill_forgets_no_epoch,
             the_acl_of_the_documentation_does_what_it_says, the_commands_load_push_and_show, addresses_and_passwords):
    test()
    print("ok", test.__name__)

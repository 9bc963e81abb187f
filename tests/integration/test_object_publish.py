"""The recipe for object stores, against a store that has the documented conditional writes."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.environ["ASTER_SOURCE"], "tests", "support"))
from object_store import ObjectStore  # noqa: E402

PROGRAM = os.path.join(os.environ["ASTER_BUILD"], "examples", "object_store", "example_s3_publish")
if not os.path.exists(PROGRAM):
    print("this build has no libcurl, so the recipe was not built")
    sys.exit(77)


class World:
    def __init__(self):
        self.store = ObjectStore()
        self.directory = tempfile.TemporaryDirectory()

    def start(self, fence, text, path="/bucket/catalog.json", **environment):
        name = os.path.join(self.directory.name, text)
        with open(name, "w") as file:
            file.write(text)
        return subprocess.Popen([PROGRAM, self.store.url + path, name], stderr=subprocess.PIPE,
                                env={**os.environ, "ASTER_FENCE": fence, **environment})

    def publish(self, fence, text, code=0, **environment):
        process = self.start(fence, text, **environment)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == code, (process.returncode, errors)
        return errors.decode()

    def body(self):
        return self.store.objects["/bucket/catalog.json"][0].decode()

    def close(self):
        self.store.close()
        self.directory.cleanup()


def a_newer_epoch_replaces_an_older_one_and_never_the_other_way_round(world):
    world.publish("aster1:1:a:catalog", "first")
    world.publish("aster1:3:b:catalog", "second")
    errors = world.publish("aster1:1:a:catalog", "late", code=77)
    assert "STALE_EPOCH" in errors and "carried 1, current 3" in errors, errors
    assert "NOT_HOLDER" in world.publish("aster1:3:c:catalog", "impostor", code=77)
    assert "WRONG_RESOURCE" in world.publish("aster1:9:b:orders", "orders", code=77)
    assert world.body() == "second" and len(world.store.writes) == 2


def epochs_beyond_what_a_double_holds_are_compared_exactly(world):
    world.publish("aster1:9007199254740993:b:catalog", "newer")
    assert "STALE_EPOCH" in world.publish("aster1:9007199254740992:a:catalog", "late", code=77)


def a_conflict_and_a_server_error_are_tried_again(world):
    world.store.faults = ["conflict", "error", "conflict"]
    world.publish("aster1:1:a:catalog", "first")
    assert world.body() == "first" and len(world.store.writes) == 1


def a_lost_reply_is_recognised_and_not_written_twice(world):
    world.store.faults = ["drop reply"]
    world.publish("aster1:1:a:catalog", "first")
    assert world.store.writes == [b"first"]


def of_two_that_meet_the_newer_stands(world):
    """What was written under the old epoch stands until then, and is never put over the newer one."""
    world.publish("aster1:1:a:catalog", "first")
    world.store.faults = ["error"]
    newer = world.start("aster1:3:b:catalog", "newer")
    older = world.start("aster1:1:a:catalog", "older")
    assert newer.wait(60) == 0 and older.wait(60) in (0, 77)
    assert world.body() == "newer"
    for process in (newer, older):
        process.stderr.close()


def of_many_at_once_the_newest_stands(world):
    processes = [world.start(f"aster1:{epoch}:w{epoch}:catalog", f"by {epoch}") for epoch in range(1, 13)]
    codes = [process.wait(60) for process in processes]
    for process in processes:
        process.stderr.close()
    assert codes[-1] == 0 and set(codes) <= {0, 77}, codes
    assert world.body() == "by 12"
    numbers = [int(body.split()[1]) for body in world.store.writes]
    assert numbers == sorted(numbers), numbers


def an_object_without_a_fence_is_taken_over(world):
    world.store.write("/bucket/catalog.json", b"by hand", {}, None, None)
    world.publish("aster1:1:a:catalog", "first")
    assert world.body() == "first"


def requests_are_signed_when_there_is_a_key(world):
    world.publish("aster1:1:a:catalog", "first", AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret")
    authorization = world.store.authorizations[-1]
    assert authorization.startswith("AWS4-HMAC-SHA256 Credential=key/"), authorization
    assert "secret" not in authorization
    world.publish("aster1:1:a:catalog", "first", code=64, AWS_ACCESS_KEY_ID="key")


def a_store_that_is_gone_is_an_error_and_no_refusal(world):
    world.store.close()
    process = world.start("aster1:1:a:catalog", "first")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 74 and b"catalog.json" in errors, errors


for test in (a_newer_epoch_replaces_an_older_one_and_never_the_other_way_round,
             epochs_beyond_what_a_double_holds_are_compared_exactly, a_conflict_and_a_server_error_are_tried_again,
             a_lost_reply_is_recognised_and_not_written_twice, of_two_that_meet_the_newer_stands,
             of_many_at_once_the_newest_stands, an_object_without_a_fence_is_taken_over,
             requests_are_signed_when_there_is_a_key, a_store_that_is_gone_is_an_error_and_no_refusal):
    world = World()
    try:
        test(world)
        print("ok", test.__name__)
    finally:
        world.close()

#!/usr/bin/env python3
"""What the commands print and which exit status they give."""
import fcntl
import json
import os
import stat
import subprocess
import sys
import termios

sys.path.insert(0, os.path.join(os.environ["ASTER_SOURCE"], "tests", "support"))
from cli import ASTER, run_tests, until  # noqa: E402


def test_a_refused_acquire_shows_the_row_and_what_to_do(world):
    world.aster("acquire", "catalog", "--ttl", "60s", "--holder", "w1")
    refused = world.aster("run", "catalog", "--", "true", code=75)
    for wanted in ("HELD_BY_OTHER", "catalog", "w1", "epoch", "since", "remaining", "aster revoke 'catalog' --epoch 1",
                   "--wait"):
        assert wanted in refused.err, (wanted, refused.err)
    assert "SQL" not in refused.err.upper().replace("SQLITE:", "") and refused.out == "", refused.err
    refused = json.loads(world.aster("acquire", "catalog", "--json", code=75).out)
    assert refused["outcome"] == "denied" and refused["reason"] == "HELD_BY_OTHER", refused
    assert refused["row"]["holder"] == "w1" and 0 < refused["row"]["remaining_ms"] <= 60000, refused


def test_the_same_holder_is_refused_too_and_fences_itself_off_with_own(world):
    world.aster("acquire", "r", "--holder", "w1")
    world.aster("acquire", "r", "--holder", "w1", code=75)
    again = json.loads(world.aster("acquire", "r", "--holder", "w1", "--own", "--json").out)
    assert again["epoch"] == 2 and again["takeover"] is True, again
    world.aster("check", "r", "--holder", "w1", "--epoch", "1", code=77)
    world.aster("check", "r", "--holder", "w1", "--epoch", "2")


def test_a_denial_is_one_line_and_what_can_be_pasted(world):
    name = "it's $HOME"
    quoted = "'it'\\''s $HOME'"
    world.aster("acquire", name, "--holder", "w1")
    first, *paste = world.aster("run", name, "--", "true", code=75).err.splitlines()
    assert first.startswith("aster run: HELD_BY_OTHER: " + name), first
    assert [line.split(":", 1)[1].strip() for line in paste] == [
        f"aster run {quoted} --wait 30s -- ...", f"aster revoke {quoted} --epoch 1"], paste
    first, *paste = world.aster("acquire", name, "--holder", "w1", code=75).err.splitlines()
    assert paste[0].endswith(f"aster acquire {quoted} --holder 'w1' --own"), paste
    first, *paste = world.aster("renew", name, "--holder", "w1", "--epoch", "9", code=77).err.splitlines()
    assert "no lease ever had that epoch" in first and len(paste) == 1, (first, paste)
    shell = dict(world.environment, PATH=os.path.dirname(ASTER) + ":" + os.environ["PATH"])
    subprocess.run(["sh", "-euc", paste[0].split(":", 1)[1]], env=shell, check=True, capture_output=True)
    said = world.aster("run", name, "--verbose", "--", "true", code=75).err
    assert "value revision" in said, said


def test_revoke_with_an_epoch_cannot_break_a_newer_holder(world):
    world.aster("acquire", "r", "--holder", "w1")
    world.aster("revoke", "r", "--epoch", "1")
    world.aster("acquire", "r", "--holder", "w2")
    refused = world.aster("revoke", "r", "--epoch", "1", code=77)
    assert "EPOCH_MISMATCH" in refused.err, refused.err
    row = world.inspect("r")
    assert row["holder"] == "w2" and row["epoch"] == 3, row
    assert [e["event"] for e in world.history("r")] == ["granted", "revoked", "granted"]


def test_renew_and_release_need_the_current_lease(world):
    world.aster("acquire", "r", "--ttl", "30s", "--holder", "w1")
    world.aster("renew", "r", "--holder", "w1", "--epoch", "1")
    assert "EPOCH_MISMATCH" in world.aster("renew", "r", "--holder", "w1", "--epoch", "2", code=77).err
    assert "NOT_HOLDER" in world.aster("release", "r", "--holder", "w2", "--epoch", "1", code=77).err
    world.aster("release", "r", "--holder", "w1", "--epoch", "1")
    world.aster("release", "r", "--holder", "w1", "--epoch", "1", code=77)
    assert world.inspect("r")["held"] is False


def test_an_export_can_be_evaluated_whatever_the_name(world):
    name = "it's $HOME `x` \"q\" \\ é"
    script = f'eval "$({ASTER} acquire "$1" --ttl 60s --export)" && {ASTER} check && {ASTER} put "$1" v && ' \
             f'{ASTER} renew && {ASTER} release'
    done = subprocess.run(["sh", "-euc", script, "sh", name], env=world.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert world.inspect(name)["epoch"] == 2


def test_the_example_of_acquire_runs_nothing_without_the_lease(world):
    example = world.aster("acquire", "--help").out.splitlines()[-1].strip()
    with open(world.path("report.sh"), "w") as file:
        file.write("#!/bin/sh\necho $ASTER_EPOCH >>ran\n")
    os.chmod(world.path("report.sh"), 0o700)
    environment = dict(world.environment, PATH=os.path.dirname(ASTER) + ":" + os.environ["PATH"])
    example_exits = lambda: subprocess.run(["sh", "-c", example], env=environment, cwd=world.directory,
                                           capture_output=True).returncode
    world.aster("acquire", "nightly-report", "--holder", "w1")
    assert example_exits() == 75 and not os.path.exists(world.path("ran"))
    world.aster("release", "nightly-report", "--holder", "w1", "--epoch", "1")
    assert example_exits() == 0 and open(world.path("ran")).read() == "3\n"
    assert world.inspect("nightly-report")["held"] is False


def test_the_resource_of_the_environment_is_read_without_its_name(world):
    script = f"{ASTER} put r v >/dev/null && {ASTER} get && {ASTER} inspect --json"
    said = world.aster("run", "r", "--", "sh", "-ec", script).out
    assert said.startswith('v{"resource":"r"'), said
    assert "RESOURCE is missing" in world.aster("get", code=64).err


def test_the_environment_of_another_lease_is_not_taken_for_this_one(world):
    for script, wanted in (("put v", "for r, not for v"), ("check other", "for r, not for other")):
        said = world.aster("run", "r", "--", "sh", "-c", f"{ASTER} {script} </dev/null", code=64).err
        assert wanted in said and said.count("\n") == 1, said
    world.environment.update(ASTER_RESOURCE="r", ASTER_HOLDER="w1", ASTER_EPOCH="abc")
    assert 'ASTER_EPOCH is "abc"' in world.aster("check", code=64).err


def test_a_refused_check_says_of_what_and_who_holds_it(world):
    world.aster("acquire", "r", "--holder", "w1")
    said = world.aster("check", "r", "--holder", "w2", "--epoch", "1", code=77).err
    assert "NOT_HOLDER: r is held by w1, epoch 1" in said and "aster history 'r'" in said, said
    world.aster("release", "r", "--holder", "w1", "--epoch", "1")
    said = world.aster("check", "r", "--holder", "w1", "--epoch", "1", code=77).err
    assert "STALE_EPOCH: r is free, epoch 2, carried epoch 1; that lease is over" in said, said


def test_columns_line_up_and_an_expired_lease_is_called_so(world):
    world.aster("acquire", "short", "--ttl", "100ms")
    world.aster("acquire", "a-much-longer-name", "--ttl", "60s")
    until(lambda: world.inspect("short")["remaining_ms"] == 0)
    rows = {line.split()[0]: line for line in world.aster("list").out.splitlines()}
    assert " expired " in rows["short"] and " expired " not in rows["a-much-longer-name"], rows
    lines = world.aster("history").out.splitlines()
    assert len({line.index("epoch") for line in lines}) == 1, lines
    assert "1 or more" in world.aster("history", "--limit", "0", code=64).err
    assert len(world.aster("history", "--limit", "1").out.splitlines()) == 1


def test_values_come_back_byte_for_byte_and_only_under_the_fence(world):
    value = bytes(range(256)) * 256
    assert len(value) == 65536
    world.aster("acquire", "r", "--holder", "w1", "--ttl", "60s")
    fence = ("--holder", "w1", "--epoch", "1")
    world.aster("put", "r", *fence, stdin=value)
    process = world.start("get", "r")
    assert process.communicate()[0] == value
    assert "base64" in json.loads(world.aster("get", "r", "--json").out)["value"]
    too_long = world.aster("put", "r", *fence, stdin=value + b"x", code=64)
    assert "65536" in too_long.err, too_long.err
    assert "REVISION_MISMATCH" in world.aster("put", "r", "late", *fence, "--revision", "0", code=77).err
    world.aster("put", "r", "text", *fence, "--revision", "1")
    assert world.aster("get", "r").out == "text"
    world.aster("acquire", "r", "--holder", "w1", "--own")
    assert "STALE_EPOCH" in world.aster("put", "r", "stale", *fence, code=77).err
    assert "FUTURE_EPOCH" in world.aster("put", "r", "x", "--holder", "w1", "--epoch", "9", code=77).err
    assert world.aster("get", "r").out == "text"
    assert world.history("r")[-1]["event"] == "fence-rejected"


def test_a_value_that_nobody_put_is_told_from_an_empty_one(world):
    world.aster("acquire", "r", "--holder", "w1")
    for name in ("r", "typo"):
        none = world.aster("get", name, code=1)
        assert none.out == "" and none.err.startswith(f"aster get: {name} has no value") and none.err.count("\n") == 1
        assert json.loads(world.aster("get", name, "--json", code=1).out)["value"] is None
    world.aster("put", "r", "--holder", "w1", "--epoch", "1", stdin=b"")
    assert world.aster("get", "r").err == "" and json.loads(world.aster("get", "r", "--json").out)["value"] == ""


def test_a_revoke_says_from_whom(world):
    world.aster("acquire", "r", "--holder", "w1")
    assert world.aster("revoke", "r").out == "revoked from w1: every fence up to epoch 1 is stale\n"
    assert world.aster("revoke", "r").out == "nobody held it: every fence up to epoch 2 is stale\n"
    assert world.aster("revoke", "typo").out.startswith("nobody held it")


def test_a_forgotten_resource_goes_on_above_its_epochs(world):
    world.aster("acquire", "r", "--holder", "w1")
    world.aster("put", "r", "v", "--holder", "w1", "--epoch", "1")
    refused = world.aster("forget", "r", code=77).err.splitlines()
    assert "HELD_BY_OTHER" in refused[0] and "release or revoke it first" in refused[0], refused
    assert [line.split(":", 1)[1].strip() for line in refused[1:]] == ["aster revoke 'r' --epoch 1"], refused
    world.aster("release", "r", "--holder", "w1", "--epoch", "1")
    assert "epoch 3 or later" in world.aster("forget", "r", "--as", "operator").out
    assert json.loads(world.aster("list", "--json").out) == []
    world.aster("get", "r", code=1)
    assert world.history("r")[-1]["event"] == "forgotten" and world.history("r")[-1]["actor"] == "operator"
    assert json.loads(world.aster("acquire", "r", "--json").out)["epoch"] == 3


def test_names_are_checked_before_anything_happens(world):
    for bad in (b"", b"x" * 513, b"a\nb", b"\xff", b"\xc0\xaf"):
        for command in (["inspect", bad], ["acquire", bad], ["run", bad, "--", "true"]):
            process = world.start(*command)
            err = process.communicate()[1]
            assert process.returncode == 64 and err.count(b"\n") == 1, (command, process.returncode, err)
    world.aster("acquire", "x" * 512, "--holder", "h" * 256)
    world.aster("acquire", "y", "--holder", "h" * 257, code=64)
    world.aster("acquire", "y", "--holder", "", code=64)
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    world.aster("acquire", composed)
    world.aster("acquire", decomposed)
    assert len(json.loads(world.aster("list", "caf", "--json").out)) == 2


def test_every_json_is_json(world):
    world.aster("acquire", "r", "--holder", "w1", "--json")
    for command in (["inspect", "r"], ["list"], ["plan", "--work", "20s"], ["version"], ["doctor"],
                    ["check", "r", "--holder", "w1", "--epoch", "1"], ["renew", "r", "--holder", "w1", "--epoch", "1"],
                    ["put", "r", "v", "--holder", "w1", "--epoch", "1"], ["get", "r"], ["schema", "verify", "sqlite"],
                    ["revoke", "r"], ["forget", "r"]):
        json.loads(world.aster(*command, "--json").out)
    for line in world.aster("history", "--json").out.splitlines():
        json.loads(line)


def test_wrong_command_lines_exit_64_with_one_line(world):
    for command in ([], ["bogus"], ["inspect"], ["inspect", "a", "b"], ["run", "r"], ["run", "--", "true"],
                    ["run", "r", "true"], ["run", "r", "--ttl", "30", "--", "true"], ["run", "r", "--ttl", "1ms", "--", "true"],
                    ["run", "r", "--ttl", "10s", "--grace", "9s", "--", "true"], ["acquire", "r", "--ttl", "25h"],
                    ["run", "r", "--margin", "40s", "--", "true"], ["run", "r", "--renew", "30s", "--", "true"],
                    ["revoke", "r", "--epoch", "-1"], ["check", "r"], ["check"], ["schema", "print", "mysql"],
                    ["schema", "print", "sqlite", "--protect", "t"], ["run", "r", "--on-lost", "cry", "--", "true"]):
        said = world.aster(*command, code=64).err
        assert command == [] or said.count("\n") == 1, (command, said)
    assert not os.path.exists(world.database)


def test_check_store_plays_a_stale_writer_and_leaves_nothing_behind(world):
    world.aster("acquire", "r", "--holder", "w1")
    said = world.aster("check", "store", world.environment["ASTER_STORE"])
    assert "the late write of the replaced holder is refused" in said.out and "WRONG" not in said.out, said.out
    steps = json.loads(world.aster("check", "store", world.environment["ASTER_STORE"], "--json").out)
    assert steps["right"] and len(steps["steps"]) >= 10 and all(step["right"] for step in steps["steps"]), steps
    assert [row["resource"] for row in json.loads(world.aster("list", "--json").out)] == ["r"]
    world.aster("check", "store", "sqlite:" + world.path("nowhere.db"), code=74)
    world.aster("check", "r", "s", code=64)


def test_a_wrong_command_line_says_what_is_wrong_with_it(world):
    for command, wanted in ((["rum"], "did you mean run?"), (["help", "inpsect"], "did you mean inspect?"),
                            (["run"], "RESOURCE is missing"), (["schema", "print"], "sqlite|postgres|redis is missing"),
                            (["run", "r"], "there is no command"), (["version", "x"], "too many arguments: aster version;"),
                            (["--store", "x"], "options come after the command"),
                            (["run", "r", "--tll", "3s", "--", "true"], "no option --tll; did you mean --ttl?"),
                            (["run", "r", "--h", "--", "true"], "more than one option begins with --h;"),
                            (["acquire", "r", "--wait"], "--wait needs a value: a duration such as"),
                            (["acquire", "r", "--ttl", "10d"], "--ttl 10d: allowed are 100ms to 1d"),
                            (["run", "r", "--ttl", "10d", "--", "true"], "--ttl 10d: allowed are 100ms to 1d"),
                            (["acquire", "r", "--ttl", "1.5s"], "has a fraction: write whole numbers")):
        said = world.aster(*command, code=64).err
        assert wanted in said and said.count("\n") == 1, (command, said)


def test_stores_that_cannot_be_used_exit_78_or_74(world):
    for store in ("postgresql:db/x", "aster://host:1", "bogus", "sqlite:"):
        world.aster("list", "--store", store, code=78)
    assert "sqlite:x.db" in world.aster("list", "--store", "x.db", code=78).err
    for store in ("mem:", "sqlite::memory:"):
        for command in (["acquire", "r"], ["run", "r", "--", "touch", world.path("ran")]):
            said = world.aster(*command[:2], "--store", store, *command[2:], code=78).err
            assert "exclude nobody" in said and "sqlite:PATH" in said, said
    world.aster("acquire", "r", "--store", "sqlite:file:x.db", code=78)
    assert not os.path.exists(world.path("ran")) and os.listdir(world.directory) == []
    assert "aster run" in world.aster("inspect", "r", code=74).err
    assert not os.path.exists(world.database), "reading made a store"
    with open(world.database, "w") as file:
        file.write("this is no database, but long enough to look like one" * 100)
    said = world.aster("run", "r", "--", "true", code=74).err
    assert said == f"aster run: {world.database} is not a SQLite database; name another file\n", said


def test_what_is_no_file_is_refused_by_name(world):
    os.mkfifo(world.path("pipe"))
    for path, wanted in ((world.directory, "is a directory"), ("/dev/null", "is not a regular file"),
                         (world.path("pipe"), "is not a regular file")):
        for command in (["inspect", "r"], ["acquire", "r"]):
            said = world.aster(*command, "--store", "sqlite:" + path, code=78).err
            assert f"{path} {wanted}" in said and said.count("\n") == 1, said
    said = world.aster("acquire", "r", "--store", "sqlite:" + world.path("no/x.db"), code=74).err
    assert said.endswith("no/x.db: No such file or directory; make its directory first\n"), said


def test_a_store_that_this_user_may_not_write_is_named(world):
    if os.geteuid() != 0:
        return  # only root can be somebody else
    somebody = {"user": 65534, "group": 65534, "extra_groups": []}
    world.aster("acquire", "r")
    os.chmod(world.directory, 0o755)
    for mode, wanted in ((0o600, "Permission denied; "), (0o666, "; ")):
        os.chmod(world.database, mode)
        said = world.aster("acquire", "x", code=74, **somebody).err
        assert world.database + " cannot be written by this user" in said and wanted in said, said
        assert said.count("write access to the file and its directory") == 1 and said.count("\n") == 1, said


def test_the_doctor_finds_what_keeps_a_store_from_working(world):
    import sqlite3

    def level(check, code=1, **options):
        found = json.loads(world.aster("doctor", "--json", code=code, **options).out)
        return next((line["level"], line["text"]) for line in found if line["check"] == check)

    assert level("file", code=0)[0] == "OK"
    world.aster("acquire", "r")
    assert level("store", code=0)[0] == "OK" and level("guards", code=0)[0] == "OK"
    db = sqlite3.connect(world.database)
    db.executescript("CREATE TABLE t(x)")
    world.aster("schema", "apply", "sqlite", "--protect", "t", "--resource", "r")
    db.executescript("DROP TRIGGER aster_guard_insert_t")
    assert level("guards") == ("FAIL", "1 protected tables, 1 not intact; `aster schema verify sqlite` says which and "
                               "what to do")
    db.executescript("UPDATE aster_lease SET epoch = epoch + 1")
    db.close()
    assert level("store")[0] == "FAIL" and 'row of "r"' in level("store")[1]
    world.environment["ASTER_STORE"] = "sqlite:" + world.path("no/x.db")
    assert level("file")[0] == "FAIL" and world.path("no:") in level("file")[1]
    world.environment["ASTER_STORE"] = "sqlite:" + world.directory
    assert level("store") == ("FAIL", world.directory + " is a directory; name a file")
    world.environment.pop("ASTER_STORE")
    if os.geteuid() == 0:
        os.chmod(world.directory, 0o755)
        world.environment["XDG_STATE_HOME"] = world.path("a/b")
        assert level("file", user=65534, group=65534, extra_groups=[])[0] == "FAIL"
        assert level("file", code=0)[0] == "OK"


def test_the_doctor_warns_of_a_store_in_memory_and_of_a_full_disk(world):
    def found(path):
        world.environment["ASTER_STORE"] = "sqlite:" + path
        return {line["check"]: line for line in json.loads(world.aster("doctor", "--json").out)}

    assert found(world.database)["room"]["level"] == "OK"
    if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK):
        in_memory = found("/dev/shm/aster-doctor-test.db")["file system"]  # it is not made
        assert in_memory["level"] == "WARN" and "reboot" in in_memory["text"], in_memory
    script = f"mkdir small && mount -t tmpfs -o size=8m none small && {ASTER} doctor --store sqlite:small/x.db"
    in_a_small_one = subprocess.run(["unshare", "--mount", "sh", "-c", script], cwd=world.directory,
                                    env=world.environment, capture_output=True, text=True)
    if in_a_small_one.returncode == 0:  # not without the right to mount
        assert "8.0 MiB free: once it is full" in in_a_small_one.stdout, in_a_small_one.stdout


def test_the_default_store_is_private(world):
    state = world.path("state")
    os.mkdir(state)
    world.environment.pop("ASTER_STORE")
    world.environment["XDG_STATE_HOME"] = state
    os.umask(0)
    world.aster("run", "r", "--", "true")
    mode = lambda path: stat.S_IMODE(os.stat(path).st_mode)
    assert mode(state + "/aster") == 0o700 and mode(state + "/aster/leases.db") == 0o600
    world.environment.pop("XDG_STATE_HOME")
    world.environment["HOME"] = world.path("home")
    world.aster("run", "r", "--", "true")
    assert mode(world.path("home/.local/state/aster/leases.db")) == 0o600


def test_a_plan_says_which_inputs_conflict(world):
    said = world.aster("plan", "--work", "20s", "--pause", "5s", "--recover", "60s").out
    for wanted in ("ttl", "renew", "margin", "takeover", "aster run", "ppm", "revoke"):
        assert wanted in said, (wanted, said)
    line = next(line for line in said.splitlines() if "aster run RESOURCE" in line)
    words = line.replace("RESOURCE", "r").replace("COMMAND...", "true").split()
    world.aster(*words[1:])
    refused = world.aster("plan", "--pause", "50s", "--recover", "10s", code=78).err
    assert "pause" in refused and "recover" in refused, refused
    plan = json.loads(world.aster("plan", "--pause", "5s", "--recover", "60s", "--json").out)
    assert plan["takeover_ms"] <= 60000 and plan["tolerated_pause_ms"] >= 5000, plan


def test_a_watch_prints_what_happens_after_it_started(world):
    world.aster("acquire", "before")
    watch = world.start("watch", "--json", stdout=open(world.path("seen"), "w"))
    seen = lambda: [json.loads(line) for line in open(world.path("seen")).read().splitlines()]

    def ping_is_seen():
        world.aster("run", "ping", "--", "true")
        return len(seen()) > 0

    until(ping_is_seen)
    world.aster("acquire", "after", "--holder", "w1")
    until(lambda: any(e["resource"] == "after" for e in seen()))
    assert all(e["resource"] != "before" for e in seen()), seen()
    watch.terminate()
    watch.wait()


def test_a_follower_of_the_history_gets_whole_lines(world):
    """A write of up to 4096 bytes to a pipe is all or nothing: in a full one, the last line must be complete."""
    for _ in range(12):
        world.aster("run", "r", "--", "true")
    end, begin = os.pipe()
    fcntl.fcntl(begin, fcntl.F_SETPIPE_SZ if hasattr(fcntl, "F_SETPIPE_SZ") else 1031, 4096)
    follower = world.start("history", "--follow", "--json", stdout=begin)
    os.close(begin)
    waiting = lambda: int.from_bytes(fcntl.ioctl(end, termios.FIONREAD, bytes(4)), sys.byteorder)
    until(lambda: waiting() > 3500)
    got = os.read(end, 65536)
    follower.kill()
    os.close(end)
    assert got.endswith(b"\n") and all(json.loads(line) for line in got.splitlines()), got[-200:]


def test_completion_scripts_load_and_offer_commands_and_options(world):
    probe = """source <({0} completion bash)
    COMP_WORDS=(aster ren); COMP_CWORD=1; _aster; echo "${{COMPREPLY[*]}}"
    COMP_WORDS=(aster run --gr); COMP_CWORD=2; _aster; echo "${{COMPREPLY[*]}}"
    COMP_WORDS=(aster run --on-lost k); COMP_CWORD=3; _aster; echo "${{COMPREPLY[*]}}"
    COMP_WORDS=(aster help insp); COMP_CWORD=2; _aster; echo "${{COMPREPLY[*]}}"
    COMP_WORDS=(aster run r -- ls --gr); COMP_CWORD=5; _aster; echo "<${{COMPREPLY[*]}}>"
    COMP_WORDS=(aster run r -- compge); COMP_CWORD=4; _aster; echo "${{COMPREPLY[*]}}"
    """.format(ASTER)
    done = subprocess.run(["bash", "-euc", probe], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["renew", "--grace", "kill", "inspect", "<>", "compgen"], (done.stdout, done.stderr)
    for shell in ("zsh", "fish"):
        said = world.aster("completion", shell).out
        assert "aster" in said and "on-lost" in said and "forget" in said
    world.aster("completion", "csh", code=64)


def test_every_command_has_help_with_an_example(world):
    commands = [line.split()[0] for line in world.aster("help").out.splitlines() if line.startswith("  ")
                and not line.startswith("  aster")]
    assert {"run", "plan", "demo", "bench", "doctor", "schema", "put"} <= set(commands), commands
    for command in commands:
        said = world.aster(command, "--help").out
        storeless = command in ("version", "completion", "help", "demo", "plan", "bench")
        assert ("--store" in said) is not storeless, said
        assert "Example:\n  " in said and "aster " + command in said.split("Example:")[1], said


def test_a_protected_table_is_applied_and_verified(world):
    import sqlite3
    world.aster("schema", "apply", "sqlite")
    db = sqlite3.connect(world.database)
    db.execute("CREATE TABLE invoice(id TEXT)")
    db.commit()
    world.aster("schema", "apply", "sqlite", "--protect", "invoice", "--resource", "bill'ing")
    said = world.aster("schema", "verify", "sqlite").out
    assert "OK    table invoice is protected by the fence of bill'ing" in said, said
    assert "OK" in world.aster("schema", "verify", "sqlite", "--protect", "invoice", "--resource", "bill'ing").out
    world.aster("schema", "verify", "sqlite", "--protect", "invoice", "--resource", "other", code=1)
    db.execute("DROP TRIGGER aster_guard_update_invoice")
    db.commit()
    said = world.aster("schema", "verify", "sqlite", code=1).out
    assert "FAIL  table invoice" in said, said
    printed = world.aster("schema", "print", "sqlite", "--protect", "invoice", "--resource", "bill'ing").out
    db.executescript(printed)
    world.aster("schema", "verify", "sqlite")
    db.close()


def test_a_table_is_protected_row_by_row(world):
    import sqlite3
    world.aster("schema", "apply", "sqlite")
    db = sqlite3.connect(world.database)
    db.execute("CREATE TABLE invoice(id INTEGER PRIMARY KEY, cents INTEGER)")
    db.commit()
    by_row = ["--protect", "invoice", "--resource", "inv'oice/", "--row-column"]
    said = world.aster("schema", "apply", "sqlite", *by_row, "nosuch", code=64).err
    assert "no column nosuch" in said, said
    world.aster("schema", "apply", "sqlite", *by_row, "id")
    said = world.aster("schema", "verify", "sqlite").out
    assert "table invoice is protected by the fence of inv'oice/ followed by the row's id" in said, said
    world.aster("schema", "verify", "sqlite", *by_row, "cents", code=1)
    world.aster("schema", "print", "sqlite", "--row-column", "id", code=64)
    db.close()


def test_what_cannot_be_protected_is_refused_by_name(world):
    import sqlite3
    db = sqlite3.connect(world.database)
    db.executescript("CREATE TABLE t(id); CREATE VIEW v AS SELECT 1; CREATE VIRTUAL TABLE f USING fts5(x);")
    for table, wanted in (("typo", "typo is not in the file"), ("v", "v is a view"), ("f", "f is a virtual table")):
        said = world.aster("schema", "apply", "sqlite", "--protect", table, "--resource", "r", code=64).err
        assert wanted in said and said.count("\n") == 1, said
    assert db.execute("SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'").fetchone()[0] == 0
    db.close()


def test_a_renamed_table_is_protected_anew_and_its_old_name_does_not_unprotect_it(world):
    import sqlite3
    db = sqlite3.connect(world.database)
    db.execute("CREATE TABLE t(id)")
    apply = lambda table, resource, **more: world.aster("schema", "apply", "sqlite", "--protect", table, "--resource",
                                                        resource, **more)
    assert "OK    table t is protected by the fence of y" in apply("t", "y").out
    db.executescript("ALTER TABLE t RENAME TO t2; CREATE TABLE t(id);")
    assert "the guards of t2" in apply("t", "y", code=64).err
    assert "OK    table t2 is protected by the fence of x" in apply("t2", "x").out
    apply("t", "y")
    assert "FAIL" not in world.aster("schema", "verify", "sqlite").out
    guards = db.execute("SELECT tbl_name, count(*) FROM sqlite_schema WHERE type = 'trigger' GROUP BY 1").fetchall()
    assert guards == [("t", 3), ("t2", 3)], guards
    applied = json.loads(world.aster("schema", "apply", "sqlite", "--json").out)
    assert applied["intact"] is True and len(applied["tables"]) == 2, applied
    db.close()


def test_output_that_cannot_be_written_is_a_failure(world):
    world.aster("acquire", "r")
    with open("/dev/full", "w") as full:
        world.aster("list", code=74, stdout=full)
        world.aster("acquire", "unread", code=74, stdout=full)
    assert world.inspect("unread")["held"] is False


if __name__ == "__main__":
    run_tests(globals())

#!/usr/bin/env python3
"""man/asterd.conf.5.scd names every option that asterd reads and no other, with the defaults and limits that it has."""
import os
import re
import subprocess
import sys

SOURCE = os.environ["ASTER_SOURCE"]
sys.path.insert(0, os.path.join(SOURCE, "tests", "support"))
from asterd import ASTERD, Asterd, skip_without_asterd  # noqa: E402
from cli import run_tests  # noqa: E402


def text_of(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


def read_code():
    """{name: default} of every option, whatever section it is in; sections have none."""
    code = "".join(text_of("src", "grantor", name) for name in sorted(os.listdir(os.path.join(SOURCE, "src", "grantor")))
                   if name == "cfg.h" or (name.startswith("settings") and name.endswith(".c")))
    macros = dict(re.findall(r"#define (\w+) (\d+)", code))
    options = {}
    for kind, name, default in re.findall(r'CFG_(\w+)\(\s*"([a-z-]+)",\s*("[^"]*"|\w+)', code):
        options[name] = {"INT": macros.get(default, default), "SEC": None, "STR_LIST": "{}"}.get(kind, default.strip('"'))
    return options


def read_page():
    """{name: what its paragraph says}."""
    entries = {}
    names = []
    for line in text_of("man", "asterd.conf.5.scd").split("\n# WHAT IS SERVED", 1)[1].splitlines():
        heading = re.match(r"\t?((?:\*[a-z-]+\*(?:, )?)+)(?: (?:=|\{|\"_ID_\").*)$", line)
        if heading:
            names = re.findall(r"\*([a-z-]+)\*", heading.group(1))
            entries.update((name, "") for name in names)
        elif line.startswith("\t") and names:
            for name in names:
                entries[name] += line.strip() + " "
        elif line:
            names = []
    return entries


def test_the_page_has_every_option_and_no_other(_):
    code, page = read_code(), read_page()
    assert len(code) >= 25, code  # else the pattern is no longer right
    assert set(code) == set(page), (set(code) ^ set(page), "one of settings.c and asterd.conf.5.scd does not name it")


def test_every_default_is_said_and_right(_):
    page = read_page()
    for name, default in read_code().items():
        said = re.search(r"Default:? (.*?)[;.]|Required", page[name])
        if default is None or (said and said.group(0) == "Required"):
            continue
        assert said, f"{name}: no default"
        value = said.group(1).strip('"')
        known = {"NULL": "none", "{}": "none"}.get(default, default)
        assert value == known or (name == "resources" and value == "all names"), (name, value, default)


def accepts(server, line):
    server.configure(line + "\n")
    checked = subprocess.run([ASTERD, "--config", server.config, "--check"], stderr=subprocess.PIPE, check=False)
    assert checked.returncode in (0, 78), checked
    return checked.returncode == 0


def test_the_limits_of_numbers_are_those_that_are_enforced(world):
    server, checked = Asterd(world), 0
    page = read_page()
    for name, default in read_code().items():
        if default is None or not default.isdigit():
            continue
        said = re.search(r"Default (\d+); (\d+) to (\d+)\.", page[name])
        assert said and said.group(1) == default, f"{name}: write \"Default N; LEAST to MOST.\""
        least, most = int(said.group(2)), int(said.group(3))
        for value, right in ((least - 1, False), (least, True), (int(default), True), (most, True), (most + 1, False)):
            assert accepts(server, f"{name} = {value}") == right, (name, value)
        checked += 1
    assert checked >= 5


def test_the_examples_of_the_page_and_the_guide_are_accepted(world):
    server = Asterd(world)
    expect_accepted(world, server, text_of("man", "asterd.conf.5.scd").split("```")[1])
    expect_accepted(world, server, re.search(r"```conf\n(.*?)```", text_of("docs", "grantor.md"), re.DOTALL).group(1))


def expect_accepted(world, server, example):
    example = example.replace("1f0c...64 hexadecimal digits", "1f" * 32)
    example = example.replace("/var/lib/aster/node", world.path("server"))
    with open(server.config, "w", encoding="utf-8") as config:
        config.write(example)
    subprocess.run([ASTERD, "--config", server.config, "--check"], check=True)


def test_a_check_looks_at_the_key_as_well(world):
    server = Asterd(world)
    os.chmod(world.path("server/node.key"), 0o644)
    server.configure()
    checked = subprocess.run([ASTERD, "--config", server.config, "--check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 78 and "chmod 600" in checked.stderr, checked
    missing = subprocess.run([ASTERD, "--config", "/nowhere/asterd.conf", "--check"], capture_output=True, text=True,
                             check=False)
    assert missing.returncode == 78 and "/nowhere/asterd.conf" in missing.stderr, missing


if __name__ == "__main__":
    skip_without_asterd()
    run_tests(globals())

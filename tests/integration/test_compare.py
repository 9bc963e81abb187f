#!/usr/bin/env python3
"""`bench/compare` runs: every case that needs no other service gives a figure, and every bound is judged or told apart as
not measured. How fast this machine is decides nothing here."""
import json
import os
import subprocess
import sys
import tempfile

build, source = os.environ["ASTER_BUILD"], os.environ["ASTER_SOURCE"]
if not os.path.exists(os.path.join(build, "bench", "peers", "lease_aster")):
    print("this build has no benchmarks of the grantor")
    sys.exit(77)

with tempfile.TemporaryDirectory(dir=build) as directory:
    path = os.path.join(directory, "figures.json")
    done = subprocess.run([os.path.join(source, "bench", "compare"), "--smoke", "--build", build, "--directory", directory,
                           "--without", "redis-none,redis-always,etcd", "--json", path],
                          stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.returncode
    assert os.listdir(directory) == ["figures.json"], os.listdir(directory)
    found = json.load(open(path))

figures = {figure["key"]: figure["rounds"] for figure in found["figures"]}
assert all(len(rounds) == 1 for rounds in figures.values()), figures
for key in ("udp-free", "renew-free", "library-free", "renew-64", "renew-64x100", "requests-64", "fdatasync", "asterd-1", "asterd-64",
            "asterd-256", "asterd-16", "asterd-memory-bytes"):
    assert figures[key][0]["value"] > 0, (key, figures.get(key))
assert len(figures["asterd-takeover"][0]["samples"]) == 2, figures["asterd-takeover"]
assert min(figures["asterd-takeover"][0]["samples"]) > -1, "granted before the holder's ttl was over"
assert set(found["skipped"]) == {"redis-none", "redis-always", "etcd"}, found["skipped"]
for bound in found["bounds"]:
    compared = "Redis" in bound["bound"] or "etcd" in bound["bound"]
    assert (bound["met"] is None) == compared, bound
    assert bound["bound"] in done.stdout, bound
print(f"{len(figures)} cases, {len(found['bounds'])} bounds")

#!/usr/bin/env python3
"""The HTTP port of a real asterd: metrics, health, leases and history; and its log as JSON."""
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.environ["ASTER_SOURCE"], "tests", "support"))
import prometheus  # noqa: E402
from asterd import Asterd, Http, skip_without_asterd  # noqa: E402
from cli import run_tests, until  # noqa: E402

HTTP = 'http = "127.0.0.1:0"\n'
HOSTILE = ['say "quote" \\ back', "a=b level=error", "M\u00fcnchen \U0001f512", "turn \u202e round", "{}[]\"},{\""]


def started(world, rest="", kept='journal = "none"', *arguments):
    server = Asterd(world, kept)
    server.configure(HTTP + rest)
    server.start(*arguments)
    server.await_ready()
    return server, Http(server.http_port())


def test_metrics_follow_the_format_and_the_conventions_of_prometheus(world):
    _, http = started(world)
    world.aster("acquire", "catalog", "--ttl", "1m")
    world.aster("acquire", "catalog", "--ttl", "1m", code=75)
    status, headers, text = http.ask("/metrics")
    assert status == 200 and headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = prometheus.read(text)
    prometheus.check_names(families, "aster_")
    decisions = families["aster_decisions_total"][1]
    assert decisions['verb="acquire",outcome="granted"'] == 1 and decisions['verb="acquire",outcome="denied"'] == 1
    assert families["aster_ready"][1][""] == 1
    until(lambda: prometheus.read(http.get("/metrics"))["aster_events_total"][1]['kind="granted"'] == 1)
    if shutil.which("promtool"):
        subprocess.run(["promtool", "check", "metrics"], input=text.encode(), check=True)


def test_the_reader_of_metrics_sees_mistakes(_):
    good = "# HELP aster_x_total X.\n# TYPE aster_x_total counter\naster_x_total 1\n"
    prometheus.check_names(prometheus.read(good), "aster_")
    for bad in (good[:-1], good + "aster_x_total 2\n", good.replace("TYPE", "TIPE"), good.replace(" 1\n", ' {a="1"} 1\n'),
                good.replace("aster_x_total 1", 'aster_x_total{a="1",a="2"} 1'), good.replace("_total", ""),
                good.replace("_x_", "_x_ms_"), good.replace("counter", "gauge"), good + good):
        try:
            prometheus.check_names(prometheus.read(bad), "aster_")
        except (AssertionError, ValueError):
            continue
        raise AssertionError(f"went unnoticed: {bad}")


def test_leases_are_shown_page_by_page_and_never_their_values(world):
    server, http = started(world)
    for i in range(7):
        world.aster("acquire", f"shard/{i}", "--ttl", "1m")
    world.aster("acquire", "other", "--ttl", "1m")
    world.aster("put", "other", "--epoch", "1", "--holder", server.client, stdin=b"a secret value")
    names, after = [], ""
    while after is not None:
        page = http.json(f"/api/v1/leases?prefix=shard/&limit=3{'&after=' + after if after else ''}")
        assert len(page["leases"]) <= 3 and page["more"] == (page["next"] is not None)
        names += [row["resource"] for row in page["leases"]]
        after = page["next"]
    assert names == [f"shard/{i}" for i in range(7)], names
    row = http.json("/api/v1/leases?prefix=shard/3")["leases"][0]
    assert row["holder"] == server.client and row["held"] is True and row["epoch"] == 1
    assert 0 < row["remaining_ms"] <= 60000 and row["expires"].endswith("Z") and row["expires"] > row["since"]
    body = http.get("/api/v1/leases")
    assert "secret" not in body and "value_revision" in body


def test_history_is_shown_as_an_array_and_as_lines(world):
    server, http = started(world)
    for i in range(6):
        epoch = json.loads(world.aster("acquire", f"r{i % 2}", "--ttl", "1m", "--json").out)["epoch"]
        world.aster("release", f"r{i % 2}", "--epoch", str(epoch), "--holder", server.client)
    newest = http.json("/api/v1/history?limit=2")["events"]
    assert [event["event"] for event in newest] == ["granted", "released"] and newest[-1]["revision"] == 12
    seen, after, more = [], 0, True
    while more:
        page = http.json(f"/api/v1/history?after={after}&limit=5")
        seen += page["events"]
        after, more = page["revision"], page["more"]
    assert [event["revision"] for event in seen] == list(range(1, 13))
    only = http.json("/api/v1/history?resource=r1&limit=1000")["events"]
    assert len(only) == 6 and {event["resource"] for event in only} == {"r1"}
    for path, accept in (("/api/v1/history?format=lines&limit=1000", {}),
                         ("/api/v1/history?limit=1000", {"Accept": "application/x-ndjson"})):
        status, headers, body = http.ask(path, **accept)
        assert status == 200 and headers["Content-Type"] == "application/x-ndjson"
        assert [json.loads(line) for line in body.splitlines()] == seen
    assert http.json("/api/v1/history?after=12") == {"events": [], "revision": 12, "more": False}


def test_wrong_questions_are_answered_with_a_reason(world):
    _, http = started(world)
    for path in ("/api/v1/leases?limit=0", "/api/v1/leases?limit=1001", "/api/v1/leases?limit=1e3", "/api/v1/leases?limt=1",
                 "/api/v1/history?after=-1", "/api/v1/history?after=", "/api/v1/history?after=99999999999999999999",
                 "/api/v1/history?format=xml"):
        assert http.json(path, 400)["error"], path
    assert "/api/v1/leases" in http.json("/api/v2/leases", 404)["error"]
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        status, headers, body = http.ask("/api/v1/leases", method)
        assert status == 405 and headers["Allow"] == "GET, HEAD" and json.loads(body)["error"], (method, status)
    for path in ("/api/v1/leases", "/metrics", "/livez", "/readyz"):
        status, headers, body = http.ask(path, "HEAD")
        assert status == 200 and body == "" and int(headers["Content-Length"]) > 0
    assert http.json("/api/v1/leases?prefix=%00%ff")["leases"] == []


def test_a_page_of_the_web_cannot_reach_it_under_its_own_name(world):
    _, http = started(world)
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:9400", "10.0.0.1", "127.0.0.1@evil",
                 "[::1].evil", "[::2]", "localhost:80:80"):
        for path in ("/api/v1/leases", "/metrics", "/readyz"):
            status, headers, body = http.ask(path, Host=host)
            assert status == 403 and "Host" in json.loads(body)["error"], (host, status, body)
            assert "Access-Control-Allow-Origin" not in headers
    for host in ("localhost", "LOCALHOST:9400", "127.0.0.1:1", "127.1.2.3", "[::1]:9400"):
        assert http.ask("/livez", Host=host)[0] == 200, host


def test_other_machines_are_not_served(world):
    for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:9400"):
        server = Asterd(world)
        server.configure(f'http = "{address}"\n')
        server.start()
        assert server.process.wait(20) == 78
        assert "127.0.0.1:PORT" in server.await_line("level=error", "loopback")


def test_ready_says_when_the_store_fails_and_when_it_works_again(world):
    server, http = started(world, kept=f'store = "sqlite:{world.database}"')
    world.aster("acquire", "before", "--ttl", "1m")
    assert http.get("/readyz") == "ready\n"
    limits = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
    for i in range(3):
        out = world.start("acquire", f"refused-{i}", "--ttl", "1m")
        assert out.wait(30) not in (0, 75)
    status, headers, body = http.ask("/readyz")
    assert status == 503 and headers["Retry-After"] == "1" and "store" in body, (status, body)
    assert http.get("/livez") == "alive\n"
    assert prometheus.read(http.get("/metrics"))["aster_ready"][1][""] == 0
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)
    world.aster("acquire", "after", "--ttl", "1m")
    assert http.get("/readyz") == "ready\n"
    assert server.end() == 0


def test_idle_connections_and_slow_requests_do_not_keep_others_out(world):
    server, http = started(world)
    idle = [socket.create_connection(("127.0.0.1", http.port)) for _ in range(14)]
    for connection in idle:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: loc")
    assert http.get("/livez") == "alive\n"
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(http.ask("/readyz")[0])) for _ in range(8)]
    for connection in idle:
        connection.close()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 8
    large = socket.create_connection(("127.0.0.1", http.port))
    large.sendall(b"GET /" + b"x" * 30000 + b" HTTP/1.1\r\n\r\n")
    assert large.recv(100).split()[1] in (b"413", b"414", b"431")
    large.close()
    assert http.get("/livez") == "alive\n" and server.process.poll() is None


def test_the_log_is_json_and_hostile_names_stay_names(world):
    server, _ = started(world, "", 'journal = "none"', "--log-format", "json")
    for name in HOSTILE:
        world.aster("acquire", name, "--ttl", "1m")
    world.aster("put", HOSTILE[0], "--epoch", "9", "--holder", server.client, stdin=b"x", code=77)
    assert server.end() == 0
    until(lambda: "drained" in server.lines[-1])
    entries = [json.loads(line) for line in server.lines]
    assert all(line.endswith("}\n") for line in server.lines)
    granted = [entry for entry in entries if entry["event"] == "granted"]
    assert [entry["resource"] for entry in granted] == HOSTILE
    assert all(entry["actor"] == server.client and entry["epoch"] == 1 and entry["level"] == "info" for entry in granted)
    assert not any("\u202e" in line for line in server.lines)
    refused = [entry for entry in entries if entry["event"] == "fence-rejected"]
    assert [(entry["level"], entry["reason"], entry["carried"]) for entry in refused] == [("error", "FUTURE_EPOCH", 9)]


def test_the_format_of_the_log_can_be_configured_and_reloaded(world):
    server, _ = started(world, 'log-format = "json"\n')
    assert all(json.loads(line) for line in server.lines)
    server.configure(HTTP + 'log-format = "logfmt"\n')
    server.process.send_signal(1)
    server.await_line("reloaded")
    world.aster("acquire", "catalog", "--ttl", "1m")
    assert "level=info" in server.await_line("event=granted")
    assert server.end() == 0


if __name__ == "__main__":
    skip_without_asterd()
    run_tests(globals())

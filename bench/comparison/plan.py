"""What is measured: a list of cases, each of which gives one figure per round."""
import contextlib
import os
from dataclasses import dataclass, field
from typing import Callable

from . import measure, servers


@dataclass
class Case:
    section: str
    key: str  # how bounds name it
    title: str
    unit: str
    run: Callable  # (running servers) -> {"value": float, ...}
    needs: list = field(default_factory=list)  # keys of servers
    once: bool = False  # not repeated in every round


def driven(section, key, title, unit, server, value, *options):
    def run(running):
        result = measure.drive(running[server], *options)
        return {"value": value(result), **result}
    return Case(section, key, title, unit, run, [server])


def rate(result):
    return result["rate"]


def p50(result):
    return result["p50_us"]


def single(settings):
    seconds = ["--seconds", settings.seconds, "--warm", settings.warm, "--clients", 1]

    def udp(*cpus):
        def run(_):
            result = measure.reference(settings.build, "udp", settings.seconds, *cpus)
            return {"value": result["p50_us"], **result}
        return run

    def asterd(mode, apart, parts=1, driver="lease_aster"):
        def run(running):
            server = running["asterd-memory"]
            path = os.path.join(os.path.dirname(server.driver_path), driver)
            with measure.Apart(server, settings.cpus) if apart else contextlib.nullcontext():
                result = measure.drive(server, "--mode", mode, *seconds, driver=path)
            return {"value": result["p50_us"] / parts, **result}
        return run

    def cases(key, title, apart):
        return [Case("single", f"udp{key}", f"UDP ping-pong, {title}", "µs", udp(*settings.cpus[:2]) if apart else udp()),
                Case("single", f"renew{key}", f"renew, {title}", "µs", asterd("renew", apart), ["asterd-memory"]),
                Case("single", f"acquire{key}", f"acquire or release, {title}", "µs", asterd("cycle", apart, 2),
                     ["asterd-memory"]),
                Case("single", f"library{key}", f"renew through the library, {title}", "µs",
                     asterd("renew", apart, 1, "lease_library"), ["asterd-memory"])]

    return [*(cases("-apart", "each process on its CPU", True) if len(settings.cpus) > 1 else []),
            *cases("-free", "placed by the scheduler", False)]


def renew(settings):
    def case(key, server, title, leases=1, variant=""):
        return driven("renew", key, title, "/s", server, rate, "--mode", "renew", "--clients", 64, "--leases", leases,
                      "--seconds", settings.seconds, "--warm", settings.warm, "--variant", variant, "--ttl-ms", 60000)
    requests = driven("renew", "requests-64", "asterd, memory: acquires and releases, 64 × 1", "/s", "asterd-memory",
                      lambda result: 2 * result["rate"], "--mode", "cycle", "--clients", 64, "--seconds",
                      settings.seconds, "--warm", settings.warm)
    return [case("renew-64", "asterd-memory", "asterd, memory: 64 × 1 lease"),
            case("renew-64-durable", "asterd-durable", "asterd, durable: 64 × 1 lease"),
            requests,
            case("redis-renew-64", "redis-none", "Redis, no persistence: 64 × 1"),
            case("etcd-renew-64", "etcd", "etcd: 64 × 1", variant="key"),
            case("renew-64x100", "asterd-memory", "asterd, memory: 64 × 100 leases", 100),
            case("renew-64x100-durable", "asterd-durable", "asterd, durable: 64 × 100 leases", 100)]


def cycle(settings):
    cases = []

    def one_process(clients):
        """The clients are workers of one process, and share the connection of its client library."""
        def run(running):
            server = running["asterd-durable"]
            driver = os.path.join(os.path.dirname(server.driver_path), "lease_library")
            result = measure.drive(server, "--mode", "cycle", "--clients", clients, "--seconds", settings.seconds,
                                   "--warm", settings.warm, "--shared", "yes", driver=driver)
            return {"value": result["rate"], **result}
        return Case("cycle", f"process-{clients}", f"asterd: {clients} workers of one process", "/s", run,
                    ["asterd-durable"])
    for clients in (1, 64, 256):
        def case(name, server, value=rate, unit="/s", variant="", clients=clients):
            return driven("cycle", f"{name}-{clients}", f"{name}: {clients} clients", unit, server, value, "--mode",
                          "cycle", "--clients", clients, "--seconds", settings.seconds, "--warm", settings.warm,
                          "--variant", variant)
        cases += [case("asterd", "asterd-durable"), case("redis-always", "redis-always"),
                  case("etcd", "etcd", variant="key"), one_process(clients)]

    def fsync(_):
        result = measure.reference(settings.build, "fsync", settings.directory, settings.seconds)
        return {"value": result["rate"], **result}
    return [Case("cycle", "fdatasync", "fdatasync of 4 KiB, one after another", "/s", fsync), *cases]


def contend(settings):
    def case(name, server, variant=""):
        return driven("contend", f"{name}-16", f"{name}: 16 contenders", "/s", server,
                      lambda result: result["handovers"], "--mode", "contend", "--clients", 16, "--resource",
                      "contended", "--seconds", settings.seconds, "--warm", settings.warm, "--variant", variant)
    return [case("asterd", "asterd-durable"), case("etcd", "etcd", "mutex")]


def takeover(settings):
    def case(key, server, title, samples, ttl_ms, variant=""):
        def run(running):
            late_ms = []
            while len(late_ms) < samples:
                sample = measure.takeover(running[server], ttl_ms, variant, ttl_ms)
                if sample is not None:
                    late_ms.append(sample)
            late_ms.sort()
            return {"value": late_ms[len(late_ms) // 2], "worst": late_ms[-1], "least": late_ms[0], "samples": late_ms}
        return Case("takeover", key, f"{title}, {samples} holders killed", "ms", run, [server], once=True)
    return [case("asterd-takeover", "asterd-durable", "asterd: past a ttl of 200 ms", settings.takeovers, 200)]


def memory(settings):
    def case(key, server, title, variant=""):
        def run(running):
            running[server].stop()
            running[server].start()
            return {"value": measure.memory_per_lease(running[server], settings.leases, variant)}
        return Case("memory", key, f"{title}: {settings.leases:,} leases", "bytes", run, [server], once=True)
    return [case("asterd-memory-bytes", "asterd-memory", "asterd, memory"),
            case("asterd-durable-bytes", "asterd-durable", "asterd, durable"),
            case("redis-bytes", "redis-none", "Redis, a key with a ttl and no epoch")]


SECTIONS = {"single": single, "renew": renew, "cycle": cycle, "contend": contend, "takeover": takeover, "memory": memory}
KNOWN = {server.key: server for server in servers.ALL}


def cases(settings):
    return [case for section in settings.sections for case in SECTIONS[section](settings) if case]

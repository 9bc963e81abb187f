"""What the figures must be, as ratios to references of the same run."""
from dataclasses import dataclass
from statistics import median


@dataclass
class Bound:
    text: str
    limit: float
    at_most: bool
    value: float = None  # None: something that it needs was not measured

    @property
    def met(self):
        if self.value is None:
            return None
        return self.value <= self.limit if self.at_most else self.value >= self.limit


def judge(rounds):
    """`rounds`: key of a case -> list of its results."""
    middle = {key: median(result["value"] for result in results) for key, results in rounds.items() if results}

    def ratio(a, b):
        return middle[a] / middle[b] if a in middle and b in middle and middle[b] > 0 else None

    def p50_ratio(a, b):
        if a not in middle or b not in middle:
            return None
        return median(r["p50_us"] for r in rounds[a]) / median(r["p50_us"] for r in rounds[b])

    def extra(key, function):
        return function(rounds[key]) if rounds.get(key) else None

    def share(results):
        return median(r["max_wins"] / max(r["min_wins"], 1) for r in results)

    how = "-apart" if rounds.get("udp-apart") else "-free"
    return [
        Bound("renew, 1 client: p50 / UDP ping-pong", 2, True, ratio(f"renew{how}", f"udp{how}")),
        Bound("acquire or release, 1 client: p50 / UDP ping-pong", 2, True, ratio(f"acquire{how}", f"udp{how}")),
        Bound("renewals/s, 64 × 100 leases", 300000, False, middle.get("renew-64x100")),
        Bound("renewals/s, 64 × 1 lease", 80000, False, middle.get("renew-64")),
        Bound("acquires and releases/s, 64 × 1", 80000, False, middle.get("requests-64")),
        Bound("durable cycles, 64 clients / etcd", 10, False, ratio("asterd-64", "etcd-64")),
        Bound("durable cycles, 64 clients / Redis always", 1.5, False, ratio("asterd-64", "redis-always-64")),
        Bound("durable cycles, 256 clients / Redis always", 1.5, False, ratio("asterd-256", "redis-always-256")),
        Bound("durable cycles, 64 workers of one process / etcd", 10, False, ratio("process-64", "etcd-64")),
        Bound("durable cycles, 64 workers of one process / Redis always", 1.5, False,
              ratio("process-64", "redis-always-64")),
        Bound("durable cycles, 256 workers of one process / Redis always", 1.5, False,
              ratio("process-256", "redis-always-256")),
        Bound("durable cycle p50, 1 client / Redis always", 1.1, True, p50_ratio("asterd-1", "redis-always-1")),
        Bound("durable cycle p50, 1 client / etcd", 1, True, p50_ratio("asterd-1", "etcd-1")),
        Bound("renewals, 64 × 1 / Redis, no persistence", 1, False, ratio("renew-64-durable", "redis-renew-64")),
        Bound("renewals, 64 × 1 / etcd", 4, False, ratio("renew-64-durable", "etcd-renew-64")),
        Bound("renewals, 64 × 100 / Redis, no persistence", 10, False,
              ratio("renew-64x100-durable", "redis-renew-64")),
        Bound("handovers, 16 contenders, durable / etcd", 2, False, ratio("asterd-16", "etcd-16")),
        Bound("largest / smallest share of 16 contenders", 1.1, True, extra("asterd-16", share)),
        Bound("takeover past the ttl, median ms", 3, True, middle.get("asterd-takeover")),
        Bound("takeover past the ttl, worst ms", 20, True,
              extra("asterd-takeover", lambda results: max(r["worst"] for r in results))),
        Bound("bytes per held lease, durable", 180, True, middle.get("asterd-durable-bytes")),
    ]

"""Tables for people; everything for programs."""
import json
import os
import platform
from statistics import median


def number(value):
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def machine(directory):
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    memory_kb = int(next(line.split()[1] for line in open("/proc/meminfo") if line.startswith("MemTotal")))
    mounts = [line.split()[1:3] for line in open("/proc/mounts")]
    inside = [(point, kind) for point, kind in mounts if os.path.realpath(directory).startswith(point.rstrip("/") + "/")]
    kind = max(inside, key=lambda mount: len(mount[0]), default=("/", "?"))[1]
    return {"cpus": os.cpu_count(), "model": model, "memory_gb": round(memory_kb / 1048576, 1), "kernel": platform.release(),
            "filesystem": kind}


def print_figures(cases, rounds):
    print(f"\n{'':<58} {'median':>11} {'least':>11} {'most':>11}")
    section = None
    for case in cases:
        results = rounds.get(case.key)
        if not results:
            continue
        if case.section != section:
            section = case.section
            print(section)
        values = [result["value"] for result in results]
        least = results[0].get("least", min(values))
        most = results[0].get("worst", max(values))
        print(f"  {case.title + ', ' + case.unit:<56} {number(median(values)):>11} {number(least):>11} {number(most):>11}")


def print_bounds(bounds):
    print(f"\n{'':<58} {'measured':>11} {'bound':>11}")
    for bound in bounds:
        sign = "≤" if bound.at_most else "≥"
        shown = "-" if bound.value is None else number(bound.value)
        verdict = {True: "met", False: "MISSED", None: "not measured"}[bound.met]
        print(f"  {bound.text:<56} {shown:>11} {sign + ' ' + number(bound.limit):>11}  {verdict}")


def write_json(path, facts, versions, skipped, cases, rounds, bounds):
    figures = [{"section": case.section, "key": case.key, "title": case.title, "unit": case.unit,
                "rounds": rounds[case.key]} for case in cases if rounds.get(case.key)]
    judged = [{"bound": b.text, "limit": b.limit, "at_most": b.at_most, "value": b.value, "met": b.met} for b in bounds]
    with open(path, "w") as file:
        json.dump({"machine": facts, "versions": versions, "skipped": skipped, "figures": figures, "bounds": judged}, file,
                  indent=1)
        file.write("\n")

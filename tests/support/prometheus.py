"""A strict reader of Prometheus' text format, and the field's conventions for names.

https://prometheus.io/docs/instrumenting/exposition_formats/ and https://prometheus.io/docs/practices/naming/"""
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)")
HEAD = re.compile(rf"# (HELP|TYPE) ({NAME}) (.+)")
WRONG_UNITS = ("milliseconds", "ms", "minutes", "hours", "kilobytes", "megabytes", "percent", "count", "number")


def read(text):
    """{name: (type, {labels: value})}; an AssertionError says what is wrong."""
    assert text.endswith("\n") and "\r" not in text, "lines end with a newline"
    families, helped, current = {}, {}, None
    for line in text[:-1].split("\n"):
        if line.startswith("#"):
            head = HEAD.fullmatch(line)
            assert head, f"not a comment of the format: {line}"
            kind, name, rest = head.groups()
            if kind == "HELP":
                assert name not in helped and name not in families, f"{name} comes twice"
                helped[name] = rest
                continue
            assert current != name and name not in families and name in helped, f"TYPE without HELP, or twice: {name}"
            assert rest in ("counter", "gauge", "histogram", "summary"), f"{name} is a {rest}"
            families[name] = (rest, {})
            current = name
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample, f"not a sample: {line}"
        name, labels, value = sample.group(1), sample.group(2) or "", float(sample.group(sample.lastindex))
        assert name == current, f"{name} stands in the group of {current}"
        samples = families[name][1]
        assert labels not in samples, f"{name}{{{labels}}} comes twice"
        keys = [key for key, _ in re.findall(LABEL, labels)]
        assert len(keys) == len(set(keys)), f"a label comes twice: {line}"
        samples[labels] = value
    return families


def check_names(families, prefix):
    for name, (kind, samples) in families.items():
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name) and name.startswith(prefix), f"{name}: write {prefix}snake_case"
        assert samples, f"{name} has no samples"
        assert (kind == "counter") == name.endswith("_total"), f"{name}: exactly counters end in _total"
        stem = name.removesuffix("_total")
        assert not stem.endswith(tuple("_" + unit for unit in WRONG_UNITS)), f"{name}: use base units, without a type"
        assert all(value >= 0 for value in samples.values()) or kind != "counter", f"{name} is negative"

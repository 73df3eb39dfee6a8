#!/usr/bin/env python3
"""Checks that every metric is bumped as what it is: counters are added to, gauges set, histograms observed, by the rows of
service/core/metrics.def, and that every row of it is bumped somewhere.
"""
import os, re, sys

os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(path):
    with open(path) as f:
        return f.read()


kind_of = {"METRIC_" + number: kind if kind in ("COUNTER", "GAUGE") else "HISTOGRAM"
           for number, kind in re.findall(r"^METRIC\((\w+), (\w+),", read("service/core/metrics.def"), re.M)}
wants = {"metric_add": "COUNTER", "metric_add4": "COUNTER", "metric_set": "GAUGE", "metric_observe": "HISTOGRAM",
         "metric_observe_since": "HISTOGRAM"}
problems = []
seen = set()
for folder, _, files in os.walk("service"):
    for path in (os.path.join(folder, name) for name in files if name.endswith(".c")):
        text = read(path)
        if path != "service/core/metrics.c":
            seen.update(re.findall(r"\bMETRIC_\w+", text))
        for function, metric in re.findall(r"\b(metric_add4?|metric_set|metric_observe|metric_observe_since)\(\s*(METRIC_\w+)", text):
            seen.add(metric)
            if kind_of.get(metric) != wants[function]:
                problems.append(f"{path}: {function}({metric}): it is a {kind_of.get(metric, 'metric of no row')}")
problems += [f"{name} is never bumped" for name in kind_of if name not in seen]
print("\n".join(problems), end="\n" if problems else "")
sys.exit(bool(problems))

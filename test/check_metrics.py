#!/usr/bin/env python3
"""Checks that every metric is bumped as what it is: counters are added to, gauges set, histograms observed, by the table of
service/core/metrics_table.c, and that every row of it is bumped somewhere.
"""
import os, re, sys

os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(path):
    with open(path) as f:
        return f.read()


names = re.findall(r"^\s*(METRIC_\w+),", read("service/core/metrics.h"), re.M)
# Rows are written out, or by the macros of those that are only pushed.
rows = re.findall(r'^    (?:\{"\w+",\s*|\{\.name = "[\w.]+", \.kind = )(COUNTER|GAUGE|HISTOGRAM)|^    (COUNTED|TIMED|TOLD|TOLD_MS)\("',
                  read("service/core/metrics_table.c"), re.M)
kinds = [kind or {"COUNTED": "COUNTER"}.get(macro, "HISTOGRAM") for kind, macro in rows]
kind_of = dict(zip(names, kinds))
wants = {"metric_add": "COUNTER", "metric_add4": "COUNTER", "metric_set": "GAUGE", "metric_observe": "HISTOGRAM",
         "metric_observe_since": "HISTOGRAM"}
problems = [] if len(names) == len(kinds) else [f"{len(names)} numbers of metrics, {len(kinds)} rows"]
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
problems += [f"{name} is never bumped" for name in names if name not in seen]
print("\n".join(problems), end="\n" if problems else "")
sys.exit(bool(problems))

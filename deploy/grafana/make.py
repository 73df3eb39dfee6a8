#!/usr/bin/env python3
"""Writes symloom.json, the dashboard, of the list of panels below."""
import json, os

S, BYTES, RATE, SHARE = "s", "bytes", "reqps", "percentunit"


def quantiles(name, by=""):
    by = f", {by}" if by else ""
    return [(f"p{q}", f'histogram_quantile(0.{q}, sum by (le{by}) (rate({name}_bucket{{instance=~"$instance"}}[$__rate_interval])))')
            for q in (50, 95, 99)]


def rate(name, by, match=""):
    return f'sum by ({by}) (rate({name}{{instance=~"$instance"{match}}}[$__rate_interval]))'


def now(name, by, match=""):
    return f'sum by ({by}) ({name}{{instance=~"$instance"{match}}})'


PANELS = [
    ("Requests", RATE, [("{{route}}", rate("symloom_http_requests_total", "route"))]),
    ("Error responses", RATE, [("{{route}} {{status}}", rate("symloom_http_requests_total", "route, status", ',status=~"[45].."'))]),
    ("Job duration", S, quantiles("symloom_job_duration_seconds")),
    ("Running jobs and limit", "none", [("running", now("symloom_jobs_running", "instance")), ("limit", now("symloom_jobs_limit", "instance"))]),
    ("Cache lookups by layer", RATE, [("{{layer}}", rate("symloom_cache_lookups_total", "layer"))]),
    ("Cache hit rate", SHARE, [("{{cache}}", "1 - " + rate("symloom_cache_lookups_total", "cache", ',layer="computed"') + " / " +
                                    rate("symloom_cache_lookups_total", "cache"))]),
    ("Downloads", RATE, [("{{source}} {{result}}", rate("symloom_downloads_total", "source, result"))]),
    ("Sources (1: up, 0: down)", "none", [("{{source}}", 'min by (source) (symloom_source_up{instance=~"$instance"})')]),
    ("Process deaths", "none", [("{{instance}}", 'increase(symloom_process_deaths_total{instance=~"$instance"}[$__rate_interval])')]),
    ("Conversions", RATE, [("{{cache}} {{result}}", rate("symloom_conversions_total", "cache, result"))]),
    ("Wait for a pool thread", S, quantiles("symloom_pool_wait_seconds")),
    ("Event loop lag", S, quantiles("symloom_loop_lag_seconds")),
    ("Modules", RATE, [("{{purpose}} {{status}}", rate("symloom_modules_total", "purpose, status"))]),
    ("Memory", BYTES, [("resident", now("process_resident_memory_bytes", "instance", ',job="symloom"')),
                       ("budget, {{state}}", now("symloom_memory_budget_bytes", "state"))]),
    ("Disk cache size", BYTES, [("{{cache}}", now("symloom_cache_disk_bytes", "cache"))]),
    ("Shared cache operations", RATE, [("{{backend}} {{op}} {{result}}", rate("symloom_shared_ops_total", "backend, op, result"))]),
]


def panel(number, title, unit, queries):
    return {"id": number + 1, "type": "timeseries", "title": title, "datasource": {"type": "prometheus", "uid": "$datasource"},
            "gridPos": {"h": 8, "w": 12, "x": number % 2 * 12, "y": number // 2 * 8},
            "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
            "targets": [{"refId": chr(65 + i), "expr": query, "legendFormat": legend} for i, (legend, query) in enumerate(queries)]}


def dashboard():
    return {
        "title": "symloom", "uid": "symloom", "schemaVersion": 38, "refresh": "30s", "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [
            {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
            {"name": "instance", "type": "query", "label": "Node", "datasource": {"type": "prometheus", "uid": "$datasource"},
             "query": "label_values(symloom_ready, instance)", "includeAll": True, "multi": True, "refresh": 2}]},
        "panels": [panel(i, *p) for i, p in enumerate(PANELS)]}


if __name__ == "__main__":
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "symloom.json"), "w") as f:
        json.dump(dashboard(), f, indent=1)
        f.write("\n")

"""Look-ups of every mapping of published source maps, as trace-mapping answers them."""
import os
from harness import npm_path
from test_scopes import HERE, run

PACKAGES = "@jridgewell/trace-mapping@0.3.31 mermaid@11.17.2"  # which brings the others
TRACE_MAPPING = "@jridgewell/trace-mapping/package.json"
MAPS = ["mermaid/dist/mermaid.js.map", "mermaid/dist/mermaid.min.js.map", "marked/lib/marked.umd.js.map",
        "dompurify/dist/purify.min.js.map", "stylis/dist/umd/stylis.js.map",
        "@jridgewell/sourcemap-codec/dist/sourcemap-codec.umd.js.map"]


def test_every_mapping_equals_trace_mapping(work, share):
    modules = npm_path(work, PACKAGES, TRACE_MAPPING)[:-len(TRACE_MAPPING) - 1]
    for name in MAPS:
        path = os.path.join(modules, name)
        own = sorted(run([share.mappings, path]))
        other = sorted(run(["node", os.path.join(HERE, "lookups.mjs"), modules, path]))
        different = [f"{a} / {b}" for a, b in zip(own, other) if a != b]
        print(f"        {name}: {len(own)} look-ups with an answer, {len(other)} there, {len(different)} of them different")
        assert own and len(own) == len(other) and not different, different[:10]

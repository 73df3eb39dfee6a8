// Every mapping of a source map as trace-mapping finds it: a line "line column source line column name" for each look-up that has an
// answer, source and name as JSON. Looked up is where each mapping begins, and the column behind it.
//
// usage: lookups.mjs MODULES MAP
import { createRequire } from "node:module"
import { readFileSync } from "node:fs"

const [modules, path] = process.argv.slice(2)
const { TraceMap, decodedMappings, originalPositionFor } = createRequire(modules + "/")("@jridgewell/trace-mapping")
const map = new TraceMap(readFileSync(path, "utf8"))
const out = []
decodedMappings(map).forEach((segments, line) => {
    for (const [column] of segments)
        for (const at of [column, column + 1]) {
            const found = originalPositionFor(map, { line: line + 1, column: at })
            if (found.source !== null || found.line !== null)
                out.push(`${line} ${at} ${found.line - 1} ${found.column} ${found.name ?? ""}`)
        }
})
process.stdout.write(out.join("\n") + "\n")

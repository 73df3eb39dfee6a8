// What other readers of source maps take of the processor: a line "name ms ms us" for each, of reading all of a map from its bytes, as
// they come from a file or a server and as symloom has them, from a text that was decoded before, and of a look-up in it.
//
// usage: sourcemap_peers.mjs MODULES MAP
import { createRequire } from "node:module"
import { readFileSync } from "node:fs"

const [modules, path] = process.argv.slice(2)
const require = createRequire(modules + "/")
const { TraceMap, decodedMappings, originalPositionFor } = require("@jridgewell/trace-mapping")
const { SourceMapConsumer } = require("source-map")
const ROUNDS = 5
const LOOK_UPS = 200000
const bytes = readFileSync(path)
const text = bytes.toString()

async function shortest(work) {
    let best = Infinity
    for (let round = 0; round < ROUNDS; round++) {
        const start = process.cpuUsage()
        await work()
        const { user, system } = process.cpuUsage(start)
        best = Math.min(best, (user + system) / 1000)
    }
    return best
}

const map = new TraceMap(text)
const all = decodedMappings(map).flatMap((segments, line) => segments.map(([column]) => ({ line: line + 1, column })))
let random = 1
const positions = Array.from({ length: LOOK_UPS }, () => all[(random = (Math.imul(random, 1103515245) + 12345) & 0x7fffffff) % all.length])

async function report(name, read, find) {
    const [ms, decoded] = [await shortest(() => read(bytes.toString())), await shortest(() => read(text))]
    const us = (1000 * (await shortest(() => positions.forEach(find)))) / LOOK_UPS
    console.log(name, ms, decoded, us)
}

await report("trace-mapping", text => decodedMappings(new TraceMap(text)), at => originalPositionFor(map, at))
const consumer = await new SourceMapConsumer(text)
const readAndDrop = async text => {
    const other = await new SourceMapConsumer(text)
    other.originalPositionFor({ line: 1, column: 0 }) // which is when it reads the mappings
    other.destroy()
}
await report("source-map", readAndDrop, at => consumer.originalPositionFor(at))

/** Reads marks of runs: see `Upkeep`. A run's place in the list is its mark, because no other run ever has it. */
import type { Connection } from './connection.ts'
import { partitionOf, type Partition } from './keys.ts'
import { readScript } from './read-script.ts'

/** ARGV: runs. Returns the place of each, or nothing. */
const marksOf = readScript(`
local T = string.sub(KEYS[1], 1, -7)
local found = {}
for i, run in ipairs(ARGV) do
  local n = redis.pcall('HGET', T .. ':run:' .. run, 'n')
  found[i] = type(n) == 'string' and n or ''
end
return found
`)

/** Runs that one script looks at. */
const most = 500

/** Asks each partition once, whatever the number of its runs. */
export async function readMarks(connection: Connection, runs: readonly string[]): Promise<(string | undefined)[]> {
  const parts = new Map<Partition, string[]>()
  for (const run of new Set(runs)) {
    const partition = partitionOf(run)
    parts.set(partition, [...(parts.get(partition) ?? []), run])
  }
  const marks = new Map<string, string>()
  await Promise.all(
    [...parts].map(async ([partition, list]) => {
      for (let at = 0; at < list.length; at += most) {
        const asked = list.slice(at, at + most)
        const found = await marksOf(connection, 'read runs', partition, asked)
        for (const [i, run] of asked.entries()) if (found[i] !== '') marks.set(run, found[i]!)
      }
    }),
  )
  return runs.map((run) => marks.get(run))
}

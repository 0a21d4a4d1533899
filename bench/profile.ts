/** Where a server's time goes: the functions of a V8 profile by the time spent in themselves. */
import { readFileSync } from 'node:fs'

interface Profile {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[]
  samples: number[]
  timeDeltas: number[]
}

/** Lines `share function (file:line)`, the largest first; waiting is left out. */
export function topFunctions(file: string, count = 25): string[] {
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, 'utf8')) as Profile
  const names = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]))
  const spent = new Map<string, number>()
  let total = 0
  for (const [i, id] of samples.entries()) {
    const name = names.get(id)!
    if (name === '(idle)') continue
    spent.set(name, (spent.get(name) ?? 0) + timeDeltas[i]!)
    total += timeDeltas[i]!
  }
  return [...spent]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, count)
    .map(([name, micros]) => `${((micros / total) * 100).toFixed(1).padStart(5)} %  ${name}`)
}

function nameOf({ functionName, url, lineNumber }: Profile['nodes'][0]['callFrame']): string {
  const name = functionName === '' ? '(anonymous)' : functionName
  if (url === '') return name
  // From the package's folder on: what stands before is this machine's.
  const place = url.replace(/^.*\/node_modules\//u, '').replace(/^file:.*\/(dist|bench)\//u, '$1/')
  return `${name}  ${place}:${lineNumber + 1}`
}

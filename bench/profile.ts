/** Summarizes a V8 CPU profile by self time. */
import { readFileSync } from 'node:fs'

interface Profile {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[]
  samples: number[]
  timeDeltas: number[]
}

/** Lines of `share name`, largest first: by package, own folder or Node module, then by function. Idle time is excluded. */
export function formatProfile(file: string, functions = 25): string {
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, 'utf8')) as Profile
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]))
  const byPlace = new Map<string, number>()
  const byFunction = new Map<string, number>()
  let total = 0
  for (const [i, id] of samples.entries()) {
    const frame = frames.get(id)!
    const micros = timeDeltas[i]!
    if (frame.functionName === '(idle)') continue
    total += micros
    for (const [shares, name] of [
      [byPlace, placeOf(frame)],
      [byFunction, nameOf(frame)],
    ] as const)
      shares.set(name, (shares.get(name) ?? 0) + micros)
  }
  const lines = (shares: Map<string, number>, count: number) =>
    [...shares]
      .toSorted(([, a], [, b]) => b - a)
      .slice(0, count)
      .map(([name, micros]) => `${((micros / total) * 100).toFixed(1).padStart(5)} %  ${name}`)
  return [...lines(byPlace, 20), '', ...lines(byFunction, functions)].join('\n')
}

type Frame = Profile['nodes'][0]['callFrame']

/** The path without its machine-specific prefix. */
function pathOf({ url }: Frame): string {
  return url.replace(/^.*\/node_modules\//u, '').replace(/^file:.*\/(dist|bench)\//u, '$1/')
}

function placeOf(frame: Frame): string {
  if (frame.url === '') return frame.functionName.startsWith('(') ? frame.functionName : '(native)'
  const [first, second, third] = pathOf(frame).split('/') as [string, string?, string?]
  if (first.startsWith('@') || first === 'dist') return `${first}/${second}`
  return first === 'node:internal' && third !== undefined ? `${first}/${second}` : first
}

function nameOf(frame: Frame): string {
  const name = frame.functionName === '' ? '(anonymous)' : frame.functionName
  return frame.url === '' ? name : `${name}  ${pathOf(frame)}:${frame.lineNumber + 1}`
}

/**
 * How the cost of queries grows with the number of runs: a store of 1,000 runs and one of 300,000, at the same pace. They are made once and kept in the
 * folder of `--folder`; with `--before` another checkout makes and asks its own. Run with `npm run bench -- big`.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { answerCalls } from './calls.ts'
import { lastStart, pace } from './big-store.ts'
import type { Options, Result, ResultRow } from './scenario.ts'
import type { Asked } from './big-asks.ts'

const here = resolve(import.meta.dirname, '..')

function node(file: string, args: readonly string[]): string {
  const done = spawnSync(process.execPath, [join(import.meta.dirname, file), ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1e8,
  })
  if (done.status !== 0) throw new Error(`${file} ${args.join(' ')} ended with ${done.status}`)
  return done.stdout
}

async function measure({ quick, folder, before, rounds = 5 }: Options): Promise<Result[]> {
  const sizes = quick ? [200, 400] : [1000, 300_000]
  mkdirSync(folder, { recursive: true })
  const roots = [...(before === undefined ? [] : [{ name: 'before', root: before }]), { name: 'now', root: here }]
  const rows: ResultRow[] = []
  const samples = new Map<string, Asked[]>()
  for (const { name, root } of roots) {
    for (const runs of sizes) {
      const file = join(folder, `${name}-${runs}.db`)
      if (!existsSync(file)) node('big-store.ts', [root, file, String(runs)])
    }
  }
  for (let round = 0; round < rounds; round++) {
    for (const { name, root } of roots) {
      for (const runs of sizes) {
        const file = join(folder, `${name}-${runs}.db`)
        for (const asked of JSON.parse(node('big-asks.ts', [root, file])) as Asked[]) {
          const key = `${asked.name}\n${name}\n${runs}`
          samples.set(key, [...(samples.get(key) ?? []), asked])
        }
      }
    }
  }
  for (const [key, all] of samples) {
    const [what, build, runs] = key.split('\n') as [string, string, string]
    rows.push({
      name: `${what}-${build}-${runs}`,
      title: `${all[0]!.title}: ${build}, ${Number(runs).toLocaleString('en')} runs`,
      samples: all.map(({ ms, cpu, blocked }) => ({ ms, cpu, blocked })),
    })
  }
  return [
    {
      scenario: 'big',
      title: `Queries of stores of ${sizes.join(' and ')} runs, ${Math.round(3_600_000 / pace)} an hour up to ${new Date(lastStart).toISOString()}`,
      reference: '',
      columns: [
        { key: 'ms', title: 'ms', digits: 2 },
        { key: 'cpu', title: 'CPU ms', digits: 2 },
        { key: 'blocked', title: 'main thread ms', digits: 2 },
      ],
      rows,
      notes: [],
    },
  ]
}

answerCalls({ measure })

/**
 * How late the deltas of 40 paced streams are on a server whose store has 300,000 runs: alone, beside searches without a pause, and while half of the
 * runs are deleted. The store is the one that `big` keeps; what is pruned is a copy.
 */
import { execFile, spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Child } from '../child.ts'
import { lastStart, pace } from '../big-store.ts'
import { readUsage } from '../meter.ts'
import { rows as allRows, startRow } from '../rows.ts'
import type { Bench, Result, ResultRow, Sample } from '../scenario.ts'
import { openStreams, warmUp } from './open.ts'

const streams = 40
/** ms that a prune may take. */
const longestPrune = 1_800_000

interface Held {
  deltas: number
  p50: number
  p99: number
  worst: number
}

/** Searches of different cost: a rare word, a word that is nowhere, a common word of a rare agent, and of a thread. */
const searches = [
  '/api/runs?q=rareword',
  '/api/runs?q=nowhere',
  '/api/search?q=common&agent=rare',
  '/api/search?q=common&thread=thread_30',
]

async function ask(url: string): Promise<void> {
  const response = await fetch(url)
  const text = await response.text()
  if (!response.ok) throw new Error(`${url} was answered with ${response.status}: ${text.slice(0, 200)}`)
}

export async function beside(bench: Bench): Promise<Result> {
  const { quick, folder, rounds = 3, rate, seconds } = bench.options
  const runs = quick ? 200 : 300_000
  const kept = join(folder, `now-${runs}.db`)
  if (!existsSync(kept)) {
    const make = [join(import.meta.dirname, '../big-store.ts'), join(import.meta.dirname, '../..'), kept, String(runs)]
    if (spawnSync(process.execPath, make, { stdio: 'inherit' }).status !== 0) throw new Error('no store was made')
  }
  const row = allRows.find(({ name }) => name === 'millrace-ui')!
  const data = mkdtempSync(join(folder, 'beside-'))
  const file = join(data, 'millrace.db')
  const results: Record<'alone' | 'search' | 'prune', Sample[]> = { alone: [], search: [], prune: [] }
  let searched = 0
  let pruned = ''
  try {
    bench.say('copying the store')
    copyFileSync(kept, file)
    const { args, agents } = commandOf(row.args(bench.upstream.url), data)
    const server = await startRow(row, bench.upstream.url, [], args)
    try {
      const target = { ...row.target, url: server.url }
      await warmUp(bench, target)
      for (const path of searches) await ask(server.url + path)
      await openStreams(bench, target, streams)
      await bench.upstream.call('pace', { perSecond: rate })
      const hold = (s: number) => held(bench, server, s)
      await hold(seconds)
      for (let round = 1; round <= rounds; round++) {
        bench.say(`round ${round} of ${rounds}`)
        results.alone.push(await hold(seconds * 4))
        const busy = { more: true }
        const searching = searchOn(server.url, busy)
        results.search.push(await hold(seconds * 4))
        busy.more = false
        searched += await searching
      }
      bench.say('deleting half of the runs')
      const before = statSync(file).size
      const pruning = prune(server, agents, Date.now() - (lastStart - (runs / 2) * pace))
      while (!pruning.over()) results.prune.push(await hold(seconds * 2))
      pruned = `${await pruning.done} The file: ${mb(before)}, then ${mb(statSync(file).size)}.`
    } finally {
      await bench.load.call('reset')
      await server.stop()
    }
  } finally {
    rmSync(data, { recursive: true, force: true })
  }
  const resultRow = (name: keyof typeof results, title: string): ResultRow => ({ name, title, samples: results[name] })
  return {
    scenario: 'beside',
    title: `${streams} streams of ${rate} deltas a second on a store of ${runs.toLocaleString('en')} runs`,
    reference: 'alone',
    columns: [
      { key: 'cpu', title: 'CPU, share of a core', digits: 2 },
      { key: 'p50', title: 'late p50 ms', digits: 1 },
      { key: 'p99', title: 'p99 ms', digits: 1, ratio: results.alone.length === results.search.length },
      { key: 'worst', title: 'worst ms', digits: 0 },
    ],
    rows: [
      resultRow('alone', 'streams alone'),
      resultRow('search', 'beside searches'),
      resultRow('prune', 'beside a prune of half'),
    ],
    notes: [`${searched} searches, one behind the other.`, pruned],
  }
}

/** The row's command, with this data folder and nothing that deletes by itself. */
function commandOf(args: string[], data: string): { args: string[]; agents: string } {
  const agents = join(data, 'agents')
  mkdirSync(agents)
  writeFileSync(
    join(agents, 'bench.yaml'),
    'onDisconnect: cancel\nworkflow:\n  - { id: answer, type: llm, config: { model: "up:bench", stream: true, messages: "$input.messages" } }\n',
  )
  writeFileSync(
    join(agents, 'millrace.config.mjs'),
    "export default { record: { retention: { maxAge: 'none', maxBytes: 'none' } } }\n",
  )
  const own = [...args]
  own[own.indexOf('serve') + 1] = agents
  own[own.indexOf('--data') + 1] = data
  return { args: own, agents }
}

async function held(bench: Bench, server: Child, seconds: number): Promise<Sample> {
  const before = await readUsage(server)
  const { p50, p99, worst } = await bench.load.call<Held>('hold', { seconds }, seconds * 1000 + 60_000)
  const { cpu } = await readUsage(server)
  return { p50, p99, worst, cpu: (cpu - before.cpu) / seconds }
}

async function searchOn(url: string, busy: { more: boolean }): Promise<number> {
  let count = 0
  while (busy.more) await ask(url + searches[count++ % searches.length]!)
  return count
}

function prune(server: Child, agents: string, age: number): { over(): boolean; done: Promise<string> } {
  let over = false
  const began = performance.now()
  const done = run().finally(() => (over = true))
  done.catch(() => undefined)
  async function run(): Promise<string> {
    const command = [join(import.meta.dirname, '../../bin/millrace.js'), 'prune', '--url', server.url]
    const options = { cwd: agents, timeout: longestPrune }
    const given = [...command, '--older-than', `${Math.round(age / 60_000)}m`]
    const { stdout, stderr } = await promisify(execFile)(process.execPath, given, options)
    return `${`${stderr}${stdout}`.trim().split('\n').at(-1)!} It took ${Math.round((performance.now() - began) / 1000)} s.`
  }
  return { over: () => over, done }
}

function mb(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(0)} MB`
}

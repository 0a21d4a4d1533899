/**
 * One run with very many deltas: memory and CPU per delta while it lasts, and how soon a server that starts on its data folder
 * sends the first frame of a long run. Only rows of Millrace that record.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Child } from '../child.ts'
import { readUsage, type Usage } from '../meter.ts'
import { startRow, type Row } from '../rows.ts'
import { profiling, setMode, type Bench, type Result, type ResultRow, type Sample } from '../scenario.ts'

/** Of the run that is watched, and of the run that is resumed. */
const sizes = { full: [1_000_000, 100_000], quick: [50_000, 10_000] } as const
const tenths = 10
/** How often each way to resume is tried, each time in a new process. */
const tries = { full: 5, quick: 1 }

/** ms. */
const settling = 1000

const agent = `recover: true
onDisconnect: detach
workflow:
  - id: answer
    type: llm
    config: { model: "up:bench", stream: true, messages: "$input.messages" }
`
const thread = 'long'
const messages = [{ role: 'user', content: 'Say something long.' }]
const sse = { accept: 'text/event-stream' }

export async function long(bench: Bench): Promise<Result[]> {
  const rows = bench.rows.filter(({ name }) => /^(millrace|before)-(ui|package)$/u.test(name))
  const reference = rows.some(({ name }) => name === 'before-ui') ? 'before-ui' : 'millrace-ui'
  const [deltas, resumed] = bench.options.quick ? sizes.quick : sizes.full
  const watched: ResultRow[] = []
  const resuming: ResultRow[] = []
  for (const row of rows) {
    const { name, title } = row
    watched.push(await attempt({ name, title, samples: [] }, async () => [await watch(bench, row, deltas)]))
    resuming.push(await attempt({ name, title, samples: [] }, () => resume(bench, row, resumed)))
  }
  const cpu = (n: number) => ({ key: `cpu${n}`, title: `µs, tenth ${n}`, digits: 1 })
  const rss = (n: number) => ({ key: `rss${n}`, title: `MB at ${n * 10} %`, digits: 0 })
  return [
    {
      scenario: 'long',
      title: `One run of ${deltas.toLocaleString('en')} deltas at full speed: CPU per delta, and memory`,
      reference,
      columns: [
        { key: 'rate', title: 'deltas/s', digits: 0 },
        ...[2, 5, 10].map(cpu),
        { key: 'growth', title: 'last : second', digits: 2 },
        ...[1, 2, 5, 10].map(rss),
        { key: 'after', title: 'MB behind it', digits: 0 },
      ],
      rows: watched,
      notes: ['The first tenth includes the time in which a new server compiles its code.'],
    },
    {
      scenario: 'long resumed',
      title: `A new server on the log of a run of ${resumed.toLocaleString('en')} deltas: ms from a request to the first frame`,
      reference,
      columns: [
        { key: 'boot', title: 'ready', digits: 0 },
        { key: 'atOnce', title: 'events at once', digits: 0 },
        { key: 'start', title: 'from the start', digits: 0 },
        { key: 'middle', title: 'from the middle', digits: 0 },
        { key: 'whole', title: 'whole', digits: 0 },
        { key: 'killedBoot', title: 'ready after a kill', digits: 0 },
        { key: 'chat', title: 'chat that was killed', digits: 0 },
      ],
      rows: resuming,
      notes: [
        'All but the first are asked a second after the server is ready: it loads the rest of its code behind that.',
        'Events: `GET /api/runs/<id>/events` of a run that has ended. Chat: `GET /api/chat/<thread>/stream` of a run whose server was killed, which the new server goes on with.',
      ],
    },
  ]
}

async function attempt(result: ResultRow, measure: () => Promise<Sample[]>): Promise<ResultRow> {
  try {
    result.samples = await measure()
  } catch (error) {
    result.failed = error instanceof Error ? error.message : String(error)
  }
  return result
}

async function watch(bench: Bench, row: Row, deltas: number): Promise<Sample> {
  bench.say(`${row.name}: ${deltas.toLocaleString('en')} deltas`)
  const server = await startRow(row, bench.upstream.url, profiling(bench, row.name))
  try {
    await setMode(bench, { kind: 'long', deltas })
    const target = { ...row.target, url: server.url }
    const began = performance.now()
    const asked = { target, streams: 1, deltas, seconds: 0 }
    let isOver = false
    const done = bench.load.call('throughput', asked, 300_000).finally(() => (isOver = true))
    // Rejections are reported by the `await` below.
    done.catch(() => undefined)
    const seen: (Usage & { heard: number })[] = [{ ...(await readUsage(server)), heard: 0 }]
    while (!isOver && seen.length < tenths) {
      await pause(10)
      const heard = await heardFrom(bench, server)
      if (heard >= (deltas / tenths) * seen.length) seen.push({ ...(await readUsage(server)), heard })
    }
    await done
    const seconds = (performance.now() - began) / 1000
    seen.push({ ...(await readUsage(server)), heard: deltas })
    const sample: Sample = { rate: deltas / seconds }
    for (let n = 1; n < seen.length; n++) {
      const [before, now] = [seen[n - 1]!, seen[n]!]
      sample[`cpu${n}`] = ((now.cpu - before.cpu) * 1e6) / (now.heard - before.heard)
      sample[`rss${n}`] = now.rss / 2 ** 20
    }
    await pause(500)
    const after = (await readUsage(server)).rss / 2 ** 20
    return { ...sample, growth: sample['cpu10']! / sample['cpu2']!, after }
  } finally {
    await bench.load.call('reset')
    await server.stop()
  }
}

async function heardFrom({ load }: Bench, { url }: Child): Promise<number> {
  return (await load.call<Record<string, number>>('heard'))[url] ?? 0
}

/** Each sample in new processes on the same data folder. */
async function resume(bench: Bench, row: Row, deltas: number): Promise<Sample[]> {
  const { upstream } = bench
  bench.say(`${row.name}: resumed after ${deltas.toLocaleString('en')} deltas`)
  const args = row.args(upstream.url)
  writeFileSync(join(args[2]!, 'long.yaml'), agent)
  const start = () => startRow(row, upstream.url, [], args)

  async function using<T>(use: (server: Child) => Promise<T>, kill = false): Promise<T> {
    const server = await start()
    try {
      return await use(server)
    } finally {
      if (kill) process.kill(server.pid, 'SIGKILL')
      await server.stop()
    }
  }

  await setMode(bench, { kind: 'long', deltas })
  const id = await using((server) => say(bench, server, deltas, 'ended'))
  const samples: Sample[] = []
  for (let i = 0; i < (bench.options.quick ? tries.quick : tries.full); i++) {
    const first = (server: Child, path: string, until?: number) =>
      get(bench, server, `/api/runs/${id}/events${path}`, until)
    const atOnce = await using(async (server) => ({ boot: server.bootMs, ...(await first(server, '', 1)) }))
    const fromStart = await using(async (server) => (await pause(settling), first(server, '', 1)))
    const fromMiddle = await using(async (server) => (await pause(settling), first(server, `?after=${deltas / 2}`, 1)))
    const whole = await using((server) => first(server, ''))
    // Goes on for ever, so that it can be killed.
    await setMode(bench, { kind: 'long', deltas, stays: true })
    await using((server) => say(bench, server, deltas, `${thread}-${i}`), true)
    await setMode(bench, { kind: 'first' })
    const chat = await using(async (server) => {
      await pause(settling)
      return { boot: server.bootMs, ...(await get(bench, server, `/api/chat/${thread}-${i}/stream`, 1)) }
    })
    samples.push({
      boot: atOnce.boot,
      atOnce: atOnce.first,
      start: fromStart.first,
      middle: fromMiddle.first,
      whole: whole.whole,
      killedBoot: chat.boot,
      chat: chat.first,
    })
  }
  return samples
}

/** Starts a run, and resolves with its id when all its deltas are stored. */
async function say(bench: Bench, { url }: Child, deltas: number, threadId: string): Promise<string> {
  const body = { agentId: 'long', threadId, input: { messages } }
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(`${url}/api/runs`, { method: 'POST', headers, body: JSON.stringify(body) })
  const { id } = (await response.json()) as { id: string }
  const target = { url, path: `/api/runs/${id}/events`, headers: sse, mark: '"delta":"~' }
  const { seen } = await bench.load.call<{ seen: number }>('timed', { target, until: deltas }, 120_000)
  if (seen !== deltas) throw new Error(`a run of ${deltas} deltas had ${seen}`)
  // A run that ends has its end stored right behind its last delta.
  await pause(300)
  return id
}

async function get(bench: Bench, { url }: Child, path: string, until?: number) {
  const target = { url, path, headers: sse, mark: '"delta":"~' }
  const { first, whole, bytes } = await bench.load.call<{ first: number; whole: number; bytes: number }>(
    'timed',
    { target, until },
    120_000,
  )
  if (bytes === 0) throw new Error(`${path} was answered without a body`)
  return { first, whole }
}

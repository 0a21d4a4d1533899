/**
 * The page in a real Chromium: how large it is and when it is seen, a run of 50 MB, and a run of 10,000 steps that streams. Run with
 * `npm run bench -- web`.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { CDPSession, Page } from 'playwright-core'
import type { Entry } from '../src/part/entry.ts'
import type { Log } from '../src/part/log.ts'
import { openWebFiles } from '../src/server/serve.ts'
import { launchBrowser, type TestBrowser } from '../test/browser/chromium.ts'
import { agent } from '../test/support/engine.ts'
import { startServer, type TestServer } from '../test/support/server.ts'
import { answerCalls } from './calls.ts'
import { recordedEntries } from './recorded-run.ts'
import type { Options, Result, ResultRow } from './scenario.ts'
import { judge, sampleOf } from './web-budgets.ts'
import { longestFrame, slowestMove, watched } from './web-frames.ts'
import { blankStart, coldStart, freshTab, lastTab } from './web-start.ts'

const large = 'run_large'
const wide = 'run_wide'

async function measure({ quick, rounds = quick ? 1 : 3 }: Options): Promise<Result[]> {
  const { browser, fault } = await launchBrowser()
  const rows = new Map<string, ResultRow>()
  const notes: string[] = []
  const add: Add = (name, title, value) => {
    if (!rows.has(name)) rows.set(name, { name, title, samples: [] })
    rows.get(name)!.samples.push(sampleOf(name, value))
  }
  if (browser === undefined) throw new Error(`the browser does not start${fault}`)
  const server = await startServer({ agents: { a: agent() } }, { web: openWebFiles(), localOnly: true })
  try {
    sizes(add)
    // Loads the browser itself.
    await blankStart(browser)
    for (let i = 0; i < rounds * 3; i++) {
      add('blank', 'a page of one word: first paint, ms', (await blankStart(browser)).paint)
      const { paint, usable } = await coldStart(browser, `${server.url}/`)
      add('paint', 'the first visit: first paint of /, ms', paint)
      add('usable', 'the first visit: until one can write, ms', usable)
    }
    const deltas = quick ? 8000 : 420_000
    const bytes = await append(server.store.log, large, recordedEntries(large, deltas))
    notes.push(`The large run has ${deltas} deltas and ${(bytes / 1e6).toFixed(1)} MB of entries.`)
    for (let i = 0; i < rounds; i++) {
      const { frame } = await blankStart(browser, quick ? 2 : 5)
      add('blank-frame', 'a page of one word: longest frame, ms', frame)
      add('tab-8', 'the list in the eighth tab, ms', await lastTab(browser, server.url, 8))
      await inTab(browser, (page, session) => openLarge(page, session, server, add))
      const steps = quick ? 1000 : 10_000
      await inTab(browser, (page, session) =>
        openWide(page, session, server, { run: `${wide}_${i}`, steps, seconds: quick ? 2 : 5 }, add),
      )
    }
  } finally {
    await browser.close()
    await server.close()
  }
  return [
    {
      scenario: 'web',
      title:
        'The page in Chromium, with its server on the same machine; each room in a profile that has never seen the page',
      reference: 'blank',
      columns: [
        { key: 'value', title: 'median', digits: 1 },
        { key: 'budget', title: 'budget', digits: 0 },
      ],
      rows: [...rows.values()],
      notes: [...notes, ...judge([...rows.values()])],
    },
  ]
}

type Add = (name: string, title: string, value: number) => void

/** What is loaded before the first room, and what each room adds. */
function sizes(add: Add): void {
  const folder = resolve('dist/web')
  const shell = readFileSync(join(folder, 'index.html'), 'utf8')
  const sizeOf = (name: string) => gzipSync(readFileSync(join(folder, 'assets', name))).length / 1024
  const files = readdirSync(join(folder, 'assets'))
  const first = files.filter((name) => shell.includes(name))
  const total = (names: readonly string[]) => names.reduce((sum, name) => sum + sizeOf(name), 0)
  add('size', 'the shell: scripts and styles, KB gzip', total(first))
  for (const room of ['ChatRoom', 'RunsRoom', 'RunRoom']) {
    add(`size-${room}`, `${room}, KB gzip`, total(files.filter((name) => name.startsWith(room))))
  }
}

async function inTab(browser: TestBrowser, use: (page: Page, session: CDPSession) => Promise<void>): Promise<void> {
  const { page, close } = await freshTab(browser)
  await use(page, await page.context().newCDPSession(page))
  await close()
}

async function openLarge(page: Page, session: CDPSession, server: TestServer, add: Add): Promise<void> {
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  const cpu = process.cpuUsage()
  const began = performance.now()
  await page.goto(`${server.url}/runs/${large}?sel=main/a/2`)
  const seen = async (name: string, title: string, selector: string) => {
    await page.locator(selector).first().waitFor()
    add(name, title, performance.now() - began)
  }
  await Promise.all([
    seen('large-drawn', '50 MB: the first steps, ms', '[data-testid=step-row]'),
    seen('large-content', '50 MB: what the step says, ms', '[data-piece=text]'),
    seen('large-outline', '50 MB: the whole outline, ms', '[data-testid=run-room]:not([data-seq="0"])'),
  ])
  // On a busy machine these say more than the times.
  const { user, system } = process.cpuUsage(cpu)
  add('large-server', '50 MB: CPU of the server until then, ms', (user + system) / 1000)
  add('large-page', '50 MB: CPU of the page’s main thread until then, ms', await pageCpu(session))
  await session.send('HeapProfiler.collectGarbage')
  const { usedSize } = (await session.send('Runtime.getHeapUsage')) as { usedSize: number }
  add('large-heap', '50 MB: heap, MB', usedSize / 2 ** 20)
  add('large-nodes', '50 MB: nodes', await page.evaluate(() => document.querySelectorAll('*').length))
  add('large-scrub', '50 MB: one move of the scrubber, ms, the slowest of 20', await slowestMove(page))
  add(
    'large-scroll',
    '50 MB: longest frame while the log is scrolled, ms',
    await longestFrame(page, '[aria-label=Entries]', 2),
  )
}

/** CPU of the page's main thread since it was opened, ms. */
async function pageCpu(session: CDPSession): Promise<number> {
  const { metrics } = (await session.send('Performance.getMetrics')) as { metrics: { name: string; value: number }[] }
  return metrics.find(({ name }) => name === 'TaskDuration')!.value * 1000
}

/** A run of many steps whose last one streams 300 deltas a second. */
async function openWide(
  page: Page,
  session: CDPSession,
  { store: { log }, url }: TestServer,
  { run, steps, seconds }: { run: string; steps: number; seconds: number },
  add: Add,
): Promise<void> {
  let seq = 0
  const entry = (step: string, part: object) => ({ seq: ++seq, timestamp: Date.now(), step, ...part }) as Entry
  const start = { runId: run, agent: 'a', pipeline: '', threadId: 't', protocol: 'api', input: {} }
  const call = { stepType: 'tool-call', kind: 'tool-call', attempt: 1, toolCallId: 'c', toolName: 'search' }
  function* entries(): Generator<Entry> {
    yield entry('', { type: 'run-start', ...start })
    yield entry('main/a', { type: 'step-start', stepType: 'llm', kind: 'tool-loop', attempt: 1, answer: true })
    for (let i = 0; i < steps; i++) {
      yield entry(`main/a/${i}`, { type: 'step-start', ...call })
      yield entry(`main/a/${i}`, { type: 'step-finish', duration: 1 })
    }
    yield entry('main/a/last', { type: 'step-start', stepType: 'model-call', kind: 'model-call', attempt: 1 })
    yield entry('main/a/last', { type: 'text-start', id: 't' })
  }
  await append(log, run, entries())
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  await page.goto(`${url}/runs/${run}`)
  await page.locator('[data-testid=run-room][data-live=true]').waitFor()
  let isStreaming = true
  const streamed = (async () => {
    while (isStreaming) {
      const deltas = Array.from({ length: 10 }, () =>
        entry('main/a/last', { type: 'text-delta', id: 't', delta: 'word ' }),
      )
      await log.append(run, 1, deltas)
      await new Promise((done) => setTimeout(done, 33))
    }
  })()
  await page.getByText('word word').first().waitFor()
  const before = await pageCpu(session)
  add('live-frame', '300 deltas/s into 10,000 steps: longest frame, ms', await watched(page, seconds))
  const cpu = (await pageCpu(session)) - before
  add('live-cpu', '300 deltas/s into 10,000 steps: CPU of the page’s main thread, ms per s', cpu / seconds)
  add(
    'live-nodes',
    '300 deltas/s into 10,000 steps: nodes',
    await page.evaluate(() => document.querySelectorAll('*').length),
  )
  add(
    'live-scroll',
    '… while the steps are scrolled: longest frame, ms',
    await longestFrame(page, '[role=treegrid]', seconds),
  )
  isStreaming = false
  await streamed
  await log.append(run, 1, [
    entry('main/a/last', { type: 'text-end', id: 't' }),
    entry('main/a/last', { type: 'step-finish', duration: 1 }),
    entry('main/a', { type: 'step-finish', duration: 1 }),
    entry('', { type: 'run-end', outcome: 'completed', usage: { source: 'reported' } }),
  ])
}

/** Returns the length of what was appended, as JSON. */
async function append(log: Log, run: string, entries: Iterable<Entry>): Promise<number> {
  let batch: Entry[] = []
  let bytes = 0
  for (const entry of entries) {
    bytes += JSON.stringify(entry).length
    batch.push(entry)
    if (batch.length < 1000 && entry.type !== 'run-end') continue
    await log.append(run, 1, batch)
    batch = []
  }
  if (batch.length > 0) await log.append(run, 1, batch)
  return bytes
}

answerCalls({ measure })

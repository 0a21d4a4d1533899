import { mkdtempSync, readFileSync, rmSync, appendFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createCliParser } from '../ingest/cli-parser.ts'
import { appendLines } from './log-tail.ts'
import { openFileLog, writeFileLog, type LoggedPart } from './file-log.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-file-log-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
const newPath = () => join(folder, `${++files}.ndjson`)
const linesOf = (path: string) =>
  readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>)
const summaryOf = (path: string) =>
  JSON.parse(readFileSync(path.replace('.ndjson', '.summary.json'), 'utf8')) as unknown

const stream = [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: 'Hi' },
  { type: 'text-end', id: 't' },
  { type: 'reasoning-start', id: 'r' },
  { type: 'reasoning-end', id: 'r' },
  { type: 'tool-call', toolCallId: 'c', toolName: 'search', input: '{}' },
  { type: 'tool-result', toolCallId: 'c', toolName: 'search', result: 'ok' },
  { type: 'usage', model: 'm', usage: { totalTokens: 7, source: 'reported' }, cost: 0.5 },
] as unknown as LoggedPart[]

describe('log files', () => {
  test('parts of a stream get seq and timestamp, one line each, and the summary has the counts', async () => {
    const path = newPath()
    const summary = await writeFileLog(path, stream)
    const counts = { textBlocks: 1, reasoningBlocks: 1, toolCalls: 1, toolResults: 1, errors: 0 }
    expect(summary).toMatchObject({ ...counts, stream_summary: counts, status: 'completed', tokens: 7, cost: 0.5 })
    expect(summaryOf(path)).toEqual(summary)
    expect(linesOf(path).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect(linesOf(path)[1]).toMatchObject({ timestamp: expect.any(Number), step: '', type: 'text-delta', delta: 'Hi' })
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  test('a stream that fails has a summary that says so, and the error goes on', async () => {
    const path = newPath()
    async function* broken() {
      yield stream[0]!
      throw new Error('torn off')
    }
    await expect(writeFileLog(path, broken())).rejects.toThrow('torn off')
    expect(summaryOf(path)).toMatchObject({ status: 'failed', error: { message: expect.any(String) } })
    const told = newPath()
    await writeFileLog(told, [...stream, { type: 'error', error: new Error('no') }])
    expect(summaryOf(told)).toMatchObject({ status: 'failed', errors: 1 })
  })

  test('bytes, BigInt, errors, dates and cycles are written', async () => {
    const path = newPath()
    const cycle: Record<string, unknown> = {
      n: 1n,
      error: new Error('e'),
      at: new Date(0),
      bytes: new Uint8Array([1, 2]),
    }
    cycle['self'] = cycle
    await writeFileLog(path, [
      { type: 'data', name: 'x', data: cycle },
      { type: 'tool-result', toolCallId: 'c', toolName: 't', result: cycle as never },
      { type: 'file', mediaType: 'image/png', data: new Uint8Array([1, 2, 3]) } as never,
      { type: 'raw', rawValue: { deep: 2n ** 80n } },
      { type: 'response-metadata', id: 'r', timestamp: new Date(5) },
      { type: 'error', error: cycle },
    ])
    expect(linesOf(path).length).toBe(6)
    expect(linesOf(path)[4]).toMatchObject({ timestamp: expect.any(Number), responseTimestamp: 5 })
    expect(linesOf(path)[2]).toMatchObject({ type: 'file', data: 'AQID' })
  })

  test('what a parser of a CLI yields can be written as it comes', async () => {
    const path = newPath()
    const log = await openFileLog(path)
    const parser = createCliParser('claude')
    const said = { type: 'assistant', message: { id: 'm', content: [{ type: 'text', text: 'Hello' }] } }
    await log.append(...parser.feed(`${JSON.stringify(said)}\n`))
    await log.append(...parser.end())
    const summary = await log.close()
    expect(summary).toMatchObject({ textBlocks: 1 })
    expect(linesOf(path).at(-1)).toMatchObject({ type: 'finish' })
  })

  test('entries keep their seq, timestamp and step; a file is continued after its last whole line', async () => {
    const path = newPath()
    const log = await openFileLog(path)
    await log.append({ seq: 5, timestamp: 17, step: 'main/a', type: 'text-start', id: 'x' })
    appendFileSync(path, '{"seq":6,"ti')
    const next = await openFileLog(path)
    expect([log.torn, next.torn]).toEqual([false, true])
    await next.append({ type: 'text-end', id: 'x' })
    expect((await openFileLog(path)).torn).toBe(false)
    expect(linesOf(path)).toMatchObject([
      { seq: 5, timestamp: 17, step: 'main/a' },
      { seq: 6, type: 'text-end' },
    ])
  })

  test('a reader sees whole lines, and at most the last one unfinished, also of large batches', async () => {
    const path = newPath()
    const line = (n: number) => `${JSON.stringify({ seq: n, text: 'x'.repeat(300) })}\n`
    let done = false
    const writing = (async () => {
      for (let n = 0; n < 4000; n += 500) {
        await appendLines(path, Array.from({ length: 500 }, (_, i) => line(n + i)).join(''))
      }
      done = true
    })()
    let reads = 0
    while (!done) {
      await new Promise(setImmediate)
      const text = statSync(path, { throwIfNoEntry: false }) ? readFileSync(path, 'utf8') : ''
      reads++
      // A file system may show a part of a large write.
      const lines = text.split('\n').slice(0, -1)
      const last = lines.length - 1
      if (last >= 0) expect(lines[last]).toBe(line(last).trimEnd())
    }
    await writing
    expect(reads).toBeGreaterThan(5)
    expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(4001)
  })
})

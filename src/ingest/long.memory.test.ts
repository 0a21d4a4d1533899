/** Output of any length: time grows with it, memory does not. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import type { SourcePart } from '../part/part.ts'
import { createCliParser, createCliReader } from './cli-parser.ts'
import {
  assistant,
  blockDelta,
  blockStart,
  blockStop,
  init,
  messageStart,
  result,
  stream,
  toolResult,
  usage,
} from './testing/claude-lines.ts'
import { lines } from './testing/play.ts'
import { often } from '../../test/support/thorough.ts'
import { countCpu } from '../../test/support/cpu.ts'
import { expectSize } from '../../test/support/figure.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const heap = () => {
  collect()
  return process.memoryUsage().heapUsed
}
const mebibyte = 1024 * 1024

/** A message with a call and a sub-agent; `@` is its number. */
const message = lines(
  messageStart('msg_@', { input_tokens: 3 }),
  blockStart(0, { type: 'text', text: '' }),
  ...Array.from({ length: 10 }, (_, n) => blockDelta(0, { type: 'text_delta', text: `a few words ${n}` })),
  assistant('msg_@', [{ type: 'text', text: 'a few words'.repeat(10) }]),
  blockStop(0),
  blockStart(1, { type: 'tool_use', id: 'toolu_@', name: 'Agent', input: {} }),
  blockDelta(1, { type: 'input_json_delta', partial_json: '{"command":"ls"}' }),
  blockStop(1),
  stream({ type: 'message_delta', delta: {}, usage }),
  assistant('sub_@', [{ type: 'tool_use', id: 'toolu_s@', name: 'Read', input: {} }], { parent: 'toolu_@' }),
  toolResult('toolu_s@', 'text', { parent: 'toolu_@' }),
  { type: 'system', subtype: 'permission_denied', tool_use_id: 'toolu_never@' },
  toolResult('toolu_@', 'x'.repeat(500)),
)

/** 100 with `MILLRACE_THOROUGH=1`. */
const megabytes = often(100)

describe('long CLI output', () => {
  test(`${megabytes} MB of messages take time in proportion, and no memory`, () => {
    let parts = 0
    const reader = createCliReader('claude', { onPart: () => parts++ })
    reader.feed(lines(init))
    const whole = megabytes * mebibyte
    const heaps: number[] = []
    const times: number[] = []
    let began = process.cpuUsage()
    for (let fed = 0, n = 0; fed < whole; n += 20) {
      const chunk = Buffer.from(Array.from({ length: 20 }, (_, i) => message.replaceAll('@', String(n + i))).join(''))
      fed += chunk.length
      reader.feed(chunk)
      if (fed < ((heaps.length + 1) * whole) / 4) continue
      const { user, system } = process.cpuUsage(began)
      times.push(user + system)
      heaps.push(heap())
      began = process.cpuUsage()
    }
    reader.feed(lines(result))
    reader.end()
    expect(parts).toBeGreaterThan(megabytes * 5000)
    expect(reader.outcome()).toMatchObject({ outcome: 'completed', cost: 0.5 })
    expect(heaps).toHaveLength(4)
    expectSize('heap from the first quarter to the last', heaps[3]! - heaps[0]!, 1.5 * mebibyte)
    expect(times[3]! / times[0]!).toBeLessThan(4)
  }, 60_000)

  test.each([['claude'], ['codex'], ['gemini']] as const)('%s: a line of 20 MB, in small pieces', (cli) => {
    const long = 'x'.repeat(20 * mebibyte)
    const events = {
      claude: [init, assistant('m', [{ type: 'text', text: long }])],
      codex: [
        { type: 'thread.started' },
        { type: 'item.completed', item: { id: 'm', type: 'agent_message', text: long } },
      ],
      gemini: [{ type: 'init' }, { type: 'message', role: 'assistant', content: long }],
    }
    const bytes = Buffer.from(lines(...events[cli]))
    const parser = createCliParser(cli)
    const cpu = countCpu()
    let longest = 0
    const take = (part: SourcePart) => (longest = Math.max(longest, part.type === 'text-delta' ? part.delta.length : 0))
    for (let at = 0; at < bytes.length; at += 512) parser.feed(bytes.subarray(at, at + 512)).forEach(take)
    parser.end()
    expect(longest).toBe(long.length)
    // It takes less than a second. If pieces were searched again, it would take minutes.
    expect(cpu()).toBeLessThan(10_000)
  })

  test('what is longer than the limit is an error, takes no memory, and the next line is read', () => {
    const parser = createCliParser('claude', { maxLineLength: mebibyte })
    const parts = parser.feed(lines(init))
    const before = heap()
    const chunk = Buffer.from('x'.repeat(mebibyte))
    for (let n = 0; n < 100; n++) parts.push(...parser.feed(chunk))
    expectSize('heap afterwards', heap() - before, 3 * mebibyte)
    parts.push(...parser.feed(lines('', assistant('m', [{ type: 'text', text: 'Hi!' }]), result)), ...parser.end())
    expect(parts.filter(({ type }) => type === 'error')).toEqual([
      {
        type: 'error',
        error: {
          code: 'line-too-long',
          message: 'Claude Code wrote a line of more than 1048576 characters. It is left out.',
        },
      },
    ])
    expect(parser.outcome()).toMatchObject({ outcome: 'completed', text: 'Hi!' })
  })
})

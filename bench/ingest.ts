/** The parsers of CLI agents, without processes: CPU of a line beside that of `JSON.parse` alone. Run with `npm run bench -- ingest`. */
import type { CliName } from '../src/ingest/cli-names.ts'
import { createCliReader } from '../src/ingest/cli-parser.ts'
import { answerCalls } from './calls.ts'
import { deltaText } from './deltas.ts'
import type { Options, Result, ResultRow } from './scenario.ts'

/** What a pipe hands out at once. */
const chunkBytes = 64 * 1024
const messages = 40
const deltas = 300

const ids = {
  session_id: '7ce5b643-713b-4644-afa1-50777e66ab62',
  parent_tool_use_id: null,
  uuid: '2efd8d33-44c8-4c96-9dfe-5f7f748c608d',
}
const stream = (event: object) => ({ type: 'stream_event', event, ...ids })
const init = { type: 'system', subtype: 'init', model: 'bench', ...ids }
const result = { type: 'result', subtype: 'success', is_error: false, result: 'x', usage: {}, ...ids }
const output = 'a line of output, "quoted"\n'.repeat(80)
const each = (make: (n: number) => object[]) => Array.from({ length: messages }, (_, n) => make(n)).flat()
const texts = Array.from({ length: deltas }, (_, i) => deltaText(i))

function toolResult(n: number): object {
  const content = [{ type: 'tool_result', tool_use_id: `toolu_${n}`, content: output }]
  return { type: 'user', message: { role: 'user', content }, ...ids }
}

function partial(n: number): object[] {
  const delta = (index: number, delta: object) => stream({ type: 'content_block_delta', index, delta })
  const start = (index: number, block: object) => stream({ type: 'content_block_start', index, content_block: block })
  return [
    stream({ type: 'message_start', message: { id: `msg_${n}`, model: 'bench', usage: { input_tokens: 3 } } }),
    start(0, { type: 'text', text: '' }),
    ...texts.map((text) => delta(0, { type: 'text_delta', text })),
    stream({ type: 'content_block_stop', index: 0 }),
    start(1, { type: 'tool_use', id: `toolu_${n}`, name: 'Bash', input: {} }),
    delta(1, { type: 'input_json_delta', partial_json: '{"command":"ls"}' }),
    stream({ type: 'content_block_stop', index: 1 }),
    stream({ type: 'message_delta', delta: {}, usage: { input_tokens: 3, output_tokens: deltas } }),
    toolResult(n),
  ]
}

function whole(n: number): object[] {
  const content = [
    { type: 'text', text: texts.join('') },
    { type: 'tool_use', id: `toolu_${n}`, name: 'Bash', input: { command: 'ls' } },
  ]
  return [{ type: 'assistant', message: { id: `msg_${n}`, model: 'bench', content }, ...ids }, toolResult(n)]
}

function codex(n: number): object[] {
  const item = { id: `item_${n}`, type: 'command_execution', command: 'ls', status: 'in_progress' }
  const done = { ...item, aggregated_output: output, exit_code: 0, status: 'completed' }
  const text = { id: `text_${n}`, type: 'agent_message', text: texts.join('') }
  return [
    { type: 'item.started', item },
    { type: 'item.completed', item: done },
    { type: 'item.completed', item: text },
  ]
}

const timestamp = '2026-08-21T16:16:56.000Z'
function gemini(n: number): object[] {
  return [
    ...texts.map((content) => ({ type: 'message', timestamp, role: 'assistant', content, delta: true })),
    { type: 'tool_use', timestamp, tool_name: 'ls', tool_id: `c${n}`, parameters: { dir: '.' } },
    { type: 'tool_result', timestamp, tool_id: `c${n}`, status: 'success', output },
  ]
}

interface Subject {
  name: string
  title: string
  cli: CliName
  events: object[]
}

const subjects: Subject[] = [
  {
    name: 'claude-partial',
    title: 'Claude Code, partial messages',
    cli: 'claude',
    events: [init, ...each(partial), result],
  },
  { name: 'claude-whole', title: 'Claude Code, whole messages', cli: 'claude', events: [init, ...each(whole), result] },
  {
    name: 'codex',
    title: 'Codex',
    cli: 'codex',
    events: [{ type: 'thread.started', thread_id: 't' }, ...each(codex), { type: 'turn.completed', usage: {} }],
  },
  {
    name: 'gemini',
    title: 'Gemini CLI, pieces',
    cli: 'gemini',
    events: [
      { type: 'init', session_id: 's', model: 'm' },
      ...each(gemini),
      { type: 'result', status: 'success', stats: {} },
    ],
  },
]

/** Bytes in, parts counted. */
function parse({ cli }: Subject, chunks: readonly Uint8Array[]): number {
  let parts = 0
  const reader = createCliReader(cli, { onPart: () => parts++ })
  for (const chunk of chunks) reader.feed(chunk)
  reader.end()
  if (reader.outcome().outcome !== 'completed') throw new Error(`${cli}: ${reader.outcome().error?.message}`)
  return parts
}

/** The floor: the same bytes, decoded, split into lines, and parsed. */
function parseOnly(_: Subject, chunks: readonly Uint8Array[]): number {
  let count = 0
  let rest = ''
  const decoder = new TextDecoder()
  for (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop()!
    for (const line of lines) if (JSON.parse(line) !== null) count++
  }
  return count
}

function measure({ rounds = 7, seconds, quick }: Options): Result[] {
  const rows: ResultRow[] = []
  for (const subject of subjects) {
    const lines = subject.events.map((event) => `${JSON.stringify(event)}\n`)
    const bytes = Buffer.from(lines.join(''))
    const chunks: Uint8Array[] = []
    for (let at = 0; at < bytes.length; at += chunkBytes) chunks.push(bytes.subarray(at, at + chunkBytes))
    const run = (read: typeof parse): Record<string, number> => {
      const before = process.cpuUsage()
      const until = performance.now() + (quick ? 50 : (seconds * 1000) / 4)
      let times = 0
      do {
        if (read(subject, chunks) < lines.length / 2) throw new Error(`${subject.name}: too few parts`)
        times++
      } while (performance.now() < until)
      const { user, system } = process.cpuUsage(before)
      const cpu = (user + system) / times
      return { line: cpu / lines.length, rate: bytes.length / cpu }
    }
    const floor: ResultRow = {
      name: `${subject.name}-floor`,
      title: `${subject.title}: JSON.parse alone`,
      samples: [],
      beside: [],
    }
    const ours: ResultRow = { name: subject.name, title: `${subject.title}: parts`, samples: [], beside: [] }
    // In turn, so that both meet the same disturbances. The first round warms up.
    for (let round = 0; round <= rounds; round++) {
      const samples = [run(parseOnly), run(parse)] as const
      if (round === 0) continue
      floor.samples.push(samples[0])
      floor.beside!.push(samples[0])
      ours.samples.push(samples[1])
      ours.beside!.push(samples[0])
    }
    rows.push(floor, ours)
  }
  return [
    {
      scenario: 'ingest',
      title: `Output of CLI agents in chunks of 64 KB, CPU; medians of ${rounds} rounds`,
      reference: rows[0]!.name,
      columns: [
        { key: 'line', title: 'µs a line', digits: 2, ratio: true },
        { key: 'rate', title: 'MB/s', digits: 0 },
      ],
      rows,
      notes: ['Here it is to JSON.parse alone of the same bytes.'],
    },
  ]
}

answerCalls({ measure })

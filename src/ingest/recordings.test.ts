/** What real CLIs printed, if the recordings are on this machine. */
import { describe, expect, test } from 'vitest'
import { cliNames } from './cli-names.ts'
import { expectSameAtAnyCut, faultsOf, newestRecordings, play, recordingsOf, textIn } from './testing/play.ts'

const recorded = [
  ...cliNames.flatMap((cli) => recordingsOf(cli).map((recording) => ({ cli, ...recording }))),
  ...newestRecordings().flatMap(({ program, ...recording }) => {
    const cli = cliNames.find((name) => name === program)
    return cli === undefined ? [] : [{ cli, ...recording }]
  }),
]

const newest = newestRecordings()
const recordingOf = (name: string) => newest.find((each) => each.name.includes(name))?.bytes ?? new Uint8Array()

describe.skipIf(newest.length === 0)('recordings of the newest CLI agents', () => {
  test.each([
    ['claude-2.1.332-tool', 'claude', 320, 42],
    ['claude-2.1.332-cutt', 'claude', 480, 43],
    ['claude-2.1.332-resume', 'claude', 160, 12],
    ['codex-0.171.0-tool', 'codex', 320, 42],
    ['gemini-0.61.0-tool', 'gemini', 480, 69],
    ['qwen-0.24.4-tool', 'qwen', 320, 42],
    ['qwen-0.24.4-whole', 'qwen', 320, 42],
  ] as const)('%s: two texts, one call, its usage, and no noise', (name, cli, input, output) => {
    const { parts, outcome } = play(cli, recordingOf(name))
    expect(outcome).toMatchObject({ outcome: 'completed', text: 'All done: the tool said hi.' })
    expect(outcome.usage).toMatchObject({ inputTokens: input, outputTokens: output })
    const calls = parts.flatMap((part) => (part.type === 'tool-call' ? [JSON.parse(part.input) as object] : []))
    expect(calls).toHaveLength(name.includes('resume') ? 0 : 1)
    const noise = parts.flatMap((part) => (part.type === 'cli-output' ? [part.raw] : []))
    expect(noise.filter((line) => /thinking_tokens|"status"|goal_state/u.test(line))).toEqual([])
  })
})

describe.skipIf(recorded.length === 0)('recordings of CLI agents', () => {
  test.each(recorded)('$cli: $name is the same at any cut, and legal', ({ cli, bytes }) => {
    const { parts } = expectSameAtAnyCut(cli, bytes)
    expect(parts.some(({ type }) => type === 'session-info')).toBe(true)
    expect(parts.every(({ type }) => type !== 'raw')).toBe(true)
  })

  test.each(recorded)('$cli: $name is legal wherever it breaks off', ({ cli, bytes }) => {
    for (let end = 0; end < bytes.length; end += 1 + Math.floor(bytes.length / 150)) {
      expect(faultsOf(play(cli, bytes.slice(0, end)).parts), `after ${end} bytes`).toEqual([])
    }
  })

  test.each(recorded.filter(({ cli }) => cli === 'claude'))('$name: its text is said once', ({ bytes }) => {
    const events = new TextDecoder().decode(bytes).split('\n').flatMap(toEvent)
    const whole = events.filter(({ type, parent_tool_use_id: parent }) => type === 'assistant' && !parent)
    const texts = whole
      .flatMap(({ message }) => message?.content ?? [])
      .map(({ type, text }) => (type === 'text' ? text : ''))
    expect(textIn(play('claude', bytes).parts)).toBe(texts.join(''))
  })

  test.each(recorded.filter(({ cli }) => cli === 'claude'))(
    '$name: its usage is that of its result',
    ({ name, bytes }) => {
      const ends = new TextDecoder()
        .decode(bytes)
        .split('\n')
        .flatMap(toEvent)
        .filter(({ type, usage }) => type === 'result' && usage !== undefined)
      const { outcome, parts } = play('claude', bytes)
      const spent = parts.flatMap((part) => (part.type === 'usage' ? [part] : []))
      if (ends.length === 0) {
        expect(outcome.outcome).not.toBe('completed')
        return
      }
      // Each result is that of its turn.
      const total = (count: string) => ends.reduce((all, { usage }) => all + (usage![count] ?? 0), 0)
      const [input, output] = [
        total('input_tokens') + total('cache_read_input_tokens') + total('cache_creation_input_tokens'),
        total('output_tokens'),
      ]
      expect(outcome.usage).toMatchObject({ inputTokens: input, outputTokens: output })
      const sum = (of: (part: (typeof spent)[number]) => number | undefined) =>
        spent.reduce((all, each) => all + (of(each) ?? 0), 0)
      expect(sum(({ usage }) => usage.inputTokens)).toBe(input)
      expect(sum(({ usage }) => usage.outputTokens)).toBe(output)
      expect(sum(({ cost }) => cost)).toBeCloseTo(outcome.cost!, 10)
      // A resumed session names what its earlier runs cost as well.
      if (ends.length === 1 && !name.includes('resume')) expect(outcome.cost).toBe(ends[0]!.total_cost_usd)
    },
  )
})

interface ClaudeLine {
  type: string
  parent_tool_use_id?: string | null
  message?: { content: { type: string; text?: string }[] }
  usage?: Record<string, number>
  total_cost_usd?: number
}

function toEvent(line: string): ClaudeLine[] {
  try {
    return [JSON.parse(line) as ClaudeLine]
  } catch {
    return []
  }
}

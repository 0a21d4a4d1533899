/** What real CLIs printed, if the recordings are on this machine. */
import { describe, expect, test } from 'vitest'
import { cliNames } from './cli-names.ts'
import { expectSameAtAnyCut, faultsOf, play, recordingsOf, textIn } from './testing/play.ts'

const recorded = cliNames.flatMap((cli) => recordingsOf(cli).map((recording) => ({ cli, ...recording })))

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

  test.each(recorded.filter(({ cli }) => cli === 'claude'))('$name: its usage is that of its result', ({ bytes }) => {
    const end = new TextDecoder()
      .decode(bytes)
      .split('\n')
      .flatMap(toEvent)
      .findLast(({ type }) => type === 'result')
    const { outcome, parts } = play('claude', bytes)
    const spent = parts.flatMap((part) => (part.type === 'usage' ? [part] : []))
    if (end === undefined) {
      expect(outcome.outcome).toBe('interrupted')
      return
    }
    const { input_tokens: input = 0, output_tokens: output, cache_read_input_tokens: read = 0 } = end.usage!
    const { cache_creation_input_tokens: written = 0 } = end.usage!
    expect(outcome.usage).toMatchObject({ inputTokens: input + read + written, outputTokens: output })
    expect(outcome.cost).toBe(end.total_cost_usd)
    const sum = (of: (part: (typeof spent)[number]) => number | undefined) =>
      spent.reduce((all, each) => all + (of(each) ?? 0), 0)
    expect(sum(({ usage }) => usage.inputTokens)).toBe(input + read + written)
    expect(sum(({ usage }) => usage.outputTokens)).toBe(output)
    expect(sum(({ cost }) => cost)).toBeCloseTo(end.total_cost_usd!, 10)
  })
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

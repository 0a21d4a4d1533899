/** Whatever Codex and Gemini CLI may print. */
import fc from 'fast-check'
import { junk, mixed, text, type Transcript } from './arbitrary.ts'

const tool = fc.record({ kind: fc.constant('tool' as const), input: text, output: text, isError: fc.boolean() })
const item = fc.oneof(
  tool,
  fc.record({ kind: fc.constantFrom('text' as const, 'reasoning' as const), pieces: fc.array(text, { maxLength: 3 }) }),
)
const picks = fc.array(fc.nat({ max: 5 }), { minLength: 1, maxLength: 30 })

export const arbitraryCodex: fc.Arbitrary<Transcript> = fc
  .record({
    items: fc.array(item, { maxLength: 6 }),
    junk: fc.array(junk, { maxLength: 3 }),
    grows: fc.boolean(),
    picks,
  })
  .map(({ items, junk, grows, picks }) => {
    const all: Transcript = { lines: [], text: '', reasoning: '', calls: [], output: [...junk] }
    const sequences = items.map((each, n): object[] => {
      const id = `item_${n}`
      if (each.kind !== 'tool') {
        const type = each.kind === 'text' ? 'agent_message' : 'reasoning'
        const whole = each.pieces.join('')
        all[each.kind] += whole
        const growing = each.pieces.map((_, at) => ({ id, type, text: each.pieces.slice(0, at).join('') }))
        return [
          ...(grows ? growing.map((item) => ({ type: 'item.updated', item })) : []),
          { type: 'item.completed', item: { id, type, text: whole } },
        ]
      }
      const { input: command, output, isError } = each
      const item = { id, type: 'command_execution', command, aggregated_output: '', status: 'in_progress' }
      const end = { aggregated_output: output, exit_code: isError ? 1 : 0, status: isError ? 'failed' : 'completed' }
      const result = { output, exitCode: end.exit_code, status: end.status }
      all.calls.push({ id, name: 'command_execution', input: { command }, output: result, isError })
      return [
        { type: 'item.started', item },
        { type: 'item.completed', item: { ...item, ...end } },
      ]
    })
    // Texts are said in order: only tools run beside others.
    const isText = (sequence: object[]) => JSON.stringify(sequence).includes('"agent_message"')
    const isTool = (sequence: object[]) => JSON.stringify(sequence).includes('"command_execution"')
    const texts = sequences.filter(isText).flat()
    const rest = sequences.filter((each) => !isText(each) && !isTool(each)).flat()
    all.lines = [
      { type: 'thread.started', thread_id: 't' },
      { type: 'turn.started' },
      ...mixed<object | string>([texts, rest, ...sequences.filter(isTool), junk], picks),
      { type: 'turn.completed', usage: { input_tokens: 5, cached_input_tokens: 2, output_tokens: 3 } },
    ]
    return all
  })

export const arbitraryGemini: fc.Arbitrary<Transcript> = fc
  .record({
    items: fc.array(item, { maxLength: 6 }),
    junk: fc.array(junk, { maxLength: 3 }),
    delta: fc.boolean(),
    picks,
  })
  .map(({ items, junk, delta, picks }) => {
    const all: Transcript = { lines: [], text: '', reasoning: '', calls: [], output: [...junk] }
    const texts: object[] = []
    const tools: object[][] = []
    items.forEach((each, n) => {
      if (each.kind !== 'tool') {
        all.text += each.pieces.join('')
        texts.push(...each.pieces.map((content) => ({ type: 'message', role: 'assistant', content, delta })))
        return
      }
      const { input, output, isError } = each
      const tool_id = `c${n}`
      const how = isError ? { status: 'error', error: { type: 'E', message: output } } : { status: 'success', output }
      all.calls.push({ id: tool_id, name: 'ls', input: { input }, output, isError })
      tools.push([
        { type: 'tool_use', tool_id, tool_name: 'ls', parameters: { input } },
        { type: 'tool_result', tool_id, ...how },
      ])
    })
    all.lines = [
      { type: 'init', session_id: 's', model: 'm' },
      { type: 'message', role: 'user', content: 'prompt' },
      ...mixed<object | string>([texts, ...tools, junk], picks),
      { type: 'result', status: 'success', stats: { input_tokens: 5, cached: 2, output_tokens: 3 } },
    ]
    return all
  })

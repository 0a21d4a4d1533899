/** Whatever Claude Code may print: with and without pieces, parallel tools, sub-agents in between, sessions that are repeated. */
import fc from 'fast-check'
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
} from './claude-lines.ts'
import { junk, mixed, text, type Transcript } from './arbitrary.ts'

interface Tool {
  kind: 'tool'
  name: string
  input: Record<string, unknown>
  output: unknown
  isError: boolean
}
type Block = { kind: 'text'; pieces: string[] } | { kind: 'thinking'; pieces: string[] } | Tool

const block: fc.Arbitrary<Block> = fc.oneof(
  fc.record({ kind: fc.constantFrom('text', 'thinking'), pieces: fc.array(text, { maxLength: 3 }) }),
  fc.record({
    kind: fc.constant('tool' as const),
    name: fc.constantFrom('Bash', 'Read', 'constructor'),
    input: fc.dictionary(fc.constantFrom('a', 'b', '__proto__'), text, { maxKeys: 2, noNullPrototype: true }),
    output: fc.oneof(text, fc.array(fc.record({ type: fc.constant('text'), text }), { maxLength: 2 })),
    isError: fc.boolean(),
  }),
)
const turns = fc.array(fc.array(block, { maxLength: 4 }), { maxLength: 3 })

const plan = fc.record({
  partials: fc.boolean(),
  main: turns,
  subs: fc.array(turns, { maxLength: 2 }),
  picks: fc.array(fc.nat({ max: 5 }), { minLength: 1, maxLength: 30 }),
  junk: fc.array(junk, { maxLength: 3 }),
  reinit: fc.boolean(),
})

export const arbitraryClaude: fc.Arbitrary<Transcript> = plan.map(({ partials, main, subs, picks, junk, reinit }) => {
  const all: Transcript = { lines: [], text: '', reasoning: '', calls: [], output: [...junk] }
  const said = { text: '', reasoning: '', calls: all.calls }
  const own = writer('', null, main, partials, said)
  const others = subs.map((each, n) => {
    const parent = `agent_${n}`
    // The pieces of sub-agents are not passed on.
    const ofSub = { text: '', reasoning: '', calls: all.calls }
    return writer(parent, parent, each, false, ofSub)
  })
  const repeated = reinit ? [JSON.stringify(init)] : []
  all.output.push(...repeated)
  all.lines = [init, ...mixed([own, ...others, repeated, junk], picks), result]
  all.text = said.text
  all.reasoning = said.reasoning
  return all
})

type Say = Pick<Transcript, 'text' | 'reasoning' | 'calls'>

function writer(
  who: string,
  parent: string | null,
  turns: Block[][],
  partials: boolean,
  said: Say,
): (object | string)[] {
  const lines: (object | string)[] = []
  const more = parent === null ? {} : { parent }
  turns.forEach((blocks, turn) => {
    const id = `msg_${who}${turn}`
    if (partials) lines.push(messageStart(id, { input_tokens: 1, output_tokens: 1 }))
    const results: object[] = []
    blocks.forEach((each, index) => {
      const content = contentOf(each, `toolu_${who}${turn}_${index}`)
      if (each.kind === 'tool') {
        const { name, input, output, isError } = each
        said.calls.push({ id: content.id!, name, input, output, isError })
        results.push(toolResult(content.id!, output, { ...more, is_error: isError }))
      } else if (each.kind === 'text') said.text += each.pieces.join('')
      else said.reasoning += each.pieces.join('')
      if (partials) lines.push(blockStart(index, { ...content, ...empty[each.kind] }), ...piecesOf(each, index))
      lines.push(assistant(id, [content], { ...more, usage }))
      if (partials) lines.push(blockStop(index))
    })
    if (partials) lines.push(stream({ type: 'message_delta', delta: {}, usage }), stream({ type: 'message_stop' }))
    lines.push(...results.toReversed())
  })
  return lines
}

const empty = { text: { text: '' }, thinking: { thinking: '', signature: '' }, tool: { input: {} } }

function contentOf(block: Block, id: string): { type: string; id?: string } & Record<string, unknown> {
  if (block.kind === 'text') return { type: 'text', text: block.pieces.join('') }
  if (block.kind === 'thinking') return { type: 'thinking', thinking: block.pieces.join(''), signature: 's' }
  return { type: 'tool_use', id, name: block.name, input: block.input }
}

function piecesOf(block: Block, index: number): object[] {
  if (block.kind === 'text') return block.pieces.map((each) => blockDelta(index, { type: 'text_delta', text: each }))
  if (block.kind === 'thinking')
    return block.pieces.map((each) => blockDelta(index, { type: 'thinking_delta', thinking: each }))
  const json = JSON.stringify(block.input)
  return [json.slice(0, 3), json.slice(3)].map((each) =>
    blockDelta(index, { type: 'input_json_delta', partial_json: each }),
  )
}

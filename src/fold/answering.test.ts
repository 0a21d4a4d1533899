/** One definition of the answer: wires, the view of a run and the client agree on what belongs to it. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildRun, startPart, type Item } from '../../test/build-run.ts'
import { MillraceClient } from '../client/client.ts'
import type { Entry, RecordedPart } from '../part/entry.ts'
import { noUsage } from '../part/usage.ts'
import { openaiJsonWire } from '../wire/openai/openai-completion.ts'
import { partsSseWire } from '../wire/parts/parts.ts'
import { textWire } from '../wire/text/text.ts'
import { uiWire } from '../wire/ui/ui.ts'
import { createRunFold } from './run-fold.ts'

type Kind = 'plain' | 'answer' | 'tool' | 'call'
interface Tree {
  kind: Kind
  says: boolean
  children: Tree[]
}

const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.record({
    kind: fc.constantFrom<Kind[]>('plain', 'answer', 'tool', 'call'),
    says: fc.boolean(),
    children: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.constant<Tree[]>([]),
      fc.array(tie('tree'), { maxLength: 3 }),
    ),
  }),
}))

/** The items of a step: each says its own path in a line, before its steps. */
function play({ kind, says, children }: Tree, path: string): Item[] {
  const stepType = { plain: 'own', answer: 'own', tool: 'tool-call', call: 'model-call' }[kind]
  const more = kind === 'answer' ? { answer: true } : kind === 'tool' ? { toolCallId: path, toolName: 't' } : {}
  const parts = [
    { type: 'text-start', id: path },
    { type: 'text-delta', id: path, delta: `${path}\n` },
    { type: 'text-end', id: path },
  ]
  return [
    { step: path, part: { type: 'step-start', stepType, attempt: 1, ...more } as RecordedPart },
    ...(says ? parts.map((part) => ({ step: path, part: part as RecordedPart })) : []),
    ...children.flatMap((child, i) => play(child, `${path}/${i + 1}`)),
    { step: path, part: { type: 'step-finish', duration: 0 } },
  ]
}

/** What belongs to the answer, told without paths: `isIn` is what holds for the step above. */
function said({ kind, says, children }: Tree, path: string, isIn: boolean): string[] {
  const own = kind === 'answer' || (isIn && kind !== 'tool')
  return [...(says && own ? [path] : []), ...children.flatMap((child, i) => said(child, `${path}/${i + 1}`, own))]
}

const runs = tree.map((root) => {
  const usage = noUsage
  const end: Item[] = [
    { step: '', part: { type: 'answer-end', finishReason: 'stop', usage } },
    { step: '', part: { type: 'run-end', outcome: 'completed', output: '', usage } },
  ]
  return {
    wanted: said(root, 'main/1', false),
    entries: buildRun([{ step: '', part: startPart }, ...play(root, 'main/1'), ...end]),
  }
})
const lines = (text: string) => text.split('\n').filter((line) => line !== '')

function viewed(entries: readonly Entry[]): string[] {
  // Taken apart, as programs may.
  const { apply, view } = createRunFold()
  for (const entry of entries) apply(entry)
  return lines(view().text)
}

async function streamed(entries: readonly Entry[]): Promise<string[]> {
  const encoder = partsSseWire.createEncoder()
  const body = entries.map((entry) => encoder.encode(entry)).join('')
  const answer = async (input: unknown) => {
    if (String(input).includes('/events')) return new Response(body)
    return Response.json({ id: 'run-1', threadId: 't' })
  }
  const client = new MillraceClient({ url: 'http://test', fetch: answer as typeof fetch })
  let text = ''
  for await (const piece of client.run({ agent: 'a' }).textStream) text += piece
  return lines(text)
}

describe('createAnswering', () => {
  test('wires, the view and the client agree on the answer of any run', async () => {
    await fc.assert(
      fc.asyncProperty(runs, async ({ wanted, entries }) => {
        const encode = (wire: typeof textWire) => {
          const encoder = wire.createEncoder()
          return entries.map((entry) => encoder.encode(entry)).join('')
        }
        expect(lines(encode(textWire))).toEqual(wanted)
        const frames = encode(uiWire)
          .split('\n\n')
          .filter((frame) => frame.includes('text-delta'))
        expect(frames.map((frame) => (JSON.parse(frame.slice(6)) as { delta: string }).delta.trim())).toEqual(wanted)
        const json = openaiJsonWire.createEncoder()
        const [result] = entries.flatMap((entry) => json.encode(entry))
        expect(JSON.stringify(result).match(/main[/\d]+/gu) ?? []).toEqual(wanted)
        expect(viewed(entries).toSorted()).toEqual(wanted.toSorted())
        expect(await streamed(entries)).toEqual(wanted)
      }),
      { numRuns: 200 },
    )
  })
})

/** What a step came to. */
import type { EntryOf } from '../../../../src/part/entry.ts'
import { JsonTree } from '../../../kit/JsonTree.tsx'
import { useEntry } from '../data/use-entries.ts'
import { asks, isGroup, type StepNode } from '../../../../src/fold/step-tree.ts'
import { nameOf } from '../selection.ts'
import type { Room } from '../use-room.ts'
import { parsed } from './content.ts'
import { StepPieces } from './Pieces.tsx'
import { Large } from './Result.tsx'
import css from './Inspector.module.css'

export function StepOutput({ room, node }: { room: Room; node: StepNode }) {
  if (!isGroup(node) || node.blocks.length > 0) {
    return (
      <>
        <StepPieces room={room} node={node} />
        <StepResult room={room} node={node} />
      </>
    )
  }
  const speaker = lastSpeaker(node)
  return (
    <>
      {speaker && (
        <>
          <p className={css.note}>
            The last text that its steps wrote.{' '}
            <button type="button" className={css.link} onClick={() => room.select(nameOf(speaker))}>
              Open step
            </button>
          </p>
          <StepPieces key={speaker.step.from} room={room} node={speaker} textOnly />
        </>
      )}
      <StepResult room={room} node={node} />
      {speaker === undefined && node.step.end === undefined && <p className={css.nothing}>Nothing so far.</p>}
    </>
  )
}

function lastSpeaker(node: StepNode): StepNode | undefined {
  for (const child of node.children.toReversed()) {
    const found = lastSpeaker(child)
    if (found !== undefined) return found
    if (child.blocks.some(({ kind }) => kind === 'text')) return child
  }
  return undefined
}

/** What it gave to the steps behind it. */
function StepResult({ room, node }: { room: Room; node: StepNode }) {
  const { step } = node
  const entry = useEntry(room.windows, step.end === undefined ? undefined : step.to)
  const { result } = (entry?.type === 'step-finish' ? entry : {}) as Partial<EntryOf<'step-finish'>>
  if (result === undefined) return null
  return (
    <section className={css.result}>
      <h4>value of the step</h4>
      <Large value={result} name="value" />
    </section>
  )
}

/** With what a tool was called: it stands in the call of the model, in the request, or in the agent's file. */
export function ToolArguments({ room, node }: { room: Room; node: StepNode }) {
  const { toolCallId } = node.step
  const siblings = node.parent?.children ?? []
  const mark = siblings
    .flatMap(({ marks }) => marks)
    .findLast(({ type, id, seq }) => type === 'tool-call' && id === toolCallId && seq <= room.seq)
  const asked = asks(node.step) ? node.marks.find(({ type }) => type === 'request') : undefined
  const entry = useEntry(room.windows, asked?.seq ?? mark?.seq)
  if (mark === undefined && asked === undefined) return <p className={css.nothing}>No model called it.</p>
  if (entry?.type === 'request') return <JsonTree value={entry.input} name="arguments" depth={2} />
  if (entry?.type !== 'tool-call') return null
  const input = parsed(entry.input)
  return <JsonTree value={input ?? entry.input} name="arguments" depth={2} />
}

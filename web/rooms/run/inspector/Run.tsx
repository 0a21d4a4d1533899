/** The run itself: what it was asked, what it answered. */
import { useState } from 'react'
import type { EntryOf } from '../../../../src/part/entry.ts'
import { useMay } from '../../../data/server.ts'
import { duration } from '../../../kit/format.ts'
import { stepWord } from '../../../kit/status-words.ts'
import { Icon } from '../../../kit/Icon.tsx'
import { JsonTree } from '../../../kit/JsonTree.tsx'
import { useEntry } from '../data/use-entries.ts'
import { isAgentCall, stateOf, type StepNode } from '../../../../src/fold/step-tree.ts'
import { nameOf } from '../selection.ts'
import type { Room } from '../use-room.ts'
import { StepPieces } from './Pieces.tsx'
import { Large } from './Result.tsx'
import { Told } from './Told.tsx'
import css from './Inspector.module.css'

/** Characters of the answer that are put into the page at once. */
const most = 100_000

export function RunOutput({ room }: { room: Room }) {
  const { model, end } = room
  const speakers = model.tree.all.filter((node) => speaksInAnswer(node) || isCalledByAnswer(node))
  let left = most
  let first = speakers.length
  while (first > 0 && (left > 0 || first === speakers.length)) left -= charsOf(speakers[--first]!)
  const shown = speakers.slice(first)
  const from = first === 0 ? 0 : shown[0]!.step.from
  const said = [model.tree, ...model.tree.all]
    .flatMap(({ marks }) => marks)
    .filter(({ type, seq, sent }) => type === 'message' && seq > from && sent?.outcome === undefined)
  const pieces = [
    ...shown.map((node) => ({ seq: node.step.from, node, mark: undefined })),
    ...said.map((mark) => ({ seq: mark.seq, node: undefined, mark })),
  ].toSorted((a, b) => a.seq - b.seq)
  const output = model.facts.state === 'ended' ? end?.output : undefined
  return (
    <>
      {first > 0 && (
        <p className={css.note}>
          {first} earlier {first === 1 ? 'part is' : 'parts are'} not shown. Select a step to read it.
        </p>
      )}
      <div data-testid="run-text">
        {pieces.map(({ seq, node, mark }) =>
          node === undefined ? (
            <Message key={seq} room={room} seq={mark.seq} />
          ) : isAgentCall(node) ? (
            <AgentTrack key={node.step.from} room={room} node={node} />
          ) : (
            <div key={node.step.from} className={css.turn}>
              <StepPieces room={room} node={node} textOnly />
              <button
                type="button"
                className={css.link}
                title={node.step.path}
                onClick={() => room.select(nameOf(node))}
              >
                Open step
              </button>
            </div>
          ),
        )}
      </div>
      {speakers.length === 0 && output === undefined && <p className={css.nothing}>No answer so far.</p>}
      {output !== undefined && speakers.length === 0 && <Large value={output} name="output" />}
    </>
  )
}

function Message({ room, seq }: { room: Room; seq: number }) {
  const entry = useEntry(room.windows, seq)
  return entry?.type === 'message' ? <Told entry={entry} /> : null
}

/** What an agent that is called as a tool does, under its name: it is no part of the answer. */
function AgentTrack({ room, node }: { room: Room; node: StepNode }) {
  const [isOpen, setOpen] = useState(false)
  const { step } = node
  const took = duration(Math.max(0, (step.end ?? room.model.now) - step.at))
  return (
    <details
      className={css.agent}
      data-testid="agent-track"
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary>
        <Icon name="agents" size={12} /> {step.agent} <small>{`${stepWord(stateOf(node))} · ${took}`}</small>
      </summary>
      {isOpen && (
        <>
          {speakersIn(node).map((each) =>
            isAgentCall(each) ? (
              <AgentTrack key={each.step.from} room={room} node={each} />
            ) : (
              <StepPieces key={each.step.from} room={room} node={each} />
            ),
          )}
          <button type="button" className={css.link} title={step.path} onClick={() => room.select(nameOf(node))}>
            Open step
          </button>
        </>
      )}
    </details>
  )
}

/** What an agent has said and which agents it has called, in order; not what these have said. */
function speakersIn(node: StepNode): StepNode[] {
  return node.children.flatMap((child) => {
    if (child.step.superseded !== undefined) return []
    if (isAgentCall(child)) return [child]
    return [...(child.blocks.length > 0 ? [child] : []), ...speakersIn(child)]
  })
}

function speaksInAnswer(node: StepNode): boolean {
  if (node.step.superseded !== undefined || !node.blocks.some(({ kind }) => kind === 'text')) return false
  return isInAnswer(node)
}

function isCalledByAnswer(node: StepNode): boolean {
  return isAgentCall(node) && node.step.superseded === undefined && node.parent !== undefined && isInAnswer(node.parent)
}

/** The nearest step that answers or runs a tool decides. */
function isInAnswer(node: StepNode): boolean {
  for (let each: StepNode | undefined = node; each !== undefined; each = each.parent) {
    if (each.step.answer) return true
    if (each.step.toolCallId !== undefined) return false
  }
  return false
}

function charsOf({ blocks }: StepNode): number {
  return blocks.reduce((sum, block) => sum + (block.kind === 'text' ? block.chars : 0), 0)
}

export function RunInput({ room }: { room: Room }) {
  const mayRead = useMay('agents.read') === true
  const entry = useEntry(room.windows, 1) as EntryOf<'run-start'> | undefined
  if (entry === undefined) return null
  const { input, labels, forkedFrom, previousRunId, user } = entry
  return (
    <>
      <JsonTree value={input} name="input" depth={3} />
      {user && <JsonTree value={user} name="user" />}
      {labels && <JsonTree value={labels} name="labels" />}
      {forkedFrom && <JsonTree value={forkedFrom} name="forkedFrom" />}
      {previousRunId !== undefined && <JsonTree value={previousRunId} name="previousRunId" />}
      {mayRead && (
        <>
          <h4 className={css.title}>YAML of the agent</h4>
          <pre className={css.pre}>{entry.pipeline}</pre>
        </>
      )}
    </>
  )
}

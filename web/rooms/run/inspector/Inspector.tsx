/** What is selected: a step, an entry, or the run itself. */
import { Copy } from '../../../kit/Copy.tsx'
import { Empty } from '../../../kit/Empty.tsx'
import { ErrorNote } from '../../../kit/ErrorNote.tsx'
import { duration } from '../../../kit/format.ts'
import { stepWord } from '../../../kit/status-words.ts'
import { labelOf, stateOf, type StepNode } from '../../../../src/fold/step-tree.ts'
import type { Room } from '../use-room.ts'
import { EntryView, RawEntries } from './Raw.tsx'
import { StepOutput, ToolArguments } from './Output.tsx'
import { Prompt } from './Prompt.tsx'
import { RunInput, RunOutput } from './Run.tsx'
import { StepError } from './StepError.tsx'
import { RunUsage, Usage } from './Usage.tsx'
import css from './Inspector.module.css'

type InspectorTab = 'output' | 'args' | 'prompt' | 'usage' | 'error' | 'raw'
const names: Record<InspectorTab, string> = {
  output: 'Output',
  args: 'Arguments',
  prompt: 'Prompt',
  usage: 'Usage',
  error: 'Error',
  raw: 'Raw',
}

export function Inspector({ room }: { room: Room }) {
  const { selection } = room
  if (selection.kind === 'absent') {
    return <Empty title={`${selection.path} has not started here.`}>Go to a later entry.</Empty>
  }
  if (selection.kind === 'entry' && !startsAttempt(selection.node, selection.seq)) {
    return (
      <div className={css.inspector} data-inspector tabIndex={-1}>
        <EntryView room={room} seq={selection.seq} node={selection.node} />
      </div>
    )
  }
  const node = 'node' in selection ? selection.node : undefined
  return node === undefined ? <RunDetails room={room} /> : <StepDetails key={node.step.from} room={room} node={node} />
}

/** An attempt that a crash has ended is named by its first entry. */
function startsAttempt(node: StepNode | undefined, seq: number): boolean {
  return node?.step.superseded !== undefined && node.step.from === seq
}

function StepDetails({ room, node }: { room: Room; node: StepNode }) {
  const { step } = node
  const { name, detail } = labelOf(node)
  const isCall = step.kind === 'tool-call' || step.kind === 'client-tool' || step.kind === 'approval'
  const tabs: InspectorTab[] = ['output']
  if (isCall) tabs.push('args')
  if (step.kind === 'model-call' || node.marks.some(({ type }) => type === 'prompt')) tabs.push('prompt')
  tabs.push('usage')
  if (step.error !== undefined) tabs.push('error')
  tabs.push('raw')
  const first: InspectorTab = step.error === undefined ? 'output' : 'error'
  const { now } = room.model
  return (
    <Frame
      room={room}
      tabs={tabs}
      first={first}
      title={name}
      about={[detail, stepWord(stateOf(node)), duration(Math.max(0, (step.end ?? now) - step.at))]
        .filter(Boolean)
        .join(' · ')}
      path={step.path}
    >
      {(tab) => {
        if (tab === 'output') return <StepOutput room={room} node={node} />
        if (tab === 'args') return <ToolArguments room={room} node={node} />
        if (tab === 'prompt') return <Prompt id={room.id} node={node} />
        if (tab === 'usage') return <Usage node={node} now={now} />
        if (tab === 'error') return <StepError room={room} node={node} />
        return <RawEntries room={room} node={node} />
      }}
    </Frame>
  )
}

function RunDetails({ room }: { room: Room }) {
  const { end, model, seq } = room
  const error = model.facts.state === 'ended' ? end?.error : undefined
  const tabs: InspectorTab[] =
    error === undefined ? ['output', 'args', 'usage', 'raw'] : ['output', 'args', 'usage', 'error', 'raw']
  return (
    <Frame
      room={room}
      tabs={tabs}
      first="output"
      title={model.whole.marks[0]?.note ?? 'run'}
      about="the whole run"
      path={undefined}
    >
      {(tab) => {
        if (tab === 'output') return <RunOutput room={room} />
        if (tab === 'args') return <RunInput room={room} />
        if (tab === 'usage') return <RunUsage room={room} />
        if (tab === 'error') return <ErrorNote error={error} />
        return <EntryView room={room} seq={seq} node={undefined} />
      }}
    </Frame>
  )
}

interface FrameProps {
  room: Room
  tabs: readonly InspectorTab[]
  first: InspectorTab
  title: string
  about: string
  path: string | undefined
  children: (tab: InspectorTab) => React.ReactNode
}

function Frame({ room, tabs, first, title, about, path, children }: FrameProps) {
  const wanted = room.query.get('tab')
  const tab = tabs.find((each) => each === wanted) ?? first
  return (
    <div className={css.inspector} data-inspector tabIndex={-1}>
      <header className={css.head}>
        <h2>
          {title} <small>{about}</small>
        </h2>
        {path !== undefined && <Copy text={path} label="Copy the path of the step" />}
      </header>
      <div className={css.tabs} role="tablist" aria-label="Details">
        {tabs.map((each) => (
          <button
            key={each}
            type="button"
            role="tab"
            aria-selected={each === tab}
            tabIndex={each === tab ? 0 : -1}
            onClick={() => room.query.set({ tab: each }, { replace: true })}
            onKeyDown={(event) => {
              const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
              const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length]!
              if (by === 0) return
              event.preventDefault()
              room.query.set({ tab: next }, { replace: true })
              const all = event.currentTarget.parentElement!.children
              ;(all[tabs.indexOf(next)] as HTMLElement).focus()
            }}
          >
            {path === undefined && each === 'args' ? 'Input' : names[each]}
          </button>
        ))}
      </div>
      <div className={css.panel} role="tabpanel" aria-label={names[tab]} tabIndex={0}>
        {children(tab)}
      </div>
    </div>
  )
}

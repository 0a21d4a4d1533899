/** What a model was sent: all of it, and what is new since the call before. */
import { useMemo, useState } from 'react'
import type { WholePrompt } from '../../../../src/fold/whole-prompt.ts'
import type { Message } from '../../../../src/part/message.ts'
import { api } from '../../../data/client.ts'
import { useMay } from '../../../data/server.ts'
import { useResource } from '../../../data/resource.ts'
import { Button } from '../../../kit/Button.tsx'
import { Copy } from '../../../kit/Copy.tsx'
import { ErrorNote } from '../../../kit/ErrorNote.tsx'
import { JsonTree } from '../../../kit/JsonTree.tsx'
import { Skeleton } from '../../../kit/Skeleton.tsx'
import type { StepNode } from '../../../../src/fold/step-tree.ts'
import { LongText } from './LongText.tsx'
import css from './Inspector.module.css'

function usePrompt(id: string, path: string | undefined) {
  return useResource(path && `prompt ${id} ${path}`, () =>
    api<WholePrompt>(`/api/runs/${encodeURIComponent(id)}/prompt?step=${encodeURIComponent(path!)}`),
  )
}

export function Prompt({ id, node }: { id: string; node: StepNode }) {
  const mayRead = useMay('agents.read')
  if (mayRead === undefined) return <Skeleton rows={4} />
  if (!mayRead) return <p className={css.nothing}>Your role may not read prompts.</p>
  return <ShownPrompt id={id} node={node} />
}

function ShownPrompt({ id, node }: { id: string; node: StepNode }) {
  const before = node.parent?.children.findLast(
    ({ step }) => step.kind === 'model-call' && step.from < node.step.from && step.path !== node.step.path,
  )
  const prompt = usePrompt(id, node.step.path)
  const last = usePrompt(id, before?.step.path).value
  const same = useMemo(() => commonStart(prompt.value?.messages ?? [], last?.messages ?? []), [prompt.value, last])
  const [showsAll, setShowAll] = useState(false)
  if (prompt.error !== undefined) return <ErrorNote error={prompt.error} onRetry={prompt.reload} />
  if (prompt.value === undefined) return <Skeleton rows={4} />
  const { model, system, messages, tools = [], settings } = prompt.value
  const hidden = showsAll ? 0 : same
  return (
    <div className={css.prompt} data-testid="prompt">
      <div className={css.promptHead}>
        <span>{model}</span>
        <Copy text={() => JSON.stringify(prompt.value, undefined, 2)} label="Copy the prompt" />
      </div>
      {settings !== undefined && (
        <Part name="settings" state={undefined}>
          <JsonTree value={settings} depth={1} />
        </Part>
      )}
      {system !== undefined && (
        <Part name="system" state={last === undefined ? undefined : last.system === system ? 'same' : 'new'}>
          <LongText text={system} />
        </Part>
      )}
      {same > 0 && (
        <Button look="quiet" onClick={() => setShowAll(!showsAll)}>
          {`${showsAll ? 'Hide' : 'Show'} ${same} ${same === 1 ? 'message' : 'messages'} as in the call before`}
        </Button>
      )}
      {messages.slice(hidden).map((message, i) => (
        <Part
          key={hidden + i}
          name={message.role}
          state={last === undefined ? undefined : hidden + i < same ? 'same' : 'new'}
        >
          <Content message={message} />
        </Part>
      ))}
      {tools.length > 0 && (
        <Part name={`${tools.length} tools`} state={undefined}>
          <JsonTree value={Object.fromEntries(tools.map(({ name, ...rest }) => [name, rest]))} depth={1} />
        </Part>
      )}
    </div>
  )
}

function Part({
  name,
  state,
  children,
}: {
  name: string
  state: 'same' | 'new' | undefined
  children: React.ReactNode
}) {
  return (
    <section className={css.message} data-state={state}>
      <h4>
        {name}
        {state === 'new' && <ins>new</ins>}
      </h4>
      {children}
    </section>
  )
}

function Content({ message }: { message: Message }) {
  if (typeof message.content === 'string') return <LongText text={message.content} />
  return message.content.map((part, i) => {
    const isText = 'type' in part && (part.type === 'text' || part.type === 'reasoning')
    return isText ? <LongText key={i} text={part.text} /> : <JsonTree key={i} value={part} />
  })
}

function commonStart(a: readonly Message[], b: readonly Message[]): number {
  let n = 0
  while (n < a.length && n < b.length && JSON.stringify(a[n]) === JSON.stringify(b[n])) n++
  return n
}

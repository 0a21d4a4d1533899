/** Step outputs that clients do not see: the messages of their models, and their results. */
import type { CommandContext } from './context.ts'
import { formatMessage } from './message-lines.ts'
import { printable } from './printable.ts'
import { paint } from './style.ts'
import type { Entry } from '../part/entry.ts'
import type { Message } from '../part/message.ts'
import { isUnder } from '../part/path.ts'
import { kindOf, type StepKind } from '../part/step-kind.ts'
import { replyMessages } from '../fold/reply-messages.ts'
import { createToolLoop, type ToolLoop } from '../fold/tool-loop.ts'

export interface StepOutput {
  step: string
  /** Text and tool calls of the model. */
  messages?: Message[]
  /** The step's result. */
  result?: unknown
}

/** Steps whose output is that of the steps inside them. */
const containers: ReadonlySet<StepKind> = new Set(['parallel', 'container'])
const calls: ReadonlySet<StepKind> = new Set(['model-call', 'tool-call', 'client-tool', 'approval'])

/** Leaves out steps without an output, and the answer itself. */
export async function readOutputs(entries: AsyncIterable<Entry>): Promise<StepOutput[]> {
  const answers: string[] = []
  const steps = new Map<string, { loop?: ToolLoop; result?: unknown }>()
  for await (const entry of entries) {
    const { step, type } = entry
    if (type === 'step-start' && entry.answer) answers.push(step)
    if (answers.some((path) => isUnder(step, path))) continue
    if (type === 'step-start' && !calls.has(kindOf(entry)) && !containers.has(kindOf(entry))) {
      if (!steps.has(step)) steps.set(step, { loop: createToolLoop(step) })
    } else if (type === 'step-finish' && entry.result !== undefined) {
      const found = steps.get(step)
      if (found !== undefined) found.result = entry.result
    }
    for (const [path, { loop }] of steps) if (isUnder(step, path)) loop?.apply(entry)
  }
  return [...steps].flatMap(([step, { loop, result }]) => {
    const messages = loop === undefined ? [] : replyMessages(loop.list)
    if (messages.length === 0 && result === undefined) return []
    return [{ step, ...(messages.length > 0 && { messages }), ...(result !== undefined && { result }) }]
  })
}

/** `longest`: maximum characters of one text. */
export function formatOutputs(context: CommandContext, outputs: readonly StepOutput[], longest: number): string {
  const blocks = outputs.map(({ step, messages = [], result }) => {
    const lines = messages.flatMap((message) => formatMessage(message, longest))
    if (result !== undefined) {
      const content = typeof result === 'string' ? result : JSON.stringify(result)
      lines.push(...formatMessage({ role: 'user', content }, longest, 'result'))
    }
    return [
      paint(context, 'dim', printable(step.replace(/^main\//u, ''))),
      ...lines.map((line) => `  ${printable(line)}`),
    ].join('\n')
  })
  return blocks.join('\n')
}

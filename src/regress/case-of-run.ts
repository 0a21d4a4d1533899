/** A recorded run, with the runs of its thread that it continues, as a case: its input, the answers it got, and what it came to. */
import { dump } from 'js-yaml'
import { compact } from '../part/compact.ts'
import type { Entry, EntryOf } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import { messagesOf } from '../part/message.ts'
import { factsOf } from './facts.ts'

/** Longer texts are not written into the case as a whole. */
const longest = 4000

export interface RunCase {
  agent: string
  /** The user’s last message, for a name. */
  title: string
  /** The keys of the case, without its name. */
  value: Record<string, unknown>
}

/** The logs of the runs, the first of the thread first. Throws `bad-run` for one that cannot be repeated. */
export function caseOfRuns(logs: readonly (readonly Entry[])[]): RunCase {
  const turns = logs.map((entries, i) => turnOf(entries, i === logs.length - 1))
  const start = startOf(logs.at(-1)!)
  const asked = messagesOf(start.input).findLast(({ role }) => role === 'user')?.content
  const title = typeof asked === 'string' ? asked : start.runId
  return { agent: agentOf(logs.at(-1)!), title, value: turns.length === 1 ? turns[0]! : { turns } }
}

function startOf(entries: readonly Entry[]): EntryOf<'run-start'> {
  const [start] = entries
  if (start?.type !== 'run-start') throw new MillraceError('bad-run', 'The run has no entries.')
  return start
}

/** A fork may have gone on as another one. */
function agentOf(entries: readonly Entry[]): string {
  const last = entries.findLast((entry) => entry.type === 'resume' && entry.agent !== undefined)
  return (last as EntryOf<'resume'> | undefined)?.agent ?? startOf(entries).agent
}

const repeatable: ReadonlySet<string> = new Set(['completed', 'failed', 'budget-exceeded'])

function turnOf(entries: readonly Entry[], isLast: boolean): Record<string, unknown> {
  const start = startOf(entries)
  const { outcome, error, text, output, tools } = factsOf(entries)
  if (!repeatable.has(outcome)) {
    const cure = 'A case needs a run that has ended by itself: completed, failed or budget-exceeded.'
    throw new MillraceError('bad-run', `The run ${start.runId} is ${outcome}. ${cure}`)
  }
  if (entries.some((entry) => entry.type === 'tool-result' && entry.outcome === 'handed-over')) {
    const cure = 'Run it where runs are recorded, without --data none.'
    throw new MillraceError('bad-run', `The run ${start.runId} left calls of tools to its client. ${cure}`)
  }
  const answers = answersIn(entries)
  const isObject = typeof output === 'object' && output !== null
  const short = text.trim().slice(0, longest)
  const expect = compact({
    outcome: outcome === 'completed' ? undefined : outcome,
    error: error?.code,
    text: !isLast || short === '' ? undefined : short === text.trim() ? { equals: short } : { contains: short },
    json: isLast && text === '' && isObject ? { $: output } : undefined,
    tools: tools.length === 0 ? undefined : { inOrder: true, only: true, calls: tools },
  })
  return {
    ...inputOf(start),
    ...(answers.length === 0 ? undefined : { answers }),
    ...(Object.keys(expect).length === 0 ? undefined : { expect }),
  }
}

function inputOf({ input }: EntryOf<'run-start'>): Record<string, unknown> {
  const { messages: _, ...rest } = input
  const [only, ...more] = messagesOf(input)
  if (only?.role !== 'user' || typeof only.content !== 'string' || more.length > 0) return { input }
  return { message: only.content, ...(Object.keys(rest).length === 0 ? undefined : { input: rest }) }
}

function answersIn(entries: readonly Entry[]): Record<string, unknown>[] {
  const requests = new Map<string, EntryOf<'request'>>()
  const answers: Record<string, unknown>[] = []
  for (const entry of entries) {
    if (entry.type === 'request') requests.set(entry.requestId, entry)
    if (entry.type !== 'response' || entry.answer === undefined) continue
    const tool = requests.get(entry.requestId)?.toolName
    const { answer } = entry
    if (answer.kind === 'approval') {
      const { approved: approve, reason, input } = answer
      answers.push(compact({ tool, approve, reason: approve ? undefined : reason, input }))
    } else if (answer.kind === 'tool') {
      const { output, isError } = answer
      answers.push(compact({ tool, ...(isError ? { error: textOf(output) } : { output }) }))
    } else answers.push('value' in answer ? { value: answer.value } : { cancel: true })
  }
  return answers
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** A list of one case as YAML, each line indented. */
export function caseYaml(value: Record<string, unknown>, indent: string): string {
  const text = dump([value], { lineWidth: 120, noRefs: true })
  return text.replaceAll(/^(?=.)/gmu, indent)
}

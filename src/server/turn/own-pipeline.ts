/** `pipeline` in a request: YAML that a run executes instead of its agent's file. The one door for it, whatever the protocol. */
import { ownValue } from '../../part/own-value.ts'
import { PipelineError, withFix } from '../../pipeline/fault.ts'
import { agentOfStart, type Asked, type StartedAs } from '../../runtime/own-text.ts'
import type { Agent, Runtime } from '../../runtime/runtime.ts'
import type { AgentEditor } from '../../project/agent-editor.ts'
import type { Editing } from '../http/editing.ts'
import { bad } from '../http/query.ts'
import { checkText } from '../routes/agents.ts'

/** Who asks: what is edited here, and by whom. */
export interface Editor {
  editing: Editing
  agentEditor: AgentEditor | undefined
}

/** The longest text of one run, in characters: each run of the conversation has it in its log. */
export const longestText = 256 * 1024

/**
 * The text of `fields.pipeline`, with the files that it includes. null: the agent's file, whatever the conversation has. Throws `forbidden` for a
 * caller who may not edit agents, and `bad-pipeline` (422) with the faults of the text. `place`: where the fields stand in the request.
 */
export function readPipeline(
  { editing, agentEditor }: Editor,
  request: Pick<Request, 'headers'>,
  fields: object,
  { agent, place = 'pipeline' }: { agent: string; place?: string },
): string | null | undefined {
  const text = ownValue(fields as Record<string, unknown>, 'pipeline')
  // It asks for what everybody gets.
  if (text === undefined || text === null) return text
  editing.check(request)
  if (typeof text !== 'string') throw bad(place, 'the YAML of an agent, or null')
  if (text.length > longestText) throw bad(place, `YAML of at most ${longestText / 1024} KB`)
  const { faults, pipeline } = checkText({ agentEditor }, agent, text)
  if (pipeline !== undefined && faults.length === 0) return pipeline.text
  const [first] = faults
  const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : ''
  const where =
    first === undefined ? '' : ` Line ${first.line}, column ${first.column}: ${first.message.slice(0, 500)}${more}`
  throw new PipelineError(
    faults.map((fault) => withFix(text, fault)),
    `The YAML in "${place}" has a mistake.${where}`,
  )
}

/** The agent as a turn of a conversation has it, by its request or by the run before it, and the text for `Turn.pipeline`. */
export async function agentOfTurn(
  { runtime: { store, threadId: toThread } }: { runtime: Runtime },
  agent: Agent,
  { threadId, ...asked }: Asked,
): Promise<{ agent: StartedAs; pipeline: string | null }> {
  const scoped = threadId === undefined ? asked : { ...asked, threadId: toThread(threadId) }
  const now = await agentOfStart(store, agent, scoped)
  return { agent: now, pipeline: now.own ? now.pipeline.text : null }
}

/** One run of a case: starts it, answers what it asks, and reads its log to the end. */
import type { Entry, EntryOf } from '../part/entry.ts'
import { messageOf } from '../part/error.ts'
import type { Answer } from '../part/request-part.ts'
import type { Run, Runtime, StartOptions } from '../runtime/runtime.ts'
import type { Failure } from './failure.ts'
import type { GivenAnswer } from './test-case.ts'

export interface TurnRun {
  agent: string
  input: Record<string, unknown>
  answers: readonly GivenAnswer[]
  options: StartOptions
  /** Ends the run. */
  signal: AbortSignal
}

export interface TurnLog {
  entries: Entry[]
  failures: Failure[]
}

/** Never rejects: a run that cannot be started is a failure without entries. */
export async function followTurn(
  runtime: Runtime,
  { agent, input, answers, options, signal }: TurnRun,
): Promise<TurnLog> {
  const log: TurnLog = { entries: [], failures: [] }
  let run: Run
  try {
    run = await runtime.start(agent, input, options)
  } catch (error) {
    return { entries: [], failures: [{ what: 'run', message: `the run cannot be started: ${messageOf(error)}` }] }
  }
  const stop = () => void run.stop('The test was stopped.').catch(() => undefined)
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  const choose = createAnswers(answers)
  for await (const entry of run.parts) {
    log.entries.push(entry)
    if (entry.type !== 'request') continue
    const answer = choose(entry)
    const fault = answer === undefined ? missing(entry) : await give(run, entry, answer)
    if (fault === undefined) continue
    log.failures.push(fault)
    stop()
  }
  signal.removeEventListener('abort', stop)
  return log
}

/** In order; the last one that fits answers further requests as well. */
function createAnswers(answers: readonly GivenAnswer[]): (request: EntryOf<'request'>) => GivenAnswer | undefined {
  const used = new Set<GivenAnswer>()
  return ({ kind, toolName }) => {
    const fitting = answers.filter((each) => each.kind === kind && (each.tool === undefined || each.tool === toolName))
    const found = fitting.find((each) => !used.has(each)) ?? fitting.at(-1)
    if (found !== undefined) used.add(found)
    return found
  }
}

async function give(run: Run, { requestId }: EntryOf<'request'>, given: GivenAnswer): Promise<Failure | undefined> {
  try {
    const { tool: _, ...answer } = given
    await run.answer(requestId, answer as Answer)
    return undefined
  } catch (error) {
    return { what: 'answer', message: `an answer was refused: ${messageOf(error)}` }
  }
}

function missing(request: EntryOf<'request'>): Failure {
  const { kind, toolName } = request
  const message = request.kind === 'input' ? request.message : undefined
  const cures = {
    approval: ['approval of', `- { tool: ${toolName}, approve: true }`],
    tool: ['the result of', `- { tool: ${toolName}, output: … }`],
    input: ['a value for', '- { value: … }'],
  } as const
  const [what, cure] = cures[kind]
  return {
    what: 'answer',
    message: `the run asks for ${what} ${toolName ?? message ?? 'a step'}; add to answers: ${cure}`,
  }
}

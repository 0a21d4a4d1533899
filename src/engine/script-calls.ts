/**
 * The calls of one script, between its VM and the log. A call that the log has is answered from there; a new one is recorded and made like any other
 * call of a tool. Answers go to the script one at a time, in the order of the log, so a script that runs again makes the same calls.
 */
import { MillraceError } from '../part/error.ts'
import type { EntryOf } from '../part/entry.ts'
import { parseJson } from '../part/json.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import { isMap } from '../pipeline/scalars.ts'
import { lostResult } from '../fold/open-items.ts'
import type { ModelToolCall } from '../fold/reply-messages.ts'
import type { CallOutcome, ScriptCall } from '../script/sandbox.ts'
import { asRecorded, closeUnder, type Scope } from './scope.ts'
import { closeSettled, settleCall, type CallingLoop } from './tool-call.ts'

export interface ScriptAnswer {
  /** The number of the call. */
  n: number
  outcome: CallOutcome
  /** Epoch ms: what `Date` shows from then on. */
  now: number
}

export interface ScriptCalls {
  /** Finishes the steps of calls whose result was the last entry before a crash. Call it first. */
  open(): Promise<void>
  /** Begins calls that the script has made, in order. Throws `script-diverged` if the log has others. */
  make(calls: readonly ScriptCall[]): void
  /** The next answer for the script. Throws what ends the run, or waits for a client. */
  next(): Promise<ScriptAnswer>
  /** The VM starts again: answers are given once more, from the first. */
  restart(): void
  /** The script has ended. Throws `script-diverged` if the log has more calls. */
  finish(): void
  /** Stops and closes open calls. Returns their names. */
  stop(): Promise<string[]>
}

export interface ScriptCallsOptions {
  /** With a signal of its own, which `stop` aborts. */
  scope: Scope
  stop: AbortController
  /** The path at which its calls are recorded, an open step below that of the script. */
  path: string
  /** The id of the call that started the script, or of its step: those of its own calls begin with it. */
  id: string
  /** How many calls run at the same time. */
  parallel: number
  /** How the script calls its tools. */
  calling: CallingLoop
  /** Answers `describe(words)`. */
  describe(words: string): string
}

/** A call that has been made. `answered`: the script has its answer. */
interface Made {
  call: ScriptCall
  /** Its place among the tool calls, or among the questions. */
  place: number
  /** Answers that are in no log. */
  known?: CallOutcome
  isGiven: boolean
}

export function createScriptCalls(options: ScriptCallsOptions): ScriptCalls {
  const { scope, stop, path, id, parallel, calling, describe } = options
  const { state, branches, signal } = scope
  let made: Made[] = []
  /** Numbers of calls whose task this process has begun. */
  const begun = new Set<number>()
  const waiting: Made[] = []
  const tasks = new Set<Promise<void>>()
  let working = 0
  let failure: { error: unknown } | undefined
  let wake: (() => void) | undefined
  let lastNow = state.open.steps.get(path)?.timestamp ?? 0

  const recordedCalls = (): readonly ModelToolCall[] => state.loopAt(calling.root).list[0]?.calls ?? []

  function wakeUp(): void {
    wake?.()
    wake = undefined
  }

  function begin(item: Made): void {
    const { call } = item
    if (begun.has(call.n)) return
    begun.add(call.n)
    if (call.kind === 'tool') {
      waiting.push(item)
      startNext()
    } else run(() => ask(item))
  }

  function startNext(): void {
    while (working < parallel && waiting.length > 0) {
      const recorded = recordedCalls()[waiting.shift()!.place]!
      working++
      run(async () => {
        try {
          await settleCall(scope, calling, recorded)
        } finally {
          working--
          startNext()
        }
      })
    }
  }

  /** A branch of its own. The script goes on before the branch has ended, or the run would seem to wait. */
  function run(task: () => Promise<void>): void {
    const running = branches.spawn(async () => {
      try {
        await task()
      } catch (error) {
        if (!stop.signal.aborted) failure ??= { error }
      } finally {
        wakeUp()
      }
    })
    tasks.add(running)
    void running.finally(() => tasks.delete(running))
  }

  async function ask({ call, place }: Made): Promise<void> {
    const known = state.asked.get(path)?.[place]
    const { message, schema } = questionOf(call)
    const requestId = known?.request.requestId ?? `${scope.runId}.${scope.newId()}`
    const deadline = known?.request.deadline ?? scope.now() + scope.requestDeadline
    await scope.request(path, omitUndefined({ requestId, kind: 'input' as const, message, schema, deadline }), signal)
  }

  /** The answer of a call, and the `seq` of its entry: 0 for those that are in no log. */
  function answerOf({ call, place, known }: Made): (Omit<ScriptAnswer, 'n'> & { seq: number }) | undefined {
    if (known !== undefined) return { seq: 0, outcome: known, now: lastNow }
    if (call.kind === 'ask') {
      const response = state.asked.get(path)?.[place]?.response
      return response && { seq: response.seq, outcome: toAnswer(response), now: response.timestamp }
    }
    const result = recordedCalls()[place]?.result
    return result && { seq: result.seq, outcome: toOutcome(result), now: result.timestamp }
  }

  function due(): ScriptAnswer | undefined {
    let first: { item: Made; answer: Omit<ScriptAnswer, 'n'>; seq: number } | undefined
    for (const item of made) {
      if (item.isGiven) continue
      const answer = answerOf(item)
      if (answer === undefined || (first !== undefined && first.seq <= answer.seq)) continue
      const { seq, ...rest } = answer
      first = { item, seq, answer: rest }
    }
    if (first === undefined) return undefined
    first.item.isGiven = true
    lastNow = Math.max(lastNow, first.answer.now)
    return { n: first.item.call.n, ...first.answer, now: lastNow }
  }

  function record({ call: { n, name, input }, place }: Made): void {
    const known = recordedCalls()[place]
    const part = { type: 'tool-call' as const, toolCallId: `${id}.${n}`, toolName: name, input, via: 'script' as const }
    if (known === undefined) {
      scope.emit(path, part)
      return
    }
    const logged = scope.toLogged(part) as typeof part
    if (known.toolCallId === part.toolCallId && known.toolName === name && known.input === logged.input) return
    throw diverged(
      `Call ${n} of the script is ${name}(${short(input)}), but the log has ${known.toolName}(${short(known.input)}).`,
    )
  }

  return {
    async open() {
      const [reply] = state.loopAt(calling.root).list
      if (reply !== undefined) await closeSettled(scope, reply)
    },
    make(calls) {
      for (const call of calls) {
        const item: Made = {
          call,
          place: made.filter(({ call: { kind } }) => kind === call.kind).length,
          isGiven: false,
        }
        made.push(item)
        if (call.kind === 'describe') item.known = { value: JSON.stringify(describe(wordsOf(call))) }
        else if (call.kind === 'ask') item.known = refusal(call)
        else record(item)
        if (answerOf(item) === undefined) begin(item)
      }
    },
    async next() {
      for (;;) {
        if (scope.signal.aborted) throw scope.signal.reason
        if (failure !== undefined) throw failure.error
        const answer = due()
        if (answer !== undefined) return answer
        const woken = new Promise<void>((resolve) => {
          wake = () => {
            branches.unblock()
            resolve()
          }
        })
        branches.block()
        await woken
      }
    },
    restart() {
      made = []
      lastNow = state.open.steps.get(path)?.timestamp ?? 0
    },
    finish() {
      const more = recordedCalls()[made.filter(({ call: { kind } }) => kind === 'tool').length]
      if (more !== undefined) throw diverged(`The script has ended, but the log has another call, of ${more.toolName}.`)
    },
    async stop() {
      const open = made.filter((item) => answerOf(item) === undefined)
      waiting.length = 0
      if (open.length === 0) return []
      const reason = asRecorded({ code: 'aborted', message: 'The script ended before this call.' })
      stop.abort(reason)
      await Promise.allSettled(tasks)
      for (const { call, place } of open) if (call.kind === 'tool') close(recordedCalls()[place]!, reason)
      return open.map(({ call }) => call.name)
    },
  }

  function close(call: ModelToolCall, reason: Error): void {
    const { result, startedAt, approvalAt, askedAt } = call
    for (const at of [startedAt, approvalAt, askedAt]) if (at !== undefined) closeUnder(scope, at, reason)
    if (result === undefined) scope.emit(path, lostResult(call, 'aborted'))
  }

  function refusal(call: ScriptCall): CallOutcome | undefined {
    const { schema } = questionOf(call)
    if (schema !== undefined && !isMap(schema)) {
      return { error: { name: 'TypeError', message: 'The second argument of ask() must be a JSON Schema.' } }
    }
    if (scope.canWait && scope.cannotAsk !== true) return undefined
    return { error: { message: 'Nobody can be asked in this run.', code: 'unavailable' } }
  }
}

function diverged(what: string): MillraceError {
  const why = 'A script that goes on must make the same calls again: has its text, its input or its engine changed?'
  return new MillraceError('script-diverged', `${what} ${why}`)
}

function questionOf({ input }: ScriptCall): { message?: string; schema?: Record<string, unknown> } {
  const { message, schema } = parseJson(input) as { message?: unknown; schema?: Record<string, unknown> }
  return omitUndefined({ message: message === undefined ? undefined : wordsIn(message), schema })
}

function wordsOf({ input }: ScriptCall): string {
  return wordsIn((parseJson(input) as { words?: unknown }).words ?? '')
}

function wordsIn(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function toOutcome({ result, isError }: EntryOf<'tool-result'>): CallOutcome {
  if (isError !== true) return { value: JSON.stringify(result ?? null) }
  return { error: { name: 'ToolError', message: typeof result === 'string' ? result : JSON.stringify(result) } }
}

function toAnswer({ answer, reason = 'closed' }: EntryOf<'response'>): CallOutcome {
  if (answer?.kind === 'input' && 'value' in answer) return { value: JSON.stringify(answer.value ?? null) }
  const message = answer?.kind === 'input' ? 'The question was declined.' : `The question has no answer: ${reason}.`
  return { error: { message, code: 'unanswered' } }
}

function short(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}

/** Runs a CLI agent from start to end: its output becomes parts of the run, and the run's limits stop it. */
import { omitUndefined } from '../../part/omit-undefined.ts'
import { fromErrorValue, MillraceError, type ErrorValue } from '../../part/error.ts'
import type { SourcePart, UsagePart } from '../../part/part.ts'
import { settledBy } from '../../async/with-grace.ts'
import { createCliReader } from '../../ingest/cli-parser.ts'
import type { CliOutcome } from '../../ingest/outcome.ts'
import type { CliAgentConfig } from '../../pipeline/pipeline.ts'
import type { OutputStream, ProcessOptions, Processes, RunningProcess } from '../../processes/processes.ts'
import { type Scope, traceparentOf } from '../scope.ts'
import { createStallWatch, lengthOf } from '../model-feed.ts'
import { stricter } from '../limits.ts'
import { clis } from './arguments.ts'
import { usedBefore } from './used-before.ts'
import type { WorkingFolder } from './working-folder.ts'
import { parseInput } from '../../fold/tool-loop.ts'
import { answerTooLong } from '../../models/limits/read-limits.ts'
import { createSpending, type SpendingOptions } from './spending.ts'
import { createTranscript } from './transcript.ts'
import { stderrTail } from '../../tools/mcp/stderr-tail.ts'

/** ms that a process has to exit by itself after its result. */
const exitGrace = 5000

export interface CliCall extends Omit<CliAgentConfig, 'command' | 'cwd'>, WorkingFolder {
  command: [program: string, ...args: string[]]
}

export interface CliEnd {
  outcome: CliOutcome
  /** `null` if the process did not exit by itself. */
  exitCode: number | null
}

export async function runCli(scope: Scope, path: string, call: CliCall): Promise<CliEnd> {
  const processes = scope.registry.processes
  if (processes === undefined) {
    throw new MillraceError('no-processes', 'CLI agents need Node: this runtime cannot start programs.')
  }
  const { name } = clis[call.cli]
  const { defaultTimeouts: defaults, signal: outer } = scope
  const timeouts = stricter(scope.timeouts, scope.callerTimeouts)
  const watch = createStallWatch({ timeouts, defaults, reasons: true, signal: outer, who: name })
  const signal = watch?.signal ?? outer
  const before = await usedBefore(scope, call)
  const feed = createCliFeed(scope, path, call)
  /** Resolves when the step must no longer wait for the process. */
  const over = Promise.withResolvers<{ hung: true } | { failure: unknown }>()
  /** `stopped`: only usage is still read from its output. */
  let state: 'live' | 'ending' | 'stopped' = 'live'
  let report: UsagePart | undefined
  let hangTimer: ReturnType<typeof setTimeout> | undefined

  function take(part: SourcePart): void {
    if (state === 'stopped') {
      if (part.type === 'usage') report = part
      return
    }
    // The step reports the final error, under its own name.
    if (state === 'ending' && part.type === 'error') return
    try {
      feed.part(part, state === 'ending' || reader.isDone)
    } catch (failure) {
      if (state === 'ending') throw failure
      state = 'stopped'
      over.resolve({ failure })
    }
  }
  const reader = createCliReader(call.cli, omitUndefined({ model: call.model, onPart: take, usedBefore: before }))
  const stderr = createStderrLines((raw) => take({ type: 'cli-output', stream: 'stderr', raw }))

  function onOutput(stream: OutputStream, bytes: Uint8Array): Promise<void> | undefined {
    if (state !== 'live' || signal.aborted) return undefined
    if (watch !== undefined) watch.restart = true
    if (stream === 'stdout') reader.feed(bytes)
    else stderr.push(bytes)
    if (reader.isDone) hangTimer ??= setTimeout(() => over.resolve({ hung: true }), exitGrace)
    else if (hangTimer !== undefined) {
      // Another turn has begun.
      clearTimeout(hangTimer)
      hangTimer = undefined
    }
    return scope.ready()
  }

  /** A warning of the run, not of the step, which may have ended by then. */
  function onRawLogLost(why: string): void {
    scope.emit('', { type: 'warning', code: 'raw-log-lost', message: `The raw log of ${path} is incomplete: ${why}.` })
  }

  let running: RunningProcess | undefined
  const stop = () => running?.stop()
  signal.addEventListener('abort', stop)
  try {
    const place = omitUndefined({ run: scope.runId, step: path, traceparent: traceparentOf(scope, path) })
    running = await start(processes, place, call, { onOutput, onRawLogLost })
    if (signal.aborted) stop()
    const exited = running.exit.then((exit) => ({ exit }))
    const how = await settledBy(signal, Promise.race([exited, over.promise]))
    signal.throwIfAborted()
    if ('failure' in how) throw how.failure
    const exit = 'exit' in how ? how.exit : undefined
    // Readers of the run must see that it may be incomplete.
    if ('hung' in how) take({ type: 'warning', code: 'cli-cut', message: cutOff(name) })
    state = 'ending'
    stderr.end()
    reader.end(exit)
    const outcome = reader.outcome()
    if (outcome.error !== undefined) throw withReason(outcome.error, stderr.lastWords())
    feed.end()
    return { outcome, exitCode: exit?.code ?? null }
  } catch (error) {
    state = 'stopped'
    reader.end()
    feed.giveUp(report)
    throw error
  } finally {
    stop()
    clearTimeout(hangTimer)
    signal.removeEventListener('abort', stop)
    watch?.release()
  }
}

function cutOff(name: string): string {
  const what = `${name} did not exit within ${exitGrace / 1000} s of its result, and was stopped.`
  return `${what} If it was still at work, what it would have said is cut off.`
}

async function start(
  processes: Processes,
  place: Pick<ProcessOptions, 'run' | 'step' | 'traceparent'>,
  { cli, command, folder: cwd, isRequested, env, prompt: input, rawLog }: CliCall,
  listeners: Pick<ProcessOptions, 'onOutput' | 'onRawLogLost'>,
): Promise<RunningProcess> {
  try {
    return await processes.start({ command, cwd, env, input, ...place, rawLog, ...listeners })
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error
    const { code, message, detail } = error
    if (code === 'bad-cwd' && isRequested) {
      throw new MillraceError('bad-input', message, { status: 400, ...omitUndefined({ detail }) })
    }
    if (code !== 'not-installed') throw error
    const { name, install } = clis[cli]
    const cure = `Install it with "${install}", or set "command" to its path.`
    throw new MillraceError('not-installed', `${name} is not installed: ${message} ${cure}`, omitUndefined({ detail }))
  }
}

/** Hides paths of this machine from clients: they see only the last name. */
function withoutPaths(text: string): string {
  return text.replaceAll(/(?:[A-Za-z]:)?(?:[\\/][\w.@~+-]+)+[\\/]([\w.@~+-]+)/gu, '…/$1')
}

/** Adds the reason from stderr to an error without one. */
function withReason(error: ErrorValue, words: string | undefined): MillraceError {
  const hasNone = error.code === 'cli-exit' || error.code === 'interrupted'
  if (words === undefined || !hasNone) return fromErrorValue(error)
  const shown = withoutPaths(words)
  const detail = error.detail ?? (shown === words ? undefined : `its stderr: ${words}`)
  return fromErrorValue(
    omitUndefined({ ...error, message: `${error.message} It said: ${shown}`, detail }) as ErrorValue,
  )
}

/** Watches a working CLI agent: the length of its output, its budgets, and the agent file's callbacks. */
interface CliFeed {
  /** Throws when a limit is exceeded. `isDone`: its result is there, so a budget no longer stops it. */
  part(part: SourcePart, isDone: boolean): void
  /** It was stopped: records its usage, as reported or estimated. */
  giveUp(report: UsagePart | undefined): void
  /** It is done: closes open items. */
  end(): void
}

type CliFeedOptions = Pick<CliAgentConfig, 'onStreamPart' | 'onProgress' | 'onToolCall'> & SpendingOptions

function createCliFeed(scope: Scope, path: string, options: CliFeedOptions): CliFeed {
  const { limits, answerChars } = scope
  const spending = createSpending(scope, path, options)
  const transcript = createTranscript(scope, path, () => spending.call())
  const written = new Set<string>()
  let length = 0
  /** The model call of the last text, and whether that text ended a line. */
  let lastCall: string | undefined
  let isAtLineStart = true

  function part(given: SourcePart, isDone: boolean): void {
    length += 'delta' in given ? given.delta.length : lengthOf(given, written)
    if (length > answerChars) throw answerTooLong(answerChars)
    if (given.type === 'tool-input-start') written.add(given.id)
    spending.said(given)
    const said = given.type === 'usage' ? spending.reported(given) : given
    notify(said, transcript.part(said))
    if (!isDone) for (const limit of limits) if (limit.watches) limit.check()
  }

  /** The text wire's rule: a blank line between the texts of two model calls, unless the first ends in a newline. */
  function paragraph(call: string, delta: string): string {
    const gap = call === lastCall || isAtLineStart ? '' : '\n\n'
    lastCall = call
    isAtLineStart = delta.endsWith('\n')
    return gap + delta
  }

  function notify(said: SourcePart, call: string | undefined): void {
    const { onStreamPart, onProgress, onToolCall } = options
    if (onStreamPart !== undefined) void scope.invoke(onStreamPart, said)
    if (onProgress !== undefined && said.type === 'text-delta' && said.delta !== '' && call !== undefined) {
      void scope.invoke(onProgress, paragraph(call, said.delta))
    }
    if (onToolCall === undefined || said.type !== 'tool-call') return
    const { toolCallId, toolName, input } = said
    void scope.invoke(onToolCall, { toolCallId, toolName, input: parseInput(input) })
  }

  return {
    part,
    giveUp(report) {
      const rest = spending.rest()
      if (rest !== undefined) transcript.part(rest)
      if (report !== undefined) transcript.part(spending.reported(report))
    },
    end() {
      spending.rest()
      transcript.end()
    },
  }
}

/** Splits stderr into lines. A line of more than 64 Ki characters is split into pieces. */
const longest = 65_536

/** How many of the last lines are kept, and their maximum length. */
const keptLines = 20
const keptLength = 500

interface StderrLines {
  push(bytes: Uint8Array): void
  end(): void
  /** The last meaningful lines as one line: they often give the reason for an exit. */
  lastWords(): string | undefined
}

function createStderrLines(onLine: (line: string) => void): StderrLines {
  const decoder = new TextDecoder()
  let rest = ''
  let last: string[] = []

  function add(text: string, isLast: boolean): void {
    const lines = (rest + text).split('\n')
    rest = isLast ? '' : lines.pop()!
    for (const line of lines) say(line.endsWith('\r') ? line.slice(0, -1) : line)
    if (rest.length <= longest) return
    say(rest)
    rest = ''
  }

  function say(line: string): void {
    if (line === '') return
    last = [...last.slice(1 - keptLines), line.slice(0, keptLength)]
    onLine(line)
  }

  return {
    push: (bytes) => add(decoder.decode(bytes, { stream: true }), false),
    end: () => add(decoder.decode(), true),
    lastWords: () => stderrTail(last.filter((line) => !noReason.test(line)).join('\n')),
  }
}

/** Lines without a reason: stack traces, lines without a word, and start-up messages. */
const noReason = /^\s*at\s|^\W*$|^Node\.js v|^WARNING: proceeding|^Reading (?:prompt|additional input) from stdin/u

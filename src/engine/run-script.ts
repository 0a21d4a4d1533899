/**
 * Runs one script inside its open step. The VM only computes: each call goes through {@link createScriptCalls} to the log. A VM that is lost (its worker
 * had to be ended, the server restarted) is started again and gets the answers of the log, so nothing is done twice.
 */
import { anySignal } from '../async/any-signal.ts'
import { MillraceError } from '../part/error.ts'
import { parseJson } from '../part/json.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { Message } from '../part/message.ts'
import { joinPath } from '../part/path.ts'
import type { ScriptLimits } from '../pipeline/script-limits.ts'
import { describeScriptError } from '../script/script-error.ts'
import { describeTools, type DeclaredTool } from '../script/declarations.ts'
import {
  defaultScriptLimits,
  ScriptDropped,
  type ConsoleLine,
  type SandboxPool,
  type ScriptState,
} from '../script/sandbox.ts'
import { createScriptCalls } from './script-calls.ts'
import { asRecorded, inStep, Suspended, within, type NewStep, type Scope } from './scope.ts'
import { consoleName } from './state.ts'
import type { OfferedTool } from './tool-call.ts'

/** How often a VM is started again in one process before the script fails. */
const mostDrops = 20
/** Characters of console output that a model gets. */
const mostConsole = 4096

export interface ScriptWork {
  code: string
  /** What the script sees as `input`. */
  input: unknown
  tools: ReadonlyMap<string, OfferedTool>
  limits: ScriptLimits
  /** The ids of its calls begin with this. */
  id: string
  /** The conversation around the script, for tools that ask for it. */
  messages(): Message[]
}

export interface ScriptResult {
  value: unknown
  /** The end of what it wrote to its console. Absent if it wrote nothing. */
  console?: string
}

/** A failed script. `calls`: what it had called, for whoever mends it. */
export class ScriptFailure extends MillraceError {
  readonly calls: readonly string[]

  constructor(code: string, message: string, calls: readonly string[]) {
    super(code, message)
    this.calls = calls
  }
}

/** The tools of a script, for their declarations. */
export function declared(tools: ReadonlyMap<string, OfferedTool>): DeclaredTool[] {
  return [...tools.values()].map(({ spec: { name, description, inputSchema } }) => {
    return omitUndefined({ name, description, input: inputSchema })
  })
}

/** The start of a script's step. */
export const scriptStart = { stepType: 'script', kind: 'script' } satisfies NewStep

/** Runs the script of the open step at `root` to its end, or throws its failure. Throws `no-sandbox` where no script can run. */
export async function runScript(scope: Scope, root: string, work: ScriptWork): Promise<ScriptResult> {
  const sandbox = sandboxOf(scope)
  const path = joinPath(root, 1)
  const attempt = (scope.state.resets.get(root) ?? 0) + 1
  const script = { engine: sandbox.engine, seed: `${scope.runId} ${path} ${attempt}` }
  const start = { stepType: 'script-run', kind: 'task', script } satisfies NewStep
  const finished = scope.state.finished.get(path)
  if (finished?.error !== undefined) throw asRecorded(finished.error)
  if (finished !== undefined) return finished.result as ScriptResult
  return inStep(scope, path, start, async () => {
    const value = await runIn(scope, { root, path }, sandbox, work)
    return { value, result: value }
  })
}

async function runIn(
  outer: Scope,
  { root, path }: { root: string; path: string },
  sandbox: SandboxPool,
  work: ScriptWork,
): Promise<ScriptResult> {
  const { code, input, tools, limits, id, messages } = work
  const { state } = outer
  const { engine, seed, timestamp } = state.scripts.get(path)!
  const goesOn = (state.loopAt(root).list[0]?.calls.length ?? 0) > 0
  if (goesOn && engine !== sandbox.engine) {
    const message = `The script began on ${engine} and goes on on ${sandbox.engine}. If its calls differ, it fails.`
    outer.emit(path, { type: 'warning', code: 'script-engine-changed', message })
  }
  const stop = new AbortController()
  const scope = within(outer, {
    signal: anySignal([outer.signal, stop.signal]),
    cannotAsk: outer.handOver || outer.cannotAsk === true,
  })
  const calling = { root, tools, messages, before: () => messages(), answers: false }
  const describe = (words: string) => describeTools(declared(tools), words)
  const calls = createScriptCalls({ scope, stop, path, id, parallel: limits.parallel, calling, describe })
  const { parallel: _, ...own } = limits
  const script = {
    code,
    input: JSON.stringify(input ?? {}),
    toolNames: [...tools.keys()],
    limits: { ...defaultScriptLimits, ...own },
    now: timestamp,
    seed,
  }
  await calls.open()
  try {
    return await untilEnd()
  } catch (error) {
    if (!(error instanceof Suspended) && !outer.signal.aborted) await calls.stop()
    throw error
  }

  async function untilEnd(): Promise<ScriptResult> {
    for (let drops = 0; ; drops++) {
      const lines: ConsoleLine[] = []
      try {
        const last = await drive(sandbox, script, lines)
        return await finish(last, lines)
      } catch (error) {
        if (!(error instanceof ScriptDropped)) throw error
        if (outer.signal.aborted) throw outer.signal.reason
        const isOver = error.reason === 'ended' || error.reason === 'closed'
        if (isOver || drops >= mostDrops) {
          throw new MillraceError('script-crashed', `The script's VM was lost ${drops + 1} times. Try again later.`)
        }
        calls.restart()
      }
    }
  }

  async function drive(pool: SandboxPool, given: typeof script, lines: ConsoleLine[]): Promise<ScriptState> {
    const vm = await pool.start(given, scope.signal)
    try {
      let now = await vm.next()
      for (;;) {
        show(now.console, lines)
        calls.make(now.calls)
        if (now.state !== 'waiting') return now
        const { n, outcome, now: time } = await calls.next()
        now = await vm.settle(n, outcome, time)
      }
    } catch (error) {
      // The signal of the run says why it ended.
      if (outer.signal.aborted) throw outer.signal.reason
      throw error
    } finally {
      vm.end()
    }
  }

  /** Records the lines that the log does not have. */
  function show(more: readonly ConsoleLine[], lines: ConsoleLine[]): void {
    for (const line of more) {
      lines.push(line)
      if (lines.length <= (state.consoleLines.get(path) ?? 0)) continue
      outer.emit(path, { type: 'data', name: consoleName, data: line })
    }
  }

  async function finish(last: ScriptState, lines: readonly ConsoleLine[]): Promise<ScriptResult> {
    calls.finish()
    const open = await calls.stop()
    if (last.state === 'waiting') throw new MillraceError('script-crashed', 'The script ended while it waited.')
    if (open.length > 0) {
      const message = `The script ended before these calls: ${[...new Set(open)].join(', ')}. Await them, for example with Promise.all.`
      outer.emit(path, { type: 'warning', code: 'script-left-calls', message })
    }
    for (const warning of last.warnings) {
      if (warning.kind !== 'unhandled') continue
      const message = `Nothing in the script awaited a promise that failed: ${describeScriptError(warning.error)}`
      outer.emit(path, { type: 'warning', code: 'script-unhandled', message })
    }
    if (last.state === 'failed') throw new ScriptFailure(last.error.code, describeScriptError(last.error), madeCalls())
    const text = lines.map(({ level, text: said }) => (level === 'log' ? said : `[${level}] ${said}`)).join('\n')
    const value = parseJson(last.value)
    return text === ''
      ? { value }
      : { value, console: text.length > mostConsole ? `…${text.slice(-mostConsole)}` : text }
  }

  function madeCalls(): string[] {
    const [reply] = state.loopAt(root).list
    return (reply?.calls ?? []).map(({ toolName, input: given, result }) => {
      const how = result === undefined ? 'open' : result.isError === true ? 'failed' : 'done'
      return `${toolName}(${given.length > 200 ? `${given.slice(0, 200)}…` : given}): ${how}`
    })
  }
}

function sandboxOf({ registry }: Scope): SandboxPool {
  if (registry.sandbox !== undefined) return registry.sandbox
  throw new MillraceError('no-sandbox', 'Scripts need Node and its worker threads, which are missing here.')
}

/** Runs a script to its end, as an engine would: answers its calls in order, and remembers what happened. */
import type { SandboxPool } from '../sandbox.ts'
import {
  defaultScriptLimits,
  type CallOutcome,
  type ConsoleLine,
  type Script,
  type ScriptCall,
  type ScriptError,
  type ScriptLimits,
  type ScriptState,
} from '../sandbox.ts'

export interface Ran {
  value?: unknown
  error?: ScriptError
  calls: ScriptCall[]
  console: ConsoleLine[]
  warnings: Extract<ScriptState, { state: 'done' }>['warnings']
}

export interface RunOptions {
  input?: unknown
  tools?: readonly string[]
  limits?: Partial<ScriptLimits>
  seed?: string
  /** Default: the call's input. */
  answer?(call: ScriptCall): CallOutcome
  /** Which of the open calls is answered next. Default: the first. */
  pick?(open: readonly ScriptCall[]): number
  signal?: AbortSignal
}

/** When a script starts. Each answer takes a second. */
export const startTime = Date.UTC(2026, 10, 27, 12)

export function scriptOf(
  code: string,
  { input = null, tools = ['orders', 'search'], limits, seed = 'run 1' }: RunOptions = {},
): Script {
  const all = { ...defaultScriptLimits, ...limits }
  return { code, input: JSON.stringify(input), toolNames: tools, limits: all, now: startTime, seed }
}

export async function runScript(pool: SandboxPool, code: string, options: RunOptions = {}): Promise<Ran> {
  const { answer = ({ input }) => ({ value: input }), pick = () => 0, signal } = options
  const run = await pool.start(scriptOf(code, options), signal)
  const ran: Ran = { calls: [], console: [], warnings: [] }
  const open: ScriptCall[] = []
  let now = startTime
  for (let state = await run.next(); ;) {
    ran.calls.push(...state.calls)
    ran.console.push(...state.console)
    if (state.state === 'failed') return { ...ran, error: state.error, warnings: state.warnings }
    if (state.state === 'done') return { ...ran, value: JSON.parse(state.value), warnings: state.warnings }
    open.push(...state.calls)
    const [call] = open.splice(pick(open), 1)
    if (call === undefined) throw new Error('The script waits for nothing.')
    state = await run.settle(call.n, answer(call), (now += 1000))
  }
}

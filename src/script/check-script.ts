/** Finds faults in the syntax of scripts that nobody runs yet: for `millrace check`, the start of a server, editors. */
import { MessageChannel, receiveMessageOnPort, Worker, type MessagePort } from 'node:worker_threads'
import { badScript, parseFault, type Compiled } from './compile.ts'
import { defaultScriptLimits, type ScriptError, type ScriptLimits } from './sandbox.ts'
import { limitError } from './script-error.ts'
import { workerUrl } from './worker-url.ts'

/** For a worker that compiles one script and ends. */
export interface CompileTask {
  code: string
  port: MessagePort
  /** Becomes 1 when the answer is in the port. */
  isDone: Int32Array
}

/** In ms. */
const longest = 10_000
/** What was found in scripts with types, by their text: an unchanged file is not looked at again. */
const known = new Map<string, ScriptError | undefined>()

/**
 * Undefined: none were found. Runs nothing of the script, and needs no `quickjs-wasi`. JavaScript takes less than a millisecond. TypeScript is parsed in a thread
 * of its own, for which this waits, some 50 ms: Node's stripper has no limits of time and depth. Where there are no threads, TypeScript is not looked at.
 */
export function checkScript(code: string, limits: ScriptLimits = defaultScriptLimits): ScriptError | undefined {
  const size = Buffer.byteLength(code)
  if (size > limits.code) return limitError('code', limits, size)
  const fault = parseFault(code)
  if (fault === undefined || fault.isTooDeep === true) return fault?.error
  if (known.has(code)) return known.get(code)
  const compiled = compileInThread(code)
  const error = compiled !== undefined && 'error' in compiled ? compiled.error : undefined
  if (known.size === 100) known.clear()
  known.set(code, error)
  return error
}

function compileInThread(code: string): Compiled | undefined {
  const { port1, port2 } = new MessageChannel()
  const isDone = new Int32Array(new SharedArrayBuffer(4))
  const task: CompileTask = { code, port: port2, isDone }
  const options = { workerData: task, transferList: [port2], env: {}, argv: [], execArgv: [] }
  let worker: Worker
  try {
    worker = new Worker(workerUrl, options)
  } catch {
    // Whoever starts the script is told why.
    return undefined
  }
  worker.unref()
  Atomics.wait(isDone, 0, 0, longest)
  const answer = receiveMessageOnPort(port1) as { message: Compiled } | undefined
  port1.close()
  void worker.terminate()
  return answer?.message ?? { error: badScript('The types of the script take too long to erase.') }
}

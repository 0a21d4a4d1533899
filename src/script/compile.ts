/** A script's text → what a VM runs: types are stripped, and each place stays where it was. Nothing is run. */
import { defaultScriptLimits, type ScriptError, type ScriptLimits } from './sandbox.ts'
import { limitError, noModules, placed } from './script-error.ts'

/** `isBroken`: Node's stripper has failed, and does so at each later call in this thread. */
export type Compiled = { js: string } | { error: ScriptError; isBroken?: true }

/** Strict, as modules are. The script begins in the second line: see `locate`. */
const [before, after] = ['"use strict";(async()=>{\n', '\n})']

/** What was found in scripts with types, by their text: an unchanged file is not looked at again. */
const known = new Map<string, ScriptError | undefined>()

/**
 * Finds faults of syntax, without running anything: for `millrace check`, the start of a server, editors. Undefined: none were found. JavaScript takes less than a
 * millisecond. What is none is stripped in a thread of its own, for which this waits, some 50 ms: Node's stripper has no limits of time and depth. Where there
 * are no threads, it is not looked at.
 */
export function checkScript(code: string, limits: ScriptLimits = defaultScriptLimits): ScriptError | undefined {
  const size = Buffer.byteLength(code)
  if (size > limits.code) return limitError('code', limits, size)
  const fault = parseFault(code)
  if (fault === undefined || fault.isTooDeep === true) return fault?.error
  if (known.has(code)) return known.get(code)
  const compiled = compileScript(code, stripInThread)
  const error = 'error' in compiled ? compiled.error : undefined
  if (known.size === 100) known.clear()
  known.set(code, error)
  return error
}

/** `strip`: of Node, only in a thread that can be ended; see `isBroken`. */
export function compileScript(code: string, strip: (source: string) => string = stripTypes): Compiled {
  const fault = parseFault(code)
  if (fault === undefined) return { js: before + code + after }
  if (fault.isTooDeep) return { error: fault.error }
  let js: string
  try {
    js = strip(before + code + after)
  } catch (error) {
    const { code: kind, message, stack = '' } = error as StripError
    // There are no threads: whoever starts the script is told so.
    if (kind === noThread) return { js: '' }
    if (kind === tooLong) return { error: badScript('The types of the script take too long to erase.') }
    if (kind === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') {
      const advice = 'Only types that can be erased are allowed in a script.'
      return { error: at(badScript(`${message.replace(/\.?$/u, '.')} ${advice}`), code, stack) }
    }
    if (kind !== 'ERR_INVALID_TYPESCRIPT_SYNTAX') return { error: tooDeep, isBroken: true }
    // Both stop at the first fault: who came further knows the syntax.
    const other = at(badScript(isAboutModules(message) ? noModules : `${message}.`), code, stack)
    return { error: isFurther(other, fault.error) || isAboutModules(message) ? other : fault.error }
  }
  const left = parseFault(js.slice(before.length, -after.length), code)
  return left === undefined ? { js } : { error: left.error }
}

function badScript(message: string): ScriptError {
  return { code: 'bad-script', name: 'SyntaxError', message }
}

const tooDeep = badScript('The script nests too deeply.')
const isAboutModules = (message: string) => /\b(?:import|export)\b/u.test(message)

/** What V8 says of a text as JavaScript, in linear time. `code`: with types, to show. */
function parseFault(js: string, code = js): { error: ScriptError; isTooDeep?: true } | undefined {
  try {
    // It knows the place.
    const { Script } = process.getBuiltinModule('node:vm')
    void new Script(before + js + after, { filename: 'script' })
    // It knows that a text which closes the function is no function's body.
    void AsyncFunction(js)
    return undefined
  } catch (error) {
    if (error instanceof RangeError) return { error: tooDeep, isTooDeep: true }
    if (!(error instanceof SyntaxError)) return undefined
    const message = isAboutModules(error.message) ? noModules : (reworded.get(error.message) ?? `${error.message}.`)
    return { error: at(badScript(message), code, error.stack ?? '') }
  }
}

const reworded: ReadonlyMap<string, string> = new Map([
  ['Single function literal required', 'There is a } too many: it closes the function that the script is the body of.'],
])
const AsyncFunction = (async () => {}).constructor as FunctionConstructor

/** The place is in the first lines of a stack: `script:3`, the line, and carets below it. Node's stripper expands tabs and counts columns. */
function at(error: ScriptError, code: string, stack: string): ScriptError {
  const [first = '', ...lines] = stack.split('\n')
  const line = Number(/^(?:script)?:(\d+)$/u.exec(first)?.[1] ?? 0)
  if (line === 0) return error
  const carets = lines.find((each) => /^\s*\^+\s*$/u.test(each)) ?? ''
  const width = carets.indexOf('^')
  const source = code.split('\n')[line - 2] ?? ''
  return placed(error, code, line - 1, (first.startsWith(':') ? indexAt(source, width) : width) + 1)
}

/** The index of the character that is shown `width` columns from the left. */
function indexAt(source: string, width: number): number {
  let [index, shown] = [0, 0]
  for (const character of source) {
    if (shown >= width) break
    index += character.length
    // As terminals show it, roughly: from Hangul on, most characters take two columns.
    shown += character === '\t' ? 4 : character >= 'ᄀ' ? 2 : 1
  }
  return index
}

function isFurther(a: ScriptError, b: ScriptError): boolean {
  const [lineA, lineB] = [a.line ?? 0, b.line ?? 0]
  return lineA === lineB ? (a.column ?? 0) > (b.column ?? 0) : lineA > lineB
}

interface StripError {
  code?: string
  message: string
  stack?: string
}
const [noThread, tooLong] = ['no-thread', 'too-long']

/** Node warns that stripping is experimental, on stderr, once for each process. Users can do nothing about it. */
function stripTypes(source: string): string {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return process.getBuiltinModule('node:module').stripTypeScriptTypes(source)
  } finally {
    process.emitWarning = emitWarning
  }
}

/** In ms. */
const longest = 10_000
const stripper = `
const { source, port, isDone } = require('node:worker_threads').workerData
process.emitWarning = () => {}
let answer
try {
  answer = { js: require('node:module').stripTypeScriptTypes(source) }
} catch ({ code, message, stack }) {
  answer = { error: { code, message, stack } }
}
port.postMessage(answer)
Atomics.store(isDone, 0, 1)
Atomics.notify(isDone, 0)`

function stripInThread(source: string): string {
  const { MessageChannel, receiveMessageOnPort, Worker } = process.getBuiltinModule('node:worker_threads')
  const { port1, port2 } = new MessageChannel()
  const isDone = new Int32Array(new SharedArrayBuffer(4))
  const options = {
    workerData: { source, port: port2, isDone },
    transferList: [port2],
    env: {},
    argv: [],
    execArgv: [],
  }
  try {
    const worker = new Worker(stripper, { ...options, eval: true })
    worker.unref()
    Atomics.wait(isDone, 0, 0, longest)
    void worker.terminate()
  } catch {
    throw Object.assign(new Error(), { code: noThread })
  }
  const received = receiveMessageOnPort(port1) as { message: { js: string } | { error: StripError } } | undefined
  port1.close()
  const answer = received?.message ?? { error: { code: tooLong, message: '' } }
  if ('js' in answer) return answer.js
  throw Object.assign(new Error(answer.error.message), answer.error)
}

/** A script's text → what a VM runs: types are stripped, and each place stays where it was. Nothing is run. */
import { limitError, noModules, placed } from './script-error.ts'
import { defaultScriptLimits, type ScriptError, type ScriptLimits } from './sandbox.ts'

/** `isBroken`: Node's stripper has crashed, and does so at each later call in this thread. */
export type Compiled = { js: string } | { error: ScriptError; isBroken?: true }

/** Strict, as modules are. The script begins in the second line: see `locate`. */
const [before, after] = ['"use strict";(async()=>{\n', '\n})']

/**
 * Finds faults of syntax, without running or starting anything: for `millrace check`. Undefined: none were found. A script with so much nested TypeScript that
 * Node's stripper might crash is not looked at; it fails when it runs.
 */
export function checkScript(code: string, limits: ScriptLimits = defaultScriptLimits): ScriptError | undefined {
  const size = Buffer.byteLength(code)
  if (size > limits.code) return limitError('code', limits, size)
  const fault = parseFault(code)
  if (fault === undefined || (mayCrashStripper(code) && !fault.isTooDeep)) return undefined
  const compiled = compileScript(code)
  return 'error' in compiled ? compiled.error : undefined
}

/** Call it for code that you do not know only in a thread that can be replaced: see `isBroken`. */
export function compileScript(code: string): Compiled {
  const fault = parseFault(code)
  if (fault === undefined) return { js: before + code + after }
  if (fault.isTooDeep) return { error: fault.error }
  let js: string
  try {
    js = strip(before + code + after)
  } catch (error) {
    const { code: kind, message, stack = '' } = error as Error & { code?: string }
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

/** What V8 says of a text as JavaScript. `code`: with types, to show. */
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
    const message = isAboutModules(error.message) ? noModules : (reworded[error.message] ?? `${error.message}.`)
    return { error: at(badScript(message), code, error.stack ?? '') }
  }
}

const reworded: Record<string, string | undefined> = {
  'Single function literal required': 'There is a } too many: it closes the function that the script is the body of.',
}
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

/** Node warns that stripping is experimental, on stderr, once for each process. Users can do nothing about it. */
function strip(source: string): string {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return process.getBuiltinModule('node:module').stripTypeScriptTypes(source)
  } finally {
    process.emitWarning = emitWarning
  }
}

/**
 * The stripper recurses, and a stack overflow inside of it breaks it for the whole thread. The smallest text of each kind that did so in Node 24.21 had a
 * thousand brackets or arrows, two thousand `if`, or five thousand links of a chain.
 */
function mayCrashStripper(code: string): boolean {
  let [depth, deepest, links] = [0, 0, 0]
  for (const character of code) {
    if ('([{'.includes(character)) deepest = Math.max(deepest, ++depth)
    else if (')]}'.includes(character)) depth = Math.max(0, depth - 1)
    else if ('.?=*:!+-'.includes(character)) links++
  }
  const count = (word: RegExp) => code.match(word)?.length ?? 0
  return (
    deepest > 200 ||
    count(/=>|</gu) > 500 ||
    count(/\bif\b/gu) > 1000 ||
    links > 4000 ||
    count(/\b(?:as|new|keyof|await)\b/gu) > 2000
  )
}

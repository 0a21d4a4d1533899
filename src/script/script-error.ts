/** Errors of scripts: their places in the script's own text, and the text that a model or a person reads. */
import { parseJson } from '../part/json.ts'
import { ownValue } from '../part/own-value.ts'
import type { ScriptError, ScriptErrorCode, ScriptLimits } from './sandbox.ts'

export const noModules = 'Modules are not available in a script: call tools instead.'

/** `TypeError at 3:21: tools.serch is not a tool. Did you mean search?`, and the line. */
export function describeScriptError({ name, message, line, column, source }: ScriptError): string {
  if (line === undefined) return `${name}: ${message}`
  const place = column === undefined ? `${line}` : `${line}:${column}`
  return `${name} at ${place}: ${message}${source === undefined ? '' : `\n${line} | ${source}`}`
}

const words: Record<keyof ScriptLimits, string> = {
  time: 'The script',
  memory: 'The script',
  calls: 'The script',
  code: 'The code of the script',
  callValue: 'is too large',
  value: 'The result of the script',
  console: 'The console',
}

/** The error of a limit that the script has crossed. `size`: what it had, in bytes. */
export function limitError(
  which: 'time' | 'memory' | 'code' | 'callValue' | 'value',
  limits: ScriptLimits,
  size = 0,
): ScriptError {
  const name = 'Error'
  if (which === 'time')
    return { code: 'script-timeout', name, message: `The script has used its ${limits.time / 1000} s of CPU time.` }
  if (which === 'memory')
    return { code: 'script-memory', name, message: `The script has used its ${sizeText(limits.memory)} of memory.` }
  const what = `${words[which]}${which === 'callValue' ? '' : ' is too large'}`
  return {
    code: 'script-too-large',
    name,
    message: `${what}: ${sizeText(size)}, and at most ${sizeText(limits[which])} are allowed.`,
  }
}

export function sizeText(bytes: number): string {
  const kb = bytes / 1024
  const [value, unit] = kb < 1 ? [bytes, 'bytes'] : kb < 1024 ? [kb, 'KB'] : [kb / 1024, 'MB']
  return `${Number(value.toFixed(1))} ${unit}`
}

/** `thrown`: what the guest says of an error, as JSON text of texts, or an error of the engine. */
export function toScriptError(
  thrown: unknown,
  code: ScriptErrorCode = 'script-error',
): ScriptError & { stack: string } {
  const said = (typeof thrown === 'string' ? parsed(thrown) : thrown) as Record<string, unknown>
  // The name of an error of the engine is that of its class.
  const inherited = (key: 'name' | 'message' | 'code' | 'stack') => (said as Record<typeof key, unknown>)[key]
  const text = (key: 'name' | 'message' | 'code' | 'stack') => {
    const value = typeof thrown === 'string' ? ownValue(said, key) : inherited(key)
    return typeof value === 'string' ? value : ''
  }
  const [name, message, own] = [text('name') || 'Error', text('message'), text('code')]
  const error = { code, name, message, stack: text('stack') }
  if (isModuleError(name, message)) return { ...error, code: 'bad-script', message: noModules }
  if (own === 'bad-value' || own === 'script-too-large') return { ...error, code: own }
  return own === '' ? error : { ...error, thrown: own }
}

function parsed(text: string): Record<string, unknown> {
  const value = text === '' ? undefined : parseJson(text)
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function isModuleError(name: string, message: string): boolean {
  return (
    (name === 'ReferenceError' && /^(require is not defined|could not load module)/u.test(message)) ||
    (name === 'SyntaxError' && /\b(?:import|export)\b/u.test(message))
  )
}

/** Adds the place where the script stood. Its text begins in the second line of what is compiled (`compile.ts`). */
export function locate(error: ScriptError & { stack?: string }, code: string, stack = error.stack): ScriptError {
  const { stack: _, ...rest } = error
  const found = /\bscript:(\d+):(\d+)/u.exec(stack ?? '')
  if (found === null) return rest
  const [line, column] = [Number(found[1]) - 1, Number(found[2])]
  // The engine does not name what is not a function; the place does.
  const word = /^[\w$]+/u.exec(code.split('\n')[line - 1]?.slice(column - 1) ?? '')?.[0]
  const named =
    rest.message === 'not a function' && word !== undefined ? { ...rest, message: `${word} is not a function` } : rest
  return placed(named, code, line, column)
}

export function placed(error: ScriptError, code: string, line: number, column: number): ScriptError {
  const lines = code.split('\n')
  if (line < 1) return error
  if (line > lines.length) {
    // A bracket that is missing, or one too many, is noticed in the wrapper.
    const last = lines.findLastIndex((each) => each.trim() !== '') + 1 || 1
    const source = lines[last - 1]!.trimEnd()
    const message =
      error.code === 'bad-script'
        ? 'The brackets do not match: something is not closed, or closed twice.'
        : error.message
    return { ...error, message, line: last, column: source.length + 1, source: cut(source) }
  }
  return { ...error, line, column, source: cut(lines[line - 1]!.trimEnd()) }
}

const cut = (text: string) => (text.length > 200 ? `${text.slice(0, 200)}…` : text)

/**
 * What runs inside a VM before the script: it makes `tools`, `ask`, `describe`, `console` and `input`, and is the only code there that has `host`, the one
 * function to the outside. It is guest code: whoever breaks it gains nothing but `host`, which takes texts only (`vm.ts`).
 *
 * It runs after the script has changed what it likes, so it keeps what it needs and stays away from what can be replaced: no methods of arrays,
 * no iteration, no objects with a prototype. Its value is a function: `host` and the limits → `enter`, by which the VM calls it.
 */
export const guestSource = String.raw`(function (host, names, inputText, maxCalls, maxConsole) {
'use strict'
const P = Promise, E = Error, T = TypeError, X = Proxy, S = String
const parse = JSON.parse, stringify = JSON.stringify, isArray = Array.isArray, isView = ArrayBuffer.isView
const apply = Reflect.apply, define = Reflect.defineProperty, hasOwn = Object.hasOwn
const tagOf = Object.prototype.toString, slice = S.prototype.slice, errorProto = E.prototype, getPrototypeOf = Reflect.getPrototypeOf
const isWord = RegExp.prototype.exec, word = /^[A-Za-z_$][\w$]*$/
const own = (value) => ({ __proto__: null, value, writable: true, configurable: true, enumerable: false })
const cut = (text, most) => (text.length > most ? apply(slice, text, [0, most]) + '…' : text)
const textOf = (value) => (typeof value === 'string' ? cut(value, 8000) : '')
const isError = (value) => {
  for (let at = value, left = 20; at !== null && typeof at === 'object' && left > 0; at = getPrototypeOf(at), left--) if (at === errorProto) return true
  return false
}
const fault = (message, code, stack) => {
  const error = code === 'bad-value' ? new T(message) : new E(message)
  define(error, 'code', own(code))
  if (stack !== undefined) define(error, 'stack', own(stack))
  return error
}

/* Values → JSON text. What JSON would drop without a word is an error with its place. */
const noJson = { __proto__: null, '[object Map]': 'a Map', '[object Set]': 'a Set', '[object WeakMap]': 'a WeakMap', '[object WeakSet]': 'a WeakSet',
  '[object Promise]': 'a promise; await it', '[object RegExp]': 'a regular expression', '[object ArrayBuffer]': 'an ArrayBuffer',
  '[object Generator]': 'a generator', '[object AsyncGenerator]': 'a generator' }
const isName = (key) => apply(isWord, word, [key]) !== null
const toText = (root, value) => {
  /* The containers around the current value, and the key of each in the one before it. */
  const above = { __proto__: null }, keys = { __proto__: null }
  let depth = -1
  let found
  const stop = (key, what) => {
    let path = root
    for (let i = 1; i <= depth + 1; i++) {
      const name = i > depth ? key : keys[i]
      if (i > 10 && i < depth) continue
      path += isArray(above[i - 1]) ? '[' + name + ']' : isName(name) ? '.' + cut(name, 40) : '[' + stringify(cut(name, 40)) + ']'
    }
    throw (found = path + ' is ' + what)
  }
  let text
  try {
    text = stringify(value, function (key, item) {
      while (depth >= 0 && above[depth] !== this) depth--
      const kind = typeof item
      if (kind === 'string' || kind === 'number' || kind === 'boolean' || kind === 'undefined' || item === null) return item
      if (kind === 'bigint') stop(key, 'a BigInt; convert it by Number() or String()')
      if (kind !== 'object') stop(key, 'a ' + kind)
      for (let i = 0; i <= depth; i++) if (above[i] === item) stop(key, 'a cycle: the value contains itself')
      if (!isArray(item)) {
        if (isError(item)) item = { __proto__: null, name: textOf(item.name), message: textOf(item.message) }
        const bad = isView(item) ? 'bytes' : noJson[apply(tagOf, item, [])]
        if (bad !== undefined) stop(key, bad)
      }
      if (depth > 250) stop(key, 'nested too deeply')
      depth++
      above[depth] = item
      keys[depth] = key
      return item
    })
  } catch (error) {
    if (found !== undefined) throw fault(found + '. Only JSON values can leave a script.', 'bad-value')
    throw fault(root + ' is no JSON: ' + (isError(error) ? textOf(error.message) : 'it cannot be read'), 'bad-value')
  }
  return text === undefined ? 'null' : text
}

/* Calls. */
const pending = { __proto__: null }
let calls = 0
const call = (kind, name, value, root) =>
  new P((resolve, reject) => {
    const stack = new E('').stack
    const text = toText(root, value)
    if (calls >= maxCalls) throw fault('This script has made its ' + maxCalls + ' calls.', 'script-calls', stack)
    const refused = host('call', kind, name, text)
    if (refused !== undefined) throw fault(root + ' ' + refused, 'script-too-large', stack)
    calls++
    pending[calls] = { __proto__: null, resolve, reject, stack }
  })
const tools = { __proto__: null }
for (const name of parse(names))
  define(tools, name, { __proto__: null, value: (input) => call('tool', name, input === undefined ? {} : input, 'the argument of tools.' + name), enumerable: true })
const toolbox = new X(Object.freeze(tools), {
  __proto__: null,
  get: (target, key) => {
    if (typeof key === 'symbol' || hasOwn(target, key)) return target[key]
    if (key === 'then' || key === 'toJSON') return undefined
    throw new T('tools.' + key + ' is not a tool.' + host('near', key))
  },
})
const needText = (value, what) => {
  if (typeof value !== 'string') throw new T(what + ' needs a text.')
}

/* Console. */
let used = 0
const show = (value) => {
  if (typeof value === 'string') return value
  try {
    if (isError(value)) return textOf(value.name) + ': ' + textOf(value.message)
    if (typeof value !== 'object' || value === null) return typeof value === 'function' ? '[function]' : S(value)
    const text = stringify(value, (key, item) => {
      if (typeof item === 'bigint') return S(item) + 'n'
      if (typeof item === 'function') return '[function]'
      if (typeof item !== 'object' || item === null || isArray(item)) return item
      if (isError(item)) return textOf(item.name) + ': ' + textOf(item.message)
      return apply(tagOf, item, []) in noJson ? apply(tagOf, item, []) : item
    })
    return text === undefined ? '[nothing]' : text
  } catch {
    return '[cannot be shown]'
  }
}
const print = (level) => (...values) => {
  if (used > maxConsole) return
  let line = ''
  for (let i = 0; i < values.length && line.length <= maxConsole; i++) line += (i === 0 ? '' : ' ') + show(values[i])
  const left = maxConsole - used
  used += line.length + 1
  host('log', level, used > maxConsole ? apply(slice, line, [0, left]) : line)
  if (used > maxConsole) host('log', 'warn', 'The console is full: later lines are missing.')
}
const console = { log: print('log'), info: print('info'), warn: print('warn'), error: print('error'), debug: print('debug'), trace: print('debug'), dir: print('log'), table: print('log') }

/* Errors → JSON text of texts. */
const describeError = (thrown) => {
  let name = 'Error', message = '', stack = '', code = ''
  try {
    if (isError(thrown)) {
      name = textOf(thrown.name)
      message = textOf(thrown.message)
      stack = textOf(thrown.stack)
      code = textOf(thrown.code)
      for (let i = 0; hasOwn(thrown, 'errors') && i < 3 && i < thrown.errors.length; i++) message += (i === 0 ? ': ' : '; ') + show(thrown.errors[i])
    } else message = 'The script threw ' + cut(typeof thrown === 'string' ? stringify(thrown) : show(thrown), 2000)
  } catch {}
  return stringify({ __proto__: null, name, message, stack, code })
}

const run = async (main) => {
  let text
  try {
    text = toText('the result', await main())
  } catch (error) {
    host('failed', describeError(error))
    return
  }
  host('done', text)
}
const settle = (n, isError, text) => {
  const open = pending[n]
  if (open === undefined) return
  delete pending[n]
  const value = parse(text)
  if (!isError) return open.resolve(value)
  const error = new E(value.message)
  if (value.name !== 'Error') define(error, 'name', own(value.name))
  if (value.code !== '') define(error, 'code', own(value.code))
  define(error, 'stack', own(open.stack))
  open.reject(error)
}

define(globalThis, 'tools', own(toolbox))
define(globalThis, 'input', own(parse(inputText)))
define(globalThis, 'console', own(console))
define(globalThis, 'ask', own((message, schema) => (needText(message, 'ask(message, schema?)'), call('ask', 'ask', { message, schema }, 'the argument of ask'))))
define(globalThis, 'describe', own((words) => (needText(words, 'describe(words)'), call('describe', 'describe', { words }, 'the argument of describe'))))
delete globalThis.SharedArrayBuffer
delete globalThis.queueMicrotask
/* It would get the functions of this file. */
define(E, 'prepareStackTrace', { __proto__: null, value: undefined })
Object.freeze(InternalError.prototype)
Object.freeze(InternalError)
return (what, a, b, c) => (what === 'run' ? run(a) : what === 'settle' ? settle(a, b, c) : describeError(a))
})`

/** Scripts that do harm, or try to. */

/** Each recurses until the stack is used up. */
export const recursions: Record<string, string> = {
  call: 'const f = () => f() + 1; f()',
  construct: 'class A { constructor() { new A() } } new A()',
  spread: 'const f = (...a) => f(...a, 1); f()',
  getter: 'const o = { get a() { return this.a } }; o.a',
  setter: 'const o = { set a(v) { this.a = v } }; o.a = 1',
  text: 'const o = { toString() { return "" + this } }; "" + o',
  primitive: 'const o = { [Symbol.toPrimitive]() { return +o } }; +o',
  instance: 'class A { static [Symbol.hasInstance](x) { return x instanceof A } } 1 instanceof A',
  stringify: 'const o = {}; let a = o; for (let i = 0; i < 1e5; i++) a = a.a = {}; JSON.stringify(o)',
  parse: 'JSON.parse("[".repeat(1e5))',
  reviver: 'const f = () => JSON.parse("[1]", f); f()',
  proxy: 'let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.a',
  receiver: 'const o = new Proxy({}, { get: (t, k, r) => r[k] }); o.x',
  sort: 'const f = () => [1, 2].sort(f); f()',
  join: 'let b = []; for (let i = 0; i < 1e5; i++) b = [b]; b.join()',
  flat: 'let b = []; for (let i = 0; i < 1e5; i++) b = [b]; b.flat(Infinity)',
  replace: 'const f = () => "a".replace("a", f); f()',
  generator: 'function* g() { yield* g() } [...g()]',
  evaluate: 'const f = (n) => eval("f(n + 1)"); f(0)',
  parentheses: 'eval("(".repeat(1e5))',
  brackets: 'eval("[".repeat(1e5))',
  arrows: 'eval("x=>".repeat(1e5) + "1")',
  blocks: 'eval("{".repeat(1e5))',
  templates: 'eval("`${".repeat(1e5))',
  powers: 'eval("a" + "**a".repeat(1e5))',
  scopes: 'let f = () => 1; for (let i = 0; i < 1e5; i++) { const g = f; f = () => g() } f()',
  pattern: 'new RegExp("(?:".repeat(1e5) + "a" + ")".repeat(1e5))',
}

/** Each replaces what the code around it might use, calls a tool and returns `{ got: 7, list: [1, 2] }`. */
const works =
  '\nconst got = (await tools.orders({ id: 7 })).id\nconsole.log("a", { b: 1 })\nreturn { got, list: [1, 2] }'
export const replacements: Record<string, string> = {
  stringify: `JSON.stringify = () => '"evil"'; JSON.parse = () => ({ id: 8 })${works}`,
  promises: `Promise.prototype.then = function () { return 'evil' }; Promise.prototype.catch = Promise.prototype.then${works}`,
  species: `Object.defineProperty(Promise, Symbol.species, { get() { throw 1 } }); Promise.resolve = Promise.reject = () => 1; globalThis.Promise = class {}${works}`,
  array: `for (const key of Object.getOwnPropertyNames(Array.prototype)) if (key !== 'length') try { Array.prototype[key] = () => 'evil' } catch {}
    Array.prototype[Symbol.iterator] = function* () { yield 'evil' }; Object.defineProperty(Array.prototype, '0', { set() { throw 'evil' }, get() { return 'evil' }, configurable: true })
    delete Array.prototype[0]${works}`,
  text: `for (const key of ['slice', 'replace', 'split', 'repeat', 'toString', 'valueOf']) String.prototype[key] = () => 'evil'; RegExp.prototype.exec = () => null; RegExp.prototype.test = () => false${works}`,
  functions: `Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => 'evil'; for (const key of Reflect.ownKeys(Reflect)) try { Reflect[key] = () => 'evil' } catch {}${works}`,
  collections: `for (const type of [Map, Set, WeakMap]) for (const key of ['get', 'set', 'has', 'add', 'delete']) if (key in type.prototype) type.prototype[key] = () => 'evil'${works}`,
  descriptors: `const trap = { __proto__: null, get: () => 'evil', set() { throw 'evil' }, configurable: true }
    for (const key of ['get', 'set', 'value', 'writable', 'n', 'stack', 'code', 'resolve', 'reject', 'name', 'message', 'id', 'errors']) Object.defineProperty(Object.prototype, key, trap)
    await tools.search().catch(() => 1)${works}`,
  globals: `for (const key of Reflect.ownKeys(globalThis)) if (!['tools', 'console', 'globalThis'].includes(key)) try { delete globalThis[key] } catch {}${works}`,
  frozen: `for (const key of Reflect.ownKeys(globalThis).filter((key) => key !== 'tools')) { const value = globalThis[key]; if (Object(value) === value) { Object.freeze(value); Object.freeze(value.prototype) } } Object.freeze(globalThis)${works}`,
  errors: `Error.stackTraceLimit = -1; Error.captureStackTrace = null; try { Error.prepareStackTrace = () => { throw 'evil' } } catch {} globalThis.Error = globalThis.TypeError = null${works}`,
  internal: `try { Object.setPrototypeOf(InternalError.prototype, null) } catch {} InternalError = null${works}`,
}

/** Each changes its own value, or fails; nothing else. */
export const forgeries: Record<string, string> = {
  toJson: `Object.prototype.toJSON = () => 'mine'\nreturn { a: 1 }`,
  thenAll: `Object.prototype.then = (resolve) => resolve('mine')\nreturn { a: 1 }`,
  proto: `return JSON.parse('{ "__proto__": { "polluted": true }, "constructor": { "prototype": { "polluted": true } } }')`,
  protoCall: `return await tools.orders(JSON.parse('{ "__proto__": { "polluted": true } }'))`,
  literal: `const o = {}; o.__proto__.polluted = true; o.constructor.prototype.polluted = true\nreturn { a: ({}).polluted }`,
  raw: `return JSON.rawJSON('"a\\\\u0000"')`,
  state: `return { state: 'done', value: '1', id: 1, isBroken: true, error: { code: 'x' }, calls: [{ n: 9, kind: 'tool', name: 'refund', input: '{}' }] }`,
  messages: `const names = ['host', 'enter', 'settle', 'run', 'call', 'pending', 'parentPort', 'postMessage', 'onmessage']\nreturn names.filter((name) => { try { return eval(name) !== undefined } catch { return false } })`,
  callers: `
    const found = []
    const look = new Function('found', 'try { found.push(arguments.callee.caller) } catch {} try { found.push(look.caller) } catch {} return 1')
    const value = { toJSON: () => (look(found), 1) }
    await tools.orders(value)
    const error = new Error(); Object.defineProperty(error, 'message', { get: () => (look(found), 'x') })
    console.log(error)
    return found.filter(Boolean).map(String)`,
  callSites: `
    const found = []
    const see = (_, sites) => { for (const site of sites) for (const name of ['getFunction', 'getThis']) found.push(site[name]?.()); return '' }
    try { Error.prepareStackTrace = see } catch {}
    try { Object.defineProperty(Error, 'prepareStackTrace', { value: see }) } catch {}
    for (const type of [TypeError, RangeError, AggregateError]) try { type.prepareStackTrace = see } catch {}
    try { tools.nothing } catch (e) { void e.stack }
    await tools.orders(1).catch(() => 1)
    const o = {}; Error.captureStackTrace(o); void o.stack
    return found.length`,
  sharedCalls: `const f = tools.orders; return [await f.call(null, 1), await Reflect.apply(f, { n: 99 }, [2]), Object.isFrozen(tools), (() => { try { tools.refund = 1 } catch (e) { return e.name } })(), (() => { try { return new tools.orders() } catch (e) { return e.name } })()]`,
  notTools: `return ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf'].map((name) => { try { return typeof tools[name] } catch (e) { return e.name } })`,
  closed: `return 1 }); globalThis.a = 1; (async () => { return 2`,
  closedTwice: `/*`,
  source: `//# sourceURL=node:fs\nreturn new Error('a').stack.includes('node:fs')`,
  strict: `return [this === undefined || this === globalThis, (function () { return this === undefined })(), typeof arguments]`,
  lone: `return '\\ud800'`,
  nul: `console.log('a\\u0000b'); return await tools.orders('a\\u0000b')`,
  huge: `const o = {}; for (let i = 0; i < 1000; i++) o['k' + i] = i\nreturn Object.keys((await tools.orders(o))).length`,
  lateCalls: `void (async () => { for (;;) await tools.orders() })().catch(() => 1)\nawait tools.orders()\nreturn 1`,
}

/** Each may go on for long without asking anybody, or take much memory at once. */
export const nativeLoops: Record<string, string> = {
  lastIndexOf: 'const s = "a".repeat(2e6) + "b"; return s.lastIndexOf("a".repeat(1e6) + "c")',
  indexOf: 'const s = "a".repeat(2e6); return s.indexOf("a".repeat(1e6) + "c")',
  join: 'return new Array(2 ** 32 - 1).join("ab").length',
  joinEmpty: 'return new Array(2 ** 32 - 1).join("").length',
  fill: 'return new Array(1e9).fill(1).length',
  includes: 'return Array.prototype.includes.call({ length: 2 ** 53 - 1 }, 1)',
  lastOf: 'return Array.prototype.lastIndexOf.call({ length: 2 ** 53 - 1 }, 1)',
  reverse: 'Array.prototype.reverse.call({ length: 2 ** 53 - 1 })',
  copyWithin: 'Array.prototype.copyWithin.call({ length: 2 ** 53 - 1 }, 0, 1)',
  forEach: 'new Array(2 ** 32 - 1).forEach(() => 1)',
  sparse: 'const a = []; a[2 ** 32 - 2] = 1; a.sort(); return a.length',
  from: 'return Array.from({ length: 2 ** 32 }).length',
  pad: 'return "x".padEnd(2 ** 29).length',
  power: 'return String(3n ** (2n ** 22n)).length',
  bigText: 'return (2n ** 2000000n).toString().length',
  bigParse: 'return BigInt("9".repeat(1e6)) > 1n',
  division: 'const a = 3n ** 2000000n; let b = a; for (let i = 0; i < 1000; i++) b = (a * a) / (b + 1n); return 1',
  repeat: 'return new RegExp("(?:a{1,1000}){1,1000}b").test("a".repeat(1e5))',
  backtrack: 'return /(x+x+)+y/.test("x".repeat(1e5))',
  lookbehind: 'return /(?<=(a+)+)b/.test("a".repeat(1e5))',
  replaceAll: 'return "a".repeat(1e6).replaceAll("a", "b".repeat(100)).length',
  split: 'return "a".repeat(5e6).split("").length',
  normalize: 'return "\\u0344".repeat(2e6).normalize("NFD").length',
  upper: 'let s = "\\u0390".repeat(2e6); for (let i = 0; i < 100; i++) s.toUpperCase(); return 1',
  typedSort: 'return new Float64Array(3e6).map((_, i) => -i).sort().length',
  typedHuge: 'return new Uint8Array(2 ** 31).length',
  resize: 'const b = new ArrayBuffer(1, { maxByteLength: 2 ** 31 }); b.resize(2 ** 31 - 1); return b.byteLength',
  sets: 'const s = new Set(); for (let i = 0; ; i++) s.add(i)',
  symbols: 'for (let i = 0; ; i++) Symbol.for("s" + i)',
  keys: 'const o = {}; for (let i = 0; ; i++) o["k" + i] = i',
  closures: 'let f = null; for (;;) { const g = f; f = () => g }',
  text: 'let s = "x"; for (;;) s += s',
  indent:
    'let a = []; for (let i = 0; i < 200; i++) a = [a, a.length]; const big = Array(1e4).fill(a); return JSON.stringify(big, null, "          ").length',
  stringifySame: 'let a = [1]; for (let i = 0; i < 40; i++) a = [a, a]; return JSON.stringify(a).length',
  returnSame: 'let a = [1]; for (let i = 0; i < 40; i++) a = [a, a]; return a',
  callSame: 'let a = [1]; for (let i = 0; i < 40; i++) a = [a, a]; await tools.orders(a)',
  logSame: 'let a = [1]; for (let i = 0; i < 40; i++) a = [a, a]; console.log(a)',
  proxyKeys:
    'return new Proxy({}, { ownKeys: () => Array.from({ length: 1e6 }, (_, i) => "k" + i), getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }), get: () => 1 })',
  jobs: 'for (let i = 0; ; i++) Promise.resolve().then(() => 1)',
  rejections: 'for (let i = 0; ; i++) Promise.reject(i)',
  errors: 'for (;;) try { tools.nothing } catch {}',
  logs: 'for (;;) console.log("x".repeat(1e6))',
  compile: 'for (let i = 0; ; i++) new Function("return " + i + "+ " + "1 + ".repeat(1000) + "1")()',
  evalHuge: 'return eval("[" + "1,".repeat(5e6) + "]").length',
  dates: 'for (let i = 0; ; i++) new Date(i).toLocaleString()',
  generators: 'const g = function* () { for (;;) yield 1 }; return [...g()].length',
  destructure: 'const [...a] = { [Symbol.iterator]: () => ({ next: () => ({ value: 1 }) }) }; return a',
  asyncIterators: 'const g = async function* () { for (;;) yield 1 }; for await (const a of g());',
  finallyLoop: 'const f = () => { try { return f() } finally { f() } }; f()',
  catchLoop: 'const f = () => { try { f() } catch { f() } }; f()',
}

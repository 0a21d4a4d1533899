/** Recordings as an attacker, a faulty program or a bad disk makes them: legal ones, of which something is something else. */
import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { arbitraryNestedRun, arbitraryRun } from '../arbitrary-run.ts'
import { randomOf } from '../support/random.ts'

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
type Lines = { [key: string]: Json }[]

const golden = new URL('../../src/wire/golden/', import.meta.url)

/** Legal runs: those of the golden files, and random ones. */
export function legalRuns(seed: number, random = 40): Lines[] {
  const files = readdirSync(golden).filter((name) => name.endsWith('.ndjson'))
  const recorded = files.map((name) => readFileSync(new URL(name, golden), 'utf8').trim().split('\n'))
  const made = [arbitraryRun, arbitraryNestedRun].flatMap((runs) => fc.sample(runs, { numRuns: random / 2, seed }))
  return [
    ...recorded.map((lines) => lines.map((line) => JSON.parse(line) as Lines[number])),
    ...made.map((entries) => JSON.parse(JSON.stringify(entries)) as Lines),
  ]
}

export interface Mutated {
  text: string
  /** The id that the run has, if it is imported. */
  id: string
}

/** One for each seed: the same for the same. */
export function mutated(legal: readonly Lines[], seed: number): Mutated {
  const random = randomOf(seed)
  const below = (n: number) => Math.floor(random() * n)
  const one = <T>(list: readonly T[]): T => list[below(list.length)]!
  const lines = structuredClone(one(legal)) as Lines
  const id = `run_${seed}`
  const start = lines[0]!
  Object.assign(start, { runId: id, threadId: below(3) === 0 ? 'shared' : `thread_${seed}` })
  for (let n = 1 + below(3); n > 0; n--) change(lines)
  let text = lines.map((line) => `${write(line)}\n`).join('')
  if (below(6) === 0) text = changeText(text)
  const given = lines[0]?.['runId']
  return { text, id: typeof given === 'string' ? given : id }

  function change(all: Lines): void {
    if (all.length === 0) return
    const at = below(all.length)
    switch (below(12)) {
      case 0:
        all.splice(at, 1)
        return renumber(all)
      case 1:
        all.splice(at, 0, structuredClone(one(all)))
        return renumber(all)
      case 2: {
        const other = below(all.length)
        const [a, b] = [all[at]!, all[other]!]
        all[at] = b
        all[other] = a
        return renumber(all)
      }
      case 3:
        all.length = at
        return
      case 4:
        // Into the past, or far into the future.
        for (const line of all.slice(at)) line['timestamp'] = Number(line['timestamp']) + one([-1e12, 1e12, -1, 3e13])
        return
      case 5: {
        // As deep as a path may be, and deeper.
        const deep = Array.from({ length: one([3, 250, 260]) }, () => 'x').join('/')
        const line = all[at]!
        line['step'] = `${JSON.stringify(line['step'])}/${deep}`
        return
      }
      default:
        changeValue(all[at]!)
    }
  }

  function renumber(all: Lines): void {
    // Mostly: an order that is wrong is found at once, and nothing behind it.
    if (below(4) > 0) for (const [i, line] of all.entries()) line['seq'] = i + 1
  }

  function changeValue(line: Lines[number]): void {
    const places: [Json[] | { [key: string]: Json }, string][] = []
    const collect = (value: Json): void => {
      if (typeof value !== 'object' || value === null) return
      for (const key of Object.keys(value)) {
        places.push([value, key])
        collect((value as { [key: string]: Json })[key]!)
      }
    }
    collect(line)
    const [holder, key] = one(places)
    const into = holder as { [key: string]: Json }
    switch (below(8)) {
      case 0:
        delete into[key]
        return
      case 1:
        define(into, one(odd.keys), odd.value(random))
        return
      case 2: {
        // What stands elsewhere.
        const [from, name] = one(places)
        into[key] = structuredClone((from as { [key: string]: Json })[name]!)
        return
      }
      case 3:
        define(into, key, [into[key]!])
        return
      default:
        define(into, key, odd.value(random))
    }
  }

  function changeText(given: string): string {
    const at = below(given.length)
    switch (below(8)) {
      case 0:
        return given.slice(0, at)
      case 1:
        return given.slice(0, at) + one(['\0', '\uFEFF', '\n', '{', '"', '}', '\r', '\u2028', ',']) + given.slice(at)
      case 2:
        return given.replace(/:\d+/u, one([':1e999', ':-1e999', ':1e308', ':01', ':NaN', ':0x10', ':9007199254740993']))
      case 3:
        return given.replaceAll('\n', '\r\n')
      case 4:
        return `${given}${given}`
      case 5:
        return given.replace('{', '{"__proto__":{"type":"run-end","seq":7},')
      case 6:
        return given.replace('{', `{"x":${'['.repeat(3000)}${']'.repeat(3000)},`)
      default:
        return `\uFEFF${given.trimEnd()}`
    }
  }
}

/** Not by assignment: `__proto__` would be lost. */
function define(into: object, key: string, value: Json): void {
  if (Array.isArray(into) && !/^\d+$/u.test(key)) return
  Object.defineProperty(into, key, { value, enumerable: true, configurable: true, writable: true })
}

/** `JSON.stringify` writes own `__proto__` keys as well. */
function write(line: Lines[number]): string {
  return JSON.stringify(line)
}

const odd = {
  keys: [
    '__proto__',
    'constructor',
    'toJSON',
    'toString',
    'then',
    'length',
    'type',
    'seq',
    'firstSeq',
    'step',
    'delta',
    'deltas',
    'offsets',
    'messages',
    'providerMetadata',
    'forkedFrom',
    'parentRunId',
    'previousRunId',
    'items',
    'order',
    'head',
    'error',
    'usage',
    'kind',
    'answer',
    'object',
    'agent',
    'pipeline',
    'toolCallId',
  ],
  value(random: () => number): Json {
    const values: (() => Json)[] = [
      () => null,
      () => true,
      () => false,
      () => 0,
      () => -1,
      () => 1.5,
      () => 2 ** 31,
      () => 2 ** 53,
      () => 1e300,
      () => -1e300,
      () => 5e-324,
      () => '',
      () => '.',
      () => '..',
      () => '../../x',
      () => 'NaN',
      () => 'Infinity',
      () => '-0',
      () => '1e999',
      () => '__proto__',
      () => 'constructor',
      () => 'hasOwnProperty',
      () => '\0',
      () => 'a\nb',
      () => '\ud800',
      () => '\u202Egnp.exe',
      () => '\u2028',
      () => 'x'.repeat(257),
      () => 'x'.repeat(100_000),
      () => 'main/answer',
      () => 'a/b/c',
      () => 'main',
      () => 'run-start',
      () => 'model-call',
      () => 'tool-call',
      () => '2020-01-01T00:00:00Z',
      () => '%s%d%00',
      () => "'; DROP TABLE runs; --",
      () => [],
      () => [null],
      () => [[[]]],
      () => Array.from({ length: 2000 }, (_, i) => i),
      () => ({}),
      () => ({ type: 'text' }),
      () => ({ type: 'text', text: 5 }),
      () => ({ role: 'assistant' }),
      () => ({ role: 'tool', content: [{ type: 'tool-result' }] }),
      () => [{ role: 'user', content: null }],
      () => [{ role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c', toolName: 't' }] }],
      () => ({ code: 5, message: {} }),
      () => ({ inputTokens: '5', outputTokens: null }),
      () => ({ total: {} }),
      () => JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}') as Json,
      () => JSON.parse('{"toJSON":"x","then":"y","length":-1}') as Json,
      () => deep(300),
    ]
    return values[Math.floor(random() * values.length)]!()
  },
}

function deep(levels: number): Json {
  let value: Json = 1
  for (let i = 0; i < levels; i++) value = i % 2 === 0 ? [value] : { a: value }
  return value
}

/** YAML text → test cases, with all faults of the text at their places. */
import { omitUndefined } from '../part/omit-undefined.ts'
import { check, child } from '../pipeline/check.ts'
import { createFaultCollector, PipelineError, type FaultCollector } from '../pipeline/fault.ts'
import { compilePattern, PatternError } from '../pipeline/pattern/pattern.ts'
import { isMap } from '../pipeline/scalars.ts'
import { toTemplate } from '../pipeline/template.ts'
import { parseTree, type Node } from '../pipeline/tree.ts'
import { caseFileSchema, type AnswerInput, type CaseInput, type ExpectInput, type TurnInput } from './case-schema.ts'
import type { CaseFile, Expectation, GivenAnswer, TestCase, TextConditions, TestTurn } from './test-case.ts'
import { ownValue } from '../part/own-value.ts'

const defaultTimeout = 5 * 60_000

/** Throws {@link PipelineError} with every fault. */
export function readCases(text: string, path: string): CaseFile {
  const faults = createFaultCollector(text)
  const root = parseTree(text, faults)
  const parsed = root && check(caseFileSchema, root, faults, 'a file of test cases')
  if (root === undefined || parsed === undefined) {
    if (faults.list().length === 0) faults.add(0, 'the file is empty; it needs "agent:" and "cases:"')
    throw new PipelineError(faults.list())
  }
  const { agent, models, timeout = defaultTimeout } = parsed
  const cases = parsed.cases.map((each, i) => {
    const node = child(child(root, 'cases'), i)!
    const { strict = false, tools = 'recorded' } = { ...omitUndefined(parsed), ...omitUndefined(each) }
    return { ...readCase(each, node, faults), strict, tools }
  })
  refuseTwins(cases, root, faults)
  if (faults.list().length > 0) throw new PipelineError(faults.list())
  return omitUndefined({ path, agent, models, timeout, cases })
}

/** A name in a file name: lower-case letters and digits of any script, with `-` between them. */
export function slugOf(name: string): string {
  const words = name
    .toLowerCase()
    .normalize('NFC')
    .match(/[\p{L}\p{N}_]+/gu)
  const letters = [...(words?.join('-') ?? 'case')].slice(0, 60)
  while (Buffer.byteLength(letters.join('')) > mostBytes) letters.pop()
  return letters.join('')
}

/** A file system takes names of 255 bytes: more is added to this one. */
const mostBytes = 180

function refuseTwins(cases: readonly TestCase[], root: Node, faults: FaultCollector): void {
  const seen = new Map<string, TestCase>()
  for (const [i, each] of cases.entries()) {
    const twin = seen.get(each.slug)
    const node = child(child(child(root, 'cases'), i), 'name')!
    if (twin === undefined) seen.set(each.slug, each)
    else if (twin.name === each.name) faults.add(node.at, `there is another case "${each.name}"; rename one`)
    else faults.add(node.at, `"${each.name}" and "${twin.name}" would share the recording ${each.slug}; rename one`)
  }
}

function readCase(given: CaseInput, node: Node, faults: FaultCollector): Omit<TestCase, 'strict' | 'tools'> {
  const { name, turns } = given
  const own = (['message', 'input', 'answers', 'expect'] as const).filter((key) => given[key] !== undefined)
  if (turns !== undefined) {
    for (const key of own) faults.add(keyAt(node, key), `"${key}" belongs into one of the turns; move it there`)
  }
  const list = turns ?? [given]
  return {
    name,
    slug: slugOf(name),
    line: faults.lineOf(node.at),
    turns: list.map((turn, i) => readTurn(turn, turns === undefined ? node : child(child(node, 'turns'), i)!, faults)),
  }
}

function keyAt(node: Node, key: string): number {
  return (node.kind === 'map' ? node.entries.get(key)?.at : undefined) ?? node.at
}

function readTurn({ message, input, answers = [], expect }: TurnInput, node: Node, faults: FaultCollector): TestTurn {
  const value = typed(child(node, 'input'))
  if (message === undefined && input === undefined) faults.add(node.at, 'missing key "message" (or "input"); add it')
  if (input !== undefined && !isMap(value)) faults.add(keyAt(node, 'input'), '"input" must be a map')
  const rest = isMap(value) ? value : {}
  if (message !== undefined && 'messages' in rest) {
    faults.add(keyAt(node, 'message'), '"input" has messages already; remove "message"')
  }
  return {
    input: message === undefined ? rest : { ...rest, messages: [{ role: 'user', content: message }] },
    answers: answers.flatMap((each, i) => readAnswer(each, child(child(node, 'answers'), i)!, faults) ?? []),
    expect: readExpectation(expect, child(node, 'expect'), faults),
  }
}

const answerKeys = ['approve', 'output', 'error', 'value', 'cancel'] as const

function readAnswer(given: AnswerInput, node: Node, faults: FaultCollector): GivenAnswer | undefined {
  const { tool, approve, reason, error } = given
  const keys = answerKeys.filter((key) => child(node, key) !== undefined)
  const input = typed(child(node, 'input'))
  const about = omitUndefined({ tool })
  const fault = (message: string) => void faults.add(node.at, message)
  if (keys.length !== 1) {
    return fault(
      `an answer needs exactly one of the keys ${answerKeys.join(', ')}; it has ${keys.join(', ') || 'none'}`,
    )
  }
  if (keys[0] !== 'approve' && (reason !== undefined || input !== undefined)) {
    return fault('only an answer with "approve" may have "reason" or "input"; remove it')
  }
  switch (keys[0]) {
    case 'approve':
      return { ...about, kind: 'approval', approved: approve!, ...omitUndefined({ reason, input }) }
    case 'output':
      return { ...about, kind: 'tool', output: typed(child(node, 'output')) }
    case 'error':
      return { ...about, kind: 'tool', output: error!, isError: true }
    case 'value':
      return { ...about, kind: 'input', value: typed(child(node, 'value')) }
    default:
      return { ...about, kind: 'input', cancelled: true }
  }
}

function readExpectation(given: ExpectInput = {}, node: Node | undefined, faults: FaultCollector): Expectation {
  const { outcome = 'completed', error, text, json, tools, steps, budget, judge } = given
  const calls = tools === undefined || Array.isArray(tools) ? tools : tools.calls
  const callsNode = Array.isArray(tools) ? child(node, 'tools') : child(child(node, 'tools'), 'calls')
  const { inOrder = false, only = false } = tools === undefined || Array.isArray(tools) ? {} : tools
  return omitUndefined({
    // A run with an expected error has failed.
    outcome: given.outcome === undefined && error !== undefined ? 'failed' : outcome,
    error,
    text: text === undefined ? undefined : readText(text, child(node, 'text')!, faults),
    json: json && Object.keys(json).map((path) => readJson(path, child(node, 'json')!, faults)),
    tools: calls && {
      inOrder,
      only,
      calls: calls.map(({ name, times }, i) => {
        const input = child(child(callsNode, i), 'input')
        return omitUndefined({ name, times, input: input && typed(input) })
      }),
    },
    steps:
      steps && (Array.isArray(steps) ? { ran: steps, skipped: [] } : { ran: [], skipped: [], ...omitUndefined(steps) }),
    budget: budget && omitUndefined(budget),
    judge: judge && omitUndefined(judge),
  })
}

function readText(text: NonNullable<ExpectInput['text']>, node: Node, faults: FaultCollector): Expectation['text'] {
  const none: TextConditions = { contains: [], matches: [], equals: [] }
  if (typeof text === 'string') return { ...none, contains: [text], not: none }
  const read = (given: Omit<typeof text, 'not'>, at: Node | undefined): TextConditions => {
    const matches = asList(given.matches)
    for (const pattern of matches) checkPattern(pattern, child(at, 'matches')!, faults)
    return { contains: asList(given.contains), matches, equals: asList(given.equals) }
  }
  return { ...read(text, node), not: text.not === undefined ? none : read(text.not, child(node, 'not')) }
}

function checkPattern(pattern: string, node: Node, faults: FaultCollector): void {
  try {
    compilePattern(pattern)
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    faults.add(node.at, `"${pattern}" ${error.message}`)
  }
}

function readJson(path: string, node: Node, faults: FaultCollector): [string, unknown] {
  if (!isPath(path)) faults.add(keyAt(node, path), `"${path}" is not a path; write names and indexes: items[0].price`)
  return [path, typed(child(node, path))]
}

function typed(node: Node | undefined): unknown {
  return node && toTemplate(node)
}

function asList(value: string | string[] | undefined): string[] {
  return value === undefined ? [] : Array.isArray(value) ? value : [value]
}

/** Paths into JSON values: `items[0].price`, `$`, `["a key"]`. */
const step = /^(?:\.?([^.[\]"]+)|\[(\d+)\]|\["([^"]*)"\])/u

function keysOf(path: string): (string | number)[] | undefined {
  let rest = path === '$' ? '' : path.replace(/^\$(?=[.[])/u, '')
  const keys: (string | number)[] = []
  if (rest === '' && path !== '$') return undefined
  while (rest !== '') {
    const [whole, name, index, quoted] = step.exec(rest) ?? []
    if (whole === undefined) return undefined
    keys.push(index === undefined ? (name ?? quoted!) : Number(index))
    rest = rest.slice(whole.length)
  }
  return keys
}

function isPath(path: string): boolean {
  return keysOf(path) !== undefined
}

/** The value at a path; undefined if there is none. `items.0` is the same as `items[0]`. */
export function valueAt(value: unknown, path: string): unknown {
  let at = value
  for (const key of keysOf(path) ?? []) {
    if (Array.isArray(at)) at = (at as unknown[])[Number(key)]
    else at = typeof at === 'object' && at !== null ? ownValue(at as Record<string, unknown>, String(key)) : undefined
  }
  return at
}

/** State shared by the readers of steps: the file's text and faults, and which names are visible where. */
import { child } from './check.ts'
import type { FaultCollector } from './fault.ts'
import { listNames, type Hint } from './nearest.ts'
import type { Fault, Known, Step } from './pipeline.ts'
import type { SkillUse } from './skill-list.ts'
import { splitReferences, type Reference } from './reference.ts'
import { reservedWords } from './schema.ts'
import { type ValueShape, deadEnd, type DeadEnd, listOf, mapOf, scalar, shapeAt } from './shape.ts'
import type { Node } from './tree.ts'

export interface PipelineReader {
  text: string
  faults: FaultCollector
  /** What is no mistake, but not what its author may expect. */
  warnings: Fault[]
  known: Known | undefined
  /** Ids and results are unique in the file. */
  ids: Map<string, Node>
  allResults: Map<string, Node>
  /** Every result of the file, including later ones, with the lists of steps that contain it. */
  declared: ReadonlyMap<string, StepList[]>
  /** The skills of the file, and their offset in it. */
  skills: SkillUse[]
  skillsAt: number
  /** Shape of `$input`, if the file declares it. */
  input: ValueShape | undefined
  /** Known shapes of the values of the steps read so far. */
  shapes: Map<Step, ValueShape | undefined>
  /** Returns the steps without faults, in order, and adds their results to the place. */
  readSteps(list: Node | undefined, owner: string, place: StepScope): Step[]
}

/** A list of steps, and the id of the step that contains it ('' for the file). */
export interface StepList {
  list: Node
  owner: string
}

/**
 * The names that a step may refer to. The lists of a container start with the names visible before it, and results set inside
 * stay local: so it is always clear whether, and how often, a name was set.
 */
export interface StepScope {
  /** With the known shapes of their values. */
  results: Map<string, ValueShape | undefined>
  /** Set later in an enclosing loop, so possibly by the previous round: readable with `?`. */
  rounds: ReadonlySet<string>
  /** `item` and `index` of enclosing loops, with their known shapes. */
  loopNames: ReadonlyMap<string, ValueShape | undefined>
  lists: readonly StepList[]
}

export function enter(place: StepScope, more: Partial<Pick<StepScope, 'rounds' | 'loopNames'>> = {}): StepScope {
  return { ...place, ...more, results: new Map(place.results) }
}

/** The context in which a step type reads its config. */
export interface StepContext {
  reader: PipelineReader
  place: StepScope
  /** The whole step. */
  step: Node
  id: string
}

const none: ReadonlySet<Node> = new Set()

/** Checks the references of a template, except those inside the nodes of `except`. */
export function checkReferences(
  node: Node,
  place: StepScope,
  reader: PipelineReader,
  except: ReadonlySet<Node> = none,
): void {
  if (except.has(node)) return
  if (node.kind === 'list') for (const item of node.items) checkReferences(item, place, reader, except)
  else if (node.kind === 'map') {
    for (const { value } of node.entries.values()) checkReferences(value, place, reader, except)
  } else {
    for (const piece of splitReferences(node.text)) {
      if (typeof piece === 'object') checkReference(piece, node.at, place, inFile(reader, node.file))
    }
  }
}

/** Reports faults of a prompt file with its name, at the place that refers to it. */
function inFile(reader: PipelineReader, file: string | undefined): PipelineReader {
  if (file === undefined) return reader
  const { faults } = reader
  const add: FaultCollector['add'] = (at, message) =>
    faults.add(at, (hint) => `in ${file}: ${typeof message === 'string' ? message : message(hint)}`)
  return { ...reader, faults: { ...faults, add } }
}

export function checkReference(reference: Reference, at: number, place: StepScope, reader: PipelineReader): void {
  const { text, path, optional } = reference
  const { faults, declared } = reader
  const [root, second] = path
  if (root === 'env' && second === undefined) {
    faults.add(at, '$env needs a variable name: $env.NAME')
    return
  }
  if (root === 'user' && !place.results.has(root) && !place.loopNames.has(root)) {
    checkUser(reference, at, reader)
    return
  }
  const name = root === 'stepResult' ? second : root
  const isSet = name === undefined || place.results.has(name)
  if (root === 'input' || root === 'env' || isSet || (root !== 'stepResult' && place.loopNames.has(name))) {
    checkPath(reference, at, place, reader)
    return
  }
  if (place.rounds.has(name)) {
    if (optional) return
    faults.add(at, `${text} has no value in the loop's first round; write ${text}? for the value of the previous round`)
    return
  }
  const known = [...place.results.keys(), ...(root === 'stepResult' ? [] : place.loopNames.keys())]
  const escape = text.includes('.') ? '' : `; write $${text} for a literal dollar sign`
  const list = listNames(known)
  const cure = (hint: Hint) => cureOf(name, hint(name, known), declared.get(name), place)
  faults.add(at, (hint) => `unknown variable ${text}: ${cure(hint)}; known variables: ${list}${escape}`)
}

function cureOf(name: string, meant: string, declared: StepList[] | undefined, { lists }: StepScope): string {
  if (declared !== undefined) {
    const inside = declared.find(({ list }) => !lists.some((outer) => outer.list === list))
    if (inside === undefined || inside.owner === '') return `a later step sets "${name}"; move it before this one`
    const { owner } = inside
    if (lists.some((outer) => outer.owner === owner))
      return `"${name}" is set in another branch of "${owner}"; use it after "${owner}", through its result`
    return `"${name}" is local to "${owner}"; give "${owner}" a result and refer to that`
  }
  if (name === 'item' || name === 'index') return `$${name} exists only inside a loop`
  return `no earlier step has the result "${name}"${meant}`
}

export function itemsOf(node: Node | undefined): Node[] {
  return node?.kind === 'list' ? node.items : []
}

export function textOf(node: Node | undefined): string | undefined {
  return node?.kind === 'scalar' ? node.text : undefined
}

/** The result names that the steps of a list set, without nested lists. */
export function resultsOf(list: Node | undefined): string[] {
  return itemsOf(list).flatMap((step) => textOf(child(step, 'result')) ?? [])
}

/** Refuses `user` as the name of a variable, except in a recorded run. */
export function checkUserName(node: Node | undefined, key: string, { known, faults }: PipelineReader): void {
  if (known !== undefined && textOf(node) === 'user') faults.add(node!.at, `"${key}" ${reservedWords}`)
}

const claim: ValueShape = { kind: 'either', shapes: [scalar.text, scalar.number, scalar.flag] }
const userFields = {
  id: scalar.text,
  tenant: scalar.text,
  name: scalar.text,
  roles: listOf(scalar.text),
} satisfies Record<string, ValueShape>

function shapeOfUser(claims: readonly string[] | undefined): ValueShape {
  return mapOf({ ...userFields, claims: claims && mapOf(Object.fromEntries(claims.map((name) => [name, claim]))) })
}

/** Also with `?`: what is misspelt here has no value for any user. */
function checkUser({ text, path }: Reference, at: number, { known, faults }: PipelineReader): void {
  if (known === undefined) return
  const { claims } = known
  const end = deadEnd(shapeOfUser(claims), path.slice(1))
  if (end === undefined) return
  const owner = ['$user', ...end.seen].join('.')
  if (owner !== '$user.claims' || claims === undefined) {
    faults.add(at, (hint) => `${text} has no value: ${reason(owner, end, hint)}`)
    return
  }
  const { key } = end
  const cure = `add "${key}" to the claims that millrace.config.ts lists`
  faults.add(
    at,
    (hint) => `$user.claims.${key} is not listed${hint(key, claims)}; listed claims: ${listNames(claims)}; ${cure}`,
  )
}

/* Checks the path of a reference whose root is known against the known shape of its value. */

/**
 * Adds a fault for a reference that can never have a value. References with `?` are not checked, nor are those of a recorded
 * run, where no names are known.
 */
function checkPath({ text, path, optional }: Reference, at: number, place: StepScope, reader: PipelineReader): void {
  const { known, faults } = reader
  if (optional || known === undefined) return
  if (path[0] === 'env') {
    const name = path[1]
    const { env } = known
    if (name === undefined || env === undefined || env.includes(name)) return
    const cure = `add "${name}" to "env" in millrace.config.ts`
    faults.add(
      at,
      (hint) => `$env.${name} is not allowed${hint(name, env)}; allowed variables: ${listNames(env)}; ${cure}`,
    )
    return
  }
  const { shape, rest } = rootOf(path, place, reader)
  const end = deadEnd(shape, rest)
  if (end === undefined) return
  const owner = `$${[...path.slice(0, path.length - rest.length), ...end.seen].join('.')}`
  const isInput = owner === '$input'
  faults.add(at, (hint) => `${text} has no value: ${isInput ? undeclared(text, end, hint) : reason(owner, end, hint)}`)
}

function undeclared(text: string, { key, at }: DeadEnd, hint: Hint): string {
  const declared = fieldsOf(at).filter((name) => !always.has(name))
  const cure = `declare it, or write ${text}? if it may be missing`
  return `"input" does not declare "${key}"${hint(key, declared)}; declared keys: ${listNames(declared)}; ${cure}`
}

function reason(owner: string, { key, at }: DeadEnd, hint: Hint): string {
  const fields = fieldsOf(at)
  if (fields.length > 0) return `${owner} has no "${key}"${hint(key, fields)}; known fields: ${listNames(fields)}`
  if (at.some(({ kind }) => kind === 'list')) return `${owner} is a list; use an index, such as ${owner}.0`
  return `${owner} is ${at.map(({ kind }) => words[kind]).join(' or ')}, which has no fields`
}

const words = { text: 'a string', number: 'a number', flag: 'a boolean', null: 'null', list: 'a list', map: 'a map' }

function fieldsOf(at: DeadEnd['at']): string[] {
  return [...new Set(at.flatMap((each) => (each.kind === 'map' ? [...each.fields.keys()] : [])))]
}

/**
 * Keys of `$input` that every request may have, declared or not: the conversation, the client's tools, and the
 * parameters of AG-UI and of the OpenAI protocol.
 */
export const requestKeys = [
  'messages',
  'tools',
  'state',
  'context',
  'forwardedProps',
  'temperature',
  'top_p',
  'max_tokens',
  'max_completion_tokens',
  'stop',
  'seed',
  'presence_penalty',
  'frequency_penalty',
  'user',
  'n',
  'logit_bias',
  'metadata',
  'instructions',
  'ignored',
  'reasoning_effort',
  'response_format',
  'tool_choice',
  'parallel_tool_calls',
  'logprobs',
  'top_logprobs',
  'store',
  'service_tier',
  'modalities',
  'safety_identifier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'best_of',
  'echo',
  'suffix',
] as const

const always: ReadonlySet<string> = new Set(requestKeys)

/** The known shape of the value of a reference, at its place in the file. */
export function shapeOfPath(path: readonly string[], place: StepScope, reader: PipelineReader): ValueShape | undefined {
  const { shape, rest } = rootOf(path, place, reader)
  return shapeAt(shape, rest)
}

/** The shape of the first variable of a reference, and the remaining path. */
function rootOf(
  path: readonly string[],
  { results, loopNames }: StepScope,
  { input, known }: PipelineReader,
): { shape: ValueShape | undefined; rest: readonly string[] } {
  const [root, second, ...more] = path as [string, ...string[]]
  const rest = path.slice(1)
  if (root === 'input') return { shape: input, rest }
  if (root === 'user' && !results.has(root) && !loopNames.has(root)) return { shape: shapeOfUser(known?.claims), rest }
  if (root === 'stepResult') return { shape: results.get(second ?? ''), rest: more }
  return { shape: results.get(root) ?? loopNames.get(root), rest }
}

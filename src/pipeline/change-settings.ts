/**
 * Changes settings of steps in the text of an agent: comments, order and layout of all else stay. Each edit is checked: the new text must say what
 * the old one said, with that one change. Where it would not, because of an anchor or a layout that is not known here, it is refused.
 */
import type { Setting, StepChange } from '../part/agent-settings.ts'
import { equal } from '../part/equal.ts'
import { MillraceError } from '../part/error.ts'
import { ownValue } from '../part/own-value.ts'
import { child } from './check.ts'
import { createFaultCollector } from './fault.ts'
import { listNames } from './nearest.ts'
import { itemsOf, textOf } from './reader.ts'
import { codeToolName } from './steps/script.ts'
import { toText } from './template.ts'
import { parseTree, type Node } from './tree.ts'
import { withEntry, withItem, withoutEntry, withoutItem } from './yaml-edit.ts'

/** Throws `bad-input` for a step that the text does not have, and for a place that has to be changed by hand. */
export function changeSettings(text: string, changes: readonly StepChange[]): string {
  let changed = text
  for (const { step, tools = {}, ...scalars } of changes) {
    for (const key of ['model', 'temperature', 'system'] as const) {
      const value = scalars[key]
      if (value !== undefined) changed = withScalar(changed, step, key, value)
    }
    for (const [name, isOn] of Object.entries(tools)) changed = withTool(changed, step, name, isOn)
  }
  return changed
}

/** Where changed settings stand in the text, in lines from 1. */
export function placesOf(
  text: string,
  changes: readonly StepChange[],
): { step: string; setting: Setting; from: number; to: number }[] {
  const faults = createFaultCollector(text)
  const root = parseTree(text, faults)
  const steps = new Map([...stepsIn(root)].map(({ path, node }) => [path, node]))
  return changes.flatMap(({ step, ...settings }) => {
    const config = child(steps.get(step), 'config')
    if (config?.kind !== 'map') return []
    return (Object.keys(settings) as Setting[]).flatMap((setting) => {
      const at = config.entries.get(setting)?.at
      if (at === undefined) return []
      // Up to the entry behind it.
      const next = [...config.entries.values()].map((entry) => entry.at).find((each) => each > at)
      return [{ step, setting, from: faults.lineOf(at), to: next === undefined ? Infinity : faults.lineOf(next) - 1 }]
    })
  })
}

interface FoundStep {
  path: string
  /** The way to it from the root. */
  keys: (string | number)[]
  node: Node
}

/** The steps of a text in the order of the file. Paths are those of `settingsOf`. */
function* stepsIn(root: Node | undefined): Generator<FoundStep> {
  for (const [key, top] of [
    ['workflow', 'main'],
    ['after', 'after'],
  ] as const)
    yield* inList(child(root, key), top, [key])
}

function* inList(list: Node | undefined, above: string, keys: (string | number)[]): Generator<FoundStep> {
  for (const [i, node] of itemsOf(list).entries()) {
    const path = `${above}/${textOf(child(node, 'id')) ?? ''}`
    const way = [...keys, i]
    yield { path, keys: way, node }
    const config = child(node, 'config')
    for (const name of ['then', 'else', 'steps'])
      yield* inList(child(config, name), `${path}/${name}`, [...way, 'config', name])
    const branches = child(config, 'branches')
    if (branches?.kind !== 'map') continue
    for (const [name, { value }] of branches.entries)
      yield* inList(value, `${path}/${name}`, [...way, 'config', 'branches', name])
  }
}

function stepAt(text: string, step: string): { root: Node; found: FoundStep } {
  const faults = createFaultCollector(text)
  const root = parseTree(text, faults)
  const [fault] = faults.list()
  if (root === undefined || fault !== undefined)
    throw bad(`The file has a mistake in line ${fault?.line ?? 1}: ${fault?.message ?? 'it is empty'}`)
  const all = [...stepsIn(root)]
  const found = all.find(({ path }) => path === step)
  if (found !== undefined) return { root, found }
  throw bad(`The agent has no step "${step}"; its steps: ${listNames(all.map(({ path }) => path))}`)
}

type Scalar = 'model' | 'temperature' | 'system'

function withScalar(text: string, step: string, key: Scalar, value: string | number | null): string {
  const { root, found } = stepAt(text, step)
  const config = child(found.node, 'config')
  const isThere = config?.kind === 'map' && config.entries.has(key)
  if (value === null && !isThere) return text
  const expected = toText(root)
  const settings = settingsIn(expected, found)
  if (value === null) delete settings[key]
  else settings[key] = String(value)
  if (equal(expected, toText(root))) return text
  if (value === null) return checked([withoutEntry(text, config!, key)], expected, step, key)
  if (config?.kind !== 'map')
    return checked(withEntry(text, found.node, 'config', { [key]: value }), expected, step, key)
  return checked(withEntry(text, config, key, value, behind[key]), expected, step, key)
}

/** The keys behind which a new one stands. */
const behind: Readonly<Record<Setting, readonly Setting[]>> = {
  model: [],
  temperature: ['model'],
  system: ['temperature', 'model'],
  tools: ['system', 'temperature', 'model'],
}

function withTool(text: string, step: string, name: string, isOn: boolean): string {
  const { root, found } = stepAt(text, step)
  const config = child(found.node, 'config')
  const list = child(config, 'tools')
  const at = itemsOf(list).findIndex((item) => toolName(item) === name)
  if (at >= 0 === isOn) return text
  const expected = toText(root)
  const settings = settingsIn(expected, found)
  if (!isOn) {
    ;(settings['tools'] as unknown[]).splice(at, 1)
    return checked([withoutItem(text, config!, 'tools', at)], expected, step, 'tools')
  }
  settings['tools'] = [...((settings['tools'] ?? []) as unknown[]), name]
  if (config?.kind !== 'map')
    return checked(withEntry(text, found.node, 'config', { tools: [name] }), expected, step, 'tools')
  if (list?.kind !== 'list')
    return checked(withEntry(text, config, 'tools', [name], behind.tools), expected, step, 'tools')
  return checked([withItem(text, config, 'tools', name)], expected, step, 'tools')
}

/** The name by which a model knows an item of `tools`; of a whole MCP server `mcp:` and its name. */
function toolName(item: Node): string | undefined {
  if (item.kind === 'scalar') return item.text
  const server = textOf(child(item, 'mcp'))
  if (server !== undefined) return `mcp:${server}`
  return textOf(child(item, 'as')) ?? textOf(child(item, 'name')) ?? textOf(child(item, 'agent')) ?? codeToolName
}

/** The config of a step in a file that is plain data. */
function settingsIn(file: unknown, { keys }: FoundStep): Record<string, unknown> {
  const step = keys.reduce<unknown>((value, key) => ownValue(value as Record<string, unknown>, String(key)), file)
  const own = step as Record<string, unknown>
  const { config } = own
  if (typeof config === 'object' && config !== null) return config as Record<string, unknown>
  return (own['config'] = {}) as Record<string, unknown>
}

/** The first of these texts that says what is expected. */
function checked(texts: Iterable<string | undefined>, expected: unknown, step: string, setting: Setting): string {
  for (const text of texts) {
    if (text === undefined) continue
    const faults = createFaultCollector(text)
    const root = parseTree(text, faults)
    if (root !== undefined && faults.list().length === 0 && equal(toText(root), expected)) return text
  }
  throw bad(`"${setting}" of step "${step}" is written in a way that only its author can change: edit the file.`)
}

function bad(message: string): MillraceError {
  return new MillraceError('bad-input', message, { status: 400 })
}

/** What is another one for one chat than in the agent's file: model, temperature, prompt, tools. */
import type { AgentSettings, ChangedText, Setting, StepChange, StepSettings } from '../../../src/part/agent-settings.ts'
import { MillraceError } from '../../../src/part/error.ts'
import { api } from '../../data/client.ts'
import type { OwnYaml } from '../../data/own-yaml.ts'

export type Settings = Omit<StepChange, 'step'>

const order = ['model', 'temperature', 'system', 'tools'] as const satisfies readonly Setting[]
const words: Readonly<Record<Setting, string>> = {
  model: 'model',
  temperature: 'temperature',
  system: 'prompt',
  tools: 'tools',
}

/** `model, prompt` */
export function changedWords(changes: readonly StepChange[], yaml?: OwnYaml): string {
  const settings = order.filter((key) => changes.some((each) => each[key] !== undefined)).map((key) => words[key])
  return [...(typeof yaml === 'string' ? ['YAML'] : []), ...settings].join(', ')
}

/** The step whose settings are meant if nobody says which: the last one that answers. */
export function answeringStep({ steps }: Pick<AgentSettings, 'steps'>): StepSettings | undefined {
  return steps.findLast(({ answers }) => answers) ?? steps.at(-1)
}

/** The changes with one more. What the file says already is none. */
export function withSettings(changes: readonly StepChange[], file: StepSettings, next: Settings): StepChange[] {
  const before = changes.find(({ step }) => step === file.path)
  const { step: _, ...settings } = { step: '', ...before, ...next }
  const left: Settings = {}
  if (settings.model !== undefined && settings.model !== (file.model ?? null)) left.model = settings.model
  if (settings.temperature !== undefined && settings.temperature !== (file.temperature ?? null))
    left.temperature = settings.temperature
  if (settings.system !== undefined && settings.system !== (file.system ?? null)) left.system = settings.system
  const tools = Object.entries({ ...before?.tools, ...next.tools }).filter(
    ([name, isOn]) => isOn !== file.tools.some((tool) => tool.name === name),
  )
  if (tools.length > 0) left.tools = Object.fromEntries(tools)
  const others = changes.filter(({ step }) => step !== file.path)
  return Object.keys(left).length === 0 ? others : [...others, { step: file.path, ...left }]
}

/** The text of an agent, or the given one, with changes. */
export function changedText(
  agentId: string,
  changes: readonly StepChange[],
  { text, signal }: { text?: string; signal?: AbortSignal } = {},
): Promise<ChangedText> {
  const body = { changes, ...(text !== undefined && { text }) }
  return api(`/api/agents/${encodeURIComponent(agentId)}/settings`, {
    method: 'POST',
    body,
    ...(signal && { signal }),
  })
}

/** What a run is sent with: the YAML of the chat, or of the file, with changes. Throws `bad-changes` for what does not fit. */
export async function pipelineOf(agentId: string, changes: readonly StepChange[], yaml: OwnYaml): Promise<OwnYaml> {
  if (changes.length === 0) return yaml
  const { text, faults } = await changedText(agentId, changes, typeof yaml === 'string' ? { text: yaml } : {})
  if (faults.length === 0) return text
  throw new MillraceError('bad-changes', faults.map(({ message }) => message).join('\n'))
}

const prefix = 'millrace-changes:'
const none: readonly StepChange[] = []
const known = new Map<string, readonly StepChange[]>()
const listeners = new Set<() => void>()

/** Kept in this tab for each chat. The same object as long as nothing changes. */
export function readChanges(place: string): readonly StepChange[] {
  const before = known.get(place)
  if (before !== undefined) return before
  const changes = stored(place)
  known.set(place, changes)
  return changes
}

export function keepChanges(place: string, changes: readonly StepChange[]): void {
  known.set(place, changes.length === 0 ? none : changes)
  try {
    if (changes.length === 0) sessionStorage.removeItem(prefix + place)
    else sessionStorage.setItem(prefix + place, JSON.stringify(changes))
  } catch {
    // Without storage they last as long as the page.
  }
  for (const listener of listeners) listener()
}

export function onChanges(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

function stored(place: string): readonly StepChange[] {
  try {
    const value: unknown = JSON.parse(sessionStorage.getItem(prefix + place) ?? '[]')
    return Array.isArray(value) && value.length > 0 ? (value as StepChange[]) : none
  } catch {
    return none
  }
}

/**
 * The columns of the room as its address has them. Each begins with `a`, its agent; what follows up to the next one is its own:
 * `?a=poet&thread=thread_1&a=poet&model=openai:gpt-5&temperature=0.2&without=calculator`.
 */
import type { StepChange } from '../../../../src/part/agent-settings.ts'
import { queryText } from '../../../data/query.ts'
import type { Settings } from '../override.ts'

/** Besides its agent, what is another one than in the agent's file, for the step that answers. */
export interface ColumnSpec extends Settings {
  agent: string
  /** Absent before its first message. */
  thread?: string | undefined
  /** A run of the branch that is shown. */
  run?: string | undefined
}

export const fewestColumns = 2
export const mostColumns = 4

/** Characters of an address that every server takes: prompts for one column are short ones. */
export const longestAddress = 6000

const own: ReadonlySet<string> = new Set('a model temperature system with without thread run'.split(' '))

/** What an address says twice counts the first time, and what cannot be is left out. */
export function columnsIn(search: string): ColumnSpec[] {
  const columns: ColumnSpec[] = []
  for (const [name, value] of new URLSearchParams(search)) {
    const column = columns.at(-1)
    if (name === 'a') {
      if (value !== '') columns.push({ agent: value })
    } else if (column !== undefined) read(column, name, value)
  }
  return columns.slice(0, mostColumns)
}

function read(column: ColumnSpec, name: string, value: string): void {
  switch (name) {
    case 'model':
    case 'system':
      if (column[name] === undefined) column[name] = value === '' ? null : value
      return
    case 'temperature': {
      const n = value === '' ? null : Number(value)
      if (column.temperature === undefined && (n === null || n >= 0)) column.temperature = n
      return
    }
    case 'thread':
    case 'run':
      if (value !== '') column[name] ??= value
      return
    case 'with':
    case 'without':
      for (const tool of value.split(',').filter(Boolean)) column.tools = { ...column.tools, [tool]: name === 'with' }
  }
}

/** The query with other columns; its other parameters stay. */
export function withColumns(search: string, columns: readonly ColumnSpec[]): string {
  const query = new URLSearchParams([...new URLSearchParams(search)].filter(([name]) => !own.has(name)))
  for (const { agent, tools = {}, model, temperature, system, thread, run } of columns) {
    const named = (isOn: boolean) =>
      Object.keys(tools)
        .filter((name) => tools[name] === isOn)
        .join(',') || undefined
    const given = { a: agent, model, temperature, system, with: named(true), without: named(false), thread, run }
    for (const [name, value] of Object.entries(given)) if (value !== undefined) query.append(name, String(value ?? ''))
  }
  return queryText(query)
}

export function besidePath(columns: readonly ColumnSpec[], search = ''): string {
  const text = withColumns(search, columns)
  return text === '' ? '/beside' : `/beside?${text}`
}

/** Where an agent is compared with itself as a chat has changed it. */
export function besideOf(agent: string, changes: readonly StepChange[]): string {
  const [change] = changes
  // A column changes the step that answers, and no other.
  if (change === undefined || changes.length > 1) return besidePath([{ agent }])
  const { step: _, ...settings } = change
  return besidePath([{ agent }, { agent, ...settings }])
}

/** What it changes of its agent. */
export function settingsIn({ model, temperature, system, tools }: ColumnSpec): Settings {
  const all = { model, temperature, system, tools }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

export const noSettings = { model: undefined, temperature: undefined, system: undefined, tools: undefined } as const

/** What a visit without columns enough begins with: two that may be told apart. */
export function firstColumns(
  given: readonly ColumnSpec[],
  { agents, first, canChange }: { agents: readonly string[]; first: string; canChange: boolean },
): ColumnSpec[] {
  const columns = given.length === 0 ? [{ agent: first }] : [...given]
  while (columns.length < fewestColumns) columns.push(nextColumn(columns, { agents, canChange }))
  return columns
}

/** Another column: the agent of the last one, to choose a model for, or one that is not there yet. */
export function nextColumn(
  columns: readonly ColumnSpec[],
  { agents, canChange }: { agents: readonly string[]; canChange: boolean },
): ColumnSpec {
  const { agent } = columns.at(-1)!
  if (canChange) return { agent }
  return { agent: agents.find((id) => columns.every((each) => each.agent !== id)) ?? agent }
}

/**
 * The columns of the room as its address has them. Each begins with `a`, its agent; what follows up to the next one is its own:
 * `?a=poet&thread=thread_1&a=poet&model=openai:gpt-5&temperature=0.2`.
 */
import { queryText } from '../../data/query.ts'

export interface ColumnSpec {
  agent: string
  /** Answers instead of the agent's own model. */
  model?: string | undefined
  temperature?: number | undefined
  /** Its system prompt instead of the agent's own. */
  system?: string | undefined
  /** Absent before its first message. */
  thread?: string | undefined
  /** A run of the branch that is shown. */
  run?: string | undefined
}

export const fewestColumns = 2
export const mostColumns = 4

/** Characters of a query that every server takes: prompts for one column are short ones. */
export const longestQuery = 6000

const texts = ['model', 'system', 'thread', 'run'] as const
const own: ReadonlySet<string> = new Set(['a', 'temperature', ...texts])

/** What an address says twice counts the first time, and what cannot be is left out. */
export function columnsIn(search: string): ColumnSpec[] {
  const columns: ColumnSpec[] = []
  for (const [name, value] of new URLSearchParams(search)) {
    const column = columns.at(-1)
    if (value === '') continue
    if (name === 'a') columns.push({ agent: value })
    else if (column === undefined) continue
    else if (name === 'temperature') column.temperature ??= toTemperature(value)
    else if (isText(name)) column[name] ??= value
  }
  return columns.slice(0, mostColumns).map(withoutNothing)
}

function isText(name: string): name is (typeof texts)[number] {
  return (texts as readonly string[]).includes(name)
}

/** Undefined: no number from 0 to 2. */
export function toTemperature(text: string): number | undefined {
  const n = text.trim() === '' ? NaN : Number(text)
  return n >= 0 && n <= 2 ? n : undefined
}

function withoutNothing(column: ColumnSpec): ColumnSpec {
  return Object.fromEntries(Object.entries(column).filter(([, value]) => value !== undefined)) as unknown as ColumnSpec
}

/** The query with other columns; its other parameters stay. */
export function withColumns(search: string, columns: readonly ColumnSpec[]): string {
  const query = new URLSearchParams([...new URLSearchParams(search)].filter(([name]) => !own.has(name)))
  for (const { agent, model, temperature, system, thread, run } of columns) {
    const given = { a: agent, model, temperature: temperature?.toString(), system, thread, run }
    for (const [name, value] of Object.entries(given)) if (value !== undefined) query.append(name, value)
  }
  return queryText(query)
}

export function besidePath(columns: readonly ColumnSpec[], search = ''): string {
  const text = withColumns(search, columns)
  return text === '' ? '/beside' : `/beside?${text}`
}

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

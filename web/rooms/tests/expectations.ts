/** What a turn of a case expects, as short lines. */
import type { Conditions, Expected } from '../../data/tests.ts'

export interface ExpectedLine {
  what: string
  /** A text as it is written. */
  text?: string
}

export function linesOf({ outcome, error, text, json, tools, steps, budget, judge }: Expected): ExpectedLine[] {
  const lines: ExpectedLine[] = []
  if (error !== undefined) lines.push({ what: 'The run fails with', text: error })
  else if (outcome !== 'completed') lines.push({ what: 'The run ends as', text: outcome })
  if (text !== undefined) lines.push(...conditions(text, ''), ...conditions(text.not, ' not'))
  for (const [path, value] of json ?? []) {
    lines.push({ what: path === '$' ? 'The output is' : `The output has at ${path}`, text: JSON.stringify(value) })
  }
  for (const { name, input, times } of tools?.calls ?? []) {
    const often = times === undefined ? '' : times === 0 ? ' (never)' : times === 1 ? ' (once)' : ` (${times} times)`
    const shown = input === undefined ? name : `${name} ${JSON.stringify(input)}`
    lines.push({ what: `Calls the tool${often}`, text: shown })
  }
  if (tools?.only === true) lines.push({ what: 'Calls no other tool' })
  if (tools?.inOrder === true && tools.calls.length > 1) lines.push({ what: 'In this order' })
  for (const step of steps?.ran ?? []) lines.push({ what: 'The step runs', text: step })
  for (const step of steps?.skipped ?? []) lines.push({ what: 'The step does not run', text: step })
  const { tokens, usd, seconds, steps: calls } = budget ?? {}
  if (tokens !== undefined) lines.push({ what: `At most ${tokens} tokens` })
  if (usd !== undefined) lines.push({ what: `At most $${usd}` })
  if (seconds !== undefined) lines.push({ what: `At most ${seconds} s` })
  if (calls !== undefined) lines.push({ what: `At most ${calls} calls of models and tools` })
  if (judge !== undefined) {
    lines.push({ what: `The agent ${judge.agent} gives at least ${judge.threshold}`, ...asked(judge.question) })
  }
  return lines.length === 0 ? [{ what: 'The run completes' }] : lines
}

function asked(question: string | undefined): { text?: string } {
  return question === undefined ? {} : { text: question }
}

function conditions({ contains, matches, equals }: Conditions, not: '' | ' not'): ExpectedLine[] {
  const does = not === '' ? 'The answer' : 'The answer does not'
  const verb = (plain: string, after: string) => `${does} ${not === '' ? plain : after}`
  return [
    ...equals.map((text) => ({ what: not === '' ? 'The answer is exactly' : 'The answer is not', text })),
    ...contains.map((text) => ({ what: verb('contains', 'contain'), text })),
    ...matches.map((text) => ({ what: verb('matches', 'match'), text: `/${text}/` })),
  ]
}

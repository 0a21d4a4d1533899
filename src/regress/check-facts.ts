/** Compares the facts of a run with the expectations. */
import { omitUndefined } from '../part/omit-undefined.ts'
import { ownValue } from '../part/own-value.ts'
import { isUnder } from '../part/path.ts'
import { equal } from '../part/equal.ts'
import { listNames } from '../pipeline/nearest.ts'
import { compilePattern, fullBudget } from '../pipeline/pattern/pattern.ts'
import { isMap } from '../pipeline/scalars.ts'
import type { Facts, ToolFact } from './facts.ts'
import type { Failure } from '../part/test-result.ts'
import { valueAt } from './read-cases.ts'
import type { Expectation, ExpectedCall, TextConditions } from './test-case.ts'

/** All failures; empty if everything holds. The judge is asked elsewhere. */
export function checkFacts(expected: Expectation, facts: Facts): Failure[] {
  return [
    ...checkOutcome(expected, facts),
    ...checkText(expected, facts),
    ...checkJson(expected, facts),
    ...checkTools(expected, facts),
    ...checkSteps(expected, facts),
    ...checkBudget(expected, facts),
  ]
}

function* checkOutcome({ outcome, error: code }: Expectation, { outcome: got, error }: Facts): Generator<Failure> {
  const why = error === undefined ? '' : ` (${error.code}: ${error.message})`
  if (got !== outcome) yield { what: 'outcome', message: `the run has ${ended(got)}${why}`, expected: outcome, got }
  else if (code !== undefined && error?.code !== code) {
    yield {
      what: 'error',
      message: `the run has failed with another error${why}`,
      ...omitUndefined({ expected: code, got: error?.code }),
    }
  }
}

function ended(status: string): string {
  return status === 'completed' || status === 'failed' ? status : `ended as ${status}`
}

function* checkText({ text }: Expectation, { text: got }: Facts): Generator<Failure> {
  if (text === undefined) return
  yield* holding(text, got, true)
  yield* holding(text.not, got, false)
}

function* holding({ contains, matches, equals }: TextConditions, got: string, wanted: boolean): Generator<Failure> {
  const not = wanted ? 'does not' : 'must not'
  const fail = (message: string, expected: string): Failure => ({
    what: 'text',
    message: `the answer ${not} ${message}`,
    ...(wanted ? { expected, got } : { got }),
  })
  for (const each of contains) {
    if (got.includes(each) !== wanted) yield fail(`contain ${quote(each)}`, each)
  }
  for (const each of matches) {
    if (compilePattern(each).test(got, { left: fullBudget }) !== wanted) yield fail(`match /${each}/`, each)
  }
  for (const each of equals) {
    if ((got.trim() === each.trim()) !== wanted) yield fail(`equal ${quote(each)}`, each)
  }
}

function* checkJson({ json = [] }: Expectation, { output }: Facts): Generator<Failure> {
  for (const [path, expected] of json) {
    const got = valueAt(output, path)
    if (equal(got, expected)) continue
    const message =
      output === undefined
        ? 'there is no output, and the answer is not JSON'
        : got === undefined
          ? `the output has nothing at ${path}`
          : `the output has another value at ${path}`
    yield { what: 'json', message, expected, ...(got === undefined ? { got: output } : { got }) }
  }
}

function* checkTools({ tools }: Expectation, { tools: made }: Facts): Generator<Failure> {
  if (tools === undefined) return
  const { calls, inOrder, only } = tools
  let at = 0
  for (const call of calls) {
    const fitting = made.filter((each) => fits(call, each))
    const { times } = call
    if (times !== undefined && fitting.length !== times) {
      const message = `${describe(call)} was called ${count(fitting.length)}, not ${count(times)}`
      yield { what: 'tools', message, got: shown(made) }
    } else if (times === undefined && fitting.length === 0) {
      const named = made.filter(({ name }) => name === call.name)
      yield named.length === 0
        ? { what: 'tools', message: `${call.name} was not called`, got: shown(made) }
        : {
            what: 'tools',
            message: `${call.name} was called with other arguments`,
            expected: call.input,
            got: named.length === 1 ? named[0]!.input : shown(named),
          }
    } else if (inOrder && fitting.length > 0) {
      const next = made.findIndex((each, i) => i >= at && fits(call, each))
      if (next < 0)
        yield {
          what: 'tools',
          message: `${describe(call)} was called too early`,
          expected: calls.map(({ name }) => name),
          got: made.map(({ name }) => name),
        }
      else at = next + 1
    }
  }
  const others = only ? made.filter((each) => !calls.some((call) => fits(call, each))) : []
  if (others.length > 0)
    yield {
      what: 'tools',
      message: `other tools were called: ${listNames(new Set(others.map(({ name }) => name)))}`,
      got: shown(others),
    }
}

function fits({ name, input }: ExpectedCall, call: ToolFact): boolean {
  return call.name === name && (input === undefined || holds(input, call.input))
}

/** Whether maps have at least the expected keys, and everything else is equal. */
function holds(expected: unknown, got: unknown): boolean {
  if (Array.isArray(expected)) {
    return Array.isArray(got) && got.length === expected.length && expected.every((each, i) => holds(each, got[i]))
  }
  if (!isMap(expected)) return equal(expected, got)
  return (
    isMap(got) &&
    Object.entries(expected).every(([key, each]) => Object.hasOwn(got, key) && holds(each, ownValue(got, key)))
  )
}

function describe({ name, input }: ExpectedCall): string {
  return input === undefined ? name : `${name} with ${JSON.stringify(input)}`
}

function shown(calls: readonly ToolFact[]): unknown {
  return calls.map(({ name, input }) => ({ name, input }))
}

function count(times: number): string {
  return times === 1 ? 'once' : `${times} times`
}

function* checkSteps({ steps }: Expectation, { steps: ran }: Facts): Generator<Failure> {
  if (steps === undefined) return
  const known = ran.filter((path) => !/\/\d+$/u.test(path)).map((path) => path.replace(/^main\//u, ''))
  for (const step of steps.ran) {
    if (!hasRun(step, ran)) yield { what: 'steps', message: `the step ${step} has not run`, got: known }
  }
  for (const step of steps.skipped) {
    if (hasRun(step, ran)) yield { what: 'steps', message: `the step ${step} has run`, got: known }
  }
}

/** A step is named by its id, or by the end of its path. */
function hasRun(step: string, paths: readonly string[]): boolean {
  return paths.some((path) => path === step || path.endsWith(`/${step}`) || isUnder(path, step))
}

function* checkBudget({ budget }: Expectation, { usage, cost, seconds, calls }: Facts): Generator<Failure> {
  if (budget === undefined) return
  const { tokens, usd, seconds: time, steps } = budget
  const total = usage.totalTokens ?? (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0)
  const over = (got: number, most: number | undefined, unit: string): Failure[] =>
    most === undefined || got <= most
      ? []
      : [{ what: 'budget', message: `the run took ${got} ${unit}, more than ${most}`, expected: most, got }]
  yield* over(total, tokens, 'tokens')
  if (usd !== undefined && cost === undefined) {
    yield { what: 'budget', message: 'the cost is unknown: add the price of the model to "pricing" in the config' }
  } else yield* over(cost ?? 0, usd, 'USD')
  yield* over(seconds, time, 'seconds')
  yield* over(calls, steps, 'model and tool calls')
}

function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text)
}

/** What a fork may change: see decisions/0023. Throws `bad-fork`, which names the place at which the change would count. */
import { MillraceError } from '../part/error.ts'
import { parentPath } from '../part/path.ts'
import type { RunState } from '../engine/state.ts'
import { containers } from '../engine/step.ts'
import type { Pipeline, Step } from '../pipeline/pipeline.ts'
import { checkRunInput } from './check-run-input.ts'
import type { Agent } from './runtime.ts'

interface Point {
  at: number
  state: RunState
  /** The last entry before a step started. */
  before(step: string): number | undefined
}

/** The steps of the file that have started, by their paths: `main/<id>` and `after/<id>`. */
function started({ state }: Point): string[] {
  return [...state.steps.keys()].filter((path) => parentPath(parentPath(path)) === '' && parentPath(path) !== '')
}

function fail(message: string): MillraceError {
  return new MillraceError('bad-fork', message, { status: 400 })
}

/** The agent must find the steps that have started: their values are those of the log. */
export function checkForkAgent({ id, pipeline }: Agent, own: Pipeline | undefined, point: Point): void {
  for (const path of started(point)) {
    const name = path.slice(path.indexOf('/') + 1)
    const step = find(pipeline, path, name)
    const before = own && find(own, path, name)
    const cure = `Fork at ${point.before(path) ?? 1}, before it, or start the agent with: millrace run ${id}`
    if (step === undefined) {
      throw fail(`By entry ${point.at} step "${name}" has started, and the agent "${id}" has no such step. ${cure}`)
    }
    if (before === undefined) continue
    if (step.type !== before.type) {
      throw fail(`By entry ${point.at} step "${name}" has started as ${before.type}, and is ${step.type} now. ${cure}`)
    }
    if (answering(step) !== answering(before)) {
      throw fail(
        `By entry ${point.at} step "${name}" has started, and "stream" or "output" is not the same now. ${cure}`,
      )
    }
    // The calls in the middle need their tools as they were.
    if (point.state.open.steps.has(path) && toolsOf(step) !== toolsOf(before)) {
      throw fail(`At entry ${point.at} step "${name}" is in the middle, and its tools are not the same now. ${cure}`)
    }
    // What is inside is found by its path, and a value is computed again from it.
    if (containers.has(step.type) && !isSame(step, before)) {
      throw fail(`By entry ${point.at} step "${name}" has started, and what is inside it is not the same now. ${cure}`)
    }
  }
}

/** What the start of a step says about its answer. */
function answering({ type, config }: Step): string {
  const { stream, output, answer } = config as { stream?: unknown; output?: unknown; answer?: unknown }
  return JSON.stringify([type, stream, output !== undefined, answer])
}

function toolsOf({ type, config }: Step): string {
  return JSON.stringify([type, (config as { tools?: unknown }).tools])
}

function find({ workflow, after }: Pipeline, path: string, id: string): Step | undefined {
  return (path.startsWith('after/') ? after : workflow).find((step) => step.id === id)
}

/** Without where it stands in the file. */
function isSame(a: Step, b: Step): boolean {
  const text = (step: Step) => JSON.stringify(step, (key, value: unknown) => (key === 'line' ? undefined : value))
  return text(a) === text(b)
}

/** The input for what starts later. Also throws `bad-input` for what the agent does not take. */
export function checkForkInput(
  pipeline: Pipeline,
  given: Record<string, unknown>,
  point: Point,
): Record<string, unknown> {
  const { state, at } = point
  const merged = checkRunInput(pipeline, { ...state.input, ...given })
  const all = [...pipeline.workflow.map(({ id }) => `main/${id}`), ...pipeline.after.map(({ id }) => `after/${id}`)]
  if (all.every((path) => state.finished.has(path))) {
    throw fail(
      `By entry ${at} every step has finished, so another input changes nothing. Fork earlier: at 1, all begin.`,
    )
  }
  const telling = 'messages' in given ? openLoop(state) : undefined
  if (telling !== undefined) {
    const cure = `Fork at ${point.before(telling) ?? 1}, before it.`
    throw fail(`By entry ${at} step ${telling} has told its model the messages already. ${cure}`)
  }
  return Object.fromEntries(Object.entries(merged).filter(([key]) => Object.hasOwn(given, key)))
}

/** A step in the middle of its model calls. */
function openLoop({ open, loops }: RunState): string | undefined {
  return [...open.steps.keys()].find((path) => loops.get(path)?.base !== undefined)
}

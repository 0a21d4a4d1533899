import { compact } from '../part/compact.ts'
import { check, child } from './check.ts'
import { checkStepType } from './names.ts'
import type { Step } from './pipeline.ts'
import { checkReferences, itemsOf, textOf, type Place, type Reader } from './reader.ts'
import { step as stepSchema } from './schema.ts'
import type { Shape } from './shape.ts'
import { shapeOfStep } from './step-shape.ts'
import { stepTypes, type StepBody } from './step-types.ts'
import { toTemplate } from './template.ts'
import type { Node } from './tree.ts'

/** Returns the steps of a list that have no faults, and adds their results to `place.results` in order. */
export function readSteps(list: Node | undefined, owner: string, place: Place, reader: Reader): Step[] {
  if (list === undefined) return []
  const here: Place = { ...place, lists: [...place.lists, { list, owner }] }
  return itemsOf(list).flatMap((node) => readStep(node, here, reader) ?? [])
}

function readStep(node: Node, place: Place, reader: Reader): Step | undefined {
  const { faults, known } = reader
  const type = child(node, 'type')
  const stepType = stepTypes.get(textOf(type) ?? '')
  // A config key on the step itself is misplaced, not misspelt.
  const misplaced = new Set(
    node.kind === 'map' ? [...node.entries.keys()].filter((key) => isConfigKey(key, stepType?.config().shape)) : [],
  )
  const base = check(stepSchema, node, faults, 'a step', (key) => (misplaced.has(key) ? 'inside "config"' : undefined))
  checkUnique(child(node, 'id'), 'id', reader.ids, reader)
  if (type && known) checkStepType(type, known, faults)
  const body = misplaced.size > 0 ? undefined : readBody(node, place, reader)
  // Only now, because a step does not see its own result.
  // The shape of a value is unknown if a handler has replaced the built-in type.
  const isReplaced = body !== undefined && reader.known?.replaced?.includes(body.type)
  const shape = body && !isReplaced ? shapeOfStep(body, child(node, 'config'), place, reader) : undefined
  readResult(child(node, 'result'), shape, place, reader)
  if (base === undefined || body === undefined) return undefined
  const { id, result, budget, timeouts } = base
  const step: Step = compact({ id, result, line: faults.lineOf(node.at), budget, timeouts, ...body })
  reader.shapes.set(step, shape)
  return step
}

function isConfigKey(key: string, shape: object | undefined): boolean {
  return shape !== undefined && Object.hasOwn(shape, key) && !Object.hasOwn(stepSchema.shape, key)
}

function readBody(node: Node, place: Place, reader: Reader): StepBody | undefined {
  const name = textOf(child(node, 'type'))
  const config = child(node, 'config')
  const stepType = stepTypes.get(name ?? '')
  if (stepType === undefined) {
    if (config) checkReferences(config, place, reader)
    return name === undefined ? undefined : { type: 'custom', stepType: name, config: config ? toTemplate(config) : {} }
  }
  const nothing: Node = { kind: 'map', entries: new Map(), at: node.at, size: 1, height: 1 }
  const body = stepType.read(config ?? nothing, { reader, place, step: node, id: textOf(child(node, 'id')) ?? '' })
  for (const key of ['budget', 'timeouts'] as const) {
    const inside = child(config, key)
    if (inside && child(node, key)) {
      reader.faults.add(inside.at, `"${key}" is set in "config" and on the step; remove one of the two`)
    }
  }
  return body
}

function readResult(node: Node | undefined, shape: Shape | undefined, place: Place, reader: Reader): void {
  const name = textOf(node)
  if (node === undefined || name === undefined || name === '') return
  checkUnique(node, 'result', reader.allResults, reader)
  if (place.loopNames.has(name)) {
    reader.faults.add(node.at, `the result "${name}" would hide the loop's $${name}; choose another name`)
  }
  place.results.set(name, shape)
}

function checkUnique(node: Node | undefined, what: string, seen: Map<string, Node>, { faults }: Reader): void {
  const name = textOf(node)
  if (node === undefined || name === undefined || name === '') return
  const first = seen.get(name)
  if (first) {
    faults.add(node.at, `duplicate ${what} "${name}" (first on line ${faults.lineOf(first.at)}); rename one of the two`)
  } else seen.set(name, node)
}

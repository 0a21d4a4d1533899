/**
 * YAML text → a checked {@link Pipeline}.
 *
 * text → tree with places (tree.ts) → typed constructs (schema.ts and steps/ through check.ts) → names and references. Each
 * stage adds its faults and continues with the rest, so that authors see all faults at once.
 */
import { check, child } from './check.ts'
import { createFaultCollector, PipelineError } from './fault.ts'
import { inlineFiles } from './inline-files.ts'
import { type ReadText, refuseSecrets } from './inlined.ts'
import type { Fault, Known, Pipeline, Step } from './pipeline.ts'
import type { SkillUse } from './skill-list.ts'
import { readShapes } from './read-shape.ts'
import {
  requestKeys,
  checkReferences,
  checkUserName,
  textOf,
  type StepScope,
  type PipelineReader,
  type StepList,
  itemsOf,
} from './reader.ts'
import { shapeOfSchema, type ValueShape } from './shape.ts'
import type { ValueSchema } from './value-schema.ts'
import { file, step as stepSchema } from './schema.ts'
import { walkSteps, stepTypes, type StepBody } from './step-types.ts'
import { toTemplate } from './template.ts'
import { parseTree, type Node } from './tree.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import { checkStepType } from './names.ts'
import { shapeOfStep } from './step-shape.ts'

export { formatFaults, PipelineError } from './fault.ts'

/**
 * Throws {@link PipelineError} with every fault of the text. Without `known` (a resumed run) the names of step types, tools,
 * callbacks, providers and agents are not checked. Limits: 1 MB, 100,000 values counting aliases, 100 levels.
 * `readText` reads prompt files; `text` of the pipeline then contains their contents.
 */
export function parsePipeline(text: string, known?: Known, readText?: ReadText): Pipeline {
  if (typeof text !== 'string') {
    throw new PipelineError([{ line: 1, column: 1, message: 'an agent must be a string of YAML' }])
  }
  const faults = createFaultCollector(text)
  if (known?.secrets !== undefined) refuseSecrets(text, known.secrets, faults)
  // Report secrets alone: the message of another fault could quote a part of one.
  if (faults.list().length > 0) throw new PipelineError(faults.list())
  const root = parseTree(text, faults)
  const warnings: Fault[] = []
  const inlined = root && inlineFiles(text, root, { faults, readText, secrets: known?.secrets }, warnings)
  const pipeline = root && readFile(text, root, { faults, warnings, known })
  if (root === undefined && faults.list().length === 0) {
    faults.add(0, 'the file is empty; an agent needs at least "workflow:" with one step')
  }
  const found = faults.list()
  if (found.length > 0 || pipeline === undefined) throw new PipelineError(found)
  const checked = warnings.length === 0 ? pipeline : { ...pipeline, warnings }
  return inlined === undefined || inlined === text ? checked : { ...checked, text: inlined, source: text }
}

function readFile(
  text: string,
  root: Node,
  { faults, warnings, known }: Pick<PipelineReader, 'faults' | 'warnings' | 'known'>,
): Pipeline | undefined {
  if (root.kind === 'scalar' && root.text === '') {
    faults.add(root.at, 'the file is empty; an agent needs at least "workflow:" with one step')
    return undefined
  }
  const parsed = check(file, root, faults, 'an agent file')
  const reader: PipelineReader = {
    text,
    faults,
    warnings,
    known,
    ids: new Map(),
    allResults: new Map(),
    input: undefined,
    skills: (parsed?.skills ?? []).filter((skill): skill is SkillUse => typeof skill !== 'string'),
    skillsAt: child(root, 'skills')?.at ?? 0,
    shapes: new Map(),
    declared: declaredResults(['workflow', 'after'].flatMap((key) => child(root, key) ?? [])),
    readSteps: (list, owner, place) => readSteps(list, owner, place, reader),
  }
  const place: StepScope = { results: new Map(), rounds: new Set(), loopNames: new Map(), lists: [] }
  const shape = child(root, 'input')
  const input = shape?.kind === 'map' ? readShapes(shape, faults) : undefined
  reader.input = inputShape(input)
  const workflow = readSteps(child(root, 'workflow'), '', place, reader)
  const template = child(root, 'return')
  if (template) checkReferences(template, { ...place, lists: topLists(root) }, reader)
  const after = readSteps(child(root, 'after'), '', place, reader)
  if (parsed === undefined) return undefined
  const outcome = child(root, 'output')
  const output = outcome?.kind === 'map' ? readShapes(outcome, faults) : undefined
  const { input: _, return: __, output: ___, skills: ____, ...rest } = parsed
  const pipeline: Pipeline = { ...rest, text, workflow, after }
  if (input) pipeline.input = input
  if (reader.skills.length > 0) pipeline.skills = reader.skills
  if (template) pipeline.return = toTemplate(template)
  if (output) pipeline.output = output
  return pipeline
}

/** The declared keys and those that every request may have. */
function inputShape(schema: ValueSchema | undefined): ValueShape | undefined {
  const shape = shapeOfSchema(schema)
  if (shape?.kind !== 'map') return shape
  const always = requestKeys.map((key) => [key, undefined] as const)
  return { kind: 'map', fields: new Map([...always, ...shape.fields]) }
}

function declaredResults(lists: readonly Node[]): Map<string, StepList[]> {
  const declared = new Map<string, StepList[]>()
  for (const list of lists) {
    for (const { step, lists: inside } of walkSteps([{ list, owner: '' }])) {
      const name = textOf(child(step, 'result'))
      if (name !== undefined) declared.set(name, [...inside])
    }
  }
  return declared
}

function topLists(root: Node): StepList[] {
  return ['workflow', 'after'].flatMap((key) => child(root, key) ?? []).map((list) => ({ list, owner: '' }))
}

/** Returns the steps of a list that have no faults, and adds their results to `place.results` in order. */
function readSteps(list: Node | undefined, owner: string, place: StepScope, reader: PipelineReader): Step[] {
  if (list === undefined) return []
  const here: StepScope = { ...place, lists: [...place.lists, { list, owner }] }
  return itemsOf(list).flatMap((node) => readStep(node, here, reader) ?? [])
}

function readStep(node: Node, place: StepScope, reader: PipelineReader): Step | undefined {
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
  const step: Step = omitUndefined({ id, result, line: faults.lineOf(node.at), budget, timeouts, ...body })
  reader.shapes.set(step, shape)
  return step
}

function isConfigKey(key: string, shape: object | undefined): boolean {
  return shape !== undefined && Object.hasOwn(shape, key) && !Object.hasOwn(stepSchema.shape, key)
}

function readBody(node: Node, place: StepScope, reader: PipelineReader): StepBody | undefined {
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

function readResult(
  node: Node | undefined,
  shape: ValueShape | undefined,
  place: StepScope,
  reader: PipelineReader,
): void {
  const name = textOf(node)
  if (node === undefined || name === undefined || name === '') return
  checkUserName(node, 'result', reader)
  checkUnique(node, 'result', reader.allResults, reader)
  if (place.loopNames.has(name)) {
    reader.faults.add(node.at, `the result "${name}" would hide the loop's $${name}; choose another name`)
  }
  place.results.set(name, shape)
}

function checkUnique(node: Node | undefined, what: string, seen: Map<string, Node>, { faults }: PipelineReader): void {
  const name = textOf(node)
  if (node === undefined || name === undefined || name === '') return
  const first = seen.get(name)
  if (first) {
    faults.add(node.at, `duplicate ${what} "${name}" (first on line ${faults.lineOf(first.at)}); rename one of the two`)
  } else seen.set(name, node)
}

/**
 * YAML text → a checked {@link Pipeline}.
 *
 * text → tree with places (tree.ts) → typed constructs (schema.ts through check.ts) → names and references. Each stage adds
 * its faults and goes on with what it can, so that a file's author sees all of them at once.
 */
import { check, child } from './check.ts'
import { createFaultCollector, PipelineError, type FaultCollector } from './fault.ts'
import { didYouMean, listNames } from './nearest.ts'
import { builtinSteps, checkLlmNames, checkStepType } from './names.ts'
import type { Known, Pipeline, Step } from './pipeline.ts'
import { splitReferences, type Reference } from './reference.ts'
import { file, llmConfig, outputConfig, step as stepSchema } from './schema.ts'
import { toTemplate } from './template.ts'
import { parseTree, type Node } from './tree.ts'

export { formatFaults, PipelineError } from './fault.ts'

/**
 * Throws {@link PipelineError} with every fault of the text. Without `known` (a recorded run that goes on) the names of
 * step types, tools, callbacks and providers are not checked. Limits: 1 MB, 100,000 values with aliases, 100 levels.
 */
export function parsePipeline(text: string, known?: Known): Pipeline {
  const faults = createFaultCollector(text)
  const root = parseTree(text, faults)
  const pipeline = root && readFile(text, root, faults, known)
  if (root === undefined && faults.list().length === 0) {
    faults.add(0, 'the file is empty; an agent needs at least "workflow:" with one step')
  }
  const found = faults.list()
  if (found.length > 0 || pipeline === undefined) throw new PipelineError(found)
  return pipeline
}

interface Reader {
  faults: FaultCollector
  known: Known | undefined
  ids: Map<string, Node>
  results: Map<string, Node>
  /** Every result name of the file, also those that come later: to tell a typo from a wrong order. */
  allResults: ReadonlySet<string>
}

function readFile(text: string, root: Node, faults: FaultCollector, known: Known | undefined): Pipeline | undefined {
  if (root.kind === 'scalar' && root.text === '') {
    faults.add(root.at, 'the file is empty; an agent needs at least "workflow:" with one step')
    return undefined
  }
  const parsed = check(file, root, faults, 'an agent file')
  const stepNodes = [...itemsOf(child(root, 'workflow')), ...itemsOf(child(root, 'after'))]
  const reader: Reader = {
    faults,
    known,
    ids: new Map(),
    results: new Map(),
    allResults: new Set(stepNodes.flatMap((node) => textOf(child(node, 'result')) ?? [])),
  }
  const workflow = itemsOf(child(root, 'workflow')).map((node) => readStep(node, reader))
  const template = child(root, 'return')
  if (template) checkReferences(template, reader)
  const after = itemsOf(child(root, 'after')).map((node) => readStep(node, reader))
  if (parsed === undefined) return undefined
  const pipeline: Pipeline = { ...parsed, text, workflow: workflow.flat(), after: after.flat() }
  if (template) pipeline.return = toTemplate(template)
  return pipeline
}

/** The step, or an empty list when it has faults. */
function readStep(node: Node, reader: Reader): Step | [] {
  const { faults, known } = reader
  const base = check(stepSchema, node, faults, 'a step')
  checkUnique(child(node, 'id'), 'id', reader.ids, reader)
  const type = child(node, 'type')
  const config = child(node, 'config')
  if (type && known) checkStepType(type, known, faults)
  if (config) checkReferences(config, reader)
  const step = readConfig(textOf(type), config, node, reader)
  // Only now: a step does not see its own result.
  checkUnique(child(node, 'result'), 'result', reader.results, reader)
  if (base === undefined || step === undefined) return []
  const { id, result } = base
  return { id, ...(result === undefined ? {} : { result }), line: faults.lineOf(node.at), ...step }
}

type StepConfig = Step extends infer S ? (S extends Step ? Omit<S, 'id' | 'result' | 'line'> : never) : never

function readConfig(
  type: string | undefined,
  config: Node | undefined,
  step: Node,
  reader: Reader,
): StepConfig | undefined {
  const { faults, known } = reader
  const node: Node = config ?? { kind: 'map', entries: new Map(), at: step.at, size: 1, height: 1 }
  switch (type as (typeof builtinSteps)[number] | undefined) {
    case undefined:
      return undefined
    case 'llm': {
      const parsed = check(llmConfig, node, faults, 'the config of an llm step')
      if (known) checkLlmNames(node, known, faults)
      const options = child(node, 'providerOptions')
      if (parsed && options) parsed.providerOptions = toTemplate(options) as typeof parsed.providerOptions
      return parsed && { type: 'llm', config: parsed }
    }
    case 'output-generator': {
      const parsed = check(outputConfig, node, faults, 'the config of an output-generator')
      const template = child(node, 'template')
      if (parsed && (template === undefined) === (parsed.json === undefined)) {
        faults.add(
          node.at,
          'an output-generator takes either "template" or "json" in its config; give it one of the two',
        )
      }
      if (parsed === undefined) return undefined
      return {
        type: 'output-generator',
        config: template ? { template: toTemplate(template) } : { json: parsed.json ?? '' },
      }
    }
    default:
      return { type: 'custom', stepType: type ?? '', config: config ? toTemplate(config) : {} }
  }
}

function checkUnique(node: Node | undefined, what: string, seen: Map<string, Node>, { faults }: Reader): void {
  const name = textOf(node)
  if (node === undefined || name === undefined || name === '') return
  const first = seen.get(name)
  if (first)
    faults.add(node.at, `duplicate ${what} "${name}" (first on line ${faults.lineOf(first.at)}); rename one of the two`)
  else seen.set(name, node)
}

function checkReferences(node: Node, reader: Reader): void {
  if (node.kind === 'list') for (const item of node.items) checkReferences(item, reader)
  else if (node.kind === 'map') for (const { value } of node.entries.values()) checkReferences(value, reader)
  else {
    for (const piece of splitReferences(node.text)) {
      if (typeof piece === 'object') checkReference(piece, node.at, reader)
    }
  }
}

function checkReference({ text, path }: Reference, at: number, { faults, results, allResults }: Reader): void {
  const [root, second] = path
  if (root === 'input') return
  if (root === 'env') {
    if (second === undefined) faults.add(at, '$env needs the name of a variable: $env.NAME')
    return
  }
  const name = root === 'stepResult' ? second : root
  if (name === undefined || results.has(name)) return
  const known = [...results.keys()]
  const cure = allResults.has(name)
    ? `a later step sets "${name}"; move it before this one`
    : `no earlier step has the result "${name}"${didYouMean(name, known)}`
  const escape = text.includes('.') ? '' : `; write $${text} for the text itself`
  faults.add(at, `${text} refers to nothing: ${cure}; results so far: ${listNames(known)}${escape}`)
}

function itemsOf(node: Node | undefined): Node[] {
  return node?.kind === 'list' ? node.items : []
}

function textOf(node: Node | undefined): string | undefined {
  return node?.kind === 'scalar' ? node.text : undefined
}

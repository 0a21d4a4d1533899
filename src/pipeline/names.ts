/** Names that must exist outside the file: step types, tools, callbacks, models. Nothing is checked that is not known. */
import { child } from './check.ts'
import type { FaultCollector } from './fault.ts'
import { didYouMean, listNames } from './nearest.ts'
import type { Known } from './pipeline.ts'
import { references } from './reference.ts'
import type { Node } from './tree.ts'

export const builtinSteps = ['llm', 'output-generator'] as const
const laterSteps = new Set(['call-agent', 'router', 'memory', 'mcp-tool', 'cli-agent', 'condition', 'loop', 'parallel'])
const callbackKeys = ['onChunk', 'onStepFinish', 'onFinish', 'onError', 'onAbort']
// The names people write without a provider; which provider they mean is the model resolver's business.
const bareModel = /^(?:gemini-|gpt-|chatgpt-|claude-|o\d)/

export function checkStepType(type: Node, known: Known, faults: FaultCollector): void {
  if (type.kind !== 'scalar') return
  const types = [...new Set([...builtinSteps, ...known.stepTypes])]
  if (types.includes(type.text)) return
  if (laterSteps.has(type.text)) faults.add(type.at, `the step type "${type.text}" is not supported yet`)
  else unknown(type, 'step type', types, 'steps', faults)
}

export function checkLlmNames(config: Node, known: Known, faults: FaultCollector): void {
  const seen = new Set<string>()
  const tools = child(config, 'tools')
  for (const item of tools?.kind === 'list' ? tools.items : []) {
    const name = item.kind === 'map' ? child(item, 'name') : item
    if (name?.kind !== 'scalar' || name.text === '') continue
    if (seen.has(name.text)) faults.add(name.at, `duplicate tool "${name.text}"; remove one of the two`)
    seen.add(name.text)
    if (!known.tools.includes(name.text)) unknown(name, 'tool', known.tools, 'tools', faults)
  }
  const choice = child(child(config, 'toolChoice'), 'tool')
  if (choice?.kind === 'scalar' && !seen.has(choice.text)) {
    faults.add(
      choice.at,
      `toolChoice names "${choice.text}", which is no tool of this step; its tools: ${listNames(seen)}`,
    )
  }
  for (const key of callbackKeys) {
    const name = child(config, key)
    if (name?.kind === 'scalar' && name.text !== '' && !known.callbacks.includes(name.text)) {
      unknown(name, 'callback', known.callbacks, 'callbacks', faults)
    }
  }
  const model = child(config, 'model')
  if (model?.kind === 'scalar' && model.text !== '') checkModel(model.text, model.at, known.providers, faults)
}

function checkModel(model: string, at: number, providers: readonly string[], faults: FaultCollector): void {
  // What a reference stands for is known only when the run has come that far.
  if (references(model).length > 0) return
  const list = `known providers: ${listNames(providers)}`
  const colon = model.indexOf(':')
  if (colon < 0) {
    if (bareModel.test(model)) return
    const cure = providers.includes(model) ? `write "${model}:<model>"` : 'write "provider:model"'
    faults.add(at, `unknown model "${model}"; ${cure}; ${list}`)
    return
  }
  const provider = model.slice(0, colon)
  if (!providers.includes(provider)) {
    faults.add(at, `unknown model provider "${provider}"${didYouMean(provider, providers)}; ${list}`)
  } else if (colon === model.length - 1) faults.add(at, `"${model}" names no model; write "${model}<model>"`)
}

function unknown(
  name: { text: string; at: number },
  what: string,
  names: readonly string[],
  registry: string,
  faults: FaultCollector,
) {
  const known = `known ${what}s: ${listNames(names)}`
  const cure = `or register it under "${registry}" in millrace.config.ts`
  faults.add(name.at, `unknown ${what} "${name.text}"${didYouMean(name.text, names)}; ${known}; ${cure}`)
}

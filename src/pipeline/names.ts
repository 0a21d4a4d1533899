/** Checks names that are defined outside the file: step types, tools, callbacks, models, agents, MCP servers. Unknown registries are not checked. */
import { child } from './check.ts'
import type { FaultCollector } from './fault.ts'
import { listNames } from './nearest.ts'
import type { Known } from './pipeline.ts'
import { references } from './reference.ts'
import type { Node } from './tree.ts'

export const builtinSteps = [
  'llm',
  'router',
  'memory',
  'output-generator',
  'call-agent',
  'mcp-tool',
  'cli-agent',
  'script',
  'condition',
  'loop',
  'parallel',
] as const
const callbackKeys = ['onChunk', 'onStepFinish', 'onFinish', 'onError', 'onAbort']
// Model names that need no provider; the model resolver finds it.
const bareModel = /^(?:gemini-|gpt-|chatgpt-|claude-|o\d)/

export function checkStepType(type: Node, known: Known, faults: FaultCollector): void {
  if (type.kind !== 'scalar') return
  const types = [...new Set([...builtinSteps, ...known.stepTypes])]
  if (types.includes(type.text)) return
  unknown(type, 'step type', types, 'steps', faults)
}

export function checkCallbacks(config: Node, keys: readonly string[], known: Known, faults: FaultCollector): void {
  for (const key of keys) {
    const name = child(config, key)
    if (name?.kind === 'scalar' && name.text !== '' && !known.callbacks.includes(name.text)) {
      unknown(name, 'callback', known.callbacks, 'callbacks', faults)
    }
  }
}

export function checkLlmNames(config: Node, known: Known, faults: FaultCollector): void {
  checkCallbacks(config, callbackKeys, known, faults)
  const model = child(config, 'model')
  for (const each of model?.kind === 'list' ? model.items : [model]) {
    if (each?.kind === 'scalar' && each.text !== '') checkModel(each.text, each.at, known.providers, faults)
  }
}

export function checkModelName(model: Node, { providers }: Known, faults: FaultCollector): void {
  if (model.kind === 'scalar' && model.text !== '') checkModel(model.text, model.at, providers, faults)
}

/** Checks that the tools of a list are known and unique. Returns their names, and the MCP servers in the list. */
export function checkToolNames(
  tools: Node | undefined,
  known: Known | undefined,
  faults: FaultCollector,
): { names: Set<string>; servers: Set<string> } {
  const names = new Set<string>()
  const servers = new Set<string>()
  for (const item of tools?.kind === 'list' ? tools.items : []) {
    const server = child(item, 'mcp')
    if (server?.kind === 'scalar' && server.text !== '') {
      if (servers.has(server.text)) faults.add(server.at, `duplicate server "${server.text}"; remove one of the two`)
      servers.add(server.text)
      checkServer(server, known, faults)
      continue
    }
    const agent = child(item, 'agent')
    if (agent?.kind === 'scalar') {
      checkAgent(agent, known, faults)
      const handoff = child(item, 'handoff')
      const written = child(item, 'as')
      const called = written?.kind === 'scalar' ? written.text : agentToolName(agent.text, isTrue(handoff))
      if (names.has(called))
        faults.add(agent.at, `there are two tools "${called}"; give one of them another name with "as"`)
      names.add(called)
      continue
    }
    const isCode = child(item, 'code') !== undefined
    const name = item.kind === 'map' ? child(item, 'name') : item
    if (isCode && name === undefined) names.add('runCode')
    if (name?.kind !== 'scalar' || name.text === '') continue
    if (names.has(name.text)) faults.add(name.at, `duplicate tool "${name.text}"; remove one of the two`)
    names.add(name.text)
    if (isCode) continue
    const elsewhere = isTrue(child(item, 'client')) || isOfServer(name.text, known?.mcpServers)
    if (known && !known.tools.includes(name.text) && !elsewhere) unknown(name, 'tool', known.tools, 'tools', faults)
  }
  return { names, servers }
}

/** Checks the tools of a step, and that `toolChoice` is one of them. */
export function checkTools(config: Node, known: Known | undefined, faults: FaultCollector): void {
  const { names, servers } = checkToolNames(child(config, 'tools'), known, faults)
  const choice = child(child(config, 'toolChoice'), 'tool')
  if (choice?.kind === 'scalar' && !names.has(choice.text) && !isOfServer(choice.text, servers)) {
    const mine = [...names, ...[...servers].map((server) => `${server}_…`)]
    const { text } = choice
    faults.add(
      choice.at,
      (hint) =>
        `"toolChoice" names "${text}"${hint(text, names)}, which is not a tool of this step; its tools: ${listNames(mine)}`,
    )
  }
}

function isTrue(node: Node | undefined): boolean {
  return node?.kind === 'scalar' && node.text === 'true'
}

/** The name under which a model sees an agent: every provider accepts letters, digits, `_` and `-`, at most 64. */
export function agentToolName(agent: string, handoff = false): string {
  return `${handoff ? 'transfer_to_' : ''}${agent}`.replaceAll(/[^A-Za-z0-9_-]/gu, '_').slice(0, 64)
}

/** Compares prefixes only: the tools of a server are known only after connecting to it. */
function isOfServer(tool: string, servers: Iterable<string> = []): boolean {
  return [...servers].some((server) => tool.startsWith(`${server}_`) && tool.length > server.length + 1)
}

export function checkServer(name: Node | undefined, known: Known | undefined, faults: FaultCollector): void {
  if (name?.kind !== 'scalar' || name.text === '' || known?.mcpServers === undefined) return
  if (!known.mcpServers.includes(name.text)) unknown(name, 'MCP server', known.mcpServers, 'mcpServers', faults)
}

export function checkAgent(name: Node | undefined, known: Known | undefined, faults: FaultCollector): void {
  if (name?.kind !== 'scalar' || name.text === '' || references(name.text).length > 0) return
  const fault = agentIdFault(name.text)
  if (fault !== undefined) faults.add(name.at, `"agent" ${fault}`)
  else if (known?.agents && !known.agents.includes(name.text)) {
    const { text } = name
    const list = listNames(known.agents)
    faults.add(name.at, (hint) => `unknown agent "${text}"${hint(text, known.agents!)}; known agents: ${list}`)
  }
}

const ownServer = 'for a server of your own, use --endpoint name=http://…'

function checkModel(model: string, at: number, providers: readonly string[], faults: FaultCollector): void {
  // The value of a reference is known only at run time.
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
    faults.add(at, (hint) => `unknown model provider "${provider}"${hint(provider, providers)}; ${list}; ${ownServer}`)
  } else if (colon === model.length - 1) faults.add(at, `"${model}" has no model name; write "${model}<model>"`)
}

function unknown(
  name: { text: string; at: number },
  what: string,
  names: readonly string[],
  registry: string,
  faults: FaultCollector,
) {
  const known = `known ${what}s: ${listNames(names)}`
  const cure = `to add one, register it under "${registry}" in millrace.config.ts`
  faults.add(name.at, (hint) => `unknown ${what} "${name.text}"${hint(name.text, names)}; ${known}; ${cure}`)
}

/** Why a value is not a valid agent id, or undefined. Also applied to ids that come from a variable: an id becomes a file name. */
export function agentIdFault(id: unknown): string | undefined {
  if (typeof id !== 'string' || id === '') return 'must be an agent id'
  if (id.length > 200) return 'is longer than 200 characters'
  // oxlint-disable-next-line no-control-regex -- a NUL ends a file name for the system, whatever follows it
  if (/[\u0000-\u001F\u007F/\\]/.test(id) || id.includes('..') || id === '.') {
    return 'must be an agent id, without "/", "\\", ".." or control characters'
  }
  return undefined
}

/**
 * The registry of a case that is answered from its recording: models say what they said, tools return what they returned. Nothing
 * is sent anywhere.
 */
import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { Entry } from '../part/entry.ts'
import { MillraceError, fromErrorValue } from '../part/error.ts'
import type { Registry } from '../engine/registry.ts'
import type { ToolImplementation } from '../tools/tool.ts'
import { toToolName } from '../tools/mcp/mcp-tool.ts'
import { findTool } from '../tools/search/find-tool.ts'
import type { McpPool, McpTool, McpTools } from '../tools/mcp/pool.ts'
import { equal } from '../part/equal.ts'
import { jsonIn } from './facts.ts'

/** A recording that is being played. The next turn of the case sets another one. */
export interface Tape {
  entries: readonly Entry[]
  model: LanguageModelV4
  /** Calls of tools that the recording does not have. */
  missing: Set<string>
}

export interface Player {
  insert(tape: Tape): void
}

/** `live`: tools, MCP servers and callbacks are the real ones. */
export function recordedRegistry(real: Registry, { live }: { live: boolean }): { registry: Registry; player: Player } {
  let tape: Tape | undefined
  let results: RecordedResults | undefined

  function played<T>(tool: string, give: (results: RecordedResults) => T): T {
    try {
      return give(results!)
    } catch (error) {
      if (error instanceof MillraceError && error.code === notRecordedCode) tape!.missing.add(tool)
      throw error
    }
  }

  const toTool = (name: string, tool: ToolImplementation): ToolImplementation =>
    tool.execute === undefined
      ? tool
      : { ...tool, execute: (_, { toolCallId }) => played(name, (all) => all.ofCall(name, toolCallId)) }

  const registry: Registry = {
    ...real,
    models: { ...real.models, resolve: () => tape!.model },
    ...(live
      ? undefined
      : {
          callbacks: new Map([...real.callbacks.keys()].map((name) => [name, () => undefined])),
          tools: new Map([...real.tools].map(([name, tool]) => [name, toTool(name, tool)])),
          processes: { start: () => Promise.reject(noProcesses()), close: async () => undefined },
        }),
  }
  if (!live && real.mcp !== undefined) {
    registry.mcp = recordedPool(
      real.mcp,
      () => tape!.entries,
      (tool, input) => played(tool, (all) => all.ofServer(tool, input)),
    )
  }
  return {
    registry,
    player: {
      insert(next) {
        tape = next
        results = readResults(next.entries)
      },
    },
  }
}

function recordedPool(
  real: McpPool,
  entries: () => readonly Entry[],
  call: (toolName: string, input: unknown) => unknown,
): McpPool {
  const pool: McpPool = {
    names: real.names,
    servers: real.servers,
    timeout: real.timeout,
    tools: async (server) => toolsOf(entries(), server),
    call: async (server, tool, input) => call(toToolName(server, tool), input),
    exchange: async (server, tool, input) => ({ kind: 'result', value: call(toToolName(server, tool), input) }),
    task: async () => undefined,
    endRun: async () => undefined,
    withHeaders: () => pool,
    close: () => real.close(),
  }
  return pool
}

/** The tools of a server that models were offered. */
function toolsOf(entries: readonly Entry[], server: string): McpTools {
  const prefix = toToolName(server, '')
  const found = new Map<string, McpTool>()
  let isSearched = false
  for (const entry of entries) {
    for (const { name: full, description, inputSchema } of entry.type === 'prompt' ? (entry.tools ?? []) : []) {
      const name = full.slice(prefix.length)
      isSearched ||= full === findTool
      if (full.startsWith(prefix))
        found.set(name, { name, inputSchema, ...(description === undefined ? {} : { description }) })
    }
  }
  const tools: McpTools = [...found.values()]
  return isSearched ? Object.assign(tools, { searched: true as const }) : tools
}

function noProcesses(): MillraceError {
  return new MillraceError(
    notRecordedCode,
    'A CLI agent cannot be answered from a recording. Set "tools: live" to run the program.',
  )
}

/** The tool results of a recorded run: each result is used once, for its own call. */
interface RecordedResults {
  /** Returns or throws the result of the call. Throws `not-recorded` for a call that was not made. */
  ofCall(toolName: string, toolCallId: string): unknown
  /** The same for a caller that does not know the id of its call; `mcp-tool` steps have none. */
  ofServer(toolName: string, input: unknown): unknown
}

interface Result {
  toolName: string
  toolCallId: string
  input?: unknown
  give(): unknown
}

function readResults(entries: readonly Entry[]): RecordedResults {
  const results: Result[] = []
  const ofSteps: (() => unknown)[] = []
  const steps = new Map<string, number>()
  const inputs = new Map<string, unknown>()
  for (const entry of entries) {
    if (entry.type === 'tool-call') inputs.set(entry.toolCallId, jsonIn(entry.input))
    else if (entry.type === 'tool-result') {
      const { toolName, toolCallId, result, isError } = entry
      const give = () => {
        if (isError === true) throw new Error(typeof result === 'string' ? result : JSON.stringify(result))
        return result
      }
      results.push({ toolName, toolCallId, input: inputs.get(toolCallId), give })
    } else if (entry.type === 'step-start' && entry.stepType === 'mcp-tool') {
      steps.set(entry.step, ofSteps.length)
      ofSteps.push(() => undefined)
    } else if (entry.type === 'step-finish' && steps.has(entry.step)) {
      const { result, error } = entry
      ofSteps[steps.get(entry.step)!] = () => {
        if (error !== undefined) throw fromErrorValue(error)
        return result
      }
    }
  }

  function take(isIt: (result: Result) => boolean): Result | undefined {
    const at = results.findIndex(isIt)
    return at < 0 ? undefined : results.splice(at, 1)[0]
  }

  return {
    ofCall(toolName, toolCallId) {
      const found = take((each) => each.toolCallId === toolCallId && each.toolName === toolName)
      if (found === undefined) throw notRecorded(toolName)
      return found.give()
    },
    ofServer(toolName, input) {
      const found =
        take((each) => each.toolName === toolName && equal(each.input, input)) ??
        take((each) => each.toolName === toolName)
      if (found !== undefined) return found.give()
      const next = ofSteps.shift()
      if (next === undefined) throw notRecorded(toolName)
      return next()
    },
  }
}

const notRecordedCode = 'not-recorded'

function notRecorded(tool: string): MillraceError {
  return new MillraceError(
    notRecordedCode,
    `The recording has no result for this call of ${tool}. Record the case again with --record, or set "tools: live".`,
  )
}

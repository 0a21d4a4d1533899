/** What the next model call of a loop is told: its conversation, with long results shortened, and the tool that reads them. */
import { addLong, defaultInline, readTool, resultsIn, withShortened } from '../fold/long-results.ts'
import type { ToolLoop } from '../fold/tool-loop.ts'
import type { Message } from '../part/message.ts'
import type { ToolLoopConfig } from '../pipeline/pipeline.ts'
import { createReadTool } from './read-result.ts'
import type { Scope } from './scope.ts'
import { sayTaken, type OfferedTool } from './tool-call.ts'

export interface TellingOptions {
  loop: ToolLoop
  config: Pick<ToolLoopConfig, 'inline' | 'maxSteps' | 'toolChoice'> & { messages: Message[] }
  tools: ReadonlyMap<string, OfferedTool>
  /** What the model is told, but for results that get long with this call. */
  messages(): Message[]
  /** The whole conversation, also what a summary covers. */
  whole(): Message[]
  /** The answer is JSON. */
  isJson: boolean
}

export interface Told {
  messages: Message[]
  /** Those that the log does not have yet. */
  newMessages: Message[]
  /** The handles of results in the log that are told shortened for the first time. */
  shortened: string[]
  /** Those of the step, and the one that reads results as soon as one is shortened. */
  tools: ReadonlyMap<string, OfferedTool>
}

export interface Telling {
  /** `more`: handles of results that are shortened as well, because the window is full. */
  tell(more?: readonly string[]): Told
  /** The handles of all results that the next call is told shortened. */
  handles(): ReadonlySet<string>
}

export function createTelling(scope: Scope, { loop, config, tools, messages, whole, isJson }: TellingOptions): Telling {
  const inline = (toolName: string) => {
    const most = tools.get(toolName)?.inline ?? config.inline ?? defaultInline
    return most === 'none' ? Infinity : most
  }
  // A call needs another one after it. The text of a step without tools may already be shown as its JSON.
  const mayRead = config.maxSteps > 1 && config.toolChoice !== 'none' && (tools.size > 0 || !isJson)
  const reading = new Map(tools)
  let isTaken = false

  /** With the tool, once. A tool of the request with its name is replaced. */
  function withReading(): ReadonlyMap<string, OfferedTool> {
    if (!isTaken && tools.has(readTool)) {
      isTaken = true
      sayTaken(scope, readTool)
    }
    reading.delete(readTool)
    reading.set(
      readTool,
      createReadTool(scope, { whole: () => [...config.messages, ...whole()], told: () => tell().messages }),
    )
    return reading
  }

  function handlesIn(all: readonly Message[]): Set<string> {
    const handles = new Set(loop.shortened)
    addLong(handles, all, inline)
    return handles
  }

  function tell(more: readonly string[] = []): Told {
    const all = messages()
    const handles = handlesIn(all)
    for (const handle of more) handles.add(handle)
    const told = withShortened(all, handles)
    const isFirst = loop.base === undefined
    let hasHandles = false
    for (const { shortened, toolName } of resultsIn(told)) hasHandles ||= shortened === true || toolName === readTool
    return {
      messages: told,
      newMessages: isFirst ? withShortened(config.messages, handles) : [],
      shortened: isFirst ? [] : [...handles].filter((handle) => !loop.shortened.has(handle)),
      tools: hasHandles && mayRead ? withReading() : tools,
    }
  }
  return { tell, handles: () => handlesIn(messages()) }
}

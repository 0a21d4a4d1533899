/**
 * Tool calls in the form of Responses: `function_call` or `custom_tool_call` for the client, `mcp_call` for those that the server or the provider runs,
 * whose `server_label` is the agent. Which calls are sent, and when, is in `item-calls.ts`.
 */
import type { EntryOf } from '../../part/entry.ts'
import { parseJson } from '../../part/json.ts'
import type { CallsOutput } from '../item-calls.ts'
import type { CallItem, OpenItem, ResponseItems } from './response-items.ts'
import type { McpCallItem } from './response-object.ts'
import { toolNames, type ClientToolName } from './tool-names.ts'

/** A class, not closures: one for each open stream (decisions/0028). */
export class ResponseCalls implements CallsOutput<OpenItem<CallItem>, OpenItem<McpCallItem>> {
  private readonly items: ResponseItems
  private names: ReadonlyMap<string, ClientToolName> = new Map()

  constructor(items: ResponseItems) {
    this.items = items
  }

  runStart({ input }: EntryOf<'run-start'>): void {
    this.names = toolNames(input['tools'])
  }

  begin(step: string, toolName: string, id: string): OpenItem<CallItem> {
    const { name, namespace, isText } = this.names.get(toolName) ?? { name: toolName, isText: false }
    return this.items.call(step, { call_id: id, name, ...(namespace !== undefined && { namespace }) }, isText)
  }

  write(call: OpenItem<CallItem>, delta: string): void {
    if (call.item.type === 'function_call') this.items.callDelta(call, delta)
  }

  written(call: OpenItem<CallItem>, json: string, sent: string): undefined {
    if (call.item.type === 'custom_tool_call') {
      // Its input is JSON for the model and a text for the client, so it is sent when it is complete.
      const text = textInput(json)
      if (text !== '') this.items.callDelta(call, text)
      this.items.callWritten(call, text)
      return
    }
    // Some providers stream no empty arguments, or only a part of them.
    const rest = json.startsWith(sent) ? json.slice(sent.length) : ''
    if (rest !== '') this.items.callDelta(call, rest)
    this.items.callWritten(call, json)
  }

  done(call: OpenItem<CallItem>): void {
    this.items.endCall(call)
  }

  serverCall(
    step: string,
    { agent, toolName, json }: { agent: string; toolName: string; json: string },
  ): OpenItem<McpCallItem> {
    return this.items.serverCall(step, agent, toolName, json)
  }

  serverResult(call: OpenItem<McpCallItem>, result: { output: string } | { error: string }): void {
    this.items.endServerCall(call, result)
  }
}

/** The text of a custom tool's input: `{input}`, or what the model wrote instead. */
function textInput(json: string): string {
  try {
    const value = parseJson(json)
    if (typeof value === 'string') return value
    const { input } = (value ?? {}) as { input?: unknown }
    if (typeof input === 'string') return input
  } catch {
    // It is the text itself.
  }
  return json
}

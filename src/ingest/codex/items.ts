/** The items of Codex's turns. A text may come as a whole or grow; a tool is called when its item is first seen. */
import type { Said } from '../transcript.ts'
import { toResultValue } from '../tool-values.ts'
import { isObject, textOf } from '../values.ts'
import { toTool, type ToolItem } from './tool-items.ts'

interface Text {
  /** What was said of it. */
  text: string
  isReasoning: boolean
}

export function createItems(said: Said) {
  /** Texts and tools that have not completed. */
  const texts = new Map<string, Text>()
  const tools = new Set<string>()
  const all = { event, lastText: '' }

  function event(given: Record<string, unknown>): boolean {
    if (given['type'] === 'item.plan.delta') {
      const id = textOf(given['item_id'])
      const delta = textOf(given['delta'])
      if (id === undefined || delta === undefined) return false
      const block = blockOf(id, false)
      grow(id, block, block.text + delta)
      return true
    }
    const stage = stages.get(given['type'])
    const item = given['item']
    if (stage === undefined || !isObject(item)) return false
    const id = textOf(item['id'])
    if (id === undefined) return false
    // Old versions have other words.
    const type = item['type'] ?? item['item_type']
    switch (type) {
      case 'agent_message':
      case 'assistant_message':
      case 'plan':
      case 'reasoning':
        return text(id, item, stage, type === 'reasoning')
      case 'todo_list':
        said.part({ type: 'data', name: 'todo-list', id, data: { items: item['items'] ?? [] } })
        return true
      case 'error':
        said.part({
          type: 'warning',
          code: 'codex-error',
          message: textOf(item['message']) ?? 'Codex reported an error.',
        })
        return true
      default: {
        const tool = toTool({ ...item, type })
        return tool !== undefined && call(id, tool, stage)
      }
    }
  }

  function blockOf(id: string, isReasoning: boolean): Text {
    let block = texts.get(id)
    if (block === undefined) {
      block = { text: '', isReasoning }
      texts.set(id, block)
      if (!isReasoning) all.lastText = ''
      said.part({ type: isReasoning ? 'reasoning-start' : 'text-start', id })
    }
    return block
  }

  function grow(id: string, block: Text, now: string): void {
    // Text that was rewritten cannot be taken back: only what comes after it is new.
    const delta = now.slice(block.text.length)
    block.text = now.length > block.text.length ? now : block.text
    if (!block.isReasoning) all.lastText = block.text
    if (delta !== '') said.part({ type: block.isReasoning ? 'reasoning-delta' : 'text-delta', id, delta })
  }

  function text(id: string, item: Record<string, unknown>, stage: Stage, isReasoning: boolean): boolean {
    const now = textOf(item['text'])
    if (now === undefined && stage !== 'started') return false
    const block = blockOf(id, isReasoning)
    grow(id, block, now ?? '')
    if (stage !== 'completed') return true
    texts.delete(id)
    said.part({ type: block.isReasoning ? 'reasoning-end' : 'text-end', id })
    return true
  }

  function call(id: string, { toolName, input, result, isError, isDenied }: ToolItem, stage: Stage): boolean {
    if (!tools.has(id)) {
      const json = JSON.stringify(input)
      said.part({ type: 'tool-input-start', id, toolName, providerExecuted: true })
      said.part({ type: 'tool-input-delta', id, delta: json })
      said.part({ type: 'tool-input-end', id })
      said.part({ type: 'tool-call', toolCallId: id, toolName, input: json, providerExecuted: true })
      tools.add(id)
    }
    if (stage === 'started') return true
    const isDone = stage === 'completed'
    if (isDone) tools.delete(id)
    said.part({
      type: 'tool-result',
      toolCallId: id,
      toolName,
      result: toResultValue(result),
      isError,
      ...(!isDone && { preliminary: true }),
      ...(isDone && isDenied && { outcome: 'denied' as const }),
    })
    return true
  }

  return all
}

type Stage = 'started' | 'updated' | 'completed'
const stages: ReadonlyMap<unknown, Stage> = new Map([
  ['item.started', 'started'],
  ['item.updated', 'updated'],
  ['item.completed', 'completed'],
])

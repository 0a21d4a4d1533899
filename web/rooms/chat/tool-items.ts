/** The part of a turn's fold that is about tool calls. Changes the list in place, the items never. */
import type { EntryOf } from '../../../src/part/entry.ts'
import type { RequestView } from '../../../src/fold/run-view.ts'
import type { Item, ToolItem } from './turn.ts'

type CallEntry = EntryOf<'tool-input-start' | 'tool-input-delta' | 'tool-input-end' | 'tool-call' | 'tool-result'>

export function foldCall(items: Item[], entry: CallEntry, isAnswer: boolean): void {
  const callId = 'toolCallId' in entry ? entry.toolCallId : entry.id
  const at = callAt(items, callId)
  const item = at < 0 ? undefined : (items[at] as ToolItem)
  const isHere = item !== undefined && item.path === entry.step
  const change = (next: Partial<ToolItem>) => {
    items[at] = { ...item!, ...next }
  }
  switch (entry.type) {
    case 'tool-input-start':
      if (isAnswer) items.push(newCall(entry, callId, '', true))
      return
    case 'tool-input-delta':
      if (isHere) change({ input: item.input + entry.delta })
      return
    case 'tool-input-end':
      if (isHere) change({ isInputOpen: false })
      return
    case 'tool-call':
      if (isHere && item.result === undefined) change({ input: entry.input, isInputOpen: false })
      else if (isAnswer) items.push(newCall(entry, callId, entry.input, false))
      return
    case 'tool-result': {
      if (item === undefined) return
      const { result: value, isError = false, preliminary = false, outcome, timestamp } = entry
      const result = { value, isError, isPreliminary: preliminary, ...(outcome && { outcome }) }
      change({ result, isInputOpen: false, ...(!preliminary && { endedAt: timestamp }) })
      return
    }
  }
}

/** Puts a question to the card of its call. False if there is none. */
export function answerUnder(items: Item[], request: RequestView): boolean {
  const at = callAt(items, request.toolCallId ?? '')
  if (at < 0) return false
  items[at] = { ...(items[at] as ToolItem), ask: { request } }
  return true
}

function callAt(items: readonly Item[], callId: string): number {
  return items.findLastIndex((item) => item.kind === 'tool' && item.callId === callId)
}

function newCall(
  { step, seq, toolName }: EntryOf<'tool-input-start' | 'tool-call'>,
  callId: string,
  input: string,
  isInputOpen: boolean,
): ToolItem {
  return { kind: 'tool', key: `t${seq}`, path: step, callId, name: toolName, input, isInputOpen }
}

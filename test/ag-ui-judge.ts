/** Judges AG-UI streams by what the official verifiers do not check. */
import { EventSchema } from '@ag-ui/core/schemas'
import { expect } from 'vitest'
import type { AgUiEvent } from '../src/wire/ag-ui/ag-ui-event.ts'

/**
 * Checks a stream. Returns its AG-UI runs: more than one if a suspended run was continued in it. `isWhole`: it has the run from its
 * start, so that calls without a start are none.
 */
export function agUiRuns(events: readonly AgUiEvent[], { isWhole = false } = {}): AgUiEvent[][] {
  const runs: AgUiEvent[][] = []
  for (const event of events) {
    if (event.type === 'RUN_STARTED' || runs.length === 0) runs.push([])
    runs.at(-1)!.push(event)
  }
  for (const run of runs) judgeRun(run)
  judgeIds(events)
  judgeCalls(events, isWhole)
  for (const [i, event] of events.entries()) {
    // Nothing unknown, nothing malformed, and no null for what is not there.
    expect(EventSchema.parse(event)).toEqual(event)
    for (const [key, value] of Object.entries(event))
      if (key !== 'value' && key !== 'result') expect(value).not.toBe(null)
    if (event.type === 'RUN_ERROR' && event.timestamp === undefined) continue
    expect(event.timestamp).toBeGreaterThanOrEqual(events[i - 1]?.timestamp ?? 1)
  }
  return runs
}

/** It starts, ends once with the ids of its start, and says nothing after; whatever it opens it closes. */
function judgeRun(run: readonly AgUiEvent[]): void {
  const terminals = run.filter(({ type }) => type === 'RUN_FINISHED' || type === 'RUN_ERROR')
  expect(terminals).toEqual([run.at(-1)])
  const [first] = run
  const last = run.at(-1)!
  if (run.length > 1) expect(first!.type).toBe('RUN_STARTED')
  if (first!.type === 'RUN_STARTED' && last.type === 'RUN_FINISHED') {
    expect([last.threadId, last.runId]).toEqual([first!.threadId, first!.runId])
  }
  judgeSubagents(run)
  const open = new Map<string, number>()
  const toggle = (key: string, by: number) => {
    const count = (open.get(key) ?? 0) + by
    expect([0, 1], key).toContain(count)
    open.set(key, count)
  }
  for (const event of run) {
    switch (event.type) {
      case 'STEP_STARTED':
      case 'STEP_FINISHED':
        expect(event.stepName).not.toMatch(/^(main|after)\b/u)
        toggle(`step ${event.stepName}`, event.type === 'STEP_STARTED' ? 1 : -1)
        break
      case 'TEXT_MESSAGE_START':
      case 'TEXT_MESSAGE_END':
        toggle(`text ${event.messageId}`, event.type === 'TEXT_MESSAGE_START' ? 1 : -1)
        break
      case 'REASONING_START':
      case 'REASONING_END':
        toggle(`reasoning ${event.messageId}`, event.type === 'REASONING_START' ? 1 : -1)
        break
      case 'REASONING_MESSAGE_START':
      case 'REASONING_MESSAGE_END':
        expect(open.get(`reasoning ${event.messageId}`)).toBe(1)
        toggle(`thought ${event.messageId}`, event.type === 'REASONING_MESSAGE_START' ? 1 : -1)
        break
      case 'TOOL_CALL_START':
      case 'TOOL_CALL_END':
        toggle(`call ${event.toolCallId}`, event.type === 'TOOL_CALL_START' ? 1 : -1)
        break
      case 'TEXT_MESSAGE_CONTENT':
      case 'REASONING_MESSAGE_CONTENT':
      case 'TOOL_CALL_ARGS': {
        const [kind, id] = {
          TEXT_MESSAGE_CONTENT: ['text', 'messageId'] as const,
          REASONING_MESSAGE_CONTENT: ['thought', 'messageId'] as const,
          TOOL_CALL_ARGS: ['call', 'toolCallId'] as const,
        }[event.type]
        expect(event.delta).not.toBe('')
        expect(open.get(`${kind} ${(event as unknown as Record<string, string>)[id]}`)).toBe(1)
        break
      }
      default:
    }
  }
  // Also before RUN_ERROR, where the protocol would allow it.
  expect([...open].filter(([, count]) => count > 0)).toEqual([])
}

/** A subagent starts once and ends once; what it does comes in between, and what it opens it closes itself. */
function judgeSubagents(run: readonly AgUiEvent[]): void {
  const open = new Set<string>()
  const started = new Set<string>()
  for (const event of run) {
    switch (event.type) {
      case 'SUBAGENT_STARTED':
        expect(started.has(event.subagentRunId)).toBe(false)
        if (event.parentSubagentRunId !== undefined) expect(open.has(event.parentSubagentRunId)).toBe(true)
        started.add(event.subagentRunId)
        open.add(event.subagentRunId)
        break
      case 'SUBAGENT_FINISHED':
      case 'SUBAGENT_ERROR':
        expect(open.delete(event.subagentRunId)).toBe(true)
        break
      case 'RUN_STARTED':
      case 'RUN_FINISHED':
      case 'RUN_ERROR':
      case 'MESSAGES_SNAPSHOT':
        break
      default:
        if (event.subagentRunId !== undefined) expect(open.has(event.subagentRunId)).toBe(true)
    }
  }
  expect([...open]).toEqual([])
}

/** No message is opened twice, and only an assistant's message has the calls of its model call, too. */
function judgeIds(events: readonly AgUiEvent[]): void {
  const messages = events.flatMap((event) => {
    switch (event.type) {
      case 'TEXT_MESSAGE_START':
      case 'REASONING_START':
      case 'TOOL_CALL_RESULT':
        return [event.messageId]
      default:
        return []
    }
  })
  expect(new Set(messages).size).toBe(messages.length)
  const others = new Set(
    events.flatMap((event) => {
      return event.type === 'REASONING_START' || event.type === 'TOOL_CALL_RESULT' ? [event.messageId] : []
    }),
  )
  for (const event of events) {
    if (event.type !== 'TOOL_CALL_START') continue
    expect(event.parentMessageId).toMatch(/^.+:\d+$/u)
    expect(others.has(event.parentMessageId!)).toBe(false)
  }
}

/** A call has its arguments, and at most one result, behind its end. */
function judgeCalls(events: readonly AgUiEvent[], isWhole: boolean): void {
  const args = new Map<string, string>()
  const done = new Set<string>()
  const results = new Set<string>()
  for (const event of events) {
    if (event.type === 'TOOL_CALL_START') {
      expect(args.has(event.toolCallId)).toBe(false)
      args.set(event.toolCallId, '')
    }
    if (event.type === 'TOOL_CALL_ARGS') args.set(event.toolCallId, args.get(event.toolCallId)! + event.delta)
    if (event.type === 'TOOL_CALL_END') {
      expect(args.get(event.toolCallId)!.trim()).not.toBe('')
      done.add(event.toolCallId)
    }
    if (event.type === 'TOOL_CALL_RESULT') {
      if (isWhole || args.has(event.toolCallId)) expect(done.has(event.toolCallId)).toBe(true)
      expect(results.has(event.toolCallId)).toBe(false)
      results.add(event.toolCallId)
    }
    if (event.type === 'RUN_FINISHED' && event.outcome?.type === 'success') {
      for (const id of event.outcome.pendingToolCallIds ?? []) {
        if (isWhole) expect(done.has(id)).toBe(true)
        expect(results.has(id)).toBe(false)
      }
    }
  }
}

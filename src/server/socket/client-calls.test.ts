import { describe, expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import type { Part } from '../../part/part.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { createClientCalls } from './client-calls.ts'

const call = { toolCallId: 'c', toolName: 'wipe' }
const ask = (kind: 'approval' | 'tool'): Part => {
  return { type: 'request', requestId: kind, kind, ...call, input: {}, deadline: 1 }
}
const approved: Part = {
  type: 'response',
  requestId: 'approval',
  outcome: 'answered',
  answer: { kind: 'approval', approved: true },
}

describe('createClientCalls', () => {
  test('a result that comes behind the approval, but before the run has asked for it, waits; others are refused', async () => {
    const { log } = memoryStore()
    let waiting = 0
    const { signal } = new AbortController()
    const calls = createClientCalls({ log, runId: 'r', signal, onWaiting: (change) => void (waiting += change) })
    let seq = 0
    const say = async (...parts: Part[]) => {
      const entries = parts.map((part) => ({ seq: ++seq, timestamp: 0, step: '', ...part }) as Entry)
      await log.append('r', 1, entries)
      for (const entry of entries) calls.note(entry)
    }
    const start = { runId: 'r', agent: 'a', pipeline: '', threadId: 't', protocol: 'api', input: {} }
    await say({ type: 'run-start', ...start }, { type: 'tool-call', ...call, input: '{}' })
    const early = calls.requestOf('c')
    await say(ask('approval'))
    await expect(early).rejects.toThrow('is not approved')
    await expect(calls.requestOf('c')).rejects.toThrow('is not approved')
    await say(approved)
    const late = calls.requestOf('c')
    expect(waiting).toBe(1)
    await say(ask('tool'))
    expect(await late).toBe('tool')
    expect([calls.isOpen('c'), waiting]).toEqual([true, 0])
  })
})

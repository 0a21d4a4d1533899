/** The contract of stored views and deadlines. */
import { beforeEach, describe, expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import type { Store } from '../../part/log.ts'
import { endEntry, entry, noon, startEntry } from '../example-run.contract.ts'
import { delta } from './tools.contract.ts'

/** A run that waits for a client: requests `a`, `b` … with these deadlines. */
export function suspendedRun(run: string, ...deadlines: number[]): Entry[] {
  const entries = [startEntry(run)]
  const ids: string[] = []
  for (const [i, deadline] of deadlines.entries()) {
    const requestId = String.fromCharCode(97 + i)
    ids.push(requestId)
    const request = { requestId, toolCallId: requestId, toolName: 't', input: {}, deadline }
    entries.push(entry(i + 2, { type: 'request', kind: 'tool', ...request }, 'main/ask'))
  }
  return [...entries, entry(deadlines.length + 2, { type: 'suspend', requests: ids })]
}

export const response = (seq: number, requestId: string) =>
  entry(seq, { type: 'response', requestId, outcome: 'closed', reason: 'deadline' }, 'main/ask')

export function viewsContract(current: () => Store): void {
  describe('views', () => {
    let store: Store
    beforeEach(async () => {
      store = current()
      await store.log.append('r', 1, [startEntry('r')])
    })

    test('a view is kept until one of the same or a later entry comes', async () => {
      expect(await store.runs.view('r')).toBeUndefined()
      await store.log.append(
        'r',
        1,
        Array.from({ length: 8 }, (_, i) => delta(i + 2)),
      )
      await store.runs.keepView('r', 4, { text: 'four', nested: [{ a: null }] })
      expect(await store.runs.view('r')).toEqual({ seq: 4, view: { text: 'four', nested: [{ a: null }] } })
      await store.runs.keepView('r', 3, { text: 'late' })
      expect(await store.runs.view('r')).toMatchObject({ seq: 4, view: { text: 'four' } })
      await store.runs.keepView('r', 4, { text: 'by a newer version' })
      expect(await store.runs.view('r')).toEqual({ seq: 4, view: { text: 'by a newer version' } })
      await Promise.all([5, 9, 7].map((seq) => store.runs.keepView('r', seq, seq)))
      expect(await store.runs.view('r')).toEqual({ seq: 9, view: 9 })
    })

    test('a view that comes with entries is kept with them, and never without', async () => {
      const view = (seq: number) => () => ({ seq, view: { at: seq } })
      await store.log.append('r', 1, [entry(2, { type: 'suspend', requests: [] })], view(2))
      expect(await store.runs.view('r')).toEqual({ seq: 2, view: { at: 2 } })
      await store.log.claim('r', 1)
      const resume = entry(3, { type: 'resume', protocol: 'chat' })
      expect(await store.log.append('r', 1, [resume], view(3))).toBe('fenced')
      expect(await store.runs.view('r')).toMatchObject({ seq: 2 })
      await store.log.append(
        'r',
        2,
        () => [resume],
        () => undefined,
      )
      expect(await store.runs.view('r')).toMatchObject({ seq: 2 })
      // The acknowledgement was lost, and so, as far as the writer can see, the view.
      expect(await store.log.append('r', 2, [resume], view(3))).toBe('duplicate')
      expect(await store.runs.view('r')).toEqual({ seq: 3, view: { at: 3 } })
      const whole = [startEntry('short'), endEntry(2)]
      await store.log.append('short', 1, whole, view(2))
      expect(await store.runs.view('short')).toEqual({ seq: 2, view: { at: 2 } })
    })

    test('is a copy of its own; an unknown run keeps none', async () => {
      const view = { messages: ['a'] }
      await store.runs.keepView('r', 1, view)
      view.messages.push('b')
      const read = (await store.runs.view('r'))!.view as typeof view
      expect(read).toEqual({ messages: ['a'] })
      read.messages.push('c')
      expect((await store.runs.view('r'))!.view).toEqual({ messages: ['a'] })
      await store.runs.keepView('none', 1, view)
      expect(await store.runs.view('none')).toBeUndefined()
    })

    test('must be JSON', async () => {
      await expect(store.runs.keepView('r', 1, { n: 1n })).rejects.toMatchObject({ code: 'bad-message' })
    })
  })

  describe('due', () => {
    let store: Store
    beforeEach(() => {
      store = current()
    })
    const due = (before: number, limit?: number) => store.runs.due(noon + before, limit)
    const ids = async (before: number, limit?: number) => (await due(before, limit)).map(({ id }) => id).join('')

    test('lists suspended runs by their earliest open deadline', async () => {
      await store.log.append('x', 1, suspendedRun('x', noon + 500, noon + 300))
      await store.log.append('y', 1, suspendedRun('y', noon + 200))
      await store.log.append('z', 1, suspendedRun('z', noon + 900))
      await store.log.append('none', 1, suspendedRun('none'))
      expect(await ids(199)).toBe('')
      expect(await due(300)).toEqual([
        { id: 'y', dueAt: noon + 200 },
        { id: 'x', dueAt: noon + 300 },
      ])
      expect(await ids(5000)).toBe('yxz')
      expect(await ids(5000, 2)).toBe('yx')
    })

    test('a claimed, answered or ended run is not due; a suspended run is due by its open requests', async () => {
      await store.log.append('r', 1, suspendedRun('r', noon + 100, noon + 200))
      await store.log.claim('r', 1)
      expect(await ids(5000)).toBe('')
      await store.log.append('r', 2, [response(5, 'a'), entry(6, { type: 'resume', protocol: 'chat' })])
      expect(await ids(5000)).toBe('')
      await store.log.append('r', 2, [entry(7, { type: 'suspend', requests: ['b'] })])
      expect(await due(5000)).toEqual([{ id: 'r', dueAt: noon + 200 }])
      await store.log.claim('r', 2)
      await store.log.append('r', 3, [endEntry(8)])
      expect(await ids(5000)).toBe('')
    })

    test('a request of a step that is started anew is open no longer', async () => {
      const [start, request, suspend] = suspendedRun('r', noon + 100)
      await store.log.append('r', 1, [start!, request!])
      const reset = (seq: number, step: string) => entry(seq, { type: 'step-reset', attempt: 1 }, step)
      await store.log.append('r', 1, [reset(3, 'main/as'), reset(4, 'main'), { ...suspend!, seq: 5 }])
      expect(await ids(5000)).toBe('')
    })

    test('the stored requests are not part of a row', async () => {
      await store.log.append('r', 1, suspendedRun('r', noon + 100))
      const row = { id: 'r', agent: 'echo', threadId: 'thread-1', protocol: 'api', status: 'suspended', epoch: 1 }
      const times = { startedAt: noon, updatedAt: noon + 3, lastSeq: 3 }
      expect(await store.runs.get('r')).toEqual({ ...row, ...times })
      expect(await store.runs.list()).toEqual([{ ...row, ...times }])
    })
  })
}

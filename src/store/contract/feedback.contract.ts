/** The contract of feedback. */
import { beforeEach, describe, expect, test } from 'vitest'
import type { Feedback, NewFeedback } from '../../part/feedback.ts'
import type { Store } from '../../part/log.ts'
import { endEntry, startEntry } from '../example-run.contract.ts'

export function feedbackContract(current: () => Store): void {
  describe('feedback', () => {
    let feedback: Feedback
    beforeEach(async () => {
      feedback = current().feedback!
      for (const run of ['r1', 'r2']) await current().log.append(run, 1, [startEntry(run), endEntry(2)])
    })
    const row = (changes: Partial<NewFeedback> = {}): NewFeedback => ({
      run: 'r1',
      user: 'ann',
      tenant: '',
      verdict: 'up',
      time: 5,
      ...changes,
    })
    const shown = (rows: readonly NewFeedback[]) =>
      rows.map(({ run, user, verdict, note }) =>
        [run, user, verdict, note].filter((each) => each !== undefined).join(' '),
      )

    test('the last word of a person on a run counts; lists have the newest first', async () => {
      expect(await feedback.put(row())).toBe(true)
      expect(await feedback.put(row({ user: 'bob', verdict: 'down', note: '  too long ' }))).toBe(true)
      expect(await feedback.put(row({ run: 'r2', user: 'bob', note: 'fine' }))).toBe(true)
      expect(await feedback.put(row({ verdict: 'down', note: 'wrong' }))).toBe(true)
      expect(shown(await feedback.of('r1'))).toEqual(['r1 bob down too long', 'r1 ann down wrong'])
      expect(shown(await feedback.list())).toEqual(['r1 ann down wrong', 'r2 bob up fine', 'r1 bob down too long'])
      expect(shown(await feedback.list({ verdict: 'up' }))).toEqual(['r2 bob up fine'])
      const [first] = await feedback.list({ limit: 1 })
      expect(shown(await feedback.list({ before: first!.n, limit: 1 }))).toEqual(['r2 bob up fine'])
      expect(first).toMatchObject({ n: expect.any(Number), time: 5, tenant: '' })
    })

    test('persons are apart by tenant; a note alone is feedback; any characters are kept', async () => {
      const user = 'ä:"\\ @@'
      await feedback.put(row({ user, tenant: 'acme' }))
      const { verdict: _, ...alone } = row({ user, note: '…\n"\u0001' })
      await feedback.put(alone)
      expect((await feedback.of('r1')).map(({ tenant, verdict, note }) => [tenant, verdict, note])).toEqual([
        ['acme', 'up', undefined],
        ['', undefined, '…\n"\u0001'],
      ])
      expect(await feedback.remove({ run: 'r1', user, tenant: 'acme' })).toBe(true)
      expect(await feedback.remove({ run: 'r1', user, tenant: 'acme' })).toBe(false)
      expect(await feedback.of('r1')).toHaveLength(1)
    })

    test('a run that is not there has none, and a long note is cut', async () => {
      expect(await feedback.put(row({ run: 'none' }))).toBe(false)
      expect(await feedback.of('none')).toEqual([])
      await feedback.put(row({ note: 'x'.repeat(5000) }))
      expect((await feedback.of('r1'))[0]!.note).toHaveLength(4000)
    })

    test('it is deleted with its run', async () => {
      const { upkeep } = current()
      if (upkeep === undefined) return
      for (const run of ['r1', 'r2']) await feedback.put(row({ run, note: 'gone?' }))
      expect(await upkeep.drop('r1')).toBe(true)
      expect(await feedback.of('r1')).toEqual([])
      expect(shown(await feedback.list())).toEqual(['r2 ann up gone?'])
      // The id may come again.
      await current().log.append('r1', 1, [startEntry('r1'), endEntry(2)])
      expect(await feedback.of('r1')).toEqual([])
    })
  })
}

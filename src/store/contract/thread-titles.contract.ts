/** The contract of the titles of threads. */
import { beforeEach, describe, expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import type { Store } from '../../part/log.ts'
import type { ThreadTitle, ThreadTitles } from '../../part/thread-title.ts'
import { endEntry, startEntry } from '../example-run.contract.ts'

export function threadTitlesContract(current: () => Store): void {
  describe('titles of threads', () => {
    let titles: ThreadTitles
    const start = (run: string, threadId: string) =>
      current().log.append(run, 1, [{ ...startEntry(run), threadId } as Entry, endEntry(2)])
    beforeEach(async () => {
      titles = current().titles!
      await start('r1', 'one')
      await start('r2', 'one')
      await start('r3', 'two@@acme/ä')
    })
    const row = (changes: Partial<ThreadTitle> = {}): ThreadTitle => ({
      thread: 'one',
      title: 'Rome',
      user: 'ann',
      tenant: '',
      time: 5,
      ...changes,
    })
    const shown = async (...threads: string[]) =>
      [...(await titles.of(threads))].map(([thread, { title }]) => [thread, title])

    test('the last title counts, an empty one takes it back, and threads are apart', async () => {
      expect(await shown('one', 'two@@acme/ä')).toEqual([])
      expect(await titles.put(row())).toBe(true)
      expect(await titles.put(row({ title: ' Rome,\n in\tMay ' }))).toBe(true)
      expect(await titles.put(row({ thread: 'two@@acme/ä', title: '"\\ 日本' }))).toBe(true)
      expect(await shown('one', 'none', 'two@@acme/ä')).toEqual([
        ['one', 'Rome, in May'],
        ['two@@acme/ä', '"\\ 日本'],
      ])
      expect((await titles.of(['one'])).get('one')).toEqual(row({ title: 'Rome, in May' }))
      expect(await titles.put(row({ title: ' ' }))).toBe(true)
      expect(await shown('one')).toEqual([])
    })

    test('nothing of a title turns what stands beside it, and one that nobody sees is none', async () => {
      await titles.put(row({ title: '\u202Eemor\u2066 👨‍👩‍👧' }))
      expect(await shown('one')).toEqual([['one', 'emor 👨‍👩‍👧']])
      await titles.put(row({ title: '\u200B\u2066\u00AD' }))
      expect(await shown('one')).toEqual([])
    })

    test('a thread that is not there has none, and a long title is cut', async () => {
      expect(await titles.put(row({ thread: 'none' }))).toBe(false)
      expect(await shown('none')).toEqual([])
      await titles.put(row({ title: 'x'.repeat(500) }))
      expect((await titles.of(['one'])).get('one')!.title).toHaveLength(120)
    })

    test('it is deleted with the last run of its thread', async () => {
      const { upkeep } = current()
      if (upkeep === undefined) return
      await titles.put(row())
      expect(await upkeep.drop('r2')).toBe(true)
      expect(await shown('one')).toEqual([['one', 'Rome']])
      expect(await upkeep.drop('r1')).toBe(true)
      expect(await shown('one')).toEqual([])
      // The id may come again.
      await start('r4', 'one')
      expect(await shown('one')).toEqual([])
    })
  })
}

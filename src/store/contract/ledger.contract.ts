/** The contract of sums and of the audit. */
import { beforeEach, describe, expect, test } from 'vitest'
import type { NewAuditRow } from '../../part/audit.ts'
import type { Store } from '../../part/log.ts'

const later = () => Date.now() + 3_600_000
const amount = (key: string, value: number, until = later()) => ({ key, amount: value, until })

export const auditRow = (changes: Partial<NewAuditRow> = {}): NewAuditRow => ({
  time: Date.now(),
  principal: 'u1',
  tenant: 'acme',
  key: '',
  action: 'runs.stop',
  resource: 'run_1',
  outcome: 'done',
  address: '127.0.0.1',
  ...changes,
})

export function ledgerContract(current: () => Store): void {
  describe('ledger', () => {
    let ledger: NonNullable<Store['ledger']>
    beforeEach(() => {
      ledger = current().ledger!
    })

    test('additions from everywhere are summed, and a correction is subtracted', async () => {
      const sums = await Promise.all(
        Array.from({ length: 50 }, () => ledger.add('b', [amount('a', 2), amount('c', 3)])),
      )
      expect(sums.map(([a]) => a).sort((x, y) => x! - y!)).toEqual(Array.from({ length: 50 }, (_, i) => 2 * (i + 1)))
      expect(await ledger.add('b', [amount('a', -1)])).toEqual([99])
      expect(await ledger.read('b', ['a', 'c', 'none'])).toEqual([99, 150, 0])
      const large = 9_000_000_000_000_000
      expect(await ledger.add('b', [amount('large', large)])).toEqual([large])
      expect(await ledger.add('b', [amount('large', 1)])).toEqual([large + 1])
    })

    test('books are apart, whatever their names and those of their sums are', async () => {
      const names = ['', 'a', 'a:b', 'b:c', 'ä\n"', '__proto__']
      for (const [i, book] of names.entries()) {
        for (const [j, key] of names.entries()) await ledger.add(book, [amount(key, 10 * i + j + 1)])
      }
      for (const [i, book] of names.entries()) {
        expect(await ledger.read(book, names)).toEqual(names.map((_, j) => 10 * i + j + 1))
      }
    })

    test('a position of a source counts once, and none behind the mark', async () => {
      const once = (position: number, key = 'run') => ({ key, position, until: later() })
      expect(await ledger.mark('b', 'run')).toBe(0)
      expect(await ledger.add('b', [amount('a', 5)], once(3))).toEqual([5])
      expect(await ledger.add('b', [amount('a', 5)], once(3))).toEqual([5])
      expect(await ledger.add('b', [amount('a', 5)], once(2))).toEqual([5])
      expect(await ledger.add('b', [amount('a', 5), amount('c', 1)], once(4))).toEqual([10, 1])
      expect(await ledger.add('b', [amount('a', 1)], once(1, 'other'))).toEqual([11])
      expect(await ledger.add('b', [], once(Number.MAX_SAFE_INTEGER))).toEqual([])
      expect(await ledger.mark('b', 'run')).toBe(Number.MAX_SAFE_INTEGER)
      expect(await ledger.mark('b', 'other')).toBe(1)
      expect(await ledger.mark('other', 'run')).toBe(0)
      const races = await Promise.all(
        Array.from({ length: 20 }, () => ledger.add('b', [amount('r', 1)], once(1, 'race'))),
      )
      expect(races).toEqual(races.map(() => [1]))
    })

    test('what is over begins anew', async () => {
      const ago = Date.now() - 1
      await ledger.add('b', [amount('a', 5, ago)], { key: 'run', position: 3, until: ago })
      expect(await ledger.read('b', ['a'])).toEqual([0])
      expect(await ledger.mark('b', 'run')).toBe(0)
      expect(await ledger.add('b', [amount('a', 1)], { key: 'run', position: 1, until: later() })).toEqual([1])
    })
  })

  describe('audit', () => {
    let audit: NonNullable<Store['audit']>
    beforeEach(() => {
      audit = current().audit!
    })

    test('rows are listed as they were added, the newest first, by tenant, principal, action, outcome and page', async () => {
      for (let i = 0; i < 6; i++) {
        const tenant = i % 2 === 0 ? 'acme' : ''
        await audit.add(
          auditRow({
            resource: `run_${i}`,
            tenant,
            principal: i < 4 ? 'u1' : 'u2',
            outcome: i === 3 ? 'refused' : 'done',
          }),
        )
      }
      const resources = async (query: Parameters<typeof audit.list>[0]) =>
        (await audit.list(query)).map(({ resource }) => resource)
      const all = ['run_5', 'run_4', 'run_3', 'run_2', 'run_1', 'run_0']
      expect((await resources({})).toSorted()).toEqual(all.toSorted())
      expect(await resources({ tenant: 'acme' })).toEqual(['run_4', 'run_2', 'run_0'])
      expect(await resources({ tenant: '' })).toEqual(['run_5', 'run_3', 'run_1'])
      expect(await resources({ tenant: 'none' })).toEqual([])
      expect(await resources({ tenant: 'acme', principal: 'u2' })).toEqual(['run_4'])
      expect(await resources({ action: 'runs.delete' })).toEqual([])
      expect(await resources({ tenant: '', outcome: 'refused', action: 'runs.stop' })).toEqual(['run_3'])
      const [first] = await audit.list({ tenant: 'acme', limit: 1 })
      expect(await resources({ tenant: 'acme', before: first!.n, limit: 1 })).toEqual(['run_2'])
      const { n, ...row } = first!
      expect(n).toBeGreaterThan(0)
      expect(row).toEqual(auditRow({ resource: 'run_4', principal: 'u2', time: row.time }))
    })

    test('numbers do not count the rows of other tenants', async () => {
      const time = Date.now()
      await audit.add(auditRow({ tenant: 'acme', time }))
      for (let i = 0; i < 5; i++) await audit.add(auditRow({ tenant: 'beta', time }))
      await audit.add(auditRow({ tenant: 'acme', time: time + 1000 }))
      const [last, first] = await audit.list({ tenant: 'acme' })
      expect(last!.n - first!.n).toBeGreaterThan(6)
    })

    test('long and broken texts are cut, and rows older than a time are pruned', async () => {
      const long = 'x'.repeat(600)
      await audit.add(auditRow({ resource: long, action: 'a\ud800', time: Date.now() - 10_000_000 }))
      const [row] = await audit.list()
      expect(row).toMatchObject({ resource: 'x'.repeat(512), action: 'a\ufffd' })
      expect(await audit.prune(Date.now() - 20_000_000)).toBe(0)
      expect(await audit.list()).toHaveLength(1)
      expect(await audit.prune(Date.now() + 60_000)).toBe(1)
      expect(await audit.list()).toEqual([])
      await audit.add(auditRow())
      expect(await audit.list({ tenant: 'acme' })).toHaveLength(1)
    })
  })
}

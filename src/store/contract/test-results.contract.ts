/** The contract of test results. */
import { beforeEach, describe, expect, test } from 'vitest'
import type { Store } from '../../part/log.ts'
import type { NewTestResult, TestResults } from '../../part/test-result.ts'

/** A result of a case. */
export function testRow(changes: Partial<NewTestResult> = {}): NewTestResult {
  return {
    test: 'shop/orders',
    agent: 'shop',
    time: Date.now(),
    user: 'ann',
    status: 'passed',
    isLive: false,
    tokens: 5,
    duration: 12,
    failures: [],
    warnings: [],
    ...changes,
  }
}

export function testResultsContract(current: () => Store): void {
  describe('test results', () => {
    let results: TestResults
    beforeEach(() => {
      results = current().testResults!
    })
    test('the newest first, as they were given; each case has its own', async () => {
      const failures = [
        { what: 'text', message: 'differs', expected: 'a\n"ä"', got: { n: [1] } },
        { what: 'run', message: 'x' },
      ]
      const full = testRow({
        model: 'm',
        run: 'r1',
        cost: 0.5,
        isLive: true,
        source: 'terminal',
        status: 'failed',
        failures,
        warnings: ['w'],
      })
      await results.add(testRow())
      await results.add(full)
      await results.add(testRow({ test: 'shop/pays' }))
      const [last, first, ...more] = await results.of('shop/orders')
      expect(last).toEqual({ n: expect.any(Number), ...full })
      expect(first).toEqual({ n: expect.any(Number), ...testRow({ time: first!.time }) })
      expect(more).toEqual([])
      expect(last!.n).toBeGreaterThan(first!.n)
      expect(await results.of('shop/orders', 1)).toEqual([last])
      expect(await results.of('shop')).toEqual([])
    })

    test('only the last ones of a case are kept, and none of one that is gone', async () => {
      for (let tokens = 0; tokens < 53; tokens++) await results.add(testRow({ tokens }))
      await results.add(testRow({ test: 'other' }))
      const kept = await results.of('shop/orders')
      expect(kept.map(({ tokens }) => tokens)).toEqual(Array.from({ length: 50 }, (_, i) => 52 - i))
      await results.forget('shop/orders')
      expect(await results.of('shop/orders')).toEqual([])
      expect(await results.of('other')).toHaveLength(1)
    })

    test('a case that gets another name keeps its results, and they go on', async () => {
      for (const tokens of [1, 2]) await results.add(testRow({ tokens, failures: [{ what: 'text', message: 'ä' }] }))
      await results.add(testRow({ test: 'shop/left' }))
      await results.rename('shop/orders', 'shop/left')
      expect(await results.of('shop/orders')).toEqual([])
      await results.add(testRow({ test: 'shop/left', tokens: 3 }))
      const rows = await results.of('shop/left')
      expect(rows.map(({ tokens, test }) => [tokens, test])).toEqual([3, 2, 1].map((n) => [n, 'shop/left']))
      expect(rows.map(({ n }) => n)).toEqual(rows.map(({ n }) => n).toSorted((a, b) => b - a))
      expect(rows.at(-1)!.failures).toEqual([{ what: 'text', message: 'ä' }])
      await results.rename('shop/none', 'shop/new')
      expect(await results.of('shop/new')).toEqual([])
    })

    test('long texts and values are cut', async () => {
      const long = 'x'.repeat(10_000)
      const failures = Array.from({ length: 30 }, () => ({ what: 'json', message: long, expected: [long], got: long }))
      await results.add(testRow({ failures, warnings: [long] }))
      const [kept] = await results.of('shop/orders')
      expect(kept!.failures).toHaveLength(20)
      expect(JSON.stringify(kept).length).toBeLessThan(300_000)
      expect(kept!.failures[0]!.got).toMatch(/^x{4000}…$/u)
    })
  })
}

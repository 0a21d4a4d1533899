/** Which pair the benchmark measures when, and how it takes ratios. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ratioOf, schedule } from '../../bench/schedule.ts'
import { formatResult } from '../../bench/table.ts'
import { orderOf } from '../../bench/turns.ts'

describe('benchmark: schedule', () => {
  test('every pair is warmed and measured as often as every other, and its order alternates', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.nat(4), fc.nat(9), (pairs, warmUps, rounds) => {
        const turns = schedule(pairs, { warmUps, rounds })
        for (let pair = 0; pair < pairs; pair++) {
          const own = turns.filter((turn) => turn.pair === pair)
          expect(own.filter(({ round }) => round === 0)).toHaveLength(warmUps)
          expect(own.map(({ round }) => round).filter((round) => round > 0)).toEqual(
            Array.from({ length: rounds }, (_, i) => i + 1),
          )
          for (const [i, { referenceFirst }] of own.entries())
            expect(referenceFirst).toBe(i % 2 === 0 ? own[0]!.referenceFirst : !own[0]!.referenceFirst)
        }
        expect(turns.map(({ round }) => round)).toEqual(turns.map(({ round }) => round).toSorted((a, b) => a - b))
      }),
    )
  })

  test('in each turn every row comes once, none twice in a row, and none mostly after the same one', () => {
    for (let rows = 5; rows < 9; rows++) {
      const orders = Array.from({ length: 10 }, (_, turn) => orderOf(rows, turn))
      for (const order of orders)
        expect(order.toSorted((a, b) => a - b)).toEqual(Array.from({ length: rows }, (_, i) => i))
      const all = orders.flat()
      for (let row = 0; row < rows; row++) {
        const before = all.flatMap((each, i) => (each === row && i > 0 ? all[i - 1]! : []))
        expect(before).not.toContain(row)
        for (const other of before)
          expect(before.filter((each) => each === other).length).toBeLessThan(before.length * 0.75)
      }
    }
  })

  test('each round begins with another pair', () => {
    const turns = schedule(3, { warmUps: 1, rounds: 2 })
    expect(turns.map(({ pair }) => pair)).toEqual([0, 1, 2, 1, 2, 0, 2, 0, 1])
    expect(turns.map(({ round }) => round)).toEqual([0, 0, 0, 1, 1, 1, 2, 2, 2])
  })

  test('a ratio is taken in each round: a machine that turns slow in the third changes none', () => {
    const samples = [{ cpu: 1 }, { cpu: 1.2 }, { cpu: 4 }]
    const beside = [{ cpu: 2 }, { cpu: 2 }, { cpu: 8 }]
    const row = { name: 'row', title: 'Row', samples, beside }
    expect(ratioOf(row, [], 'cpu')).toEqual({ median: 0.5, least: 0.5, most: 0.6 })
    expect(ratioOf({ name: 'row', title: 'Row', samples }, beside, 'cpu')).toEqual({
      median: 0.5,
      least: 0.5,
      most: 0.6,
    })
    expect(ratioOf(row, [], 'rate')).toBeUndefined()
    const columns = [{ key: 'cpu', title: 'CPU', digits: 1, ratio: true }]
    const base = { name: 'base', title: 'Base', samples: beside }
    const text = formatResult({ scenario: 's', title: 't', reference: 'base', columns, rows: [row, base], notes: [] })
    expect(text).toMatch(/^Row +1\.2 +0\.50 \(0\.50–0\.60\)$/mu)
    expect(text).toMatch(/^Base +2\.0 +1\.00$/mu)
  })
})

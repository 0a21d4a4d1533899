import { expect, test } from 'vitest'
import type { RunRow } from '../../../src/part/log.ts'
import { layLanes, ticksOf } from './lanes.ts'

const run = (id: string, agent: string, startedAt: number, endedAt?: number) =>
  ({
    id,
    agent,
    startedAt,
    updatedAt: startedAt,
    status: endedAt === undefined ? 'running' : 'completed',
    ...(endedAt === undefined ? undefined : { endedAt }),
  }) as RunRow

test('a lane for each agent by name; runs at the same time below each other', () => {
  const rows = [
    run('c', 'writer', 160),
    run('a', 'writer', 110, 150),
    run('b', 'writer', 120, 170),
    run('d', 'critic', 90, 120),
    run('e', 'critic', 20, 99),
  ]
  const lanes = layLanes(rows, 100, 200)
  expect(lanes.map(({ agent, levels }) => [agent, levels])).toEqual([
    ['critic', 1],
    ['writer', 2],
  ])
  expect(lanes[0]!.bars.map(({ run, left, width }) => [run.id, left, width])).toEqual([['d', 0, 20]])
  expect(lanes[1]!.bars.map(({ run, left, width, level }) => [run.id, left, width, level])).toEqual([
    ['a', 10, 40, 0],
    ['b', 20, 50, 1],
    ['c', 60, 40, 0],
  ])
})

test('many runs at once share the last level', () => {
  const rows = Array.from({ length: 9 }, (_, i) => run(`r${i}`, 'a', 100 + i))
  expect(layLanes(rows, 0, 1000)[0]!.levels).toBe(4)
})

test('about six times, at whole minutes', () => {
  const minute = 60_000
  expect(ticksOf(0.5 * minute, 15.5 * minute).map((at) => at / minute)).toEqual([5, 10, 15])
  expect(ticksOf(0, 60 * minute)).toHaveLength(7)
})

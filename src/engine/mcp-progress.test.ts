import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { pacedProgress } from './mcp-progress.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const begin = () => {
  const told: string[] = []
  return { told, progress: pacedProgress((words) => told.push(words), Date.now) }
}

test('the first words are told at once, then the newest once a second, and none twice', () => {
  const { told, progress } = begin()
  for (const words of ['a', 'a', 'b', 'c']) progress.say(words)
  expect(told).toEqual(['a'])
  vi.advanceTimersByTime(1000)
  expect(told).toEqual(['a', 'c'])
  progress.say('c')
  vi.advanceTimersByTime(5000)
  progress.say('c')
  progress.say('d')
  expect(told).toEqual(['a', 'c', 'd'])
})

test('a flood of two hours is hundreds of entries', () => {
  const { told, progress } = begin()
  for (let tenth = 0; tenth < 72_000; tenth++) {
    progress.say(`${tenth} of 72000`)
    vi.advanceTimersByTime(100)
  }
  expect(told.length).toBeGreaterThan(100)
  expect(told.length).toBeLessThan(500)
})

test('behind the end nothing is told', () => {
  const { told, progress } = begin()
  progress.say('a')
  progress.say('b')
  progress.end()
  progress.say('c')
  vi.advanceTimersByTime(60_000)
  expect(told).toEqual(['a'])
})

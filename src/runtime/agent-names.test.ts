import { describe, expect, test } from 'vitest'
import { findByName } from './agent-names.ts'

describe('names of agents', () => {
  const names = new Map(Object.entries({ a: 1, 'gpt-*': 2, 'gpt-5*': 3, 'gpt-5': 4, '*-mini-*': 5, 'x*y*x': 6 }))

  test.each([
    ['a', 1],
    ['gpt-5', 4],
    ['gpt-5-codex', 3],
    ['gpt-4', 2],
    ['gpt-', 2],
    ['o4-mini-2025', 5],
    ['xyx', 6],
    ['x-y-x', 6],
    ['xx', undefined],
    ['xy', undefined],
    ['b', undefined],
    ['', undefined],
    ['GPT-4', undefined],
    // An alias with * is no name.
    ['gpt-*', 2],
  ])('%s', (name, found) => {
    expect(findByName(names, name)).toBe(found)
  })

  test('many stars are fast', () => {
    const hostile = new Map([[`${'*a'.repeat(200)}*b`, 1]])
    expect(findByName(hostile, 'a'.repeat(100_000))).toBeUndefined()
  })
})

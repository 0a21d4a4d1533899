import { expect, test } from 'vitest'
import { keyRefused, onKey, readKey, setKey } from './key.ts'

test('a refused key is told of once, and what was asked before it was entered says nothing about it', () => {
  let told = 0
  const leave = onKey(() => told++)
  keyRefused(undefined)
  keyRefused(undefined)
  expect(told).toBe(1)
  setKey('k')
  expect([readKey(), told]).toEqual(['k', 2])
  keyRefused(undefined)
  expect(told).toBe(2)
  keyRefused('k')
  expect(told).toBe(3)
  setKey(undefined)
  expect([readKey(), told]).toEqual([undefined, 4])
  leave()
})

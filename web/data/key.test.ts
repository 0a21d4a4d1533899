import { expect, test } from 'vitest'
import { keyAccepted, keyRefused, onKey, readChanges, readKey, setKey } from './key.ts'

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

test('what was refused may be asked for again after another key, and when the server lets the tab in', () => {
  const before = readChanges()
  keyAccepted(undefined)
  keyRefused(undefined)
  expect(readChanges()).toBe(before)
  keyAccepted('another')
  expect(readChanges()).toBe(before)
  keyAccepted(undefined)
  expect(readChanges()).toBe(before + 1)
  keyAccepted(undefined)
  setKey('k')
  setKey('k')
  setKey(undefined)
  expect(readChanges()).toBe(before + 4)
})

/** `memory`: what earlier runs of a thread hold, picked for this one; facts kept for the next ones; all of it in the log. */
import { describe, expect, test } from 'vitest'
import { finish, text } from '../../src/models/testing/scripted-model.ts'
import { openEngine } from '../support/engine.ts'
import { createTold } from '../support/going-on.ts'
import { agent, said } from './memory-turns.ts'

describe('memory of threads', () => {
  test('long messages count for what they are', async () => {
    const engine = openEngine({ agents: { a: agent() }, scripts: { m: createTold(() => [text('Yes.'), finish()]) } })
    const long = (name: string) => `${name} ${Array.from({ length: 250_000 }, (_, i) => `w${i}`).join(' ')}`
    const outputs = await said(engine, 't', long('one'), long('two'), long('three'), long('four'))
    const starts = outputs.map(({ recalled }) => recalled.turns.map(({ user: side }) => side.split(' ')[0]))
    expect(starts).toEqual([[], ['one'], ['two', 'one'], ['three', 'two']])
  })
})

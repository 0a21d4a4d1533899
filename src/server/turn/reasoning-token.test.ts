import { describe, expect, test } from 'vitest'
import { reasoningToken } from '../../part/reasoning-token.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { createReasoningTokens, longestReasoningToken } from './reasoning-token.ts'

const run = 'run_0123456789abcdef0123456789abcdef'

describe('reasoning tokens', () => {
  test('a token opens as its run and part, at another instance too, and reads alike each time', async () => {
    const { log } = memoryStore()
    const [one, other] = [createReasoningTokens(log), createReasoningTokens(log)]
    const sealed = (await one.sealReasoning(run))!
    expect(await other.sealReasoning(run)).toBe(sealed)
    expect(await one.sealReasoning(`${run}0`)).not.toBe(sealed)
    const token = reasoningToken(sealed, 12)
    expect(token).toMatch(/^mrthought_[\w-]+\.12$/u)
    expect(token.length).toBeLessThanOrEqual(longestReasoningToken)
    expect(token).not.toContain(run)
    expect(await other.openReasoning(token)).toEqual({ runId: run, part: 12 })
  })

  test('one that was changed, made up, or is of another store is nothing', async () => {
    const tokens = createReasoningTokens(memoryStore().log)
    const token = reasoningToken((await tokens.sealReasoning(run))!, 0)
    const others = createReasoningTokens(memoryStore().log)
    expect(await others.openReasoning(token)).toBeUndefined()
    const changed = token.replace(/.(?=\.0$)/u, (last) => (last === 'A' ? 'Q' : 'A'))
    for (const each of [
      changed,
      '',
      'sig',
      `${token}0000000`,
      token.slice(10),
      7,
      undefined,
      `mrthought_${'A'.repeat(300)}.0`,
    ])
      expect(await tokens.openReasoning(each)).toBeUndefined()
  })

  test('a run whose id is too long has none', async () => {
    const tokens = createReasoningTokens(memoryStore().log)
    expect(await tokens.sealReasoning('x'.repeat(100))).toBeDefined()
    expect(await tokens.sealReasoning('x'.repeat(300))).toBeUndefined()
  })
})

/** `millrace threads`: the same from a server and from its database. */
import { describe, expect, test } from 'vitest'
import type { ThreadRow } from '../../src/part/thread.ts'
import { folder, ran, serving } from '../support/cli.ts'

const step = 'workflow: [{ id: answer, type: llm, config: { model: "demo:assistant", stream: true } }]\n'

describe('millrace threads', () => {
  test('lists conversations, finds one by its words, shows one; a mistake is told', { timeout: 60_000 }, async () => {
    const cwd = folder({ 'agents/a.yaml': `history: server\n${step}`, 'agents/b.yaml': step })
    const server = await serving([], { cwd })
    const say = async (agentId: string, id: string, content: string) => {
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify({ agentId, id, messages: [{ role: 'user', content }] })
      await (await fetch(`${server.url}/api/chat`, { method: 'POST', headers, body })).text()
    }
    await say('a', 'zoo', 'Which animals live in the zoo?')
    await say('b', 'moon', 'How far is the moon?')
    for (let i = 0; i < 12; i++) await say('a', 'zoo', `And number ${i}?`)

    const look = async () => {
      const list = await ran(['threads'], { cwd })
      const json = await ran(['threads', '--json', '--limit', '1'], { cwd })
      const found = await ran(['threads', '--search', 'far moon', '--json'], { cwd })
      const none = await ran(['threads', '--agent', 'b', '--status', 'waiting'], { cwd })
      const one = await ran(['threads', 'zoo'], { cwd })
      const full = await ran(['threads', 'zoo', '--full', '--json'], { cwd })
      for (const { code } of [list, json, found, none, one, full]) expect(code).toBe(0)
      return { list, json, found, none, one, full }
    }
    const live = await look()
    const lines = live.list.out.trim().split('\n')
    expect(lines[0]).toMatch(/^THREAD +AGENTS +STATUS +LAST +RUNS +TOKENS +COST +TITLE$/u)
    expect(lines[1]).toMatch(/^zoo +a +idle +\d{4}-.* 13 +\d+ .*Which animals live in the zoo\?$/u)
    expect(lines[2]).toMatch(/^moon +b +idle .*How far is the moon\?$/u)
    expect((JSON.parse(live.json.out) as ThreadRow[]).map(({ id }) => id)).toEqual(['zoo'])
    expect((JSON.parse(live.found.out) as ThreadRow[]).map(({ id }) => id)).toEqual(['moon'])
    expect(live.none.err).toBe('no matching conversations\n')
    expect(live.one.out).toMatch(/^zoo {2}idle\n/u)
    expect(live.one.out).toContain('And number 11?')
    expect(live.one.out).not.toContain('Messages\nuser        Which animals live in the zoo?')
    expect(live.one.out.trimEnd()).toMatch(/\(earlier messages: use --full\)$/u)
    expect((JSON.parse(live.full.out) as { messages: unknown[] }).messages).toHaveLength(26)

    server.kill('SIGTERM')
    await server.exit
    const stored = await look()
    for (const name of ['list', 'json', 'found', 'none', 'one', 'full'] as const)
      expect(stored[name].out).toBe(live[name].out)

    const unknown = await ran(['threads', 'zo'], { cwd })
    expect([unknown.code, unknown.err]).toEqual([
      2,
      'millrace: There is no thread zo. List threads with: millrace threads\n',
    ])
    expect((await ran(['threads', '--limit', 'all'], { cwd })).code).toBe(2)
    expect((await ran(['threads', '--status', 'wating'], { cwd })).err).toContain('waiting')
  })
})

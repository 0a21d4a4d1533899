/** What steps, tools and step types know of who started a run: `run-start.user`, whatever the request says. */
import { describe, expect, test } from 'vitest'
import type { RunUser } from '../../src/part/principal.ts'
import type { PrimitiveHandler } from '../../src/engine/registry.ts'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { ToolContext } from '../../src/tools/tool.ts'
import { agent, entriesOf, only, openEngine } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'

const ada: RunUser = { id: 'u1', tenant: 'acme', name: 'Ada', roles: ['user'], claims: { plan: 'pro' } }

const steps = (template: string) => `workflow: [{ id: s, type: output-generator, config: { template: ${template} } }]`

describe('$user', () => {
  test('is who started the run, in templates, conditions, called agents and after; the body cannot choose it', async () => {
    const seen: unknown[] = []
    const note: PrimitiveHandler = (config) => void seen.push(config)
    const { runtime } = openEngine({
      agents: {
        child: steps('{ id: $user.id, plan: $user.claims.plan }'),
        a: `
workflow:
  - { id: one, type: output-generator, result: one, config: { template: "$user.name of $user.tenant" } }
  - id: two
    type: condition
    result: two
    config:
      if: $user.claims.plan? == "pro" and $user.roles contains "user"
      then: [{ id: t, type: output-generator, config: { template: pays } }]
      else: [{ id: e, type: output-generator, config: { template: no } }]
  - { id: three, type: call-agent, result: three, config: { agent: child, input: { user: { id: eve } } } }
return: { one: $one, two: $two, three: $three, roles: $user.roles }
after: [{ id: later, type: note, config: { id: $user.id } }]
`,
      },
      steps: { note },
    })
    const { result } = await runtime.start('a', { user: { id: 'eve', claims: { plan: 'none' } } }, { user: ada })
    expect((await result).output).toEqual({
      one: 'Ada of acme',
      two: 'pays',
      three: { id: 'u1', plan: 'pro' },
      roles: ['user'],
    })
    expect(seen).toEqual([{ id: 'u1' }])
  })

  test('a run that belongs to no one has none: an error, or nothing where the reference says so', async () => {
    const { runtime } = openEngine({ agents: { a: steps('{ id: $user.id }'), b: steps('{ id: $user.id? }') } })
    expect(await (await runtime.start('a', {})).result).toMatchObject({
      outcome: 'failed',
      error: { code: 'missing-value', message: expect.stringContaining('the run belongs to no one') as string },
    })
    expect((await (await runtime.start('b', {})).result).output).toEqual({})
  })

  test('two users may both name a thread 1, and neither continues a run of the other', async () => {
    const { runtime } = openEngine({ agents: { a: `history: server\n${steps('{ id: $user.id }')}` } })
    const one = await runtime.start('a', {}, { user: ada, threadId: '1' })
    const other = await runtime.start('a', {}, { user: { id: 'u2' }, threadId: '1' })
    expect([one.threadId, other.threadId]).toEqual(['1@@acme/u1', '1@@u2'])
    await one.result
    const stolen = runtime.start('a', {}, { user: { id: 'u2' }, previousRunId: one.id })
    await expect(stolen).rejects.toMatchObject({
      code: 'bad-input',
      message: expect.stringContaining('names no run') as string,
    })
    const own = await runtime.start('a', {}, { user: ada, previousRunId: one.id })
    expect(own.threadId).toBe(one.threadId)
  })
})

describe('the context', () => {
  test('tools and step types get who started the run, and nothing if it is no one', async () => {
    const seen: unknown[] = []
    const look: PrimitiveHandler = (_, context) => void seen.push('user' in context ? context.user : 'none')
    const tell = {
      parameters: { type: 'object' },
      execute: (_: unknown, context: ToolContext) => void seen.push('user' in context ? context.user : 'none'),
    }
    const model = createTold((prompt) =>
      resultsIn(prompt).size === 0 ? [toolCall('c', 'tell', {}), finish('tool-calls')] : [text('Told.'), finish()],
    )
    const yaml = agent('tools: [tell]').replace('workflow:', 'workflow:\n  - { id: look, type: look }')
    const { runtime, store } = openEngine({
      agents: { a: yaml },
      steps: { look },
      tools: { tell },
      scripts: { m: model },
    })
    const input = { messages: [{ role: 'user', content: 'Hi' }] }
    const mine = await runtime.start('a', input, { user: ada })
    await mine.result
    const nobodys = await runtime.start('a', input)
    await nobodys.result
    expect(seen).toEqual([ada, ada, 'none', 'none'])
    expect(only(await entriesOf(store, mine.id), 'run-start')[0]!.user).toEqual(ada)
  })
})

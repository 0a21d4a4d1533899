/** Approvals that only callers with a role may give: who may answer, what is recorded, and which roles count. */
import { describe, expect, test } from 'vitest'
import type { Role } from '../../src/part/principal.ts'
import type { Approval, Reply } from '../../src/part/request-part.ts'
import { continueOrStart, type Turn } from '../../src/runtime/continue.ts'
import type { Wake } from '../../src/runtime/runtime.ts'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, only, openEngine } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'

const yes: Reply = { kind: 'approval', approved: true }
const parameters = { type: 'object', properties: { sum: { type: 'number' } } }
const messages = [{ role: 'user' as const, content: 'Pay' }]

/** An agent that pays, and how often it did. */
function paying(config: string, approval?: Approval) {
  const seen = { paid: 0 }
  const pay = { parameters, ...(approval !== undefined && { approval }), execute: () => `paid ${++seen.paid}` }
  const model = createTold((prompt) =>
    resultsIn(prompt).size === 0 ? [toolCall('c', 'pay', {}), finish('tool-calls')] : [text('Done.'), finish()],
  )
  return { seen, ...openEngine({ agents: { a: agent(config) }, tools: { pay }, scripts: { m: model } }) }
}

async function asked(config: string, approval?: Approval, input: object = {}) {
  const engine = paying(config, approval)
  const run = await engine.runtime.start('a', { messages, ...input }, { threadId: 't' })
  expect((await run.result).outcome).toBe('suspended')
  const [request] = only(await entriesOf(engine.store, run.id), 'request')
  return { ...engine, run, request: request!, requestId: request!.requestId }
}

const as = (id: string, ...roles: Role[]): Wake => ({ by: { id, name: id.toUpperCase() }, roles })
const forbidden = { code: 'forbidden', status: 403 }

describe('roles of an approval', () => {
  const tools = { name: 'pay', parameters }
  test.each<[place: string, config: string, approval: Approval | undefined, input: object, roles: unknown]>([
    ['the file', 'tools: [{ name: pay, approval: { roles: [operator] } }]', undefined, {}, ['operator']],
    ['the tool', 'tools: [pay]', { roles: ['operator', 'user'] }, {}, ['operator', 'user']],
    [
      'the file, instead of the tool’s',
      'tools: [{ name: pay, approval: { roles: [user] } }]',
      { roles: ['operator'] },
      {},
      ['user'],
    ],
    [
      'the tool: true in the file does not open it',
      'tools: [{ name: pay, approval: true }]',
      { roles: ['operator'] },
      {},
      ['operator'],
    ],
    [
      'a client tool in the file',
      'tools: [{ name: pay, client: true, approval: { roles: [operator] } }]',
      undefined,
      {},
      ['operator'],
    ],
    [
      'the request, beside true in the file',
      'tools: [{ name: pay, approval: true }]',
      undefined,
      { tools: [{ ...tools, metadata: { approval: { roles: ['operator'] } } }] },
      ['operator'],
    ],
    [
      'both: the roles that are in both',
      'tools: [pay]',
      { roles: ['operator', 'admin'] },
      { tools: [{ ...tools, metadata: { approval: { roles: ['user', 'operator'] } } }] },
      ['operator'],
    ],
    [
      'both, without a common one: admins only',
      'tools: [pay]',
      { roles: ['operator'] },
      { tools: [{ ...tools, metadata: { approval: { roles: ['user'] } } }] },
      [],
    ],
    ['no one', 'tools: [pay]', true, {}, undefined],
  ])('are recorded with the request: of %s', async (_, config, approval, input, roles) => {
    const { request } = await asked(config, approval, input)
    expect(request).toMatchObject({ kind: 'approval', toolName: 'pay' })
    expect(request.roles).toEqual(roles)
  })

  test('a fork behind an approval that needs a role does not run the call again for a user', async () => {
    const tool = 'tools: [{ name: pay, approval: { roles: [operator] } }]'
    const { run, runtime, requestId, seen, store } = await asked(tool, undefined)
    await runtime.answer(run.id, requestId, yes, as('olga', 'operator'))
    expect((await run.result).outcome).toBe('suspended')
    expect((await runtime.open(run.id).then((found) => found!.result)).outcome).toBe('completed')
    expect(seen.paid).toBe(1)
    const [response] = only(await entriesOf(store, run.id), 'response')
    const fork = (roles?: Role[]) =>
      runtime.fork(run.id, { at: response!.seq, ...(roles && { user: { id: 'u', roles } }) })
    const place = { code: 'bad-fork', message: expect.stringContaining('needs the role operator') as string }
    await expect(fork(['user'])).rejects.toMatchObject(place)
    await expect(fork([])).rejects.toMatchObject(place)
    expect(seen.paid).toBe(1)
    const forked = await fork(['operator'])
    expect((await forked.result).outcome).toBe('completed')
    expect(seen.paid).toBe(2)
  })

  test('a request that names a role that does not exist fails: nobody may think that it is protected', async () => {
    const { runtime } = paying('tools: [pay]')
    const run = await runtime.start('a', {
      messages,
      tools: [{ name: 'own', parameters, metadata: { approval: { roles: ['boss'] } } }],
    })
    expect((await run.result).error).toMatchObject({
      code: 'bad-tools',
      message: expect.stringContaining(
        'metadata.approval.roles of the tool "own" must be a list of user, operator, admin',
      ) as string,
    })
  })

  test('false in the file still means that nobody is asked', async () => {
    const { runtime, seen } = paying('tools: [{ name: pay, approval: false }]', { roles: ['operator'] })
    const run = await runtime.start('a', { messages })
    expect((await run.result).outcome).toBe('completed')
    expect(seen.paid).toBe(1)
  })
})

describe('answers', () => {
  const byOperator = 'tools: [{ name: pay, approval: { roles: [operator] } }]'

  test('without the role: 403, nothing is recorded; with it the tool runs once, and the log says who', async () => {
    const { run, runtime, store, seen, requestId } = await asked(byOperator)
    const before = (await entriesOf(store, run.id)).length
    const refused = runtime.answer(run.id, requestId, yes, as('una', 'user'))
    await expect(refused).rejects.toMatchObject({
      ...forbidden,
      message: `Request ${requestId} can only be answered by somebody with the role operator.`,
    })
    const all = runtime.answerAll(run.id, new Map([[requestId, yes]]), as('una', 'user'))
    await expect(all).rejects.toMatchObject(forbidden)
    expect((await entriesOf(store, run.id)).length).toBe(before)
    expect((await store.runs.get(run.id))!.status).toBe('suspended')

    const first = await runtime.answer(run.id, requestId, yes, as('olga', 'user', 'operator'))
    expect(first).toMatchObject({ duplicate: false, isSame: true })
    expect((await (await runtime.open(run.id))!.result).outcome).toBe('completed')
    const no = await runtime.answer(run.id, requestId, { kind: 'approval', approved: false }, as('oleg', 'operator'))
    expect(no).toMatchObject({ duplicate: true, isSame: false })
    expect(seen.paid).toBe(1)
    const entries = await entriesOf(store, run.id)
    expect(only(entries, 'response')).toMatchObject([{ answer: yes, by: { id: 'olga', name: 'OLGA' } }])
    expect(JSON.stringify(entries.slice(before))).not.toContain('"roles"')
  })

  test.each<[who: string, wake: Wake]>([
    ['an admin', as('ann', 'admin')],
    ['a caller of a server that does not ask', {}],
  ])('%s may give every approval', async (_, wake) => {
    const { run, runtime, requestId } = await asked(byOperator)
    await runtime.answer(run.id, requestId, yes, wake)
    expect((await (await runtime.open(run.id))!.result).outcome).toBe('completed')
  })

  test('edited arguments that do not fit are refused, also where the caller may not read the schema', async () => {
    const { run, runtime, requestId, store } = await asked(byOperator)
    const edited = new Map<string, Reply>([[requestId, { ...yes, input: { sum: 'much' } } as Reply]])
    await expect(runtime.answerAll(run.id, edited, as('olga', 'operator'))).rejects.toMatchObject({ status: 400 })
    expect((await store.runs.get(run.id))!.status).toBe('suspended')
  })

  test('in a conversation as well: the whole turn is refused, and the run waits on', async () => {
    const { run, runtime, store, requestId } = await asked(byOperator)
    const scoped = {
      ...runtime,
      answerAll: ((id, answers, wake, headers) =>
        runtime.answerAll(id, answers, { ...wake, ...as('una', 'user') }, headers)) as typeof runtime.answerAll,
    }
    const turn: Turn = {
      agentId: 'a',
      threadId: 't',
      messages,
      answers: [{ requestId, answer: yes }],
      input: {},
      protocol: 'ui',
      onBusy: 'interrupt',
      history: 'client',
    }
    await expect(continueOrStart(scoped, turn)).rejects.toMatchObject(forbidden)
    expect((await store.runs.get(run.id))!.status).toBe('suspended')
    expect(await store.runs.list({ threadId: 't' })).toHaveLength(1)
  })
})

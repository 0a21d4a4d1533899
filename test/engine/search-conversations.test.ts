/** `searchConversations`: what an agent may know of earlier conversations, and what it may not. */
import { afterEach, describe, expect, test } from 'vitest'
import {
  createScriptedModel,
  finish,
  text,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import { omitUndefined } from '../../src/part/omit-undefined.ts'
import type { RunUser } from '../../src/part/principal.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import { agent, createEngine, entriesOf, only, type Engine, type EngineOptions } from '../support/engine.ts'

let engine: Engine
afterEach(() => engine.close())

const stores: Record<string, Partial<EngineOptions>> = {
  SQLite: {},
  memory: {
    wrapStore: (store) => {
      void store.close()
      return memoryStore()
    },
  },
}

function open(store: Partial<EngineOptions>, script: ScriptStep[][]): void {
  const yaml = agent('tools: [searchConversations]')
  engine = createEngine({ agents: { a: yaml, b: yaml }, scripts: { m: createScriptedModel(script) }, ...store })
}

const answers = (words: string): ScriptStep[] => [text(words), finish()]
const searches = (words: string): ScriptStep[][] => [
  [toolCall('c', 'searchConversations', { words }), finish('tool-calls')],
  answers('So.'),
]

interface Asked {
  user?: string
  /** Who starts the run. */
  owner?: RunUser
  threadId?: string
  agentId?: string
}

async function say(content: string, { user, owner, threadId, agentId = 'a' }: Asked): Promise<string> {
  const input = { messages: [{ role: 'user' as const, content }], ...(user === undefined ? {} : { user }) }
  const run = await engine.runtime.start(agentId, input, omitUndefined({ threadId, user: owner }))
  await run.result
  await engine.store.records?.settle()
  return run.id
}

/** What a run whose model searches has found. */
async function found(asked: Asked): Promise<unknown> {
  const entries = await entriesOf(engine.store, await say('Do you remember?', asked))
  const [result] = only(entries, 'tool-result')
  return (result!.result as { found: unknown }).found
}

describe.each(Object.entries(stores))('%s', (_, store) => {
  test('a user’s earlier conversations with this agent are found, newest first, in their words and in the answers', async () => {
    open(store, [
      answers('Rex is a fine name for a dog.'),
      answers('Noted.'),
      ...searches('dog'),
      ...searches('dog Rex'),
    ])
    await say('My dog is called Rex.', { user: 'ada', threadId: 't1' })
    await say('A cat would eat less.', { user: 'ada', threadId: 't2' })
    const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT/u) as string
    const both = [
      { threadId: 't1', at, by: 'assistant', text: 'Rex is a fine name for a dog.' },
      { threadId: 't1', at, by: 'user', text: expect.stringContaining('My dog is called Rex.') as string },
    ]
    expect(await found({ user: 'ada', threadId: 't3' })).toEqual(both)
    expect(await found({ user: 'ada' })).toEqual(both)
  })

  test('those of another user, of no user and of another agent are never found', async () => {
    open(store, [answers('One.'), answers('Two.'), answers('Three.'), ...searches('secret'), ...searches('secret')])
    await say('My secret is red.', { user: 'eve', threadId: 't1' })
    await say('My secret is green.', { threadId: 't2' })
    await say('My secret is blue.', { user: 'ada', agentId: 'b', threadId: 't3' })
    expect(await found({ user: 'ada', threadId: 't4' })).toEqual([])
    // Not in a thread that another one has begun, either.
    expect(await found({ user: 'ada', threadId: 't1' })).toEqual([])
  })

  test('a run of a user finds what this user said, whatever the request calls itself; one of no one finds nothing of users', async () => {
    open(store, [
      answers('One.'),
      answers('Two.'),
      answers('Three.'),
      answers('Four.'),
      ...Array.from({ length: 5 }, () => searches('secret')).flat(),
    ])
    const [ada, bob] = [{ id: 'ada' }, { id: 'bob' }]
    await say('My secret is red.', { owner: ada, user: 'ada', threadId: 't1' })
    await say('My secret is blue.', { owner: ada, threadId: 't2' })
    await say('My secret is green.', { owner: { ...ada, tenant: 'acme' }, user: 'ada', threadId: 't1' })
    await say('My secret is black.', { user: 'ada', threadId: 't1' })
    expect(await found({ owner: bob, user: 'ada', threadId: 't1' })).toEqual([])
    expect(await found({ owner: { ...bob, tenant: 'acme' }, user: 'ada' })).toEqual([])
    const said = (threadId: string, colour: string) => ({
      threadId,
      by: 'user',
      text: expect.stringContaining(`is ${colour}.`) as string,
    })
    expect(await found({ owner: ada, user: 'bob' })).toMatchObject([said('t2@@ada', 'blue'), said('t1@@ada', 'red')])
    expect(await found({ user: 'ada', threadId: 't9' })).toMatchObject([said('t1', 'black')])
    expect(await found({ threadId: 't1' })).toEqual([])
  })

  test('a key may serve many people: its runs are told apart by the request, as those of no one', async () => {
    open(store, [answers('One.'), answers('Two.'), answers('Three.'), ...searches('secret'), ...searches('secret')])
    const owner = { id: 'key:shop', key: 'shop' }
    await say('My secret is red.', { owner, user: 'ada', threadId: 't1' })
    await say('My secret is blue.', { owner, user: 'bob', threadId: 't2' })
    await say('My secret is green.', { owner, threadId: 't3' })
    expect(await found({ owner, user: 'ada', threadId: 't4' })).toMatchObject([
      { text: expect.stringContaining('is red.') as string },
    ])
    expect(await found({ owner, threadId: 't5' })).toEqual([])
  })

  test('without a user it finds what was said in its own thread, and nothing else', async () => {
    open(store, [answers('One.'), answers('Two.'), ...searches('secret')])
    await say('My secret is red.', { threadId: 't1' })
    await say('My secret is green.', { threadId: 't2' })
    expect(await found({ threadId: 't2' })).toMatchObject([{ threadId: 't2', text: 'My secret is green.' }])
  })
})

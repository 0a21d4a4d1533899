/** Runs and conversations as resources of MCP, as each caller sees them. */
import { describe, expect, test } from 'vitest'
import { scopeRuntime } from '../../src/access/scope-runtime.ts'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/scripted.ts'
import { listResources, readResource, resourceTemplates } from '../../src/server/mcp/resources.ts'
import { callers } from '../support/callers.ts'
import { agent, openEngine } from '../support/engine.ts'

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

function open() {
  const m = createScriptedModel((_, n) => {
    if (n === 1) return [toolCall('deploy', { to: 'canary' }), finish('tool-calls')]
    return [
      text('Hello.'),
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: pixel } },
      { type: 'file', mediaType: 'text/csv', data: { type: 'data', data: btoa('a,b') } },
      finish(),
    ]
  })
  const tools = { deploy: { description: 'Deploys', parameters: { type: 'object' }, execute: () => 'deployed' } }
  const config = 'system: SYSTEM-PROMPT\nmessages: "$input.messages"\ntools: [deploy]'
  const { runtime } = openEngine({ agents: { desk: agent(config) }, scripts: { m }, tools })
  return (name: keyof typeof callers) => {
    const principal = callers[name]
    return { principal, runtime: scopeRuntime(runtime, principal) }
  }
}

async function start({ runtime }: ReturnType<ReturnType<typeof open>>, said = 'Hi', threadId?: string) {
  const messages = [{ role: 'user', content: said }]
  const run = await runtime.start(
    'desk',
    { messages },
    { history: 'server', ...(threadId !== undefined && { threadId }) },
  )
  await run.result
  return run
}

async function textOf(caller: Parameters<typeof readResource>[0], uri: string): Promise<string> {
  const [contents] = (await readResource(caller, uri)) ?? []
  expect(contents?.mimeType).toBe('text/markdown')
  return contents !== undefined && 'text' in contents ? contents.text : ''
}

describe('the list', () => {
  test('has the runs of the caller alone, newest first, in pages of 50', async () => {
    const as = open()
    const [alice, bob, operator] = [as('alice'), as('bob'), as('operator')]
    const ids: string[] = []
    for (let i = 0; i < 51; i++) ids.unshift((await start(alice, `Say ${i}`)).id)
    const other = await start(bob)
    const first = await listResources(alice)
    expect(first?.resources.map(({ uri }) => uri)).toEqual(ids.slice(0, 50).map((id) => `run://${id}`))
    expect(first?.resources[0]).toMatchObject({ name: `desk ${ids[0]}`, title: 'Say 50', mimeType: 'text/markdown' })
    const next = await listResources(alice, first?.nextCursor)
    expect(next?.resources.map(({ uri }) => uri)).toEqual([`run://${ids[50]}`])
    expect(next).not.toHaveProperty('nextCursor')
    expect((await listResources(bob))?.resources.map(({ uri }) => uri)).toEqual([`run://${other.id}`])
    // An operator sees all of its tenant, but none of them is its own.
    expect((await listResources(operator))?.resources).toEqual([])
    for (const cursor of ['run_none', other.id, 7, null]) expect(await listResources(alice, cursor)).toBeUndefined()
  })
})

describe('a run', () => {
  test('is Markdown with its answer, files, steps and usage, without what the agent was told', async () => {
    const alice = open()('alice')
    const { id } = await start(alice)
    const shown = await textOf(alice, `run://${id}`)
    expect(shown).toContain(`# desk: ${id}`)
    for (const part of ['completed, started 20', '## Answer\n\nHello.', `(run://${id}/files/1) image/png, 70 bytes`])
      expect(shown).toContain(part)
    expect(shown).toMatch(/\| answer\/2 \| \S+ \| deploy \| \d+\.\d s \| {2}\|/u)
    expect(shown).toMatch(/## Usage\n\n\d+ input tokens/u)
    expect(shown).not.toContain('SYSTEM-PROMPT')
  })

  test('has files: text as text, others as bytes', async () => {
    const alice = open()('alice')
    const { id } = await start(alice)
    const uri = (n: number | string) => `run://${id}/files/${n}`
    expect(await readResource(alice, uri(1))).toEqual([{ uri: uri(1), mimeType: 'image/png', blob: pixel }])
    expect(await readResource(alice, uri(2))).toEqual([{ uri: uri(2), mimeType: 'text/csv', text: 'a,b' }])
    for (const n of [0, 3, '01', '1x', '1/2', '', '-1']) expect(await readResource(alice, uri(n))).toBeUndefined()
  })

  test('is unknown to others, as are its files and its thread', async () => {
    const as = open()
    const alice = as('alice')
    const { id, threadId } = await start(alice, 'CANARY', 'chat')
    for (const uri of [`run://${id}`, `run://${id}/files/1`, 'thread://chat', `thread://${threadId}`]) {
      for (const name of ['bob', 'alice of beta', 'operator of beta'] as const)
        expect(await readResource(as(name), uri), `${uri} as ${name}`).toBeUndefined()
    }
    expect(JSON.stringify(await readResource(as('operator'), `run://${id}`))).toContain('Hello.')
  })
})

describe('a thread', () => {
  test('is its conversation by the name that the caller gave it, without what the agent was told', async () => {
    const as = open()
    const alice = as('alice')
    await start(alice, 'First', 'my chat')
    await start(alice, 'Second', 'my chat')
    const shown = await textOf(alice, 'thread://my%20chat')
    expect(shown.match(/^##? .*$/gmu)).toEqual([
      '# Thread my chat',
      '## User',
      '## Assistant',
      '## Tools',
      '## Assistant',
      '## User',
      '## Assistant',
    ])
    expect(shown).toContain('- called `deploy` with {"to":"canary"}')
    expect(shown).toContain('- `deploy` returned deployed')
    expect(shown).not.toContain('SYSTEM-PROMPT')
    expect(JSON.stringify(await readResource(alice, `run://${(await start(alice, 'x', 'my chat')).id}`))).toContain(
      '(thread://my%20chat)',
    )
  })
})

test.each([
  undefined,
  7,
  '',
  'run://',
  'run:/x',
  'RUN://x',
  'file:///etc/passwd',
  'run://%E0%A4%A',
  'run://none',
  'thread://none',
])('the address %j is unknown', async (uri) => expect(await readResource(open()('alice'), uri)).toBeUndefined())

test('the templates name all kinds', () => {
  expect(resourceTemplates().map(({ uriTemplate }) => uriTemplate)).toEqual([
    'run://{run}',
    'run://{run}/files/{n}',
    'thread://{thread}',
  ])
})

/** `/api/agents…` for an editor: texts, trees, faults with places, and saving without losing what others wrote. */
import type { AgentSettings } from '../../src/part/agent-settings.ts'
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { AgentCheck, AgentTree } from '../../src/part/agent-tree.ts'
import type { Principal } from '../../src/part/principal.ts'
import { openProject } from '../../src/project/project.ts'
import { createHandler } from '../../src/server/handler.ts'
import type { HandlerOptions } from '../../src/server/handler-context.ts'
import { serve as serveFolder } from '../../src/server/serve.ts'
import { createTestAccess, headersFor } from '../support/callers.ts'
import { folder } from '../support/cli.ts'
import { connectSocket } from '../support/socket.ts'

const say = (words: string) => `workflow:
  - id: say
    type: output-generator
    config: { template: "${words}" }
`
const assistant = `metadata: { name: Assistant }
workflow:
  - id: facts
    type: memory
    result: facts
    config: { action: recall }
  - id: both
    type: parallel
    config:
      branches:
        left:
          - id: ask
            type: llm
            config: { model: "demo:assistant", tools: [calculator] }
        right:
          - id: other
            type: call-agent
            config: { agent: plain }
after:
  - id: keep
    type: condition
    config:
      if: $facts
      then: [{ id: note, type: output-generator, config: { template: x } }]
`

interface Saved extends AgentCheck {
  status: number
  text?: string
  etag?: string
  tree?: AgentTree
  theirs?: { text: string; etag: string } | null
  error?: { message: string; code: string }
  [key: string]: unknown
}

async function serve(files: Record<string, string>, options: Partial<HandlerOptions> = {}, env = {}) {
  const dir = folder(files)
  const { runtime, agents } = await openProject({ dir, data: 'none', env })
  onTestFinished(async () => {
    agents.close()
    await runtime.close(0)
  })
  const handler = createHandler({
    runtime,
    authorize: () => true,
    edit: true,
    agentErrors: () => agents.errors,
    agentEditor: agents.editor,
    ...options,
  })
  async function send(path: string, body?: object, more: Record<string, string> = {}, method = 'POST'): Promise<Saved> {
    const headers = { 'content-type': 'application/json', ...more }
    const init =
      body === undefined
        ? { method: method === 'POST' ? 'GET' : method, headers: more }
        : { method, headers, body: JSON.stringify(body) }
    const response = await handler(new Request(`http://x/api/${path}`, init))
    return { ...((await response.json()) as Saved), status: response.status }
  }
  return { dir, runtime, agents, send }
}

describe('agent editor', () => {
  test('an agent has its text, a tag of it, and its steps as a tree with their lines', async () => {
    const { send } = await serve({ 'assistant.yaml': assistant, 'plain.yml': say('plain') })
    const found = await send('agents/assistant')
    expect(found).toMatchObject({ id: 'assistant', name: 'Assistant', text: assistant, file: 'assistant.yaml' })
    expect(found.tree).toEqual({
      workflow: [
        { id: 'facts', type: 'memory', line: 3, result: 'facts' },
        {
          id: 'both',
          type: 'parallel',
          line: 7,
          lists: [
            {
              name: 'left',
              steps: [{ id: 'ask', type: 'llm', line: 12, model: 'demo:assistant', tools: ['calculator'] }],
            },
            { name: 'right', steps: [{ id: 'other', type: 'call-agent', line: 16, agent: 'plain' }] },
          ],
        },
      ],
      after: [
        {
          id: 'keep',
          type: 'condition',
          line: 20,
          lists: [{ name: 'then', steps: [{ id: 'note', type: 'output-generator', line: 24 }] }],
        },
      ],
    })
    const schema = await send('agents/schema')
    expect(JSON.stringify(schema)).toContain('calculator')
    const { llm, 'call-agent': call } = (schema as unknown as { definitions: Record<string, unknown> }).definitions
    expect(JSON.stringify(llm)).toContain('"examples":["demo:assistant"]')
    expect(JSON.stringify(call)).toContain('"enum":["assistant"')
    expect(await send('agents/none')).toMatchObject({ status: 404 })
  })

  test('an agent is renamed and deleted, unless another one calls it or its file has changed', async () => {
    const { dir, runtime, send } = await serve({ 'assistant.yaml': assistant, 'plain.yml': say('plain') })
    const remove = (id: string, etag: string) => send(`agents/${id}?etag=${etag}`, undefined, {}, 'DELETE')
    const plain = (await send('agents/plain')).etag!
    const own = (await send('agents/assistant')).etag!
    // The one that calls it would fail.
    const called = { status: 409, error: { code: 'agent-called' }, callers: ['assistant'] }
    expect(await send('agents/plain/rename', { to: 'simple', etag: plain })).toMatchObject(called)
    expect(await remove('plain', plain)).toMatchObject(called)

    expect(await send('agents/assistant/rename', { to: 'plain', etag: own })).toMatchObject({
      status: 400,
      error: { message: 'There is an agent "plain" already. Choose another id.' },
    })
    for (const to of ['', '../out', 'a/b', '.hidden']) {
      expect(await send('agents/assistant/rename', { to, etag: own }), to).toMatchObject({ status: 400 })
    }
    expect(await send('agents/assistant/rename', { to: 'desk', etag: own })).toMatchObject({ status: 200, id: 'desk' })
    expect(readdirSync(dir).toSorted()).toEqual(['desk.yaml', 'plain.yml'])
    expect(
      runtime.agents
        .list()
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(['desk', 'plain'])

    writeFileSync(join(dir, 'desk.yaml'), say('new'))
    const changed = { status: 409, error: { code: 'agent-changed' }, theirs: { text: say('new') } }
    expect(await remove('desk', own)).toMatchObject(changed)
    expect(await send('agents/desk/rename', { to: 'other', etag: own })).toMatchObject(changed)
    const { theirs } = await remove('desk', own)
    expect(await remove('desk', theirs!.etag)).toMatchObject({ status: 200, id: 'desk' })
    expect(await remove('desk', theirs!.etag)).toMatchObject({ status: 409, theirs: null })
    expect(await remove('plain', plain)).toMatchObject({ status: 200 })
    expect(readdirSync(dir)).toEqual([])
  })

  test('a text is checked with its names and calls: faults have places, and a fix where a word is meant', async () => {
    const { dir, send } = await serve({
      'plain.yml': say('plain'),
      'prompt.md': 'Be brief.',
      'broken.yaml': 'workflow: 1',
    })
    const typo = assistant.replace('[calculator]', '[calculater]').replace('agent: plain', 'agent: plan')
    const { faults, tree } = await send('agents/check', { id: 'assistant', text: typo })
    expect(faults).toMatchObject([
      {
        line: 14,
        message: expect.stringContaining('unknown tool "calculater"'),
        fix: { line: 14, text: 'calculator' },
      },
    ])
    const fix = faults[0]!.fix!
    expect(typo.split('\n')[fix.line - 1]!.slice(fix.column - 1, fix.column - 1 + fix.length)).toBe('calculater')
    expect(tree).toBeUndefined()
    const calls = await send('agents/check', {
      id: 'assistant',
      text: assistant.replace('agent: plain', 'agent: plan'),
    })
    expect(calls.faults).toMatchObject([{ line: 18, fix: { text: 'plain' } }])
    expect(calls.tree!.workflow).toHaveLength(2)
    expect(await send('agents/check', { id: 'assistant', text: assistant })).toMatchObject({ faults: [] })
    const taken = `metadata: { aliases: [plain] }\n${say('x')}`
    expect(await send('agents/check', { id: 'assistant', text: taken })).toMatchObject({
      faults: [{ line: 1, column: 23, message: 'the name "plain" already belongs to agent plain; choose another' }],
    })
    const prompts = assistant.replace('tools: [calculator]', 'system: { file: prompt.md }')
    expect(await send('agents/check', { id: 'assistant', text: prompts })).toMatchObject({ faults: [] })
    expect(await send('agents/check', { id: 'a', text: prompts.replace('prompt.md', '../x') })).toMatchObject({
      faults: [{ message: expect.stringContaining('must not leave the folder') }],
    })
    // A file that was never loaded can be opened, to mend it.
    expect(await send('agents/broken')).toMatchObject({ status: 200, text: 'workflow: 1', file: 'broken.yaml' })
    const { errors } = await send('agents')
    expect(errors).toMatchObject([{ file: 'broken.yaml', faults: [{ line: 1, column: 11 }] }])
    expect(readdirSync(dir).toSorted()).toEqual(['broken.yaml', 'plain.yml', 'prompt.md'])
  })

  test('saved, an agent is served at once; what another wrote meanwhile is returned, faults too, and nothing is written', async () => {
    const { dir, runtime, send } = await serve({ 'plain.yml': say('plain') })
    const path = join(dir, 'plain.yml')
    const { etag } = await send('agents/plain')
    const saved = await send('agents/plain', { text: say('new'), etag })
    expect(saved).toMatchObject({ status: 200, id: 'plain', tree: { workflow: [{ id: 'say' }] } })
    expect(readFileSync(path, 'utf8')).toBe(say('new'))
    expect(runtime.agents.get('plain')!.pipeline.text).toBe(say('new'))
    expect(readdirSync(dir)).toEqual(['plain.yml'])

    const late = await send('agents/plain', { text: say('late'), etag })
    expect(late).toMatchObject({
      status: 409,
      error: { code: 'agent-changed' },
      theirs: { text: say('new'), etag: saved.etag },
    })
    writeFileSync(path, say('by hand'))
    expect(await send('agents/plain', { text: say('late'), etag: saved.etag })).toMatchObject({
      status: 409,
      theirs: { text: say('by hand') },
    })
    expect(await send('agents/plain', { text: say('late') })).toMatchObject({
      status: 409,
      theirs: { text: say('by hand') },
    })
    const now = await send('agents/plain')
    expect(await send('agents/plain', { text: 'workflow: 1', etag: now.etag })).toMatchObject({
      status: 422,
      faults: [{ line: 1, column: 11 }],
    })
    expect(readFileSync(path, 'utf8')).toBe(say('by hand'))

    expect(await send('agents/fresh', { text: say('fresh') })).toMatchObject({ status: 200 })
    expect(runtime.agents.get('fresh')).toBeDefined()
    expect(readFileSync(join(dir, 'fresh.yaml'), 'utf8')).toBe(say('fresh'))
    expect(await send('agents/gone', { text: say('x'), etag: now.etag })).toMatchObject({ status: 409, theirs: null })
  })

  test('only files of the folder are written: no other path, no link that leads elsewhere', async () => {
    const { dir, send, agents } = await serve({ 'plain.yml': say('plain') })
    const outside = folder({ 'target.yaml': say('outside') })
    for (const id of ['..%2Fx', '%2Ftmp%2Fx', 'a%5Cb', '.hidden', 'a%00b', `${'x'.repeat(201)}`]) {
      expect(await send(`agents/${id}`, { text: say('x') }), id).toMatchObject({ status: 400 })
    }
    symlinkSync(join(outside, 'target.yaml'), join(dir, 'link.yaml'))
    agents.reload()
    expect(await send('agents/link', { text: say('x') })).toMatchObject({ status: 403 })
    expect(readFileSync(join(outside, 'target.yaml'), 'utf8')).toBe(say('outside'))
    // As Kubernetes mounts files: a link inside the folder stays a link.
    mkdirSync(join(dir, '..data'))
    writeFileSync(join(dir, '..data', 'inner.yaml'), say('inner'), { mode: 0o640 })
    symlinkSync(join('..data', 'inner.yaml'), join(dir, 'inner.yaml'))
    agents.reload()
    const { etag } = await send('agents/inner')
    expect(await send('agents/inner', { text: say('mended'), etag })).toMatchObject({ status: 200 })
    expect(readFileSync(join(dir, '..data', 'inner.yaml'), 'utf8')).toBe(say('mended'))
    expect(statSync(join(dir, '..data', 'inner.yaml')).mode & 0o777).toBe(0o640)
    expect(existsSync(join(dir, 'x.yaml'))).toBe(false)
  })

  test('without leave nothing is checked or saved; texts are for those who see runs; one with a secret is not shown', async () => {
    const secret = 'sk-canary-7f3a9b2c'
    const files = { 'plain.yml': say('plain'), 'leaky.yaml': say(secret) }
    const { send } = await serve(files, { edit: false }, { OPENAI_API_KEY: secret })
    expect(await send('agents/plain')).toMatchObject({ status: 200, text: say('plain') })
    for (const path of ['agents/plain', 'agents/check']) {
      expect(await send(path, { id: 'plain', text: say('x') })).toMatchObject({
        status: 403,
        error: { code: 'forbidden' },
      })
    }
    const leaky = await send('agents/leaky')
    expect(leaky.status).toBe(404)
    expect(JSON.stringify(await send('agents'))).not.toContain(secret)

    const open = await serve(files, { authorize: undefined as never }, { OPENAI_API_KEY: secret })
    const shown = await open.send('agents/plain')
    expect(shown.status).toBe(200)
    for (const key of ['text', 'etag', 'tree']) expect(shown).not.toHaveProperty(key)
    expect(await open.send('agents/plain', { text: say('x') })).toMatchObject({ status: 405 })
    const edited = await serve(files, {}, { OPENAI_API_KEY: secret })
    const refused = await edited.send('agents/plain', {
      text: say(secret),
      etag: (await edited.send('agents/plain')).etag,
    })
    expect(refused.status).toBe(422)
    expect(JSON.stringify(refused)).not.toContain(secret)
  })

  test('a fork goes on with another pipeline, if agents may be edited here', async () => {
    const two = `${say('one')}  - id: end\n    type: output-generator\n    config: { template: two }\n`
    const { send, runtime } = await serve({ 'plain.yml': two })
    const run = await runtime.start('plain', {})
    await run.result
    const pipeline = two.replace('template: two', 'template: three')
    const at = 3
    const fork = await send(`runs/${run.id}/fork`, { at, pipeline })
    expect(fork).toMatchObject({ status: 201 })
    const { output } = await (await runtime.open(String(fork['id'])))!.result
    expect(output).toBe('three')
    expect(await send(`runs/${fork['id'] as string}`)).toMatchObject({ agent: 'plain', status: 200 })
    expect(await send(`runs/${run.id}/fork`, { at, pipeline: 'workflow: 1' })).toMatchObject({
      status: 422,
      faults: [{ line: 1, column: 11 }],
    })
    expect(await send(`runs/${run.id}/fork`, { at, pipeline: 1 })).toMatchObject({ status: 400 })
    const locked = await serve({ 'plain.yml': two }, { edit: false })
    const other = await locked.runtime.start('plain', {})
    await other.result
    expect(await locked.send(`runs/${other.id}/fork`, { at, pipeline })).toMatchObject({ status: 403 })
  })

  test('the settings of its model calls, and its text with others', async () => {
    const file = `workflow:
  - id: answer
    type: llm
    config:
      model: "demo:assistant" # cheap
      stream: true
      system: { file: poet.md }
      tools: [calculator, { name: here, client: true, description: Where, parameters: { at: string } }, { agent: plain }]
`
    const models = `export default { models: { default: 'demo:own' }, pricing: { 'demo:dear': { input: 1, output: 2 } } }`
    const plain = `metadata: { description: Says it. }\n${say('plain')}`
    const { send, runtime } = await serve({
      'ask.yaml': file,
      'poet.md': 'A poet.',
      'plain.yml': plain,
      'millrace.config.js': models,
    })
    const shown = await send('agents/ask/settings')
    expect(shown['file']).toBe('ask.yaml')
    const [step] = shown['steps'] as { tools: object[] }[]
    expect(step).toMatchObject({
      path: 'main/answer',
      type: 'llm',
      answers: true,
      model: 'demo:assistant',
      system: 'A poet.',
    })
    expect(step!.tools).toMatchObject([
      { name: 'calculator', kind: 'server', description: expect.any(String), inputSchema: { type: 'object' } },
      { name: 'here', kind: 'client', description: 'Where', inputSchema: { properties: { at: { type: 'string' } } } },
      { name: 'plain', kind: 'agent', description: 'Says it.', inputSchema: { type: 'object' } },
    ])
    expect(shown['models']).toEqual(['demo:assistant', 'demo:dear', 'demo:own'])
    expect((shown['tools'] as object[]).length).toBe(runtime.tools.size)

    const step1 = { step: 'main/answer' }
    const changes = [{ ...step1, model: 'demo:other', temperature: 0.5, system: null, tools: { here: false } }]
    const changed = await send('agents/ask/settings', { changes })
    expect(changed).toMatchObject({ status: 200, faults: [] })
    expect(changed.text).toBe(
      file
        .replace('"demo:assistant" # cheap', '"demo:other" # cheap\n      temperature: 0.5')
        .replace('      system: { file: poet.md }\n', '')
        .replace(/\{ name: here.*?\} \}, /u, ''),
    )
    // It runs so, and nothing was written.
    const run = await send('runs', {
      agentId: 'ask',
      input: { messages: [{ role: 'user', content: 'Hi' }] },
      pipeline: changed.text,
    })
    expect(run.status).toBe(202)
    expect(await send('agents/ask')).toMatchObject({ text: file })
    const own = await send('agents/ask/settings', { changes, text: `# Mine.\n${file}` })
    expect([own.text, own['settings']]).toEqual([`# Mine.\n${changed.text}`, undefined])
    // A text without changes: what it has itself.
    const itself = await send('agents/ask/settings', { changes: [], text: changed.text })
    const { steps } = itself['settings'] as AgentSettings
    expect(steps.find(({ path }) => path === 'main/answer')).toMatchObject({ model: 'demo:other', temperature: 0.5 })
    expect(await send('agents/ask/settings', { changes: [], text: 'workflow: 1' })).not.toHaveProperty('settings')

    const wrong = await send('agents/ask/settings', {
      changes: [
        { ...step1, model: 'nobody:x', tools: { none: true } },
        { ...step1, temperature: -1 },
      ],
    })
    expect(wrong.faults).toMatchObject([
      { step: 'main/answer', setting: 'model' },
      { step: 'main/answer', setting: 'temperature' },
      { step: 'main/answer', setting: 'tools' },
    ])
    for (const bad of [
      {},
      { changes: {} },
      { changes: [1] },
      { changes: [{}] },
      { changes: [{ ...step1, topP: 1 }] },
      { changes: [{ ...step1, model: 1 }] },
      { changes: [{ ...step1, temperature: '1' }] },
      { changes: [{ ...step1, tools: ['a'] }] },
      { changes: [{ step: 'main/none', model: 'x' }] },
      { changes: Array(101).fill(step1) },
      { changes: [{ ...step1, tools: Object.fromEntries(Array.from({ length: 501 }, (_, i) => [`t${i}`, true])) }] },
      { changes: Array(60).fill({ ...step1, model: 'demo:x' }), text: `${file}# ${'x'.repeat(100_000)}` },
    ])
      expect([bad, (await send('agents/ask/settings', bad)).status]).toEqual([bad, 400])
    expect(await send('agents/none/settings')).toMatchObject({ status: 404 })
    expect(await send('agents/none/settings', { changes: [] })).toMatchObject({ status: 404 })

    const access = createTestAccess()
    const shared = await serve(
      { 'ask.yaml': file, 'poet.md': 'A poet.', 'plain.yml': plain },
      { access, authorize: undefined as never },
    )
    const user = await shared.send('agents/ask/settings', undefined, headersFor('alice'), 'GET')
    expect(JSON.stringify(user)).not.toContain('A poet.')
    for (const key of ['tools', 'file']) expect(user).not.toHaveProperty(key)
    expect((user['steps'] as object[])[0]).toMatchObject({
      model: 'demo:assistant',
      tools: [{ name: 'calculator' }, {}, {}],
    })
    expect(await shared.send('agents/ask/settings', { changes: [] }, headersFor('operator'))).toMatchObject({
      status: 403,
    })
  })

  test('an admin to whom only some agents are open edits none: a text may call any other', async () => {
    const only: Principal = { id: 'key:ci', key: 'ci', roles: ['admin'], agents: ['open'] }
    const access = { ...createTestAccess(), identify: () => only }
    const files = { 'open.yml': say('open'), 'other.yml': say('secret') }
    const { send, dir } = await serve(files, { access, authorize: undefined as never })
    const pipeline = 'workflow: [{ id: call, type: call-agent, config: { agent: other } }]\n'
    for (const [path, body, method] of [
      ['runs', { agentId: 'open', pipeline }],
      ['agents/check', { text: pipeline }],
      ['agents/open/settings', { changes: [], text: pipeline }],
      ['agents/other', { text: say('mine') }],
      ['agents/other?etag=x', undefined, 'DELETE'],
    ] as [string, object | undefined, string | undefined][]) {
      const refused = await send(path, body, {}, method)
      expect([path, refused.status, JSON.stringify(refused).includes('secret')]).toEqual([path, 403, false])
    }
    expect(await send('runs', { agentId: 'open' })).toMatchObject({ status: 202 })
    expect(readFileSync(join(dir, 'other.yml'), 'utf8')).toBe(say('secret'))
  })

  test('a run starts with its own pipeline instead of the file, if agents may be edited here', async () => {
    const { send, runtime } = await serve({ 'plain.yml': say('file') })
    const outputOf = async (started: Saved) => (await (await runtime.open(String(started['id'])))!.result).output
    const own = { agentId: 'plain', pipeline: say('own') }
    const first = await send('runs', own)
    expect(first).toMatchObject({ status: 202 })
    expect(await outputOf(first)).toBe('own')
    // Its conversation goes on with it, until the file is asked for.
    const { threadId } = first
    const next = await send('runs', { agentId: 'plain', threadId })
    expect([next['threadId'], await outputOf(next)]).toEqual([threadId, 'own'])
    expect(await outputOf(await send('runs', { agentId: 'plain', threadId, pipeline: null }))).toBe('file')
    expect(await outputOf(await send('runs', { agentId: 'plain', threadId }))).toBe('file')
    expect(runtime.agents.get('plain')!.pipeline.text).toBe(say('file'))

    expect(await send('runs', { ...own, pipeline: 'workflow: 1' })).toMatchObject({
      status: 422,
      faults: [{ line: 1, column: 11 }],
    })
    expect(await send('runs', { ...own, pipeline: say('x').replace('say', 'tool') + 'x: 1' })).toMatchObject({
      status: 422,
      faults: [{ line: 5 }],
    })
    expect(await send('runs', { ...own, pipeline: 1 })).toMatchObject({ status: 400 })
    expect(await send('runs', { ...own, agentId: 'none' })).toMatchObject({ status: 404 })
    const key = { 'idempotency-key': 'once' }
    const [one, again, other] = [
      await send('runs', own, key),
      await send('runs', own, key),
      await send('runs', { ...own, pipeline: say('other') }, key),
    ]
    expect([again['id'], other.status]).toEqual([one['id'], 422])
    const total = (await runtime.store.runs.list({})).length
    expect(total).toBe(5)

    const locked = await serve({ 'plain.yml': say('file') }, { edit: false })
    const refused = await locked.send('runs', own)
    expect(refused).toMatchObject({ status: 403, error: { code: 'forbidden' } })
    expect(refused.error!.message).toContain('Agents may not be edited')
    expect(await locked.send('runs', { agentId: 'plain' })).toMatchObject({ status: 202 })
    const access = createTestAccess()
    const shared = await serve({ 'plain.yml': say('file') }, { access, authorize: undefined as never })
    for (const caller of ['alice', 'operator', 'admin of acme', 'admin'] as const) {
      const status = caller === 'admin' ? 202 : 403
      expect([caller, (await shared.send('runs', own, headersFor(caller))).status]).toEqual([caller, status])
      const plain = await shared.send('runs', { agentId: 'plain' }, headersFor(caller))
      expect([caller, plain.status]).toEqual([caller, 202])
    }
  })

  test.each([
    ['without a key on this machine', {}, '', 200],
    ['not with a key', { apiKey: 'k'.repeat(20) }, '', 403],
    ['with a key, if the config says so', { apiKey: 'k'.repeat(20) }, 'edit: true', 200],
    ['not if the config forbids it', {}, 'edit: false', 403],
  ])('a server lets agents be edited: %s', async (_, given, config, status) => {
    const dir = folder({ 'plain.yml': say('plain'), 'millrace.config.ts': `export default { server: { ${config} } }` })
    const served = await serveFolder({
      dir,
      data: 'none',
      env: {},
      port: 0,
      host: '127.0.0.1',
      log: () => {},
      ...given,
    })
    onTestFinished(() => served.close())
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${'k'.repeat(20)}` }
    const body = JSON.stringify({ id: 'plain', text: say('x') })
    const response = await fetch(`${served.url}/api/agents/check`, { method: 'POST', headers, body })
    expect(response.status).toBe(status)
    const facts = (await (await fetch(`${served.url}/api/server`, { headers })).json()) as { edit: boolean }
    expect(facts.edit).toBe(status === 200)
  })

  test('without a key, of all pages only that of the server itself may edit, over HTTP and Socket.IO', async () => {
    const origin = 'https://app.example'
    const { send } = await serve(
      { 'plain.yml': say('plain') },
      { localOnly: true, authorize: undefined as never, allowedOrigins: [origin] },
    )
    const check = async (headers: Record<string, string>) =>
      (await send('agents/check', { id: 'plain', text: say('x') }, { host: 'localhost:3000', ...headers })).status
    expect(await check({})).toBe(200)
    expect(await check({ origin: 'http://localhost:3000', 'sec-fetch-site': 'same-origin' })).toBe(200)
    for (const other of ['http://localhost:5173', 'http://127.0.0.1:3000', origin])
      expect([other, await check({ origin: other })]).toEqual([other, 403])
    expect(await check({ 'sec-fetch-site': 'same-site' })).toBe(403)
    expect((await send('runs/none/fork', { at: 1 }, { host: 'localhost:3000', origin })).status).toBe(404)

    const dir = folder({ 'plain.yml': say('plain') })
    const served = await serveFolder({ dir, data: 'none', env: {}, port: 0, host: '127.0.0.1', log: () => {} })
    onTestFinished(() => served.close())
    for (const [page, status] of [
      [served.url, 200],
      ['http://localhost:5173', 403],
    ] as const) {
      const client = await connectSocket(served.url, 'websocket', { extraHeaders: { origin: page } })
      const body = { id: 'plain', text: say('x') }
      const ack = await client.send('request', { id: '1', method: 'POST', path: '/api/agents/check', body })
      expect([page, ack['status']]).toEqual([page, status])
    }
  })

  test('server.edit: token wants the token of server.json, which only the user of the server can read, for every edit', async () => {
    const dir = folder({
      'plain.yml': say('plain'),
      'millrace.config.ts': `export default { server: { edit: 'token' } }`,
    })
    const data = join(dir, 'data')
    mkdirSync(data)
    // What a server that was killed has left behind, open to everybody.
    writeFileSync(join(data, 'server.json'), '{}', { mode: 0o666 })
    const served = await serveFolder({ dir, data, env: {}, port: 0, host: '127.0.0.1', log: () => {} })
    onTestFinished(() => served.close())
    const file = join(data, 'server.json')
    const { token } = JSON.parse(readFileSync(file, 'utf8')) as { token: string }
    expect([statSync(file).mode & 0o777, token.length]).toEqual([0o600, 64])
    const run = await served.project.runtime.start('plain', { note: token })
    await run.result
    const edits: [string, object][] = [
      ['agents/check', { id: 'plain', text: say('x') }],
      ['agents/plain', { text: say('x') }],
      [`runs/${run.id}/fork`, { at: 3, pipeline: say('x') }],
      ['runs', { agentId: 'plain', pipeline: say('x') }],
    ]
    const status = async (path: string, body: object, headers: Record<string, string>) => {
      const init = { method: 'POST', headers: { 'content-type': 'application/json', ...headers } }
      const response = await fetch(`${served.url}/api/${path}`, { ...init, body: JSON.stringify(body) })
      return [response.status, await response.text()] as const
    }
    for (const [path, body] of edits) {
      for (const given of [{}, { 'x-millrace-edit-token': '' }, { 'x-millrace-edit-token': `${token}x` }]) {
        const [code, text] = await status(path, body, given as Record<string, string>)
        expect([path, code]).toEqual([path, 403])
        expect(text).toContain('server.json')
        expect(text).not.toContain(data)
      }
      expect((await status(path, body, { 'x-millrace-edit-token': token }))[0]).not.toBe(403)
    }
    // Nothing that is recorded or told has it.
    const told = ['/api/server', '/health', `/api/runs/${run.id}/events`, '/']
    for (const path of told) expect(await (await fetch(served.url + path)).text()).not.toContain(token)
    expect(await (await fetch(`${served.url}/api/server`)).json()).toMatchObject({ edit: 'token' })
    const socket = await connectSocket(served.url)
    const asked = { id: '1', method: 'POST', path: '/api/agents/check', body: edits[0]![1] }
    expect(await socket.send('request', asked)).toMatchObject({ status: 403 })
    const headers = { 'x-millrace-edit-token': token }
    expect(await socket.send('request', { ...asked, headers })).toMatchObject({ status: 200 })
  })

  test('server.edit: token without a data folder has no file for the token', async () => {
    const dir = folder({ 'millrace.config.ts': `export default { server: { edit: 'token' } }` })
    const started = serveFolder({ dir, data: 'none', env: {}, port: 0, host: '127.0.0.1', log: () => {} })
    await expect(started).rejects.toMatchObject({ code: 'bad-config', message: expect.stringContaining('data folder') })
  })
})

describe('an agent that cannot be loaded', () => {
  test.each([
    ['admin', true],
    ['operator', false],
    ['other agents', false],
    ['alice', false],
  ] as const)('%s sees its text and its fault: %s', async (caller, sees) => {
    const dir = folder({
      'broken.yaml': 'access: { tenants: [beta] }\nworkflow: secret-recipe\n',
      'plain.yaml': say('x'),
    })
    const { runtime, agents } = await openProject({ dir, data: 'none', env: {} })
    onTestFinished(async () => {
      agents.close()
      await runtime.close(0)
    })
    const { editor: agentEditor, errors } = agents
    const handler = createHandler({ runtime, agentEditor, agentErrors: () => errors, access: createTestAccess() })
    const get = async (path: string, accept = 'application/json') =>
      (await handler(new Request(`http://localhost${path}`, { headers: { ...headersFor(caller), accept } }))).text()
    expect((await get('/api/agents/broken')).includes('secret-recipe')).toBe(sees)
    for (const path of ['/api/agents', '/']) expect((await get(path)).includes('broken'), path).toBe(sees)
  })
})

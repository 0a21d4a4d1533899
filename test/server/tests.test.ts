/** `/api/tests…`: a recorded run becomes a case, cases are run one at a time as `millrace test` runs them, and what came of them is kept. */
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, latch, text, toolCall, type Latch } from '../../src/models/scripted.ts'
import type { Config } from '../../src/project/config.ts'
import type { Principal } from '../../src/part/principal.ts'
import { openProject } from '../../src/project/project.ts'
import { openTestDesk } from '../../src/regress/test-desk.ts'
import type { Access } from '../../src/server/access/access.ts'
import { createHandler } from '../../src/server/handler.ts'
import type { HandlerOptions } from '../../src/server/handler-context.ts'
import { createTestAccess, headersFor, type Caller } from '../support/callers.ts'
import { folder } from '../support/cli.ts'
import { until } from '../support/engine.ts'
import { readBody } from '../support/server.ts'

/** Models that say what their system prompt says; `held` waits. */
const config = (gate: Latch): Config => ({
  models: {
    providers: {
      echo: (name) =>
        createScriptedModel(({ options: { prompt } }) => {
          const system = prompt.find(({ role }) => role === 'system')?.content as string
          // Calls the calculator, then says so.
          const isFirst = name === 'calls' && !prompt.some(({ role }) => role === 'tool')
          if (isFirst) return [toolCall('calculator', { expression: system }), finish('tool-calls')]
          return [...(name === 'held' ? [gate] : []), text(name === 'loud' ? system.toUpperCase() : system), finish()]
        }),
    },
  },
})
const agent = (system: string, model = 'echo:plain') => `workflow:
  - id: answer
    type: llm
    config: { model: "${model}", stream: true, system: "${system}", messages: $input.messages }
`

interface Answer {
  status: number
  error?: { code: string; message: string }
  [key: string]: any
}

async function open(files: Record<string, string> = {}, options: Partial<HandlerOptions> = {}) {
  const root = folder({})
  const dir = join(root, 'agents')
  mkdirSync(dir)
  const all = { 'shop.yaml': agent('We open at nine.'), ...files }
  const gate = latch()
  for (const [name, text] of Object.entries(all)) writeFileSync(join(dir, name), text)
  const { runtime, agents } = await openProject({ dir, config: config(gate), data: 'none', env: {} })
  const desk = openTestDesk({
    dir,
    config: config(gate),
    env: {},
    store: runtime.store,
    onError: (error) => faults.push(error),
  })
  const faults: unknown[] = []
  onTestFinished(async () => {
    await desk.close()
    agents.close()
    await runtime.close(0)
    expect(faults).toEqual([])
  })
  const handler = createHandler({
    runtime,
    access: createTestAccess(),
    edit: true,
    agentEditor: agents.editor,
    tests: async () => desk,
    ...options,
  })
  async function send(method: string, path: string, body?: object, who: Caller = 'admin'): Promise<Answer> {
    const headers = { ...headersFor(who), 'content-type': 'application/json' }
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
    const response = await handler(new Request(`http://x/api/${path}`, init))
    return { ...((await response.json()) as object), status: response.status }
  }
  async function ask(content = 'When do you open?', agentId = 'shop', who: Caller = 'admin'): Promise<string> {
    const { id } = await send('POST', 'runs', { agentId, input: { messages: [{ role: 'user', content }] } }, who)
    await until(runtime.store, id, ({ type }) => type === 'run-end')
    return id
  }
  /** Until no tests run. */
  async function done(): Promise<any> {
    const headers = headersFor('admin')
    const response = await handler(new Request('http://x/api/tests/progress', { headers }))
    const events = (await readBody(response).rest())
      .split('\n\n')
      .flatMap((each) => /^data: (.*)$/mu.exec(each)?.[1] ?? [])
    return JSON.parse(events.at(-1)!)
  }
  async function add(body: object = {}): Promise<string> {
    const { id, error } = await send('POST', 'tests', { run: await ask(), ...body })
    expect(error).toBeUndefined()
    await done()
    return id
  }
  const at = (id: string, rest = '') => `tests/${encodeURIComponent(id)}${rest}`
  const etagOf = async (id: string): Promise<string> => (await send('GET', at(id))).etag
  const remove = async (id: string) => send('DELETE', `${at(id)}?etag=${await etagOf(id)}`)
  const edit = (name: string, text: string) => {
    writeFileSync(join(dir, name), text)
    agents.reload()
  }
  /** The same server for who comes with another access. */
  const keyed = (access: Access) => createHandler({ runtime, access, edit: true, tests: async () => desk })
  return { root, dir, keyed, handler, runtime, desk, send, ask, add, done, at, etagOf, remove, edit }
}

describe('test cases', () => {
  test('a run becomes a case that passes; with another prompt its recording is told, and the model asked again fails with what differs', async () => {
    const { root, send, ask, done, at, edit, runtime } = await open()
    const run = await ask()
    expect(await send('GET', `tests/draft?run=${run}`)).toMatchObject({
      id: 'shop/when-do-you-open',
      file: 'tests/shop.yaml',
      name: 'When do you open?',
      turns: 1,
      outcome: 'completed',
      answer: 'We open at nine.',
      tools: [],
    })
    expect(existsSync(join(root, 'tests'))).toBe(false)
    const input = { messages: [{ role: 'user', content: 'And now?' }] }
    const own = await send('POST', 'runs', { agentId: 'shop', pipeline: agent('We open at ten.'), input })
    await until(runtime.store, own['id'], ({ type }) => type === 'run-end')
    const draft = async (each: string) => (await send('GET', `tests/draft?run=${each}`))['ownPipeline']
    expect([await draft(run), await draft(own['id'])]).toEqual([undefined, true])

    const added = await send('POST', 'tests', { run, name: 'opening hours' })
    expect(added).toMatchObject({ status: 201, id: 'shop/opening-hours', file: 'tests/shop.yaml', started: true })
    expect(await done()).toMatchObject({ total: 1, passed: 1, failed: 0, running: [] })
    const { id } = added
    const { cases } = await send('GET', 'tests')
    expect(cases).toMatchObject([
      {
        id,
        agent: 'shop',
        name: 'opening hours',
        line: 5,
        isRecorded: true,
        last: { status: 'passed', isLive: false },
      },
    ])
    expect(readdirSync(join(root, 'tests/recordings/shop'))).toEqual(['opening-hours.ndjson'])
    expect(readFileSync(join(root, 'tests/shop.yaml'), 'utf8')).toContain('equals: We open at nine.')

    edit('shop.yaml', agent('We open at ten.'))
    expect(await send('POST', 'tests/run', { ids: [id] })).toMatchObject({ status: 202, run: { total: 1 } })
    await done()
    expect((await send('GET', at(id))).results[0]).toMatchObject({
      status: 'passed',
      warnings: [expect.stringContaining('its system prompt has changed')],
      run,
    })
    await send('POST', 'tests/run', { record: true })
    expect(await done()).toMatchObject({ passed: 0, failed: 1, record: true })
    const whole = await send('GET', at(id))
    expect(whole.results).toHaveLength(3)
    const [last] = whole.results
    expect(last).toMatchObject({ status: 'failed', isLive: true, user: '' })
    expect(last.failures).toEqual([
      {
        what: 'text',
        message: 'the answer does not equal "We open at nine."',
        expected: 'We open at nine.',
        got: 'We open at ten.',
      },
    ])
    // What asked the model is a run like others; its recording waits.
    expect(await runtime.store.runs.get(last.run)).toMatchObject({
      protocol: 'test',
      agent: 'shop',
      threadId: `tests/${id}`,
    })
    expect(whole).toMatchObject({
      recordedRun: run,
      hasChange: true,
      canUndo: false,
      text: expect.stringContaining('nine'),
    })
    expect(whole.changes).toEqual([
      {
        run: last.run,
        isNew: true,
        expects: 'We open at ten.',
        runs: [
          {
            turn: 0,
            before: { answer: 'We open at nine.', tools: [] },
            after: { answer: 'We open at ten.', tools: [] },
          },
        ],
      },
    ])
    // Until somebody accepts it, the old answer counts.
    await send('POST', 'tests/run', {})
    expect(await done()).toMatchObject({ passed: 1 })

    expect(await send('POST', at(id, '/accept'), {})).toMatchObject({ status: 400 })
    const accepted = await send('POST', at(id, '/accept'), { etag: whole.etag })
    expect(accepted.text).toContain('equals: "We open at ten."')
    expect(accepted).toMatchObject({ recordedRun: last.run, changes: [], hasChange: false, canUndo: true })
    await send('POST', 'tests/run', { agent: 'shop' })
    expect(await done()).toMatchObject({ passed: 1 })
    expect(await send('POST', at(id, '/accept'), { etag: accepted.etag })).toMatchObject({ status: 400 })
  })

  test('an accepted answer is taken back once, and waits again; a discarded one is gone', async () => {
    const { add, send, done, at, edit, etagOf, root } = await open()
    const id = await add({ name: 'hours' })
    const path = join(root, 'tests/shop.yaml')
    const before = readFileSync(path, 'utf8')
    edit('shop.yaml', agent('We open at ten.'))
    await send('POST', 'tests/run', { record: true })
    await done()
    const change = async (how: string, body: object = {}) =>
      send('POST', at(id, `/${how}`), { etag: await etagOf(id), ...body })
    const recorded = async () => (await send('GET', at(id))).recordedRun as string
    const old = await recorded()
    expect((await change('undo')).error?.message).toContain('Nothing of this case can be undone')
    const { recordedRun } = await change('accept')
    expect(recordedRun).not.toBe(old)
    const undone = await change('undo')
    expect(undone).toMatchObject({ status: 200, recordedRun: old, canUndo: false, hasChange: true })
    expect(readFileSync(path, 'utf8')).toBe(before)
    await send('POST', 'tests/run', {})
    expect(await done()).toMatchObject({ passed: 1 })
    expect((await change('undo')).status).toBe(400)

    expect(await change('accept')).toMatchObject({ status: 200, recordedRun })
    // Somebody has recorded again since, or changed what is expected: that is not lost.
    const accepted = readFileSync(path, 'utf8')
    writeFileSync(path, accepted.replace('at ten', 'at eleven'))
    expect(await send('GET', at(id))).toMatchObject({ canUndo: false })
    writeFileSync(path, accepted)
    expect(await send('GET', at(id))).toMatchObject({ canUndo: true })

    edit('shop.yaml', agent('We open at noon.'))
    await send('POST', 'tests/run', { record: true })
    await done()
    const files = () => readdirSync(join(root, 'tests/recordings/shop/new'))
    expect(files().toSorted()).toEqual(['hours.json', 'hours.ndjson'])
    const discarded = await change('discard')
    expect(discarded).toMatchObject({ status: 200, hasChange: false, changes: [], recordedRun })
    expect(files()).toEqual([])

    // The same answer again needs nobody: its prompt is the new one.
    edit('shop.yaml', agent('We open at ten.'))
    await send('POST', 'tests/run', { record: true })
    await done()
    expect(await send('GET', at(id))).toMatchObject({ hasChange: false, changes: [] })
    expect(await recorded()).not.toBe(recordedRun)
  })

  test('new calls of tools become those that are expected; what would still fail is told', async () => {
    const calls = (system: string) =>
      agent(system, 'echo:calls').replace('messages: $', 'tools: [calculator], messages: $')
    const { add, ask, send, done, at, edit, etagOf, root } = await open({ 'sums.yaml': calls('1+2') })
    const id = await add({ run: await ask('How much?', 'sums'), name: 'sum' })
    const path = join(root, 'tests/sums.yaml')
    const before = readFileSync(path, 'utf8')
    edit('sums.yaml', calls('3+4'))
    await send('POST', 'tests/run', { record: true })
    expect(await done()).toMatchObject({ failed: 1 })
    const { changes } = await send('GET', at(id))
    expect(changes).toMatchObject([
      {
        isNew: true,
        expects: '3+4',
        expectsTools: true,
        runs: [
          {
            before: { answer: '1+2', tools: ['calculator {"expression":"1+2"}'] },
            after: { answer: '3+4', tools: ['calculator {"expression":"3+4"}'] },
          },
        ],
      },
    ])
    expect(changes[0].fails).toBeUndefined()
    // Within a line nobody but people changes it, and that is said.
    writeFileSync(
      path,
      'agent: sums\ncases:\n  - { name: sum, message: Hi, expect: { text: "1+", tools: [{ name: calculator, input: { expression: 1+2 } }] } }\n',
    )
    expect((await send('GET', at(id))).changes[0]).toMatchObject({
      fails: ['the answer does not contain "1+"', expect.stringContaining('calculator')],
    })
    writeFileSync(path, before)
    await send('POST', at(id, '/accept'), { etag: await etagOf(id) })
    await send('POST', 'tests/run', {})
    expect(await done()).toMatchObject({ passed: 1 })
    expect(await send('POST', at(id, '/undo'), { etag: await etagOf(id) })).toMatchObject({ status: 200 })
    expect(readFileSync(path, 'utf8')).toBe(before)
    await send('POST', 'tests/run', {})
    expect(await done()).toMatchObject({ passed: 1 })
  })

  test('nobody accepts what somebody else has changed meanwhile, and what lies in the folder is checked', async () => {
    const { add, send, done, at, edit, etagOf, root } = await open()
    const id = await add({ name: 'hours' })
    const seen = await etagOf(id)
    edit('shop.yaml', agent('We open at ten.'))
    await send('POST', 'tests/run', { record: true })
    await done()
    const late = await send('POST', at(id, '/accept'), { etag: seen })
    expect([late.status, late.error]).toEqual([
      409,
      expect.objectContaining({
        code: 'tests-changed',
        message: 'The case hours has changed since you read it. Load it again, then repeat what you did.',
      }),
    ])
    const waiting = join(root, 'tests/recordings/shop/new/hours.json')
    for (const text of [
      '{',
      '[]',
      'null',
      '{"files":["../../../x"]}',
      '{"files":[".2"]}',
      '{"model":"m","files":[""]}',
    ]) {
      writeFileSync(waiting, text)
      const { etag, changes } = await send('GET', at(id))
      expect(changes, text).toEqual([])
      expect(await send('POST', at(id, '/accept'), { etag }), text).toMatchObject({ status: 400 })
    }
    // Deleted with its case.
    expect(await send('DELETE', `${at(id)}?etag=${await etagOf(id)}`)).toMatchObject({ status: 200 })
    expect(readdirSync(join(root, 'tests/recordings/shop/new'))).toEqual([])
  })

  test('new answers of a conversation and of another model are sets of their own, and follow another name', async () => {
    const yaml = (says: string) => agent(says).replace('workflow:', 'history: server\nworkflow:')
    const { send, runtime, done, at, edit, etagOf, root } = await open({ 'talk.yaml': yaml('We open at nine.') })
    const say = async (content: string) => {
      const input = { messages: [{ role: 'user', content }] }
      const { id } = await send('POST', 'runs', { agentId: 'talk', threadId: 't1', input })
      await until(runtime.store, id, ({ type }) => type === 'run-end')
      return id as string
    }
    await say('Hello')
    const run = await say('When do you open?')
    const { id } = await send('POST', 'tests', { run, name: 'talk', answer: { is: 'any' } })
    await done()
    await send('POST', 'tests/run', { record: true, models: ['echo:loud'] })
    await done()
    edit('talk.yaml', yaml('We open at ten.'))
    await send('POST', 'tests/run', { record: true })
    await done()
    await send('POST', 'tests/run', { record: true, models: ['echo:loud'] })
    await done()
    const { changes } = await send('GET', at(id))
    expect(changes.map((each: any) => [each.model, each.runs.map(({ after }: any) => after.answer)])).toEqual([
      ['echo:loud', ['WE OPEN AT TEN.', 'WE OPEN AT TEN.']],
      [undefined, ['We open at ten.', 'We open at ten.']],
    ])
    const renamed = await send('POST', at(id, '/rename'), { name: 'hours', etag: await etagOf(id) })
    expect(renamed.changes).toEqual(changes)
    const next = renamed['id'] as string
    await send('POST', at(next, '/accept'), { etag: renamed['etag'], model: 'echo:loud' })
    const left = await send('GET', at(next))
    expect(left.changes).toHaveLength(1)
    expect(left.canUndo).toBe(true)
    await send('POST', 'tests/run', { models: ['echo:loud'] })
    expect(await done()).toMatchObject({ passed: 1 })
    expect(readdirSync(join(root, 'tests/recordings/talk/old')).toSorted()).toEqual([
      'hours.echo-loud.2.ndjson',
      'hours.echo-loud.ndjson',
      'hours.json',
    ])
  })

  test('what a case checks is chosen; a wrong answer is one that must not come again', async () => {
    const { add, send, root } = await open()
    await add({ name: 'contains', answer: { is: 'contains', text: 'nine' } })
    await add({ name: 'any', answer: { is: 'any' }, strict: true })
    const wrong = await add({ name: 'not', answer: { is: 'not', text: 'nine' } })
    const { cases } = await send('GET', 'tests')
    expect(cases.map((each: any) => [each.name, each.last.status])).toEqual([
      ['contains', 'passed'],
      ['any', 'passed'],
      ['not', 'failed'],
    ])
    expect(cases.find((each: any) => each.id === wrong).last.failures).toEqual([
      { what: 'text', message: 'the answer must not contain "nine"' },
    ])
    const text = readFileSync(join(root, 'tests/shop.yaml'), 'utf8')
    expect(text).toContain('strict: true')
    expect(text.match(/equals/gu)).toBeNull()
  })

  test('one run of tests at a time; it goes on without readers, is stopped, and what was not done is counted', async () => {
    const known = createTestAccess()
    const some: Principal = { id: 'key:ci', key: 'ci', roles: ['operator'], agents: ['slow'] }
    const identify: Access['identify'] = (request) =>
      request.headers.get('authorization') === 'Bearer some' ? some : known.identify(request)
    const { add, send, handler, done } = await open({ 'slow.yaml': agent('Slow') }, { access: { ...known, identify } })
    const ids = [await add({ name: 'a' }), await add({ name: 'b' })]
    const started = await send('POST', 'tests/run', { record: true, models: ['echo:held'] })
    expect(started).toMatchObject({ status: 202, run: { total: 2, models: ['echo:held'] } })
    expect(await send('POST', 'tests/run', {})).toMatchObject({ status: 409, error: { code: 'tests-running' } })
    const body = readBody(await handler(new Request('http://x/api/tests/progress', { headers: headersFor('admin') })))
    await body.until('"running":["shop/a"')
    await body.leave()
    expect((await send('GET', 'tests')).run).toMatchObject({ passed: 0, running: expect.arrayContaining([ids[0]]) })
    // Who sees no case of this agent learns of none.
    const asSome = (path: string) =>
      handler(new Request(`http://x/api/${path}`, { headers: { authorization: 'Bearer some' } }))
    expect(await (await asSome('tests')).json()).toMatchObject({ cases: [], run: { total: 2, running: [] } })
    const theirs = readBody(await asSome('tests/progress'))
    expect(await theirs.until('"total":2')).not.toContain('shop/')
    await theirs.leave()
    expect(await send('POST', 'tests/stop')).toMatchObject({ stopped: true })
    expect(await done()).toMatchObject({ stopped: 2, passed: 0, failed: 0, endedAt: expect.any(Number) })
    expect(await send('POST', 'tests/stop')).toMatchObject({ stopped: false })
    // A stopped case says nothing of the agent.
    expect((await send('GET', 'tests')).cases[0].last).toMatchObject({ status: 'passed' })
  })

  test('with another model each case needs a recording of its own, which asking makes', async () => {
    const { add, send, done, at } = await open()
    const id = await add({ name: 'hours', answer: { is: 'contains', text: 'open' } })
    await send('POST', 'tests/run', { models: ['echo:loud'] })
    expect(await done()).toMatchObject({ failed: 1 })
    await send('POST', 'tests/run', { models: ['echo:loud', 'echo:plain'], record: true })
    await done()
    await send('POST', 'tests/run', { models: ['echo:loud', 'echo:plain'] })
    await done()
    const { results } = await send('GET', at(id))
    expect(results.map((each: any) => `${each.model ?? ''} ${each.status} ${each.isLive}`).toSorted()).toEqual([
      ' passed false',
      'echo:loud failed false',
      'echo:loud failed false',
      'echo:loud failed true',
      'echo:plain passed false',
      'echo:plain passed true',
    ])
    expect(results.some((each: any) => each.failures[0]?.message.startsWith('there is no recording'))).toBe(true)
  })

  test('a case is deleted with its recordings and results, and nothing else of its file changes', async () => {
    const { add, send, at, remove, root } = await open()
    const ids = [await add({ name: 'one' }), await add({ name: 'two' }), await add({ name: 'three' })]
    const path = join(root, 'tests/shop.yaml')
    writeFileSync(path, readFileSync(path, 'utf8').replace('- name: three', '# About three.\n  - name: three'))
    const before = readFileSync(path, 'utf8')
    expect(await remove(ids[1]!)).toMatchObject({ status: 200, id: ids[1] })
    const after = readFileSync(path, 'utf8')
    const [two, three] = [before.indexOf('  - name: two'), before.indexOf('  # About three.')]
    expect(after).toBe(before.slice(0, two) + before.slice(three))
    expect((await send('GET', 'tests')).cases.map((each: any) => each.id)).toEqual([ids[0], ids[2]])
    expect(readdirSync(join(root, 'tests/recordings/shop')).toSorted()).toEqual(['one.ndjson', 'three.ndjson'])
    expect(await send('DELETE', at(ids[1]!))).toMatchObject({ status: 404, error: { code: 'unknown-test' } })
    expect(await send('DELETE', at(ids[0]!))).toMatchObject({ status: 400 })
    for (const id of [ids[0]!, ids[2]!]) await remove(id)
    expect(existsSync(path)).toBe(false)
    expect(await add({ name: 'one' })).toBe(ids[0])
    expect((await send('GET', at(ids[0]!))).results).toHaveLength(1)
  })

  test('a case gets another name, with its recordings and results; nothing else of its file changes', async () => {
    const { add, send, done, at, etagOf, root } = await open()
    const [id] = [await add({ name: 'hours' }), await add({ name: 'hours later' })]
    const path = join(root, 'tests/shop.yaml')
    const before = readFileSync(path, 'utf8')
    const rename = async (name: unknown, etag?: string) =>
      send('POST', at(id, '/rename'), { name, etag: etag ?? (await etagOf(id)) })
    for (const [name, message] of [
      ['Hours later!', 'There is a case "hours later" already in tests/shop.yaml.'],
      [' ', 'name must be a text'],
      ['a\nb', 'name must be a text'],
      ['x'.repeat(201), 'name must be a text'],
      [5, 'name must be a text'],
    ]) {
      const { status, error } = await rename(name)
      expect([status, error?.message], String(name)).toEqual([400, expect.stringContaining(message as string)])
    }
    const { text } = await send('GET', at(id))
    const etag = await etagOf(id)
    // Somebody has changed the case meanwhile, in the file.
    writeFileSync(path, before.replace('message: When', 'message: So when'))
    expect(await rename('opening: "hours"', etag)).toMatchObject({ status: 409, error: { code: 'tests-changed' } })
    expect(await send('DELETE', `${at(id)}?etag=${etag}`)).toMatchObject({ status: 409 })
    writeFileSync(path, before)
    const renamed = await rename(' opening: "hours" ')
    expect(renamed).toMatchObject({ status: 200, id: 'shop/opening-hours', name: 'opening: "hours"', isRecorded: true })
    expect(renamed.results).toHaveLength(1)
    expect(readFileSync(path, 'utf8')).toBe(before.replace('name: hours\n', 'name: "opening: \\"hours\\""\n'))
    expect(text).toContain('name: hours')
    expect(readdirSync(join(root, 'tests/recordings/shop')).toSorted()).toEqual([
      'hours-later.ndjson',
      'opening-hours.ndjson',
    ])
    expect(await send('GET', at(id))).toMatchObject({ status: 404 })
    await send('POST', 'tests/run', {})
    expect(await done()).toMatchObject({ passed: 2 })
    // Only its look: the recordings stay where they are.
    const next = 'shop/opening-hours'
    const again = await send('POST', at(next, '/rename'), { name: 'Opening hours', etag: await etagOf(next) })
    expect(again).toMatchObject({ status: 200, id: next, isRecorded: true, name: 'Opening hours' })
    expect(again.results).toHaveLength(2)
  })

  test('no id leads out of the folder, and a file with mistakes is named', async () => {
    const { add, send, root, at } = await open()
    await add()
    writeFileSync(join(root, 'secret.yaml'), 'agent: shop\ncases: [{ name: secret, message: Hi }]\n')
    symlinkSync(join(root, 'secret.yaml'), join(root, 'tests/link.yaml'))
    writeFileSync(join(root, 'tests/broken.yaml'), 'agent: shop\ncases:\n  - name: x\n    mesage: Hi\n')
    for (const id of ['../secret/secret', 'link/secret', '/etc/passwd', 'shop', 'shop/', '%2e%2e/secret/secret']) {
      expect(await send('GET', at(id)), id).toMatchObject({ status: 404 })
      expect(await send('DELETE', at(id)), id).toMatchObject({ status: 404 })
      expect(await send('POST', 'tests/run', { ids: [id] }), id).toMatchObject({ status: 404 })
    }
    const { faults, cases } = await send('GET', 'tests')
    expect(cases).toHaveLength(1)
    expect(faults).toEqual([
      { file: 'tests/broken.yaml', message: expect.stringContaining('tests/broken.yaml:4:5') },
      { file: 'tests/link.yaml', message: expect.stringContaining('outside the folder of tests') },
    ])
    expect(existsSync(join(root, 'secret.yaml'))).toBe(true)
  })

  test('where the folder cannot be written, that is told, and nothing is half done', async () => {
    const { root, send, ask } = await open()
    // In the place of the folder.
    writeFileSync(join(root, 'tests'), '')
    const { status, error } = await send('POST', 'tests', { run: await ask() })
    expect([status, error?.message]).toEqual([
      403,
      expect.stringMatching(/^The folder tests cannot be changed: \w+\. It must be writable\.$/u),
    ])
  })

  test('a long question becomes a case as often as somebody likes, in letters of any script', async () => {
    const { send, ask, add, desk } = await open()
    const run = await ask('How many orders did we get last week in the northern region, and why?')
    const slugs = [
      'how-many-orders-did-we-get-last-week-in-the-northern-region',
      'how-many-orders-did-we-get-last-week-in-the-northern-2',
      'how-many-orders-did-we-get-last-week-in-the-northern-3',
    ]
    for (const slug of slugs) expect(await send('POST', 'tests', { run })).toMatchObject({ id: `shop/${slug}` })
    for (const name of ['𠀀'.repeat(100), 'İ'.repeat(200), '...', '2']) for (let n = 0; n < 2; n++) await add({ name })
    const { cases } = await send('GET', 'tests')
    const ids = cases.map(({ id }: { id: string }) => id)
    expect([ids.length, new Set(ids).size]).toEqual([11, 11])
    // The files are not read again for each.
    desk.files.find = () => expect.fail('read again')
    expect(await send('POST', 'tests/run', { ids })).toMatchObject({ status: 202, run: { total: 11 } })
    expect(await send('POST', 'tests/run', { ids: [...ids, 'shop/none'] })).toMatchObject({ status: 404 })
  })

  test('a long message makes no file that cannot be read: it gets one of its own, or is too long', async () => {
    const { send, ask, add, done } = await open()
    const [first] = [await add({ name: 'first' })]
    const long = await ask('é'.repeat(300_000))
    expect(await send('POST', 'tests', { run: long, name: 'long' })).toMatchObject({ status: 201, id: 'shop/long' })
    await done()
    const next = await send('POST', 'tests', { run: long, name: 'next' })
    expect(next).toMatchObject({ status: 201, id: 'shop-next/next' })
    await done()
    const run = await ask('é'.repeat(600_000))
    expect(await send('POST', 'tests', { run })).toMatchObject({ status: 400, error: { code: 'bad-run' } })
    expect(await send('GET', `tests/draft?run=${run}`)).toMatchObject({ status: 400, error: { code: 'bad-run' } })
    const { cases, faults } = await send('GET', 'tests')
    expect(cases.map(({ id }: { id: string }) => id)).toEqual(['shop-next/next', first, 'shop/long'])
    expect(faults).toEqual([])
  })

  test('an agent that has gone or has mistakes fails its cases with the reason', async () => {
    const { add, send, done, dir } = await open()
    const id = await add({ name: 'hours' })
    writeFileSync(join(dir, 'shop.yaml'), 'workflow: [{ id: x, type: nothing }]')
    await send('POST', 'tests/run', { ids: [id] })
    await done()
    rmSync(join(dir, 'shop.yaml'))
    await send('POST', 'tests/run', { ids: [id] })
    await done()
    const { cases } = await send('GET', 'tests')
    expect(cases[0].last.failures[0].message).toContain('there is no agent "shop"')
  })

  test('a run that has not ended by itself is no case, and it says why', async () => {
    const { send } = await open()
    expect(await send('POST', 'tests', { run: 'run_none' })).toMatchObject({ status: 404 })
    for (const [body, message] of [
      [{}, 'run must be'],
      [{ run: 'r', check: 1 }, 'unknown key "check"'],
      [{ run: 'r', answer: { is: 'good' } }, 'answer.is must be one of equals, contains, not, any'],
      [{ run: 'r', answer: { is: 'not', text: 5 } }, 'answer.text must be a text'],
      [{ run: 'r', tools: 'no' }, 'tools must be true or false'],
    ] as const) {
      const { error, status } = await send('POST', 'tests', body)
      expect([status, error?.message], JSON.stringify(body)).toEqual([400, expect.stringContaining(message)])
    }
    for (const body of [{ ids: [] }, { ids: 'a' }, { models: [''] }, { record: 1 }, { filter: 'x' }, {}]) {
      expect(await send('POST', 'tests/run', body), JSON.stringify(body)).toMatchObject({ status: 400 })
    }
  })

  test('who may read agents reads them; only who may edit adds, runs and deletes', async () => {
    const { add, send, at, keyed } = await open()
    const id = await add()
    expect(await send('GET', 'tests', undefined, 'admin')).toMatchObject({ status: 200 })
    for (const who of ['alice', 'operator', 'admin of acme'] as const) {
      expect(await send('GET', 'tests', undefined, who), who).toMatchObject({ status: 403 })
      expect(await send('POST', 'tests/run', {}, who), who).toMatchObject({ status: 403 })
      expect(await send('DELETE', at(id), undefined, who), who).toMatchObject({ status: 403 })
    }
    // For a key of other agents, or of one agent, the cases of another one are not there.
    const key = (agents: string[]) => ({
      ...createTestAccess(),
      identify: () => ({ id: 'key:x', roles: ['operator'] as const, agents }),
    })
    for (const [agents, count] of [
      [['front'], 0],
      [['shop'], 1],
    ] as const) {
      const handler = keyed(key([...agents]))
      const listed = await handler(new Request('http://x/api/tests'))
      expect(((await listed.json()) as Answer)['cases']).toHaveLength(count)
      expect((await handler(new Request(`http://x/api/${at(id)}`))).status).toBe(count === 0 ? 404 : 200)
      expect((await handler(new Request('http://x/api/tests/run', { method: 'POST' }))).status).toBe(403)
    }
    const closed = await open({}, { edit: false })
    const run = await closed.ask()
    for (const [method, path, body] of [
      ['POST', 'tests', { run }],
      ['POST', 'tests/run', {}],
      ['POST', 'tests/stop', {}],
      ['DELETE', at('shop/x')],
    ] as const) {
      expect(await closed.send(method, path, body), path).toMatchObject({ status: 403, error: { code: 'forbidden' } })
    }
    expect(await closed.send('GET', 'tests')).toMatchObject({ status: 200, cases: [] })
    const bare = await open({}, { tests: undefined as never })
    expect(await bare.send('GET', 'tests')).toMatchObject({ status: 400 })
  })

  test('a run that another agent has recorded elsewhere is added only by who agrees; it plays the agent here', async () => {
    const elsewhere = await open({ 'shop.yaml': agent('We never open.') })
    const run = await elsewhere.ask()
    const exported = await elsewhere.handler(
      new Request(`http://x/api/runs/${run}/export`, { headers: headersFor('admin') }),
    )
    const { send, handler, done, root } = await open()
    const headers = { ...headersFor('admin'), 'content-type': 'application/x-ndjson' }
    const body = await exported.text()
    const imported = await handler(new Request('http://x/api/runs/import', { method: 'POST', headers, body }))
    expect(imported.status).toBe(201)
    expect(await send('GET', `tests/draft?run=${run}`)).toMatchObject({ answer: 'We never open.', programs: [] })
    expect(await send('POST', 'tests', { run })).toMatchObject({
      status: 403,
      error: { code: 'foreign-run' },
      programs: [],
    })
    expect(existsSync(join(root, 'tests'))).toBe(false)
    const { id, status } = await send('POST', 'tests', { run, trust: true })
    expect(status).toBe(201)
    await done()
    const { cases } = await send('GET', 'tests')
    expect(cases).toMatchObject([{ id, last: { status: 'passed', warnings: 1 } }])
  })

  test('a conversation with the server’s history becomes turns; a stopped run says why it cannot be one', async () => {
    const yaml = agent('We open at nine.').replace('workflow:', 'history: server\nworkflow:')
    const { send, runtime, done, at } = await open({ 'talk.yaml': yaml, 'slow.yaml': agent('Slow', 'echo:held') })
    const say = async (content: string) => {
      const input = { messages: [{ role: 'user', content }] }
      const { id } = await send('POST', 'runs', { agentId: 'talk', threadId: 't1', input })
      await until(runtime.store, id, ({ type }) => type === 'run-end')
      return id as string
    }
    await say('Hello')
    const { id } = await send('POST', 'tests', { run: await say('When do you open?'), name: 'talk' })
    expect(await done()).toMatchObject({ passed: 1 })
    const { turns, cases } = await send('GET', at(id))
    expect([turns, cases.map((turn: any) => turn.input.messages[0].content)]).toEqual([
      2,
      ['Hello', 'When do you open?'],
    ])

    const started = await send('POST', 'runs', {
      agentId: 'slow',
      input: { messages: [{ role: 'user', content: 'Hi' }] },
    })
    await until(runtime.store, started['id'], ({ type }) => type === 'prompt')
    const draft = `tests/draft?run=${started['id']}`
    expect(await send('GET', draft)).toMatchObject({
      status: 400,
      error: { message: expect.stringContaining('has not ended') },
    })
    await send('POST', `runs/${started['id']}/stop`)
    await until(runtime.store, started['id'], ({ type }) => type === 'run-end')
    expect(await send('GET', draft)).toMatchObject({
      status: 400,
      error: {
        code: 'bad-run',
        message: expect.stringContaining('was stopped. A case needs a run that has ended by itself'),
      },
    })
  })
})

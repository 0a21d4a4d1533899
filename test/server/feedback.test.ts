/** Feedback over HTTP: what a person says of a run, who sees it, and what is refused. */
import { describe, expect, test } from 'vitest'
import { assemble } from '../../src/server/handler.ts'
import { readNdjson, verify } from '../../src/store/ndjson.ts'
import { createTestAccess, headersFor, type Caller } from '../support/callers.ts'
import { openEngine, until } from '../support/engine.ts'

const agent = `workflow:
  - id: say
    type: output-generator
    config: { template: Hello }
`
const messages = [{ role: 'user', content: 'Hi' }]

function open() {
  const engine = openEngine({ agents: { a: agent, b: agent }, secrets: { values: ['hidden-key-123'] } })
  const { handler } = assemble({ runtime: engine.runtime, access: createTestAccess() })
  async function send(who: Caller, method: string, path: string, body?: object) {
    const headers = { ...headersFor(who), 'content-type': 'application/json' }
    const response = await handler(
      new Request(`http://x${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) }),
    )
    return { status: response.status, ...((await response.json()) as Record<string, unknown>) } as Answer
  }
  async function run(who: Caller, agentId = 'a'): Promise<string> {
    const { id } = await send(who, 'POST', '/api/runs', { agentId, input: { messages } })
    await until(engine.store, id!, ({ type }) => type === 'run-end')
    return id!
  }
  async function exported(who: Caller, id: string): Promise<string> {
    return (await handler(new Request(`http://x/api/runs/${id}/export`, { headers: headersFor(who) }))).text()
  }
  async function imported(who: Caller, body: string): Promise<Answer> {
    const headers = { ...headersFor(who), 'content-type': 'application/x-ndjson' }
    const response = await handler(new Request('http://x/api/runs/import', { method: 'POST', headers, body }))
    return { ...((await response.json()) as object), status: response.status }
  }
  return { engine, send, run, exported, imported }
}

interface Answer {
  status: number
  id?: string
  rows?: Record<string, unknown>[]
  next?: number
  error?: { code: string; message: string }
  [key: string]: unknown
}

describe('feedback', () => {
  test('the last word of a person counts; its run, agent and title stand beside it in the list', async () => {
    const { send, run } = open()
    const id = await run('alice')
    const path = `/api/runs/${id}/feedback`
    expect(await send('alice', 'POST', path, { verdict: 'up' })).toMatchObject({ status: 200, run: id, verdict: 'up' })
    expect(await send('alice', 'POST', path, { verdict: 'down', note: ' Too short. ' })).toMatchObject({
      verdict: 'down',
      note: 'Too short.',
    })
    const { rows } = await send('alice', 'GET', path)
    expect(rows).toMatchObject([{ run: id, user: 'alice', verdict: 'down', note: 'Too short.' }])
    expect((await send('alice', 'GET', '/api/feedback?verdict=down&agent=a')).rows).toMatchObject([
      { run: id, agent: 'a', title: 'Hi' },
    ])
    expect((await send('alice', 'GET', '/api/feedback?verdict=up')).rows).toEqual([])
    expect((await send('alice', 'GET', '/api/feedback?agent=b')).rows).toEqual([])
    expect(await send('alice', 'DELETE', path)).toMatchObject({ removed: true })
    expect(await send('alice', 'DELETE', path)).toMatchObject({ removed: false })
    expect((await send('alice', 'GET', path)).rows).toEqual([])
  })

  test('nobody sees or says anything of a run that is not theirs; an operator does in its tenant', async () => {
    const { send, run } = open()
    const id = await run('alice')
    const path = `/api/runs/${id}/feedback`
    for (const method of ['GET', 'POST', 'DELETE']) {
      const body = method === 'POST' ? { verdict: 'up' } : undefined
      expect(await send('bob', method, path, body), method).toMatchObject({ status: 404 })
    }
    await send('alice', 'POST', path, { verdict: 'up' })
    expect((await send('bob', 'GET', '/api/feedback')).rows).toEqual([])
    await send('operator', 'POST', path, { note: 'Checked' })
    expect((await send('alice', 'GET', path)).rows).toMatchObject([{ verdict: 'up' }, { note: 'Checked' }])
    // Its own word only.
    await send('operator', 'DELETE', path)
    expect((await send('alice', 'GET', path)).rows).toMatchObject([{ verdict: 'up' }])
  })

  test('pages go on where the last one ended, and pass over runs of others', async () => {
    const { send, run } = open()
    const own: string[] = []
    for (let i = 0; i < 4; i++) {
      own.unshift(await run('alice'))
      await send('alice', 'POST', `/api/runs/${own[0]!}/feedback`, { verdict: 'up' })
      await send('bob', 'POST', `/api/runs/${await run('bob')}/feedback`, { verdict: 'down' })
    }
    const seen: unknown[] = []
    let next: number | undefined
    for (let i = 0; i < 4; i++) {
      const page = await send('alice', 'GET', `/api/feedback?limit=2${next === undefined ? '' : `&before=${next}`}`)
      seen.push(...page.rows!.map((row) => row['run']))
      next = page.next
      if (next === undefined) break
    }
    expect(seen).toEqual(own)
  })

  test.each<[string, object, RegExp]>([
    ['nothing', {}, /^verdict must be "up" or "down", or note a text\.$/u],
    ['an empty note', { note: '  ' }, /^verdict must be/u],
    ['another verdict', { verdict: 'good' }, /^verdict must be "up" or "down"\.$/u],
    ['a note that is a number', { note: 5 }, /^note must be/u],
    ['a long note', { note: 'x'.repeat(4001) }, /^note must be a text of at most 4000 characters\.$/u],
  ])('%s is refused', async (_, body, message) => {
    const { send, run } = open()
    const answer = await send('alice', 'POST', `/api/runs/${await run('alice')}/feedback`, body)
    expect(answer).toMatchObject({ status: 400, error: { message: expect.stringMatching(message) } })
  })

  test('a secret in a note is not kept, and a word on no run is a 404', async () => {
    const { send, run, engine } = open()
    const id = await run('alice')
    await send('alice', 'POST', `/api/runs/${id}/feedback`, { note: 'It said hidden-key-123!' })
    expect(JSON.stringify(await engine.store.feedback!.of(id))).not.toContain('hidden-key-123')
    expect(await send('alice', 'POST', '/api/runs/run_none/feedback', { verdict: 'up' })).toMatchObject({ status: 404 })
  })

  test('it is in an export behind the log, and comes back with the run: as it was for an admin of all, as words from elsewhere for others', async () => {
    const { send, run, exported, engine } = open()
    const id = await run('alice')
    await send('alice', 'POST', `/api/runs/${id}/feedback`, { verdict: 'down', note: 'Wrong' })
    await send('operator', 'POST', `/api/runs/${id}/feedback`, { verdict: 'up' })
    const text = await exported('alice', id)
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(lines.at(-3)).toMatchObject({ type: 'run-end' })
    expect(lines.slice(-2)).toMatchObject([
      { feedback: { user: 'alice', tenant: 'acme', verdict: 'down', note: 'Wrong' } },
      { feedback: { user: 'olga', tenant: 'acme', verdict: 'up' } },
    ])
    const { entries, faults } = readNdjson(text)
    expect([verify(entries), faults]).toEqual([[], []])

    const backup = open()
    expect(await backup.imported('admin', text)).toMatchObject({ status: 201 })
    const said = (await engine.store.feedback!.of(id)).map((row) => ({ ...row, n: expect.any(Number) as number }))
    expect(await backup.engine.store.feedback!.of(id)).toEqual(said)
    // The same again changes nothing, whatever it says.
    expect(await backup.imported('admin', text.replace('Wrong', 'Right'))).toMatchObject({ status: 200 })
    expect((await backup.engine.store.feedback!.of(id))[0]).toMatchObject({ note: 'Wrong' })

    const other = open()
    const secret = text.replace('"Wrong"', '"hidden-key-123"')
    expect(await other.imported('operator', secret)).toMatchObject({ status: 201 })
    const rows = await other.engine.store.feedback!.of(id)
    expect(rows.map(({ user, tenant, verdict }) => [user, tenant, verdict])).toEqual([
      ['imported:acme/alice', 'acme', 'down'],
      ['imported:acme/olga', 'acme', 'up'],
    ])
    expect(JSON.stringify(rows)).not.toContain('hidden-key-123')
    // It is nobody's word here: the operator has one of its own.
    await other.send('operator', 'POST', `/api/runs/${id}/feedback`, { verdict: 'down' })
    expect(await other.engine.store.feedback!.of(id)).toHaveLength(3)
  })

  test.each<[string, object, RegExp]>([
    [
      'another verdict',
      { user: 'a', tenant: '', time: 1, verdict: 'good' },
      /line \d+: feedback.verdict must be "up" or "down"/u,
    ],
    ['a long note', { user: 'a', tenant: '', time: 1, note: 'x'.repeat(4001) }, /feedback.note must be/u],
    ['a long name', { user: 'a'.repeat(513), tenant: '', time: 1, verdict: 'up' }, /feedback.user must be/u],
    ['no time', { user: 'a', tenant: '', verdict: 'up' }, /feedback.time must be/u],
    ['nothing said', { user: 'a', tenant: '', time: 1 }, /feedback needs a verdict or a note/u],
    ['a note of spaces', { user: 'a', tenant: '', time: 1, note: ' \n' }, /feedback needs a verdict or a note/u],
  ])('an import with %s is refused, and nothing of it is stored', async (_, feedback, message) => {
    const source = open()
    const id = await source.run('alice')
    const text = `${await source.exported('alice', id)}${JSON.stringify({ feedback })}\n`
    const target = open()
    expect(await target.imported('admin', text)).toMatchObject({
      status: 400,
      error: { code: 'invalid-recording', message: expect.stringMatching(message) },
    })
    expect(await target.engine.store.runs.get(id)).toBeUndefined()
  })

  test('more lines of feedback than a file may have are refused', async () => {
    const source = open()
    const id = await source.run('alice')
    const line = (n: number) =>
      `${JSON.stringify({ feedback: { user: `u${n}`, tenant: '', time: 1, verdict: 'up' } })}\n`
    const text = (await source.exported('alice', id)) + Array.from({ length: 1001 }, (_, n) => line(n)).join('')
    expect(await open().imported('admin', text)).toMatchObject({ status: 400 })
  })
})

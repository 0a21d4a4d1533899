/** The agents that ship, as a newcomer runs them: through the command and through the server, with no key. */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { createAgUiClient } from '../support/ag-ui.ts'
import { grammarFaults } from '../support/engine.ts'
import { folder, ran, serving } from '../support/cli.ts'

const agents = resolve('agents')
const names = readdirSync(agents)
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => name.replace('.yaml', ''))
let cwd: string
beforeEach(() => {
  cwd = folder()
})

async function run(agent: string, message: string, ...flags: string[]) {
  const { code, out, err } = await ran(['run', agent, '-m', message, '--dir', agents, ...flags], { cwd })
  expect([agent, code, err]).toEqual([agent, 0, expect.stringContaining('completed;')])
  return out
}

/** The run's entries, in legal order. */
async function entriesOf(agent: string, message: string, ...flags: string[]): Promise<Entry[]> {
  const lines = (await run(agent, message, '--format', 'parts', ...flags)).trim().split('\n')
  const entries = lines.map((line) => JSON.parse(line) as Entry)
  expect(grammarFaults(entries)).toEqual([])
  return entries
}

const pathsOf = (entries: Entry[], stepType: string) =>
  entries.flatMap((entry) => (entry.type === 'step-start' && entry.stepType === stepType ? [entry.step] : []))

test('millrace check passes, and each points editors to the schema that millrace schema prints', async () => {
  expect(names).toEqual(
    expect.arrayContaining([
      'assistant',
      'summarize-json',
      'research-team',
      'panel',
      'refine',
      'approve-first',
      'bernard',
      'client-tools',
    ]),
  )
  expect(await ran(['check', agents], { cwd })).toMatchObject({ code: 0, out: '' })
  const { out } = await ran(['schema', agents], { cwd })
  const cure =
    'bring it up to date: npm run build && npx node bin/millrace.js schema agents > agents/millrace.schema.json'
  expect(readFileSync(join(agents, 'millrace.schema.json'), 'utf8') === out, cure).toBe(true)
  for (const name of names) {
    const [first] = readFileSync(join(agents, `${name}.yaml`), 'utf8').split('\n')
    expect([name, first]).toEqual([name, '# yaml-language-server: $schema=./millrace.schema.json'])
  }
})

describe('on the terminal', () => {
  test('summarize-json: a checked object, shaped by a template and by return', async () => {
    const value = JSON.parse(await run('summarize-json', 'Millrace is a streaming agent runtime.')) as unknown
    expect(value).toEqual({
      summary: {
        title: 'Millrace is a streaming agent runtime',
        points: ['Millrace is a streaming agent runtime'],
        tokens: expect.any(Number),
      },
      finished: 'stop',
    })
  })

  test('research-team: two calls whose values reach the third, which answers', async () => {
    const entries = await entriesOf('research-team', 'water mills')
    expect(pathsOf(entries, 'call-agent')).toEqual(['main/history', 'main/today', 'main/write'])
    const told = entries.findLast((entry) => entry.type === 'prompt')!
    expect(told.step).toBe('main/write/write/1')
    for (const words of ['Where does it come from?', 'What is it good for today?', 'On \\"water mills\\"']) {
      expect(told.system).toContain(words)
    }
    expect(await run('research-team', 'water mills')).toMatch(/^\[demo model, writer\] .*"water mills"/)
  })

  test('panel: the branches run at once, and the last step is told what each came to', async () => {
    const entries = await entriesOf('panel', 'Should we?')
    const begins = (path: string) => entries.findIndex(({ type, step }) => type === 'step-start' && step === path)
    const ends = (path: string) => entries.findIndex(({ type, step }) => type === 'step-finish' && step === path)
    const branches = ['optimist/hope', 'sceptic/doubt', 'accountant/count'].map((name) => `main/panel/${name}`)
    expect(Math.max(...branches.map(begins))).toBeLessThan(Math.min(...branches.map(ends)))
    const told = entries.findLast((entry) => entry.type === 'prompt')!
    expect(told.system!.match(/: \[demo model, (?:optimist|sceptic|accountant)\] "Should we\?"/gu)).toHaveLength(3)
  })

  test('refine: rounds until the judge is content', async () => {
    const entries = await entriesOf('refine', 'A slogan for a bakery')
    expect(pathsOf(entries, 'round')).toEqual([0, 1, 2].map((n) => `main/rounds/${n}`))
    const systems = entries.flatMap((entry) => (entry.type === 'prompt' ? [entry.system] : []))
    // The second round is told what the first one wrote, the first is told nothing.
    expect(systems[0]).toContain('The last draft was: \n')
    expect(systems[2]).toContain('The last draft was: [demo model, writer] ')
    expect(systems.at(-1)).toContain('"score":2')
  })

  test('bernard: a router and a memory at once, then the answer; what was said is kept', async () => {
    const entries = await entriesOf('bernard', 'What is 12*7?')
    expect(pathsOf(entries, 'router')).toEqual(['main/prepare/route/router'])
    expect(pathsOf(entries, 'memory')).toEqual(['main/prepare/memory/recall', 'after/remember'])
    const stages = entries.flatMap((entry) => (entry.type === 'prompt' ? [entry.stage] : []))
    expect(stages).toEqual(['router', 'router', 'response'])
    expect(await run('bernard', 'What is 12*7?')).toBe('12*7 = 84.\n')
  })

  test('approve-first: refused where nobody can be asked, done with --yes', async () => {
    expect(await run('approve-first', 'What is 12*7?')).toContain('not allowed')
    const entries = await entriesOf('approve-first', 'What is 12*7?', '--yes')
    expect(entries.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['request', 'suspend', 'response', 'resume']),
    )
    expect(await run('approve-first', 'What is 12*7?', '-y')).toContain('12*7 = 84.')
  })
})

test('through the server: each answers; the one that asks is suspended until it gets its yes', async () => {
  const server = await serving([agents, '--data', join(cwd, 'data')], { cwd })
  const post = (path: string, body: unknown) =>
    fetch(server.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const ask = async (agentId: string) => {
    const messages = [{ role: 'user', content: 'What is 12*7?' }]
    const response = await post('/api/beddel/chat', { agentId, messages })
    expect([agentId, response.status]).toEqual([agentId, 200])
    return { id: response.headers.get('x-millrace-run-id')!, text: await response.text() }
  }
  // The line that the server prints, and a page whose own client runs the tool.
  const line = server.out.split('\n').find((each) => each.includes('/ag-ui/'))!
  const pasted = line.slice(line.indexOf('curl ')).replace('curl ', 'curl -sS --fail-with-body -m 15 ')
  expect((await promisify(execFile)('bash', ['-c', pasted])).stdout).toContain('"result":"12*7 = 84."')
  const able = await (await fetch(`${server.url}/ag-ui/client-tools/capabilities`)).json()
  expect(able).toMatchObject({
    transport: { websocket: true },
    tools: { items: [{ name: 'getLocation' }, { name: 'showMessage' }] },
    humanInTheLoop: { approvals: true },
  })
  const page = createAgUiClient(server.url, { agent: 'client-tools' })
  page.say('Where am I?')
  const { end } = await page.run()
  const [toolCallId] = (end as { outcome: { pendingToolCallIds: string[] } }).outcome.pendingToolCallIds
  page.answer(toolCallId!, '{"city":"Rome"}')
  expect(await page.run()).toMatchObject({ end: { result: expect.stringContaining('Rome') } })

  for (const name of ['assistant', 'panel', 'refine', 'research-team', 'bernard', 'bernard-v1']) {
    expect((await ask(name)).text.length, name).toBeGreaterThan(8)
  }
  // What is told of an agent counts the tools of steps inside others.
  const told = (await (await fetch(`${server.url}/api/agents/bernard`)).json()) as object
  expect(told).toMatchObject({
    aliases: ['bernard-v1'],
    steps: [
      { id: 'prepare', type: 'parallel' },
      { id: 'response', type: 'llm' },
      { id: 'remember', type: 'memory' },
    ],
    tools: ['calculator', 'getCurrentTime'],
  })
  expect(JSON.parse((await ask('summarize-json')).text)).toMatchObject({ summary: { title: 'What is 12*7' } })

  const { id } = await ask('approve-first')
  const show = async () => (await ran(['show', id, '--data', join(cwd, 'data')], { cwd })).out
  expect(await show()).toMatch(/suspended[^]*Open requests\ncalculator +waits for approval of \{"expression":"12\*7"\}/)
  // The line that it prints is pasted.
  const [, args] = /^ {2}millrace (answer .*)$/mu.exec(await show())!
  expect(await ran(args!.split(' '), { cwd })).toMatchObject({ code: 0, out: '12*7 = 84.\n' })
  expect(await show()).toMatch(/completed[^]*assistant +12\*7 = 84\./)
})

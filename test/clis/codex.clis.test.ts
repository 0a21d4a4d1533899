/**
 * OpenAI's Codex CLI from npm, without a key, set up as docs/coding-clis.md says: answers, its tools, the server's, sessions, images, schemas, and what it
 * does when an answer fails or its connection breaks. Each request that is no retry is one run.
 */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import * as z from 'zod'
import { errorPart, finish, latch, text, toolCall, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { startRecordedProvider } from '../../src/models/testing/recorded-provider.ts'
import { readDocument } from '../docs/documents.ts'
import { agent } from '../support/engine.ts'
import { createTold, resultsIn, type Told } from '../support/going-on.ts'
import { chainOf, runsOf, startBreaking } from '../support/coding-cli.ts'
import { says, thinksAndCalls } from '../support/protocol-lines.ts'
import { startServer } from '../support/server.ts'

const run = promisify(execFile)
const version = '0.171.0'
const root = mkdtempSync(join(tmpdir(), 'millrace-codex-'))
let why = ''

beforeAll(async () => {
  writeFileSync(join(root, 'package.json'), '{}')
  const install = [
    'install',
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
    '--ignore-scripts',
    `@openai/codex@${version}`,
  ]
  await run('npm', install, { cwd: root }).catch((error: Error) => (why = error.message))
}, 400_000)
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** The lines of the page, for this server. */
function configFor(url: string): string {
  const section = readDocument('docs/coding-clis.md').split('\n## Codex\n')[1]!.split('\n## ', 1)[0]!
  return /```toml\n(.*?)```/su.exec(section)![1]!.replaceAll('http://localhost:3000/v1', `${url}/v1`)
}

interface Line {
  type: string
  item?: { type: string; text?: string; aggregated_output?: string }
}

interface Session {
  /** The exit code, the last words and the lines that it has printed. */
  exec(args: string[]): Promise<{ code: number; said: string; lines: Line[]; errors: string }>
  work: string
}

function session(url: string): Session {
  const home = mkdtempSync(join(root, 'home-'))
  const work = join(home, 'work')
  mkdirSync(join(home, '.codex'))
  mkdirSync(work)
  writeFileSync(join(home, '.codex', 'config.toml'), configFor(url))
  return {
    work,
    async exec(args) {
      const path = [dirname(process.execPath), '/usr/bin', '/bin'].join(delimiter)
      const env = { HOME: home, PATH: path, TERM: 'dumb' }
      const file = join(root, 'node_modules/.bin/codex')
      const child = execFile(file, ['exec', '--skip-git-repo-check', '--json', ...args], {
        cwd: work,
        env,
        timeout: 60_000,
      })
      child.stdin?.end()
      let out = ''
      let errors = ''
      child.stdout!.on('data', (piece: string) => (out += piece))
      child.stderr!.on('data', (piece: string) => (errors += piece))
      const code = await new Promise<number>((resolve) => child.on('close', (exit) => resolve(exit ?? -1)))
      const lines = out.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as Line] : []))
      const said = lines.findLast(({ item }) => item?.type === 'agent_message')?.item?.text ?? ''
      return { code, said, lines, errors: errors + out }
    },
  }
}

async function start(answer: (prompt: Told['prompts'][number]) => ScriptStep[], more = {}) {
  if (why !== '') throw new Error(`Codex cannot be installed: ${why}`)
  let ran = 0
  const multiply = { description: 'Multiplies.', parameters: z.object({}), execute: () => (ran++, 12 * 7) }
  const model = createTold(answer)
  const server = await startServer({
    agents: { assistant: agent('tools: [multiply]') },
    tools: { multiply },
    scripts: { m: model },
    ...more,
  })
  onTestFinished(() => server.close())
  return { server, model, ran: () => ran, codex: session(server.url) }
}

const shell = (id: string, cmd: string) => toolCall(id, 'exec_command', { cmd })

describe('Codex', { timeout: 120_000 }, () => {
  test('the server’s tool runs once, the client’s commands run, two at once, and all is one chain', async () => {
    const { server, model, ran, codex } = await start((prompt) => {
      const results = resultsIn(prompt)
      if (!results.has('call_s')) return [toolCall('call_s', 'multiply'), finish('tool-calls')]
      if (!results.has('call_1'))
        return [
          text('Let me look.'),
          shell('call_1', 'echo first-out'),
          shell('call_2', 'echo second-out'),
          finish('tool-calls'),
        ]
      return [text('It is 84.'), finish()]
    })
    const { code, said, lines, errors } = await codex.exec(['-m', 'assistant', 'What is 12*7?'])
    expect([code, said], errors).toEqual([0, 'It is 84.'])
    const outputs = lines.map(({ item }) => item?.aggregated_output ?? '').join('')
    expect(outputs).toContain('first-out')
    expect(outputs).toContain('second-out')
    expect(ran()).toBe(1)
    const told = JSON.stringify(model.prompts.at(-1))
    for (const each of ['first-out', 'second-out', '84']) expect(told).toContain(each)
    const rows = await runsOf(server)
    expect(rows).toHaveLength(2)
    expect(new Set(rows.map(({ threadId }) => threadId)).size).toBe(1)
    expect(await chainOf(server)).toEqual([undefined, rows[0]!.id])

    // The session goes on.
    const again = await codex.exec(['resume', '--last', '-m', 'assistant', 'And again?'])
    expect([again.code, again.said], again.errors).toEqual([0, 'It is 84.'])
    const later = await runsOf(server)
    expect((await chainOf(server)).at(-1)).toBe(later[1]!.id)
    expect(JSON.stringify(model.prompts.at(-1))).toContain('first-out')
    expect(ran()).toBe(1)
  })

  test('an image, and a schema of the answer', async () => {
    const { model, codex } = await start(() => [text('{"answer":"a pixel"}'), finish()])
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    writeFileSync(join(codex.work, 'p.png'), Buffer.from(png, 'base64'))
    const schema = {
      type: 'object',
      properties: { answer: { type: 'string' } },
      required: ['answer'],
      additionalProperties: false,
    }
    writeFileSync(join(codex.work, 's.json'), JSON.stringify(schema))
    const { code, said, errors } = await codex.exec([
      '-m',
      'assistant',
      '--output-schema',
      's.json',
      '-i',
      'p.png',
      '--',
      'What is this?',
    ])
    expect([code, said], errors).toEqual([0, '{"answer":"a pixel"}'])
    const { prompt, responseFormat } = model.calls.at(-1)!
    expect(prompt.some(({ content }) => Array.isArray(content) && content.some(({ type }) => type === 'file'))).toBe(
      true,
    )
    expect(responseFormat).toMatchObject({ type: 'json', schema: { properties: { answer: {} } } })
  })

  test('a function of a namespace runs, under the two names that Codex has for it', async () => {
    const { model, codex } = await start((prompt) =>
      resultsIn(prompt).has('call_n')
        ? [text('No such agent.'), finish()]
        : [toolCall('call_n', 'multi_agent_v1__close_agent', { target: 'nobody' }), finish('tool-calls')],
    )
    const { code, said, errors } = await codex.exec(['-m', 'assistant', 'Close it'])
    expect([code, said], errors).toEqual([0, 'No such agent.'])
    const told = JSON.stringify(resultsIn(model.prompts.at(-1)!).get('call_n'))
    // Codex has run it: a name that it does not know is an unsupported call.
    expect(told).not.toContain('unsupported')
    expect(told).toContain('nobody')
  })

  test('the provider gets its own reasoning back, byte for byte', async () => {
    const signature = 'SIG+/=é"'.padEnd(3000, 'x')
    const lines = (of: string[]) => of.map((line) => line.replaceAll('SIG', JSON.stringify(signature).slice(1, -1)))
    const provider = await startRecordedProvider(
      [lines(thinksAndCalls('exec_command', 'call_1', { cmd: 'echo hi' }).anthropic), says.anthropic].map((each) => ({
        protocol: 'anthropic' as const,
        lines: each,
      })),
    )
    onTestFinished(() => provider.close())
    const { codex } = await start(() => [], {
      agents: { assistant: agent('reasoning: low').replace('script:m', 'box:m') },
      models: { endpoints: [{ name: 'box', baseURL: provider.baseURL, protocol: 'anthropic' }] },
    })
    const { code, said, errors } = await codex.exec(['-m', 'assistant', 'Say hi'])
    expect([code, said], errors).toEqual([0, 'ok'])
    expect(provider.requests).toHaveLength(2)
    expect(JSON.stringify(provider.requests[1]!.body)).toContain(JSON.stringify(signature))
  })

  test('a run that fails after the server’s tool ran is run once; Codex prints why, and ends', async () => {
    const { server, ran, codex } = await start((prompt) =>
      resultsIn(prompt).has('call_s')
        ? [errorPart({ message: 'The provider broke.' })]
        : [toolCall('call_s', 'multiply'), finish('tool-calls')],
    )
    const { code, errors } = await codex.exec(['-m', 'assistant', 'What is 12*7?'])
    expect(code).toBe(1)
    expect(errors).toContain('The provider broke.')
    expect(ran()).toBe(1)
    expect(await runsOf(server)).toHaveLength(1)
  })

  test('a budget ends it, with its reason', async () => {
    const yaml = agent('tools: [multiply]', 'budget: { tokens: 1000 }')
    const { server, codex } = await start(
      () => [
        { type: 'text-start', id: 't' },
        ...Array.from({ length: 400 }, () => ({ type: 'text-delta' as const, id: 't', delta: 'x '.repeat(50) })),
        { type: 'text-end', id: 't' },
        finish(),
      ],
      { agents: { assistant: yaml } },
    )
    const { code, errors } = await codex.exec(['-m', 'assistant', 'Talk'])
    expect(code).toBe(1)
    expect(errors).toContain('budget_exceeded')
    expect(await runsOf(server)).toHaveLength(1)
  })

  test('a connection that breaks in the middle: Codex asks again, joins the run, and prints all', async () => {
    const gate = latch()
    const { server, ran, model } = await start((prompt) =>
      resultsIn(prompt).has('call_s')
        ? [text('Half and '), gate, text('half.'), finish()]
        : [toolCall('call_s', 'multiply'), finish('tool-calls')],
    )
    const proxy = await startBreaking(server.url, 'Half and ', () => gate.open())
    const { code, said, errors } = await session(proxy).exec(['-m', 'assistant', 'What is 12*7?'])
    expect(code, errors).toBe(0)
    expect(said).toContain('half.')
    expect(ran()).toBe(1)
    expect(model.calls).toHaveLength(2)
    expect(await runsOf(server)).toHaveLength(1)
  })

  test('silence for longer than its patience: the stream stays', async () => {
    const gate = latch()
    const model = createTold(() => [text('Slow.'), gate, text('Answer.'), finish()])
    const server = await startServer({ agents: { assistant: agent() }, scripts: { m: model } }, { keepAliveMs: 500 })
    onTestFinished(() => server.close())
    setTimeout(() => gate.open(), 4000)
    const patience = 'model_providers.millrace.stream_idle_timeout_ms=2500'
    const { code, said, errors } = await session(server.url).exec(['-c', patience, '-m', 'assistant', 'Go'])
    expect([code, said], errors).toEqual([0, 'Answer.'])
    expect(model.calls).toHaveLength(1)
  })
})

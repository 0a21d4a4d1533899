/**
 * Claude Code from npm, without a key, set up as docs/coding-clis.md says: answers, its tools, the server's, sessions, sub-agents, schemas, a terminal, and what
 * it does when an answer fails, its connection breaks or the server is killed. Each request that is no retry is one run.
 */
import { execFile, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi, type TestContext } from 'vitest'
import * as z from 'zod'
import { errorPart, finish, latch, text, toolCall, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { readDocument } from '../docs/documents.ts'
import { folder } from '../support/cli.ts'
import { millrace, serving } from '../support/cli-process.ts'
import { chainOf, runsOf, startBreaking } from '../support/coding-cli.ts'
import { agent } from '../support/engine.ts'
import { installed, type Installed } from '../support/from-npm.ts'
import { createTold, resultsIn, type Told } from '../support/going-on.ts'
import { startServer } from '../support/server.ts'
import { startUpstream } from '../support/upstream.ts'

const version = '2.1.332'
const root = mkdtempSync(join(tmpdir(), 'millrace-claude-'))
let npm: Installed | undefined
beforeAll(async () => {
  npm = await installed([`@anthropic-ai/claude-code@${version}`], { scripts: true })
}, 600_000)
afterAll(() => {
  npm?.remove()
  rmSync(root, { recursive: true, force: true })
}, 60_000)

/** The variables and the arguments of the page, for this server. */
function linesFor(url: string): { env: Record<string, string>; model: string } {
  const section = readDocument('docs/coding-clis.md').split('\n## Claude Code\n')[1]!.split('\n## ', 1)[0]!
  const lines = /```text\n(.*?)```/su.exec(section)![1]!.replaceAll('http://localhost:3000', url)
  const env = Object.fromEntries([...lines.matchAll(/(\w+)=(\S+)/gu)].map(([, name, value]) => [name!, value!]))
  return { env, model: /--model (\S+)/u.exec(lines)![1]! }
}

interface Line {
  type: string
  subtype?: string
  is_error?: boolean
  result?: string
  structured_output?: unknown
}

interface Session {
  /** The exit code, the last words and the lines that it has printed. */
  print(said: string, args?: string[]): Promise<{ code: number; said: string; last: Line | undefined; out: string }>
  work: string
  home: string
  env: Record<string, string>
  claude: string
}

function session(url: string): Session {
  const home = mkdtempSync(join(root, 'home-'))
  const work = join(home, 'work')
  mkdirSync(work)
  const { env: own, model } = linesFor(url)
  const env = {
    PATH: process.env['PATH']!,
    HOME: home,
    TERM: 'dumb',
    IS_SANDBOX: '1',
    DISABLE_AUTOUPDATER: '1',
    ...own,
  }
  const claude = join(npm!.root, 'node_modules/.bin/claude')
  return {
    work,
    home,
    env,
    claude,
    async print(said, args = []) {
      const flags = ['--model', model, '--output-format', 'stream-json', '--verbose', '--dangerously-skip-permissions']
      const child = execFile(claude, ['-p', said, ...flags, ...args], { cwd: work, env, timeout: 100_000 })
      child.stdin?.end()
      let out = ''
      for (const each of [child.stdout!, child.stderr!]) each.on('data', (piece: string) => (out += piece))
      const code = await new Promise<number>((resolve) => child.on('close', (exit) => resolve(exit ?? -1)))
      const lines = out.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as Line] : []))
      const last = lines.findLast(({ type }) => type === 'result')
      return { code, said: last?.result ?? '', last, out }
    },
  }
}

async function start(
  { skip }: TestContext,
  answer: (prompt: Told['prompts'][number], tools: readonly string[]) => ScriptStep[],
  more = {},
) {
  skip(npm === undefined, 'needs the npm registry')
  let ran = 0
  const multiply = { description: 'Multiplies.', parameters: z.object({}), execute: () => (ran++, 12 * 7) }
  const model: Told = createTold((prompt) =>
    answer(
      prompt,
      (model.calls.at(-1)!.tools ?? []).map(({ name }) => name),
    ),
  )
  const server = await startServer({
    agents: { assistant: agent('tools: [multiply]') },
    tools: { multiply },
    scripts: { m: model },
    ...more,
  })
  onTestFinished(() => server.close())
  return { server, model, ran: () => ran, claude: session(server.url) }
}

const bash = (id: string, command: string) => toolCall(id, 'Bash', { command, description: 'A command' })
const multiplied = [toolCall('call_s', 'multiply'), finish('tool-calls')]

describe('Claude Code', { timeout: 120_000 }, () => {
  test('the server’s tool runs once, the client’s commands run, and the session that goes on is one chain', async (context) => {
    const { server, model, ran, claude } = await start(context, (prompt) => {
      const results = resultsIn(prompt)
      if (!results.has('call_s')) return multiplied
      if (!results.has('call_1'))
        return [
          text('Let me look.'),
          bash('call_1', 'echo first-out'),
          bash('call_2', 'echo second-out'),
          finish('tool-calls'),
        ]
      return [text('It is 84.'), finish()]
    })
    const { code, said, out } = await claude.print('What is 12*7?')
    expect([code, said], out).toEqual([0, 'It is 84.'])
    expect(ran()).toBe(1)
    const told = JSON.stringify(model.prompts.at(-1))
    for (const each of ['first-out', 'second-out', '84']) expect(told).toContain(each)
    const rows = await runsOf(server)
    expect(rows).toHaveLength(2)
    expect(new Set(rows.map(({ threadId }) => threadId)).size).toBe(1)
    expect(await chainOf(server)).toEqual([undefined, rows[0]!.id])

    const again = await claude.print('And again?', ['--continue'])
    expect([again.code, again.said], again.out).toEqual([0, 'It is 84.'])
    const later = await runsOf(server)
    expect(later).toHaveLength(3)
    expect((await chainOf(server)).at(-1)).toBe(later[1]!.id)
    expect(JSON.stringify(model.prompts.at(-1))).toContain('first-out')
    expect(ran()).toBe(1)
    const threads = (await (await fetch(`${server.url}/api/threads`)).json()) as { threads: unknown[] }
    expect(threads.threads).toHaveLength(1)
  })

  test('ToolSearch loads a tool that it offers later', async (context) => {
    const offered: boolean[] = []
    const { claude } = await start(context, (prompt, tools) => {
      offered.push(tools.includes('WebFetch'))
      return resultsIn(prompt).has('call_1')
        ? [text('Loaded.'), finish()]
        : [toolCall('call_1', 'ToolSearch', { query: 'select:WebFetch', max_results: 1 }), finish('tool-calls')]
    })
    const { code, said, out } = await claude.print('Load it')
    expect([code, said], out).toEqual([0, 'Loaded.'])
    expect(offered).toEqual([false, true])
  })

  test('--json-schema', async (context) => {
    const { claude } = await start(context, (prompt, tools) =>
      tools.includes('StructuredOutput') && !resultsIn(prompt).has('call_1')
        ? [toolCall('call_1', 'StructuredOutput', { answer: '84' }), finish('tool-calls')]
        : [text('Done.'), finish()],
    )
    const schema = { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'] }
    const { code, last, out } = await claude.print('What is 12*7?', ['--json-schema', JSON.stringify(schema)])
    expect([code, last?.structured_output], out).toEqual([0, { answer: '84' }])
  })

  test('an image reaches the model', async (context) => {
    const { model, claude } = await start(context, (prompt) =>
      resultsIn(prompt).has('call_1')
        ? [text('A pixel.'), finish()]
        : [toolCall('call_1', 'Read', { file_path: join(claude.work, 'p.png') }), finish('tool-calls')],
    )
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    writeFileSync(join(claude.work, 'p.png'), Buffer.from(png, 'base64'))
    const { code, said, out } = await claude.print('What is this?')
    expect([code, said], out).toEqual([0, 'A pixel.'])
    expect(JSON.stringify(model.prompts.at(-1))).toMatch(/"type":"file","mediaType":"image\//u)
  })

  test('a sub-agent has a conversation of its own', async (context) => {
    const { server, claude } = await start(context, (prompt) => {
      if (JSON.stringify(prompt).includes('SUBTASK')) {
        const isSub = !JSON.stringify(prompt).includes('Delegate')
        if (isSub) return [text('Sub done.'), finish()]
        return [text('All done.'), finish()]
      }
      const task = {
        description: 'A part',
        prompt: 'SUBTASK do it',
        subagent_type: 'general-purpose',
        run_in_background: false,
      }
      return [toolCall('call_1', 'Agent', task), finish('tool-calls')]
    })
    const { code, said, out } = await claude.print('Delegate')
    expect([code, said], out).toEqual([0, 'All done.'])
    const threads = [...new Set((await runsOf(server)).map(({ threadId }) => threadId))]
    expect(threads).toHaveLength(2)
    expect(threads.filter((name) => name.includes(':'))).toHaveLength(1)
    expect((await chainOf(server)).filter((before) => before === undefined)).toHaveLength(2)
  })

  test('without --model an agent with the alias answers', async (context) => {
    const yaml = agent('tools: [multiply]').replace('workflow:', 'metadata: { aliases: ["claude-*"] }\nworkflow:')
    const { claude } = await start(context, () => [text('Here.'), finish()], { agents: { assistant: yaml } })
    const { code, said, out } = await claude.print('Hi', ['--model', 'claude-opus-5-5'])
    expect([code, said], out).toEqual([0, 'Here.'])
  })
})

describe('when something breaks', { timeout: 120_000 }, () => {
  test('a run that fails after the server’s tool ran is run once; Claude Code prints why, and ends', async (context) => {
    const { server, ran, claude } = await start(context, (prompt) =>
      resultsIn(prompt).has('call_s') ? [errorPart({ message: 'The provider broke.' })] : multiplied,
    )
    const { code, said, out } = await claude.print('What is 12*7?')
    expect(code, out).toBe(1)
    expect(said).toContain('The provider broke.')
    expect(ran()).toBe(1)
    expect(await runsOf(server)).toHaveLength(1)
  })

  test('a budget ends it, with its message', async (context) => {
    const deltas = Array.from({ length: 400 }, () => ({ type: 'text-delta' as const, id: 't', delta: 'x '.repeat(50) }))
    const { server, claude } = await start(
      context,
      () => [{ type: 'text-start', id: 't' }, ...deltas, { type: 'text-end', id: 't' }, finish()],
      { agents: { assistant: agent('tools: [multiply]', 'budget: { tokens: 1000 }') } },
    )
    const { code, said, out } = await claude.print('Talk')
    expect(code, out).toBe(1)
    expect(said).toMatch(/used up its budget/u)
    expect(await runsOf(server)).toHaveLength(1)
  })

  test('a connection that breaks in the middle: it asks again, joins the run, and prints all', async (context) => {
    const gate = latch()
    const { server, ran, model } = await start(context, (prompt) =>
      resultsIn(prompt).has('call_s') ? [text('Half and '), gate, text('half.'), finish()] : multiplied,
    )
    const claude = session(await startBreaking(server.url, 'Half and ', () => gate.open()))
    const { code, said, out } = await claude.print('What is 12*7?')
    expect(code, out).toBe(0)
    expect(said).toContain('half.')
    expect(ran()).toBe(1)
    expect(model.calls).toHaveLength(2)
    expect(await runsOf(server)).toHaveLength(1)
    // The conversation goes on with that run.
    const next = await claude.print('And?', ['--continue'])
    expect(next.code, next.out).toBe(0)
    const [first] = await runsOf(server)
    expect(await chainOf(server)).toEqual([undefined, first!.id])
  })

  test('a server that is killed in the middle: the next one goes on, and the tool runs once', async ({ skip }) => {
    skip(npm === undefined, 'needs the npm registry')
    const gate = latch()
    const asked = latch()
    let calls = 0
    const upstream = await startUpstream(async (reply) => {
      calls++
      const hasResult = reply.body.messages.some(({ role }) => role === 'tool')
      if (!hasResult) {
        reply.call('call_1', 'count', {})
        return reply.finish('tool_calls')
      }
      reply.say('Half and ')
      if (calls === 2) {
        asked.open()
        await gate.opened
        return
      }
      reply.say('half.')
      return reply.finish()
    })
    onTestFinished(() => upstream.close())
    const counted = join(folder(), 'count')
    writeFileSync(counted, '')
    const cwd = folder({
      'agents/assistant.yaml': `recover: true
workflow:
  - { id: answer, type: llm, config: { model: "up:m", stream: true, messages: "$input.messages", tools: [count] } }
`,
      'agents/millrace.config.ts': `import { appendFileSync } from 'node:fs'
export default { tools: { count: { description: 'Counts', parameters: { type: 'object' }, execute: () => (appendFileSync(${JSON.stringify(counted)}, 'x'), 84) } } }
`,
    })
    const flags = ['--endpoint', `up=${upstream.baseURL}`]
    const first = await serving(flags, { cwd })
    const printed = session(first.url).print('What is 12*7?')
    await asked.opened
    await vi.waitFor(async () => {
      const { runs } = (await (await fetch(`${first.url}/api/runs`)).json()) as { runs: { lastSeq: number }[] }
      expect(runs).toHaveLength(1)
    })
    first.kill('SIGKILL')
    await first.exit
    gate.open()
    await millrace(['serve', ...flags, '--port', new URL(first.url).port], { cwd }).until('Try it')
    const { code, said, out } = await printed
    expect(code, out).toBe(0)
    expect(said).toContain('half.')
    expect(readFileSync(counted, 'utf8')).toBe('x')
    const { runs } = (await (await fetch(`${first.url}/api/runs`)).json()) as { runs: { status: string }[] }
    expect(runs).toMatchObject([{ status: 'completed' }])
  })
})

describe('on a terminal', { timeout: 180_000 }, () => {
  const patience = { timeout: 60_000, interval: 100 }

  test('an answer, /context, /compact', async (context) => {
    const { server, model, claude } = await start(context, (prompt) => {
      const { responseFormat } = model.calls.at(-1)!
      if (responseFormat?.type === 'json') return [text('{"title":"Sums"}'), finish()]
      return [
        text(JSON.stringify(prompt.at(-1)).includes('summary') ? 'It was about sums.' : 'It is 84, they say.'),
        finish(),
      ]
    })
    const known = { hasCompletedOnboarding: true, projects: { [claude.work]: { hasTrustDialogAccepted: true } } }
    writeFileSync(join(claude.home, '.claude.json'), JSON.stringify(known))
    const shell = `stty rows 50 cols 120; echo $$ > claude.pid; exec '${claude.claude}' --model assistant`
    const terminal = spawn('script', ['-qfec', shell, '/dev/null'], {
      cwd: claude.work,
      env: { ...claude.env, TERM: 'xterm-256color' },
    })
    const closed = new Promise((resolve) => terminal.on('close', resolve))
    onTestFinished(async () => {
      process.kill(Number(readFileSync(join(claude.work, 'claude.pid'), 'utf8')), 'SIGKILL')
      await closed
    })
    let screen = ''
    terminal.stdout.setEncoding('utf8').on('data', (piece: string) => (screen += piece))
    // oxlint-disable-next-line no-control-regex -- those of a terminal
    const seen = () => screen.replaceAll(/\u001B\[[0-9;?]*[A-Za-z]/gu, ' ').replaceAll(/\s+/gu, ' ')
    const until = (words: RegExp) => vi.waitFor(() => expect(seen()).toMatch(words), patience)
    /** A key that comes right after another may be lost. */
    const type = async (words: string) => {
      terminal.stdin.write(words)
      await until(new RegExp(words.replaceAll(/[^\w ]/gu, '.').replaceAll(' ', String.raw`\s*`), 'u'))
      screen = ''
      terminal.stdin.write('\r')
    }
    await until(/assistant/u)
    await type('What is 12 times 7?')
    await until(/It\s+is\s+84/u)
    const before = model.calls.length
    await type('/context')
    await until(/tokens/u)
    expect(model.calls).toHaveLength(before)
    await type('/compact')
    await until(/[Cc]ompacted/u)
    await vi.waitFor(() => expect(model.calls.length).toBeGreaterThan(before), patience)
    const rows = await runsOf(server)
    expect(rows.every(({ status }) => status === 'completed')).toBe(true)
    // The title stands apart.
    const chains = new Set(rows.map(({ threadId }) => threadId))
    expect([...chains].filter((name) => name.endsWith(':title')).length).toBe(chains.size - 1)
  })
})

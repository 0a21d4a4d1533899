/** What only a process shows: its signals and pipes, its `console` and environment, and how it ends. */
import { execFile, execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { init } from '../../src/ingest/testing/claude-lines.ts'
import { lines } from '../../src/ingest/testing/play.ts'
import * as inProcess from '../support/cli.ts'
import { millrace, ran, serving } from '../support/cli-process.ts'
import { startUpstream, type UpstreamReply } from '../support/upstream.ts'

const { folder } = inProcess

const onUpstream = 'workflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true } }]\n'
/** A step that never ends, and keeps its process from ending. */
const stuck = {
  'agents/a.yaml': 'workflow: [{ id: stuck, type: stuck, config: {} }]\n',
  'agents/millrace.config.mjs': `export default { server: { stopGraceMs: 60_000 }, steps: { stuck: () => {
    console.error('stuck'); setInterval(() => {}, 1000); return new Promise(() => {}) } } }`,
}

async function upstream(answer: (reply: UpstreamReply, n: number) => unknown) {
  const server = await startUpstream(answer)
  onTestFinished(() => server.close())
  return ['--endpoint', `up=${server.baseURL}`]
}

describe('the process of a command', () => {
  test('Ctrl-C stops a run, and a second one kills, with a server and without', async () => {
    for (const hasServer of [false, true]) {
      const cwd = folder(stuck)
      const server = hasServer ? await serving([], { cwd }) : undefined
      const command = millrace(['run', 'a', '-m', 'Hi'], { cwd })
      await (server ?? command).until('stuck')
      command.kill('SIGINT')
      await command.until('Ctrl-C again')
      command.kill('SIGINT')
      expect(await command.exit).toBe(130)
      // Nor does the server wait a second time.
      server?.kill('SIGTERM')
      await server?.until('stopping (SIGTERM)')
      server?.kill('SIGTERM')
      expect(await server?.exit).toBe(hasServer ? 143 : undefined)
    }
  })

  test('what a tool left running does not keep the command alive', async () => {
    const cwd = folder({
      'agents/a.yaml': 'workflow:\n  - { id: s, type: busy, config: {} }\n',
      'agents/millrace.config.mjs': `export default { steps: { busy: () => { setInterval(() => {}, 1000); return 'done' } } }`,
    })
    const { code, out } = await ran(['run', 'a', '-m', 'Hi'], { cwd })
    expect([code, out]).toEqual([0, 'done\n'])
  })

  test('a reader that has seen enough stops the run: nothing goes on, and nothing is left running in the log', async () => {
    const more = Promise.withResolvers<void>()
    const left = Promise.withResolvers<void>()
    const flags = await upstream(async (reply) => {
      reply.say('Half')
      await more.promise
      reply.say(' and more')
      await reply.left
      left.resolve()
    })
    const cwd = folder({ 'agents/a.yaml': onUpstream })
    const command = millrace(['run', 'a', '-m', 'Hi', ...flags], { cwd })
    await command.until('Half')
    command.hangUp()
    more.resolve()
    expect([await command.exit, command.err]).toEqual([
      1,
      expect.stringContaining('aborted: The output pipe was closed'),
    ])
    // The model is not paid for what nobody reads.
    await left.promise
    const { out, err } = await inProcess.ran(['ps', '--json'], { cwd })
    expect([err, JSON.parse(out)]).toEqual(['', [expect.objectContaining({ status: 'aborted' })]])
  })

  test('a reader that has seen enough ends what only prints, quietly', async () => {
    const cwd = folder({
      'out.jsonl': lines(init, ...Array.from({ length: 20_000 }, (_, n) => ({ type: 'system', n }))),
    })
    const shell = `set -o pipefail; ${process.execPath} ${resolve('bin/millrace.js')} parse out.jsonl | head -1`
    const { stdout, stderr } = await promisify(execFile)('bash', ['-c', shell], { cwd })
    expect([JSON.parse(stdout), stderr]).toEqual([expect.objectContaining({ type: 'session-info' }), ''])
  })

  test('a server that is killed midway is told, with the run to look at', async () => {
    const flags = await upstream((reply) => reply.say('Half'))
    const cwd = folder({ 'agents/a.yaml': onUpstream })
    const server = await serving(flags, { cwd })
    const command = inProcess.millrace(['run', 'a', '-m', 'Hi'], { cwd })
    await command.until('Half')
    const id = /run_\w+/u.exec(command.err)![0]
    const follower = inProcess.millrace(['logs', id, '--follow', '--json'], { cwd })
    await follower.until('"Half"')
    server.kill('SIGKILL')
    expect(await command.exit).toBe(1)
    expect(command.err).toMatch(/^millrace: Lost the connection to the server at \S+\..* millrace show run_\w+$/m)
    expect([await follower.exit, follower.err]).toEqual([
      1,
      `millrace: Lost the connection to the server at ${server.url}.\n`,
    ])
    // Its locks are gone with it.
    expect((await fetch(`${(await inProcess.serving([], { cwd })).url}/health`)).status).toBe(200)
  })

  test('of servers that start at once on one folder exactly one serves', async () => {
    const cwd = folder({ 'agents/a.yaml': onUpstream })
    const all = Array.from({ length: 3 }, () => millrace(['serve', '--port', '0'], { cwd }))
    const states = await Promise.all(
      all.map((server) =>
        server.until('Try it').then(
          () => 'ready',
          () => 'refused',
        ),
      ),
    )
    expect(states.toSorted()).toEqual(['ready', 'refused', 'refused'])
  })

  test('what agents print goes to stderr, so that stdout is the answer alone', async () => {
    const cwd = folder({
      'agents/millrace.config.mjs': `console.log('loaded')
export default {
  callbacks: { chunk: () => { console.log('a %s of', 'piece') }, done: () => console.info('all of it') },
}
`,
      'agents/a.yaml': `workflow:
  - { id: answer, type: llm, config: { model: "demo:assistant", stream: true, onChunk: chunk, onFinish: done } }
`,
    })
    const plain = await ran(['run', 'a', '-m', 'Hi there'], { cwd })
    expect(plain.out).not.toMatch(/loaded|piece|all of it/u)
    expect(plain.err).toMatch(/^loaded\n/u)
    expect(plain.err).toContain('\na piece of\n')
    expect(plain.err).toContain('\nall of it\n')
    const { out } = await ran(['run', 'a', '-m', 'Hi there', '--format', 'parts'], { cwd })
    for (const line of out.trim().split('\n')) expect(() => JSON.parse(line)).not.toThrow()
    expect(JSON.parse((await ran(['schema'], { cwd })).out)).toBeTypeOf('object')
    writeFileSync(join(cwd, 'agents/b.yaml'), 'workflow: 7\n')
    expect(JSON.parse((await ran(['check', '--json'], { cwd })).out)).toMatchObject({ files: 2 })
  })

  test('a config sees what `.env` says when it is loaded', async () => {
    const cwd = folder({
      'agents/.env': 'GREETING=Hello\n',
      'agents/a.yaml': 'workflow: [{ id: it, type: atLoad }]\n',
      'agents/millrace.config.mjs': `const atLoad = process.env.GREETING
      export default { steps: { atLoad: () => atLoad } }`,
    })
    expect((await ran(['run', 'a', '-m', 'Hi'], { cwd })).out).toBe('Hello\n')
  })

  test('Node has nothing to say about what init writes, and its callback prints', async () => {
    const cwd = folder({ 'package.json': '{"type":"commonjs"}' })
    await inProcess.ran(['init'], { cwd })
    const file = join(cwd, 'agents/assistant.yaml')
    writeFileSync(file, readFileSync(file, 'utf8').replace('# onFinish', 'onFinish'))
    const { code, err } = await ran(['run', 'assistant', '-m', 'Hi'], { cwd })
    expect(code).toBe(0)
    expect(err.trimEnd().split('\n').toSorted()).toEqual([
      expect.stringMatching(/^answered \d+ characters, \d+ tokens$/),
      expect.stringMatching(/^completed;/),
      expect.stringMatching(/^run run_\w+$/),
    ])
  })

  test('Ctrl-C ends a query that never does', async () => {
    const cwd = folder({ 'agents/a.yaml': onUpstream.replace('up:m', 'demo:assistant') })
    await inProcess.ran(['run', 'a', '-m', 'Hi'], { cwd })
    const endless = `SELECT 1 AS one UNION ALL SELECT count(*) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)`
    const command = millrace(['query', endless], {
      cwd,
      node: ['--import', 'data:text/javascript,process.stderr.write("begun")'],
    })
    await command.until('begun')
    // It has a worker thread at work, or will have one: a signal ends the process either way.
    command.kill('SIGINT')
    expect(await command.exit).toBe(130)
  })

  /** Wherever a machine has an older Node, it is asked as well: the line above must even be parsed by it. */
  const old = ['/usr/bin/node', '/usr/local/bin/node'].find((path) => {
    try {
      return Number(/^v(\d+)/u.exec(String(execFileSync(path, ['--version'])))![1]) < 24
    } catch {
      return false
    }
  })
  test.skipIf(old === undefined)('the old Node of this machine is told the same', async () => {
    const { code, out, err } = await ran(['ps'], { execPath: old! })
    expect([code, out]).toEqual([2, ''])
    expect(err).toMatch(/^millrace needs Node 24 or newer; this is v\d+\.\d+\.\d+\. .*\n$/)
  })
})

/** What a newcomer types: one line that says what is wrong and what to do, exit 2, and nothing left lying about. */
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { folder, ran, serving } from '../support/cli.ts'

const demo = 'workflow: [{ id: answer, type: llm, config: { model: "demo:assistant", stream: true } }]\n'

/** `millrace <args>` in a folder with these files gives this line. */
async function expectLine(files: Record<string, string>, args: string[], line: RegExp, code = 2) {
  const cwd = folder(files)
  const before = readdirSync(cwd, { recursive: true })
  const told = await ran(args, { cwd })
  expect([args, told.code, told.out]).toEqual([args, code, ''])
  // What commander says is followed by the way to the help.
  const [first, ...rest] = told.err.trimEnd().split('\n')
  expect(first).toMatch(line)
  expect(rest.filter((each) => !/^See: millrace( \w+)? --help$|^\(Did you mean /u.test(each))).toEqual([])
  expect(readdirSync(cwd, { recursive: true })).toEqual(before)
}

describe('mistakes on the command line', () => {
  test.each([
    ['foo', /^millrace: unknown command 'foo'/],
    ['run', /^millrace: missing required argument 'agent'/],
    ['logs', /^millrace: missing required argument 'run'/],
    ['run assistant hello', /too many arguments for 'run'.* Pass the message with -m "…"\.$/],
    ['run assistant -m', /option '-m, --message <text>' argument missing/],
    ['run assistant --masage hi', /unknown option '--masage'/],
    ['ps --status runing', /'runing' is invalid\. Did you mean running\? Known: running, suspended,/],
    ['ps --limit 0', /^millrace: --limit must be a number from 1 to 1000, not "0"\.$/],
    ['ps --limit 2000', /^millrace: --limit must be a number from 1 to 1000, not "2000"\.$/],
    ['ps --data none', /No runs found in none\. Runs with --data none are not kept/],
  ])('millrace %s', (line, message) => expectLine({ 'agents/assistant.yaml': demo }, line.split(' '), message))

  test.each([
    ['run assistant -m hi', /There is no folder of agents at agents\. Create one with millrace init.*--dir/],
    ['run x -m hi --dir my/agents', /at my\/agents\. Create one with millrace init my, or/],
    ['serve', /There is no folder of agents at agents\. Create one with millrace init/],
    ['serve bots', /at bots\. Put a YAML file there, or create \.\/agents with millrace init\.$/],
    ['check', /There is no file or folder agents\. Create one with millrace init/],
    [
      'ps',
      /No runs found in \.millrace\. Start a run with millrace run or millrace serve, or name another data folder with --data\.$/,
    ],
  ])('in a folder with nothing: millrace %s', (line, message) => expectLine({}, line.split(' '), message))

  test.each([
    ['run assistant -m hi', /There are no agents in agents yet\. Create one with millrace init\.$/],
    ['check', /There is no YAML file in agents\. Create one with millrace init\.$/],
  ])('in a folder of agents that is empty: millrace %s', (line, message) =>
    expectLine({ 'agents/notes.txt': '' }, line.split(' '), message),
  )

  test.each([
    ['ps --data log', /--data log is a file\. Pass the folder that contains the log\.$/],
    ['run assistant -m hi --data log', /--data log is a file/],
    ['serve --data log', /--data log is a file/],
    ['run assistant -m hi --data log/x/y', /--data log\/x\/y cannot be a folder: log is a file\. Pass/],
    ['ps --data .millrace/millrace.db', /Pass the folder that contains the log: --data \.millrace\.$/],
    [
      'serve agents/assistant.yaml',
      /assistant\.yaml is a file, not a folder of agents\. Serve its folder with: millrace serve agents/,
    ],
    ['run x -m hi --dir log', /log is a file, not a folder of agents\. Pass a folder\.$/],
    ['run assistant --input agents', /--input agents is a folder, not a file\.$/],
    ['verify agents', /agents is a folder\. Pass a file\.$/],
    ['run agents/assistant -m hi', /no agent file agents\/assistant \(did you mean "agents\/assistant\.yaml"\?\)\.$/],
    ['run assistant.yaml -m hi', /no agent file assistant\.yaml \(did you mean "agents\/assistant\.yaml"\?\)\.$/],
    ['run agents/assistant.yml -m hi', /\(did you mean "agents\/assistant\.yaml"\?\)\.$/],
    ['run log/assistant.yaml -m hi', /no agent file log\/assistant\.yaml/],
    ['run asistant -m hi', /no agent "asistant" \(did you mean "assistant"\?\)\. Known agents: assistant\.$/],
  ])('a file for a folder, a folder for a file, a path that is not quite one: millrace %s', (line, message) =>
    expectLine({ 'agents/assistant.yaml': demo, log: '', '.millrace/millrace.db': '' }, line.split(' '), message),
  )

  test('serve on an address that this machine has not: one line, exit 1', async () => {
    const cwd = folder({ 'agents/assistant.yaml': demo })
    const { code, out, err } = await ran(['serve', '--insecure-no-auth', '--host', '203.0.113.7'], { cwd })
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(/^millrace: Cannot listen on 203\.0\.113\.7:\d+: this machine does not have that address\.\n$/)
  })

  test('serve: an empty folder is told of init, and nothing is suggested that is not there', async () => {
    const empty = await serving([], { cwd: folder({ 'agents/notes.txt': '' }) })
    expect(empty.out).toMatch(/\nAgents\n {2}none yet\. Create one with millrace init\.\n/)
    expect(empty.out).not.toContain('agentId')
    const broken = await serving([], { cwd: folder({ 'agents/a.yaml': 'workflow: 7\n' }) })
    expect(broken.out).toMatch(/\nAgents\n {2}none without errors\n/)
    expect(broken.out).not.toContain('agentId')
    expect(broken.err).toMatch(/^a\.yaml:1:\d+ /)
  })

  test('serve with a key: the lines to try send it', async () => {
    const env = { MILLRACE_API_KEY: 'a-long-secret-key' }
    const server = await serving([], { cwd: folder({ 'agents/a.yaml': demo }), env })
    const lines = server.out.split('\n').filter((line) => line.includes('curl'))
    expect(lines).toHaveLength(5)
    for (const line of lines) expect(line).toContain('-H "Authorization: Bearer $MILLRACE_API_KEY"')
    expect(server.out + server.err).not.toContain(env.MILLRACE_API_KEY)
  })

  test.skipIf(process.platform === 'win32')(
    'a named pipe among the agents is a fault; nobody waits for its writer',
    async () => {
      const cwd = folder({ 'agents/a.yaml': demo })
      execFileSync('mkfifo', [join(cwd, 'agents/pipe.yaml')])
      const { code, out, err } = await ran(['check', 'agents'], { cwd })
      expect(code).toBe(1)
      expect(out + err).toContain('pipe.yaml:1:1')
      expect(out + err).toContain('this file cannot be read: it is not a regular file')
    },
  )
})

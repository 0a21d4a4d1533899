/** `check`, help and suggestions. */
import { describe, expect, test } from 'vitest'
import { folder, ran } from '../support/cli.ts'

const good = `workflow:
  - { id: answer, type: llm, config: { model: "demo:assistant", stream: true } }
`
const typo = good.replace('stream', 'strem')
const two = `workflow:
  - id: answer
    type: lm
    config: {}
  - id: again
    type: llm
    config: { model: "demo:assistant", tools: [calculatr] }
`

describe('help and checks of the CLI', () => {
  test('check: good agents are exit 0; every fault has its place and a suggestion, exit 1', async () => {
    const cwd = folder({ 'agents/a.yaml': good, 'agents/b.yml': good, 'more/c.yaml': typo, 'more/d.yaml': two })
    expect(await ran(['check'], { cwd })).toEqual({ code: 0, out: '', err: '2 files checked, no errors\n' })
    const { code, out, err } = await ran(['check', 'agents', 'more', 'agents/a.yaml'], { cwd })
    expect([code, err]).toEqual([1, '4 files checked, 3 errors\n'])
    const lines = out.trim().split('\n')
    expect(lines).toHaveLength(3)
    expect(lines[0]).toMatch(/^more\/c\.yaml:2:\d+ .*strem.*did you mean "?stream"?\?/)
    expect(lines[1]).toMatch(/^more\/d\.yaml:3:\d+ .*lm.*did you mean "?llm"?\?/)
    expect(lines[2]).toMatch(/^more\/d\.yaml:7:\d+ .*calculatr.*did you mean "?calculator"?\?/)
  })

  test('check takes the endpoints that serve takes; without one it says how to name it', async () => {
    const cwd = folder({ 'agents/a.yaml': good.replace('demo:', 'my-vllm:') })
    const { code, out } = await ran(['check'], { cwd })
    expect([code, out]).toEqual([1, expect.stringContaining('for a server of your own, use --endpoint name=http://…')])
    expect((await ran(['check', '--endpoint', 'my-vllm=http://127.0.0.1:9/v1'], { cwd })).code).toBe(0)
    const env = { MILLRACE_ENDPOINT_MY_VLLM: 'http://127.0.0.1:9/v1' }
    expect((await ran(['check'], { cwd, env })).code).toBe(0)
    const odd = await ran(['check', '--endpoint', 'nonsense'], { cwd })
    expect([odd.code, odd.err]).toEqual([2, expect.stringContaining('is not a valid endpoint')])
  })

  test('check --json is the faults as data', async () => {
    const cwd = folder({ 'agents/c.yaml': typo })
    const { code, out } = await ran(['check', '--json'], { cwd })
    expect([code, JSON.parse(out)]).toEqual([
      1,
      { files: 1, faults: [expect.objectContaining({ file: 'agents/c.yaml', line: 2, message: expect.any(String) })] },
    ])
    expect(JSON.parse((await ran(['check', '--json'], { cwd: folder({ 'agents/a.yaml': good }) })).out)).toEqual({
      files: 1,
      faults: [],
    })
  })

  test('check: nothing to check, or a config that cannot be loaded, is exit 2', async () => {
    const cases: [Record<string, string>, string[], RegExp][] = [
      [{}, ['check'], /no file or folder agents/],
      [{ 'agents/notes.txt': '' }, ['check'], /no YAML file in agents/],
      [{ 'agents/a.yaml': good, 'agents/millrace.config.mjs': 'export default 7' }, ['check'], /millrace\.config\.mjs/],
      [{ 'agents/a.yaml': good, 'agents/millrace.config.mjs': 'oh no' }, ['check'], /millrace\.config\.mjs/],
    ]
    for (const [files, args, message] of cases) {
      const { code, out, err } = await ran(args, { cwd: folder(files) })
      expect([code, out]).toEqual([2, ''])
      expect(err).toMatch(message)
    }
  })

  test.each([
    ['{\n  tools: { x: 5 },\n}', /config\.mjs:2 tools\.x must be a tool: .*, not 5\./],
    ['{\n  callbacks: {\n    done: "yes",\n  },\n}', /config\.mjs:3 callbacks\.done must be a function, not/],
    ['{\n  steps: { a: {} } }', /config\.mjs:2 steps\.a must be a function/],
    ['{\n  server: {\n    prot: 1 } }', /config\.mjs:3 server\.prot is not a known setting/],
    ['{\n  tools: }\n}', /config\.mjs:2 cannot be loaded: /],
    ['{\n\n  tools: nothere() }', /config\.mjs:3 cannot be loaded: nothere is not defined/],
  ])('check: a mistake in the config is told with its line: %j', async (config, message) => {
    const cwd = folder({ 'agents/a.yaml': good, 'agents/millrace.config.mjs': `export default ${config}\n` })
    const { code, err } = await ran(['check'], { cwd })
    expect([code, err]).toEqual([2, expect.stringMatching(message)])
  })

  test('check warns of keys that are not set here, which is no error', async () => {
    const cwd = folder({ 'agents/a.yaml': good.replace('demo:assistant', 'openai:gpt-5') })
    const { code, out, err } = await ran(['check'], { cwd })
    const words = /^agents\/a\.yaml:\d+ warning: The model "openai:gpt-5" needs a key: set OPENAI_API_KEY in/u
    expect([code, out, err]).toEqual([0, '', expect.stringMatching(words)])
    const json = JSON.parse((await ran(['check', '--json'], { cwd })).out) as object
    expect(json).toMatchObject({ faults: [], warnings: [{ file: 'agents/a.yaml', message: expect.any(String) }] })
    expect((await ran(['check'], { cwd, env: { OPENAI_API_KEY: 'sk-some-key-of-tests' } })).err).not.toContain(
      'warning',
    )
  })

  test('every command has help with an example, and says what it is', async () => {
    const { code, out } = await ran(['--help'])
    expect(code).toBe(0)
    const commands = [...out.matchAll(/^ {2}(\w+) .*/gmu)].map(([, name]) => name!).filter((name) => name !== 'help')
    expect(commands).toEqual(expect.arrayContaining(['serve', 'run', 'check', 'ps', 'logs', 'stop', 'verify']))
    for (const command of commands) {
      const help = await ran([command, '--help'])
      expect([command, help.code, help.err]).toEqual([command, 0, ''])
      expect(help.out).toMatch(new RegExp(`Examples?:\\n {2}.*millrace ${command}`, 'u'))
    }
  })

  test('a mistyped command or flag is exit 2 with a suggestion', async () => {
    expect(await ran(['srve'])).toMatchObject({ code: 2, out: '', err: expect.stringContaining('Did you mean serve?') })
    expect(await ran(['logs', 'x', '--folow'])).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringContaining('Did you mean --follow?'),
    })
    expect((await ran([])).code).toBe(2)
    const version = await ran(['--version'])
    expect(version).toMatchObject({ code: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
  })

  test('no colours and no progress where there is no terminal', async () => {
    const cwd = folder({ 'agents/a.yaml': good, 'agents/b.yaml': typo })
    for (const args of [['check'], ['--help'], ['run', 'a', '-m', 'Hi'], ['ps']]) {
      const { out, err } = await ran(args, { cwd })
      expect(out + err).not.toContain('\u001b')
    }
  })
})

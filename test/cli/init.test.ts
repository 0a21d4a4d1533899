/** `init` and `schema`: a folder to begin with, and what editors know of it. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { folder, ran, serving } from '../support/cli.ts'

const read = (...path: string[]) => readFileSync(join(...path), 'utf8')

describe('millrace init', () => {
  test('init writes an agent that checks and runs with no key, a config and the schema that the agent names', async () => {
    const cwd = folder()
    const { code, out, err } = await ran(['init'], { cwd })
    expect([code, err]).toEqual([0, ''])
    expect(out).toBe(`created agents/assistant.yaml
created agents/millrace.config.mts
created agents/millrace.schema.json
created .gitignore

Next steps:
  millrace run assistant -m "What is 12*7?"
  millrace chat
  millrace serve
`)
    expect(read(cwd, 'agents/assistant.yaml')).toMatch(/^# yaml-language-server: \$schema=\.\/millrace\.schema\.json\n/)
    expect(read(cwd, '.gitignore').split('\n')).toEqual(expect.arrayContaining(['node_modules/', '.env', '.millrace/']))
    expect(await ran(['check'], { cwd })).toMatchObject({ code: 0, out: '' })
    const run = await ran(['run', 'assistant', '-m', 'What is 12*7?'], { cwd })
    expect([run.code, run.out]).toEqual([0, expect.stringContaining('84')])
    const schema = JSON.parse(read(cwd, 'agents/millrace.schema.json')) as { definitions: { llm: unknown } }
    expect(JSON.stringify(schema.definitions.llm)).toMatch(/"enum":\[[^\]]*"calculator"[^]*"logAnswer"/)
  })

  test('init never overwrites, and says what it kept', async () => {
    const files = {
      'p/agents/assistant.yaml': 'mine',
      'p/agents/millrace.config.js': 'export default {}',
      'p/.gitignore': 'x',
    }
    const cwd = folder(files)
    const { code, out } = await ran(['init', 'p'], { cwd })
    expect(code).toBe(0)
    expect(out).toMatch(
      /^exists {2}p\/agents\/assistant\.yaml\nexists {2}p\/agents\/millrace\.config\.js\ncreated p\/agents\/millrace\.schema\.json\n/,
    )
    expect(out).toContain('\n  cd p\n')
    for (const [name, text] of Object.entries(files)) expect(read(cwd, name)).toBe(text)
    writeFileSync(join(cwd, 'p/agents/millrace.schema.json'), '{}')
    expect((await ran(['init', 'p'], { cwd })).out).toContain(
      'millrace schema p/agents > p/agents/millrace.schema.json',
    )
    expect(read(cwd, 'p/agents/millrace.schema.json')).toBe('{}')
  })

  test('a .gitignore that is there stays; what it lacks is said', async () => {
    const cwd = folder({
      'p/.gitignore': '/node_modules\n.millrace\n',
      'q/.gitignore': 'node_modules\n.env\n.millrace/\n',
    })
    const { out } = await ran(['init', 'p'], { cwd })
    expect(out).toContain('exists  p/.gitignore\n        add to it: .env\n')
    expect(read(cwd, 'p/.gitignore')).toBe('/node_modules\n.millrace\n')
    expect((await ran(['init', 'q'], { cwd })).out).not.toContain('.gitignore')
  })

  test('node_modules are no agents: not for init, check or serve, whatever is in there', async () => {
    const cwd = folder({
      'node_modules/pack/agents/broken.yaml': 'workflow: 7\n',
      'agents/node_modules/pack/broken.yaml': 'workflow: 7\n',
      'agents/node_modules/pack/millrace.config.js': 'throw new Error("loaded")\n',
    })
    expect((await ran(['init'], { cwd })).code).toBe(0)
    expect(await ran(['check'], { cwd })).toMatchObject({ code: 0, err: expect.stringContaining('1 file checked') })
    const server = await serving([], { cwd })
    const { agents, errors } = (await (await fetch(`${server.url}/api/agents`)).json()) as Record<
      string,
      { id: string }[]
    >
    expect([agents!.map(({ id }) => id), errors]).toEqual([['assistant'], []])
  })

  test.each([
    ['module', 'millrace.config.ts'],
    ['commonjs', 'millrace.config.mts'],
  ])('in a %s package the config is %s, which Node takes without a word', async (type, config) => {
    const cwd = folder({ 'package.json': JSON.stringify({ type }) })
    expect((await ran(['init'], { cwd })).out).toContain(`created agents/${config}\n`)
    expect((await ran(['check'], { cwd })).err).toBe('1 file checked, no errors\n')
  })

  test('a folder that cannot be made is exit 2', async () => {
    const { code, err } = await ran(['init', 'file/inside'], { cwd: folder({ file: '' }) })
    expect([code, err]).toEqual([
      2,
      expect.stringMatching(/^millrace: Cannot create the folder file\/inside\/agents: /),
    ])
  })

  test('schema: with the names of the config, without a folder any name', async () => {
    const cwd = folder({
      'agents/a.yaml': 'workflow: [{ id: a, type: shout, config: {} }]\n',
      'agents/millrace.config.mjs': `export default { steps: { shout: () => 1 }, callbacks: { note: () => 1 } }`,
    })
    const own = await ran(['schema'], { cwd })
    expect([own.code, own.err]).toEqual([0, ''])
    expect(own.out).toMatch(/"shout"[^]*"note"/)
    const free = await ran(['schema'], { cwd: folder() })
    expect(free.out).not.toContain('"shout"')
    for (const { out } of [own, free])
      expect(JSON.parse(out)).toMatchObject({ title: 'Millrace agent', required: ['workflow'] })
  })

  test('serve brings the schema up to date where there is one, and makes none', async () => {
    const cwd = folder()
    await ran(['init'], { cwd })
    const fresh = read(cwd, 'agents/millrace.schema.json')
    writeFileSync(join(cwd, 'agents/millrace.schema.json'), '{}')
    const server = await serving([], { cwd })
    await server.until('agents/millrace.schema.json: updated\n')
    expect(read(cwd, 'agents/millrace.schema.json')).toBe(fresh)
    server.kill('SIGTERM')
    await server.exit
    rmSync(join(cwd, 'agents/millrace.schema.json'))
    const again = await serving([], { cwd })
    expect(again.err).toBe('')
    expect(() => read(cwd, 'agents/millrace.schema.json')).toThrow('ENOENT')
  })
})

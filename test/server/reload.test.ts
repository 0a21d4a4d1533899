/** A folder of agents while the server runs: broken files, changed files, names that clash. */
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { serve } from '../../src/server/serve.ts'
import { folder } from '../support/cli.ts'

const good = (answer: string, aliases = '') => `metadata: { description: "${answer}"${aliases} }
workflow:
  - id: say
    type: output-generator
    config: { template: "${answer}" }
`
const broken = `workflow:
  - id: say
    type: llm
    config:
      model: "demo:assistant"
      strem: true
`

interface Listed {
  agents: { id: string; description?: string }[]
  errors: { file: string; message: string }[]
}

async function served(files: Record<string, string>) {
  const dir = folder(files)
  const told: string[] = []
  const server = await serve({
    dir,
    data: 'none',
    env: {},
    port: 0,
    host: '127.0.0.1',
    log: (line) => void told.push(line),
  })
  onTestFinished(() => server.close())
  const list = async () => (await (await fetch(`${server.url}/api/agents`)).json()) as Listed
  return {
    dir,
    told,
    list,
    ids: async () => (await list()).agents.map(({ id }) => id),
    save: (file: string, content: string) => writeFileSync(join(dir, file), content),
    async ask(agentId: string): Promise<unknown> {
      const response = await fetch(`${server.url}/api/chat`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ agentId, messages: [] }),
      })
      return response.status === 200 ? response.json() : response.status
    },
  }
}

const soon = <T>(check: () => T | Promise<T>) => vi.waitFor(check, { interval: 20 })

describe('hot reload', () => {
  test('a broken file beside good ones: the good ones work, the fault is shown with its place', async () => {
    const { list, ask } = await served({
      'a.yaml': good('A'),
      'b.yml': good('B'),
      'broken.yaml': broken,
      'notes.txt': 'x',
    })
    const { agents, errors } = await list()
    expect(agents.map(({ id }) => id)).toEqual(['a', 'b'])
    const message = expect.stringMatching(/^broken\.yaml:6:7 .*strem.*stream/)
    const place = { line: 6, column: 7, message: expect.stringContaining('strem') }
    expect(errors).toEqual([{ file: 'broken.yaml', message, faults: [place] }])
    expect([await ask('a'), await ask('b'), await ask('broken')]).toEqual(['A', 'B', 404])
  })

  test('a changed file is taken; a broken change keeps the last good version and says what is wrong; its repair is taken', async () => {
    const { list, ask, save, told } = await served({ 'a.yaml': good('one') })
    expect(await ask('a')).toBe('one')

    save('a.yaml', good('two'))
    await soon(async () => expect(await ask('a')).toBe('two'))

    save('a.yaml', broken)
    await soon(async () => expect((await list()).errors).toHaveLength(1))
    expect((await list()).errors[0]!.message).toMatch(/^a\.yaml:6:7 /)
    await soon(() => expect(told.join('\n')).toMatch(/^a\.yaml:6:7 /m))
    expect(await ask('a')).toBe('two')
    expect((await list()).agents).toMatchObject([{ id: 'a', description: 'two' }])

    save('a.yaml', good('three'))
    await soon(async () => expect(await ask('a')).toBe('three'))
    expect((await list()).errors).toEqual([])
  })

  test('files that come, go and are replaced as editors do it', async () => {
    const { dir, ids, ask, save, told } = await served({ 'a.yaml': good('A') })
    save('b.yaml', good('B'))
    await soon(async () => expect(await ids()).toEqual(['a', 'b']))
    save('.a.yaml.swp', 'x')
    save('a.tmp', good('A2'))
    renameSync(join(dir, 'a.tmp'), join(dir, 'a.yaml'))
    await soon(async () => expect(await ask('a')).toBe('A2'))
    rmSync(join(dir, 'b.yaml'))
    await soon(async () => expect(await ids()).toEqual(['a']))
    await soon(() => expect(told.at(-1)).toContain('b'))
    expect(await ask('b')).toBe(404)
  })

  test('a folder in place of a file, and a folder that vanishes, take nothing down', async () => {
    const { dir, list, ask, told } = await served({ 'a.yaml': good('A') })
    mkdirSync(join(dir, 'odd.yaml'))
    await soon(async () => expect((await list()).errors).toMatchObject([{ file: 'odd.yaml' }]))
    expect(await ask('a')).toBe('A')
    renameSync(dir, `${dir}-gone`)
    onTestFinished(() => rmSync(`${dir}-gone`, { recursive: true }))
    rmSync(join(`${dir}-gone`, 'a.yaml'))
    await soon(() => expect(told.join('\n')).toContain('agents folder cannot be read'))
    expect(await ask('a')).toBe('A')
  })

  test('an alias answers; two agents that claim one are told, and the first keeps it', async () => {
    const { list, ask, save } = await served({
      'a.yaml': good('A', ', aliases: [fast, b]'),
      'b.yaml': good('B', ', aliases: [fast, slow]'),
    })
    const { agents, errors } = await list()
    expect(agents.map(({ id }) => id)).toEqual(['a', 'b'])
    // A name of one's own goes before the alias of another.
    expect([await ask('a'), await ask('b'), await ask('fast'), await ask('slow')]).toEqual(['A', 'B', 'A', 'B'])
    expect(errors.map(({ file, message }) => [file, message])).toEqual([
      ['a.yaml', expect.stringMatching(/^a\.yaml:1:47 .*"b" already belongs to agent b/)],
      ['b.yaml', expect.stringMatching(/^b\.yaml:1:41 .*"fast" already belongs to agent a/)],
    ])
    save('a.yaml', good('A'))
    await soon(async () => expect((await list()).errors).toEqual([]))
    expect(await ask('fast')).toBe('B')
  })

  test('two files of one name are one agent and one fault', async () => {
    const { list, ask } = await served({ 'a.yaml': good('A'), 'a.yml': good('other') })
    const { agents, errors } = await list()
    expect(agents.map(({ id }) => id)).toEqual(['a'])
    expect(errors).toMatchObject([{ file: 'a.yml' }])
    expect(await ask('a')).toBe('A')
  })

  test('a folder that is not there is refused by name', async () => {
    const dir = join(folder(), 'missing')
    const options = { dir, data: 'none', env: {}, port: 0, host: '127.0.0.1' }
    await expect(serve(options)).rejects.toMatchObject({ code: 'bad-folder', message: expect.stringContaining(dir) })
  })

  const calls = (agent: string) => `metadata: { description: "calls ${agent}" }
workflow:
  - id: call
    type: call-agent
    config: { agent: ${agent} }
`

  test('calls of agents that are not there, and calls in a circle, are load errors at the call in its file', async () => {
    const { list, ask, save } = await served({
      'a.yaml': calls('b'),
      'b.yaml': calls('c'),
      'c.yaml': calls('a'),
      'd.yaml': calls('good'),
      'e.yaml': calls('goode'),
      'f.yaml': calls('broken'),
      'good.yaml': good('yes'),
      'broken.yaml': broken,
    })
    const { agents, errors } = await list()
    expect(agents.map(({ id }) => id)).toEqual(['d', 'f', 'good'])
    expect(errors.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^a\.yaml:5:22 circular call: a → b → c → a/),
      expect.stringMatching(/^b\.yaml:5:22 circular call: b → c → a → b/),
      expect.stringMatching(/^broken\.yaml:6:7 /),
      expect.stringMatching(/^c\.yaml:5:22 circular call: c → a → b → c/),
      expect.stringMatching(/^e\.yaml:5:22 unknown agent "goode" \(did you mean "good"\?\)/),
    ])
    expect([await ask('d'), await ask('a'), await ask('e')]).toEqual(['yes', 404, 404])
    save('goode.yaml', good('too'))
    save('c.yaml', good('end'))
    await soon(async () => expect((await list()).errors).toHaveLength(1))
    expect([await ask('a'), await ask('e')]).toEqual(['end', 'too'])
  })

  test('a reload that closes a circle keeps the last good version; one that removes a called agent is told', async () => {
    const { dir, list, ask, save, told } = await served({ 'a.yaml': calls('b'), 'b.yaml': good('B') })
    save('b.yaml', calls('a'))
    await soon(() => expect(told.join('\n')).toMatch(/^b\.yaml:5:22 circular call: b → a → b/m))
    expect((await list()).errors.map(({ file }) => file)).toEqual(['b.yaml'])
    expect([await ask('a'), await ask('b')]).toEqual(['B', 'B'])
    rmSync(join(dir, 'b.yaml'))
    await soon(() => expect(told.join('\n')).toMatch(/^a\.yaml:5:22 unknown agent "b"/m))
    expect((await list()).errors).toMatchObject([{ file: 'a.yaml', faults: [{ line: 5, column: 22 }] }])
    save('b.yaml', good('again'))
    await soon(async () => expect((await list()).errors).toEqual([]))
    expect(await ask('a')).toBe('again')
  })

  test('a changed config is told: it is taken with the next start', async () => {
    const config = 'export default {}\n'
    const { save, told } = await served({ 'a.yaml': good('A'), 'millrace.config.mjs': config })
    save('millrace.config.mjs', config)
    save('a.yaml', good('B'))
    await soon(() => expect(told).toContain('reloaded: a'))
    expect(told.join('\n')).not.toContain('millrace.config')
    save('millrace.config.mjs', 'export default { env: [] }\n')
    await soon(() => expect(told).toContain('millrace.config.mjs has changed: restart the server to apply it'))
  })

  test('what was taken, kept, added, removed and never loaded are told apart', async () => {
    const { dir, save, told } = await served({ 'a.yaml': good('A') })
    save('a.yaml', good('B').replace('workflow', 'workfow'))
    await soon(() => expect(told.at(-1)).toBe('a: not reloaded, the previous version stays'))
    expect(told.join('\n')).not.toContain('reloaded: ')
    save('a.yaml', good('B'))
    await soon(() => expect(told.at(-1)).toBe('reloaded: a'))
    save('b.yaml', good('B'))
    await soon(() => expect(told.at(-1)).toBe('added: b'))
    save('c.yaml', broken)
    await soon(() => expect(told.at(-1)).toBe('c: not loaded'))
    rmSync(join(dir, 'b.yaml'))
    await soon(() => expect(told.at(-1)).toBe('removed: b'))
  })

  test('what an agent takes, its steps and its tools are shown', async () => {
    const { list } = await served({
      'a.yaml': `metadata: { name: A, aliases: [b] }
input: { topic: string, tone: { type: string, enum: [dry, warm], default: dry } }
workflow:
  - id: either
    type: condition
    config:
      if: $input.tone == "dry"
      then: [{ id: say, type: llm, config: { model: "demo:assistant", tools: [calculator], messages: $input.messages } }]
after: [{ id: note, type: output-generator, config: { template: done } }]
`,
    })
    expect((await list()).agents).toEqual([
      {
        id: 'a',
        name: 'A',
        aliases: ['b'],
        input: {
          type: 'object',
          properties: { topic: { type: 'string' }, tone: { type: 'string', enum: ['dry', 'warm'], default: 'dry' } },
          required: ['topic'],
        },
        steps: [
          { id: 'either', type: 'condition' },
          { id: 'note', type: 'output-generator' },
        ],
        tools: ['calculator'],
      },
    ])
  })

  test('a link that leads out of the folder is no agent; one within it, and a folder that is a link, are', async () => {
    const outside = folder({ 'secret.yaml': good('outside') })
    const inside = folder({ '..2026/a.yaml': good('inside') })
    symlinkSync('..2026', join(inside, '..data'))
    symlinkSync('..data/a.yaml', join(inside, 'a.yaml'))
    symlinkSync(join(outside, 'secret.yaml'), join(inside, 'b.yaml'))
    const linked = join(folder({}), 'agents')
    symlinkSync(inside, linked)
    const server = await serve({ dir: linked, data: 'none', env: {}, port: 0, host: '127.0.0.1' })
    onTestFinished(() => server.close())
    const { agents, errors } = (await (await fetch(`${server.url}/api/agents`)).json()) as Listed
    expect(agents.map(({ id }) => id)).toEqual(['a'])
    expect(errors).toEqual([
      {
        file: 'b.yaml',
        message: 'b.yaml:1:1 this symlink points outside the agents folder; put the file itself here',
        faults: expect.any(Array),
      },
    ])
  })

  test('a folder that is removed and created again is watched again; the agents of before stay meanwhile', async () => {
    const { dir, told, ids, ask, save } = await served({ 'a.yaml': good('one') })
    for (const round of ['two', 'three']) {
      // Renamed first, so that no file of it goes alone.
      renameSync(dir, `${dir}.gone`)
      rmSync(`${dir}.gone`, { recursive: true })
      await soon(() => expect(told.filter((line) => line.includes('cannot be read'))).not.toEqual([]))
      expect(await ids()).toEqual(['a'])
      mkdirSync(dir)
      save('a.yaml', good(round))
      await soon(async () => expect(await ask('a')).toBe(round))
      expect(told.filter((line) => line.includes('cannot be read'))).toHaveLength(1)
      told.length = 0
      // It is the new folder that is watched now.
      save('b.yaml', good(`${round} more`))
      await soon(async () => expect(await ids()).toEqual(['a', 'b']))
      expect(await ask('b')).toBe(`${round} more`)
      rmSync(join(dir, 'b.yaml'))
      await soon(async () => expect(await ids()).toEqual(['a']))
      told.length = 0
    }
  })

  test.each([
    ['a folder that another takes the place of at once', false],
    ['a link that is pointed elsewhere, as a deployment does it', true],
  ])('%s', async (_, isLink) => {
    const root = folder({ 'v1/a.yaml': good('one'), 'v2/a.yaml': good('two') })
    const at = (name: string) => join(root, name)
    const put = (version: string) => {
      if (!isLink) return renameSync(at(version), at('agents'))
      symlinkSync(version, at('agents.new'))
      renameSync(at('agents.new'), at('agents'))
    }
    put('v1')
    const told: string[] = []
    const log = (line: string) => void told.push(line)
    const server = await serve({ dir: at('agents'), data: 'none', env: {}, port: 0, host: '127.0.0.1', log })
    onTestFinished(() => server.close())
    const description = () => server.project.agents.get('a')?.pipeline.metadata.description
    if (!isLink) renameSync(at('agents'), at('old'))
    put('v2')
    await soon(() => expect(description()).toBe('two'))
    writeFileSync(at('agents/a.yaml'), good('three'))
    await soon(() => expect(description()).toBe('three'))
    expect(told).toEqual(['reloaded: a', 'reloaded: a'])
  })
})

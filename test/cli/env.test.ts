/** `.env` beside the agents: read by the commands, behind the environment, and by nothing else. */
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { folder, ran, serving } from '../support/cli.ts'

const config = `export default { env: ['GREETING', 'PLACE', 'SHOP_TOKEN'] }
`
const says = (template: string) =>
  `workflow: [{ id: say, type: output-generator, config: { template: "${template}" } }]\n`
const files = {
  'agents/millrace.config.mjs': config,
  'agents/a.yaml': says('$env.GREETING from $env.PLACE'),
  'agents/secret.yaml': says('$env.SHOP_TOKEN'),
}

describe('.env files', () => {
  test('run reads the file beside the agents, then the one where the command is given; the environment wins', async () => {
    const cwd = folder({
      ...files,
      'agents/.env': '# greetings\nexport GREETING="Hello" # a word\n',
      '.env': '\ufeffGREETING=Bye\nPLACE=here\n',
    })
    const run = async (agent: string, env = {}, at = cwd) => {
      const { out, err } = await ran(['run', agent, '-m', 'Hi'], { cwd: at, env })
      return err.includes('completed') ? out : err
    }
    expect(await run('a')).toContain('Hello from here')
    expect(await run('agents/a.yaml', { PLACE: 'there', GREETING: '' })).toContain(' from there')
    // From elsewhere the folder of the agents counts.
    const elsewhere = folder()
    expect(await run(join(cwd, 'agents/a.yaml'), { PLACE: 'afar' }, elsewhere)).toContain('Hello from afar')
  })

  test('its values are secrets by the names that say so: never printed, never recorded', async () => {
    const cwd = folder({ ...files, 'agents/.env': 'SHOP_TOKEN=tok-1234567890\n' })
    const { out, err } = await ran(['run', 'secret', '-m', 'Hi', '--format', 'parts'], { cwd })
    expect(err).toContain('completed')
    expect(out).toContain('[redacted]')
    expect(out + err).not.toContain('tok-1234567890')
  })

  test('serve reads it and says so, serves it to nobody, takes it for no agent, and says when it has changed', async () => {
    const cwd = folder({
      ...files,
      'agents/.env': 'GREETING=Hello\nPLACE=here\nMILLRACE_API_KEY=a-key-from-the-file\n',
    })
    const server = await serving([], { cwd })
    expect(server.err).toContain('agents/.env: loaded\n')
    const authorization = 'Bearer a-key-from-the-file'
    const get = (path: string, headers = {}) => fetch(server.url + path, { headers })
    expect((await get('/api/agents')).status).toBe(401)
    const { agents, errors } = (await (await get('/api/agents', { authorization })).json()) as Record<
      string,
      { id: string }[]
    >
    expect([agents!.map(({ id }) => id), errors]).toEqual([['a', 'secret'], []])
    for (const path of ['/.env', '/agents/.env', '/%2eenv', '/api/agents/.env', '/v1/models/.env']) {
      const response = await get(path, { authorization })
      expect([path, response.status]).toEqual([path, 404])
      expect(await response.text()).not.toContain('Hello')
    }
    // What asks the server has the key from there, too.
    expect(await ran(['ps'], { cwd })).toMatchObject({ code: 0 })
    appendFileSync(join(cwd, 'agents/.env'), 'MORE=1\n')
    await server.until('.env has changed: restart the server to apply it')
    expect(server.err).not.toContain('a-key-from-the-file')
  })

  test.each([
    ['A=1\nsk-secret-words\n', 'agents/.env:2: expected NAME=value'],
    ['A=1\n\nB C=sk-secret-words\n', 'agents/.env:3: expected NAME=value'],
    ['A="sk-secret-words\nB=2\n', `agents/.env:1: the value starts with ", but the closing " is missing`],
    ['A=1\0\n', 'agents/.env:1: the file is not UTF-8 text'],
  ])('%j is an error with its place for what runs agents, and is not repeated', async (text, message) => {
    const cwd = folder({ ...files, 'agents/.env': text })
    for (const args of [['check'], ['run', 'a', '-m', 'Hi'], ['serve']]) {
      const { code, out, err } = await ran(args, { cwd })
      expect([args[0], code, out]).toEqual([args[0], 2, ''])
      expect(err).toContain(`millrace: ${message}`)
      expect(err).not.toContain('sk-secret')
    }
    // It is none of its business.
    expect((await ran(['ps'], { cwd })).err).toContain('No runs found')
  })

  test('values over several lines, comments and blank lines are no mistakes', async () => {
    const cwd = folder({
      ...files,
      'agents/.env': `\n# a comment with "\nGREETING="two\nlines" # "\r\nPLACE='it''s'\nX=\`a"b\`\n`,
    })
    expect((await ran(['run', 'a', '-m', 'Hi'], { cwd })).out).toContain('two\nlines from it')
  })
})

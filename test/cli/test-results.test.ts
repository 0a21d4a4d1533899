/** Results of `millrace test` reach the page: of a server that runs meanwhile, of one that starts later, and of one elsewhere. */
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readLeftResults } from '../../src/regress/result-files.ts'
import { folder, ran, serving } from '../support/cli.ts'

const demo = `workflow:
  - { id: answer, type: llm, config: { model: "demo:assistant", stream: true, tools: [calculator] } }
`
const cases = (expected: string) => `agent: a
cases:
  - { name: adds, message: "What is 2+3?", expect: { text: "${expected}" } }
  - { name: greets, message: Hello }
`
const project = () => folder({ 'agents/a.yaml': demo, 'tests/a.yaml': cases('5') })

async function get(url: string, path: string, headers?: HeadersInit): Promise<any> {
  return (await fetch(`${url}/api/${path}`, headers && { headers })).json()
}
const lasts = async (url: string, headers?: HeadersInit) =>
  (await get(url, 'tests', headers)).cases.map((each: any) => `${each.name} ${each.last?.status}`)
const waiting = (cwd: string) => readdirSync(join(cwd, '.millrace/tests'))

describe('results of the command', () => {
  test('a server shows them: those from before its start and those of a command beside it, each once', async () => {
    const cwd = project()
    expect((await ran(['test', '--record'], { cwd })).code).toBe(0)
    expect(waiting(cwd)).toHaveLength(1)
    // Of another project with the same data folder.
    const other = project()
    expect((await ran(['test', '--data', join(cwd, '.millrace')], { cwd: other })).code).toBe(1)
    const server = await serving([], { cwd })
    expect(await lasts(server.url)).toEqual(['adds passed', 'greets passed'])
    expect(waiting(cwd)).toHaveLength(1)

    writeFileSync(join(cwd, 'tests/a.yaml'), cases('6'))
    const beside = await ran(['test', '-t', 'adds'], { cwd })
    expect(beside).toMatchObject({ code: 1, err: '' })
    expect(await lasts(server.url)).toEqual(['adds failed', 'greets passed'])
    const { results } = await get(server.url, 'tests/a%2Fadds')
    expect(results).toMatchObject([
      { status: 'failed', isLive: false, source: 'terminal', failures: [{ what: 'text', expected: '6' }] },
      { status: 'passed', isLive: true, source: 'terminal', user: '' },
    ])
    expect(waiting(cwd)).toHaveLength(1)
  })

  test('files that the command has not written, and cases that are not here, do no harm', async () => {
    const cwd = project()
    await ran(['test', '--record'], { cwd })
    const [name] = waiting(cwd) as [string]
    const file = join(cwd, '.millrace/tests', name)
    const given = JSON.parse(readFileSync(file, 'utf8')) as { results: object[] }
    const again = (n: number, text: string) =>
      writeFileSync(file.replace(/-\d{15}-/u, `-${String(n).padStart(15, '0')}-`), text)
    const row = given.results[0]!
    again(
      1,
      JSON.stringify({
        results: [
          { ...row, test: '../../x' },
          { ...row, test: 'a/greets', agent: 'boss', time: 9e15 },
        ],
      }),
    )
    again(2, JSON.stringify({ results: [{ ...row, failures: [null] }] }))
    again(3, '['.repeat(100_000))
    // A server that ended before it could delete the file reads it again.
    again(4, JSON.stringify(given))
    symlinkSync('/etc/passwd', join(cwd, '.millrace/tests', name.replace(/-\d{15}-/u, `-${'5'.padStart(15, '0')}-`)))
    writeFileSync(join(cwd, '.millrace/tests/note.json'), 'mine')
    const server = await serving([], { cwd })
    expect(await lasts(server.url)).toEqual(['adds passed', 'greets passed'])
    const { results } = await get(server.url, 'tests/a%2Fgreets')
    expect(results).toHaveLength(2)
    for (const each of results) {
      expect(each.agent).toBe('a')
      expect(each.time).toBeLessThan(Date.now() + 60_000)
    }
    expect(waiting(cwd)).toEqual(['note.json'])
    expect(readFileSync('/etc/passwd', 'utf8')).not.toBe('')
  })

  test('--url sends them to a server elsewhere, under the key; a server that refuses them does not fail the tests', async () => {
    const cwd = project()
    const secret = 'sk-0123456789abcdef0123'
    await ran(['test', '--record', '--data', 'none'], { cwd })
    const server = await serving(['--data', 'kept'], { cwd, env: { MILLRACE_API_KEY: secret } })
    const sent = await ran(['test', '--url', server.url], { cwd, env: { MILLRACE_API_KEY: secret } })
    expect(sent).toMatchObject({ code: 0, err: '' })
    const headers = { authorization: `Bearer ${secret}` }
    expect(await lasts(server.url, headers)).toEqual(['adds passed', 'greets passed'])
    const { results } = await get(server.url, 'tests/a%2Fadds', headers)
    expect(results).toMatchObject([{ source: 'terminal', isLive: false }])
    const refused = await ran(['test', '--url', server.url], {
      cwd,
      env: { MILLRACE_API_KEY: 'sk-another0123456789abc' },
    })
    expect(refused.code).toBe(0)
    expect(refused.err).toMatch(/^The results are not kept for the page: .*rejects the key/u)
    expect(existsSync(join(cwd, '.millrace'))).toBe(false)
  })

  test('what the environment keeps secret is in no file; a folder that cannot be written is told, and fails nothing', async () => {
    const secret = 'sk-secret-0123456789abcdef'
    const cwd = folder({
      'agents/a.yaml': demo,
      'tests/a.yaml': `agent: a\ncases:\n  - { name: x, message: Hi, expect: { text: ${secret} } }\n`,
    })
    const env = { OPENAI_API_KEY: secret }
    expect((await ran(['test', '--record'], { cwd, env })).code).toBe(1)
    const [name] = waiting(cwd)
    const text = readFileSync(join(cwd, '.millrace/tests', name!), 'utf8')
    expect(text).toContain('does not contain')
    expect(text).not.toContain(secret)
    mkdirSync(join(cwd, 'other'))
    writeFileSync(join(cwd, 'other/tests'), '')
    const told = await ran(['test', '--data', 'other'], { cwd, env })
    expect(told.code).toBe(1)
    expect(told.err).toMatch(/^The results are not kept for the page: /u)
    expect(told.out).toContain('1 failed')
  })

  test('only so many wait', async () => {
    const cwd = project()
    await ran(['test', '--record', '-t', 'greets'], { cwd })
    const [name] = waiting(cwd) as [string]
    const dir = join(cwd, '.millrace/tests')
    const text = readFileSync(join(dir, name), 'utf8')
    for (let n = 0; n < 250; n++) {
      writeFileSync(join(dir, name.replace(/-\d{15}-/u, `-${String(n).padStart(15, '0')}-`)), text)
    }
    await ran(['test', '-t', 'greets'], { cwd })
    const left = readLeftResults(join(cwd, '.millrace'), realpathSync(join(cwd, 'agents')), (error) =>
      expect.fail(error.message),
    )
    expect(left).toHaveLength(200)
    expect(left.at(-1)!.results[0]!.isLive).toBe(false)
  })
})

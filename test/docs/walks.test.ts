/** docs/walks.md names the files that run: measured with V8's coverage, between two deltas of a model that is held. */
import { Session } from 'node:inspector/promises'
import { existsSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, onTestFinished, test, expect } from 'vitest'
import { startServer } from '../support/server.ts'
import { startUpstream, type UpstreamReply } from '../support/upstream.ts'

const root = join(import.meta.dirname, '../..')
const [, token = '', approval = ''] = readFileSync(join(root, 'docs/walks.md'), 'utf8').split(/^## .*$/m)
const named = (text: string) => new Set([...text.matchAll(/\]\(\.\.\/(src\/[\w./-]+\.ts)\)/g)].map(([, path]) => path!))

/** Files that one delta passes and that the walk does not name. */
const mostOthers = 42

/** The files of `src` of which a function is called meanwhile. */
async function filesThatRun(meanwhile: () => Promise<void>): Promise<Set<string>> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  // From here on only what follows is counted.
  await session.post('Profiler.takePreciseCoverage')
  await meanwhile()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  session.disconnect()
  const ran = result.filter(({ functions }) =>
    functions.some(({ functionName, ranges: [range] }) => functionName !== '' && range!.count > 0),
  )
  const paths = ran.map(({ url }) => relative(root, url.startsWith('file:') ? fileURLToPath(url) : url))
  return new Set(paths.map((path) => path.split(sep).join('/')).filter((path) => path.startsWith('src/')))
}

describe('docs: walks', () => {
  test('a delta from the provider to the client', async () => {
    let reply: UpstreamReply | undefined
    const upstream = await startUpstream((given) => {
      reply = given
      given.say('one ')
    })
    onTestFinished(upstream.close)
    const server = await startServer({
      agents: { a: 'workflow: [{ id: answer, type: llm, config: { model: "local:m", stream: true } }]' },
      models: { endpoints: [{ name: 'local', baseURL: upstream.baseURL }] },
    })
    onTestFinished(server.close)
    const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }
    const response = await server.post('/api/chat', { id: 't1', agentId: 'a', messages: [message] })
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    const readTo = async (words: string) => {
      let text = ''
      while (!text.includes(words)) {
        const { value, done } = await reader.read()
        expect(done, text).toBe(false)
        text += value
      }
    }
    await readTo('one ')
    reply!.say('two ')
    await readTo('two ')
    const ran = await filesThatRun(async () => {
      reply!.say('three ')
      await readTo('three ')
    })
    reply!.finish()
    await readTo('[DONE]')
    const unused = [...named(token)].filter((path) => !ran.has(path))
    // The first runs where there are secrets, the second on other servers than Node's.
    expect(unused).toEqual(['src/fold/redact.ts', 'src/delivery/streamed-body.ts'])
    // Those of the tables fill them later. The others are named, or a page of small functions each: the count may only fall.
    const others = [...ran].filter((path) => !named(token).has(path) && !path.startsWith('src/store/tables/'))
    expect(others.length, others.join('\n')).toBeLessThanOrEqual(mostOthers)
  })

  test('a walk is short enough to be read', () => {
    expect(named(token).size).toBeLessThanOrEqual(26)
    expect(named(approval).size).toBeLessThanOrEqual(18)
  })

  test('each file that a walk names is there', () => {
    for (const path of [...named(token), ...named(approval)]) expect(existsSync(join(root, path)), path).toBe(true)
  })
})

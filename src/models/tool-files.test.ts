/** What tools return besides text, in the requests that reach model servers. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Message, ToolOutput } from '../part/message.ts'
import { streamModel } from './model.ts'
import { loadModel, type EndpointProtocol } from './providers.ts'
import { createScriptedModel, finish, text } from './testing/scripted-model.ts'

const png = Buffer.from('a picture '.repeat(90)).toString('base64')
const wav = Buffer.from('a sound '.repeat(90)).toString('base64')
const pdf = Buffer.from('a paper '.repeat(90)).toString('base64')
const zip = Buffer.from('an archive '.repeat(90)).toString('base64')
const all = [png, wav, pdf, zip]

/** As an MCP server returns it, and as a custom tool may. */
const mixed = [
  { type: 'text', text: 'Took it.' },
  { type: 'image', data: png, mimeType: 'image/png' },
  { type: 'audio', data: wav, mimeType: 'audio/wav' },
  { type: 'resource', resource: { uri: 'file:///a.txt', mimeType: 'text/plain', text: 'Words of a file.' } },
  { type: 'resource', resource: { uri: 'file:///b.json', mimeType: 'application/json', blob: btoa('{"b":1}') } },
  { type: 'resource', resource: { uri: 'file:///c.zip', mimeType: 'application/zip', blob: zip } },
  { type: 'resource_link', uri: 'file:///d', name: 'd.txt', mimeType: 'text/plain' },
]

function conversation(value: unknown): Message[] {
  const output = { type: 'json', value } as ToolOutput
  return [
    { role: 'user', content: 'Look.' },
    { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'shot', input: {} }] },
    { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c1', toolName: 'shot', output }] },
  ]
}

/** The request that a server of this protocol gets. */
async function requestOf(protocol: EndpointProtocol, value: unknown): Promise<unknown> {
  let body = ''
  const server = createServer((request, response) => {
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => response.writeHead(400, { 'content-type': 'application/json' }).end('{}'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const modelId = protocol === 'google' ? 'gemini-3-pro' : 'm'
  const baseURL = `http://127.0.0.1:${port}`
  const model = await loadModel({ provider: 'box', modelId, protocol, apiKey: 'k', baseURL })
  const { signal } = new AbortController()
  const tools = [{ name: 'shot', inputSchema: { type: 'object' } }]
  await streamModel(model, { messages: conversation(value), tools, signal }, () => undefined).catch(() => undefined)
  return JSON.parse(body) as unknown
}

/** All texts of a request with the keys that lead to them. */
function* texts(value: unknown, path = ''): Generator<[path: string, text: string]> {
  if (typeof value === 'string') yield [path, value]
  else if (typeof value === 'object' && value !== null) {
    for (const [key, each] of Object.entries(value)) yield* texts(each, `${path}/${key}`)
  }
}

const dataPaths: Record<EndpointProtocol, RegExp> = {
  anthropic: /^\/messages\/2\/content\/\d\/content\/\d\/source\/data$/u,
  google: /^\/contents\/2\/parts\/0\/functionResponse\/parts\/\d\/inlineData\/data$/u,
  'openai-responses': /^\/input\/2\/output\/\d\/image_url$/u,
  'openai-chat': /^\/messages\/3\/content\/\d\/(?:image_url\/url|input_audio\/data)$/u,
}
const protocols = Object.keys(dataPaths) as EndpointProtocol[]

describe.each(protocols)('%s', (protocol) => {
  test(
    'files of a tool are content where it takes them, else a note, and never a text',
    { timeout: 60_000 },
    async () => {
      const request = await requestOf(protocol, mixed)
      const found = [...texts(request)]
      const data = found.filter(([, value]) => all.some((file) => value.includes(file)))
      for (const [path] of data) expect(path).toMatch(dataPaths[protocol])
      const has = (file: string) => data.some(([, value]) => value.includes(file))
      const takesSound = protocol === 'google' || protocol === 'openai-chat'
      expect([has(png), has(wav), has(zip)]).toEqual([true, takesSound, false])
      const [said] = found.flatMap(([, value]) => (value.includes('Took it.') ? [value] : []))
      expect(said).toContain('Words of a file.\n{"b":1}')
      expect(said).toContain('[d.txt, text/plain, file:///d]')
      expect(said).toMatch(/\[file 1: image\/png, 1 KB\]\n\[file 2: audio\/wav, 1 KB\]/u)
      expect(said).toMatch(
        /\[file 3: file:\/\/\/c\.zip, application\/zip, 1 KB\] is left out: this model does not take it\./u,
      )
      expect(said!.includes('audio/wav, 1 KB] is left out')).toBe(!takesSound)
    },
  )

  test.each([
    ['a file alone', { type: 'file', mediaType: 'image/png', data: png }],
    ['a data URL', [{ type: 'file', mediaType: 'image/png', data: `data:image/png;base64,${png}` }]],
    ['one inside of JSON', { page: 1, shot: { type: 'image', data: png, mimeType: 'image/png' } }],
    ['the result of an MCP call', { content: [{ type: 'image', data: png, mimeType: 'image/png' }], isError: false }],
    ['OpenAI’s form', [{ type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }]],
    ['Anthropic’s form', [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }]],
    ['a picture in a resource', [{ type: 'resource', resource: { uri: 'x', mimeType: 'image/png', blob: png } }]],
  ])('a custom tool returns %s', { timeout: 60_000 }, async (_, value) => {
    const data = [...texts(await requestOf(protocol, value))].filter(([, each]) => each.includes(png))
    expect(data).toEqual([[expect.stringMatching(dataPaths[protocol]), expect.any(String)]])
  })
})

test('results without files are sent as they are', { timeout: 60_000 }, async () => {
  for (const value of [
    { type: 'image', title: 'no data' },
    [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ],
    { file: 'x' },
  ]) {
    const said = [...texts(await requestOf('openai-chat', value))].map(([, each]) => each)
    expect(said).toContain(JSON.stringify(value))
  }
})

test('a model that Millrace has not made gets them in a message of the user', async () => {
  const model = createScriptedModel([[text('ok'), finish()]])
  const { signal } = new AbortController()
  await streamModel(model, { messages: conversation(mixed), signal }, () => undefined)
  const prompt = JSON.stringify(model.calls[0]!.options.prompt)
  expect(prompt).toContain(`"role":"user","content":[{"type":"text","text":"Files that the tool shot returned:"}`)
  expect(prompt.split(png)).toHaveLength(2)
})

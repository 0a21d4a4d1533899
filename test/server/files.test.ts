/** Files that a model cannot take: the client is told before the run starts, and its conversation goes on. With each protocol's own client. */
import OpenAI from 'openai'
import { HttpAgent } from '@ag-ui/client'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { createChat } from '../support/chat.ts'
import { agent } from '../support/engine.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { startUpstream, type Upstream, type UpstreamReply } from '../support/upstream.ts'

let server: TestServer
let upstream: Upstream
afterEach(() => server.close())

/** A model server that takes no images, as one without vision. */
async function start(protocol: 'openai-chat' | 'anthropic' = 'openai-chat') {
  upstream = await startUpstream((reply: UpstreamReply) => {
    const { body } = reply
    if (JSON.stringify(body).includes('image_url'))
      return reply.refuse(400, { error: { message: 'image input is not supported by this model' } })
    reply.say('Yes.')
    return reply.finish()
  })
  onTestFinished(() => upstream.close())
  server = await startServer({
    agents: { a: agent().replace('script:m', 'local:m') },
    models: { endpoints: [{ name: 'local', baseURL: upstream.baseURL, protocol }] },
  })
}

const base64 = (text: string) => Buffer.from(text).toString('base64')
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

interface File {
  mediaType: string
  url: string
  filename: string
}
const zip: File = { mediaType: 'application/zip', url: `data:application/zip;base64,UEsDBAA=`, filename: 'a.zip' }
const image: File = { mediaType: 'image/png', url: `data:image/png;base64,${pixel}`, filename: 'a.png' }

/** A conversation of each client: says something with a file, or without. Rejects as the client does. */
const clients = {
  openai() {
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none' })
    const messages: OpenAI.ChatCompletionMessageParam[] = []
    return async (text: string, file?: File) => {
      const part = file && { type: 'file' as const, file: { file_data: file.url, filename: file.filename } }
      const shown = file?.mediaType.startsWith('image/')
        ? { type: 'image_url' as const, image_url: { url: file.url } }
        : part
      messages.push({ role: 'user', content: [{ type: 'text', text }, ...(shown ? [shown] : [])] })
      const answer = await client.chat.completions.create({ model: 'a', messages })
      messages.push({ role: 'assistant', content: answer.choices[0]!.message.content })
    }
  },
  useChat() {
    const { chat, errors } = createChat(server.url)
    return async (text: string, file?: File) => {
      await chat.sendMessage({ text, ...(file && { files: [{ type: 'file' as const, ...file }] }) })
      const error = errors.pop()
      if (error !== undefined) throw error
    }
  },
  'AG-UI'() {
    const client = new HttpAgent({ url: `${server.url}/ag-ui/a` })
    return async (text: string, file?: File) => {
      const { mediaType: mimeType = '', url = '', filename = '' } = file ?? {}
      const type = mimeType.startsWith('image/') ? ('image' as const) : ('document' as const)
      const source = { type: 'url' as const, value: url, mimeType }
      const part = { type, source, metadata: { filename } }
      client.addMessage({
        id: crypto.randomUUID(),
        role: 'user',
        content: [{ type: 'text', text }, ...(file ? [part] : [])],
      } as Parameters<HttpAgent['addMessage']>[0])
      const told: string[] = []
      await client.runAgent({}, { onRunErrorEvent: ({ event }) => void told.push(event.message) })
      if (told.length > 0) throw new Error(told[0])
    }
  },
}
const all = Object.entries(clients)
const lastPrompt = () => JSON.stringify(upstream.requests.at(-1)!.body.messages)

describe('files in messages', () => {
  test.each(all)('%s: a file that the model cannot take is a 400 with its place, and no run', async (_, open) => {
    await start()
    const say = open()
    await expect(say('What is in it?', zip)).rejects.toThrow(
      /messages\[0\]\.(?:content\[1\]|parts\[0\])\S* is a file .*\(application\/zip, 5 bytes\): the model local:m takes no/u,
    )
    expect([await server.store.runs.list(), upstream.requests]).toEqual([[], []])
    // The refused message stands in the client's list, so that it is sent again.
    await say('Never mind.')
    expect(lastPrompt()).toContain('The user sent the file \\"a.zip\\" (application/zip, 5 bytes) here.')
  })

  test.each(all)('%s: text is sent as text, whatever its type, also from a percent-encoded URL', async (_, open) => {
    await start()
    const say = open()
    for (const [mediaType, filename] of [
      ['text/csv', 'a.csv'],
      ['application/json', 'a.json'],
      ['application/xml', 'a.xml'],
      ['application/yaml', 'a.yaml'],
      ['application/octet-stream', 'a.py'],
      ['image/svg+xml', 'a.svg'],
    ] as const) {
      const isImage = mediaType.startsWith('image/')
      await say('Read it.', { mediaType, filename, url: `data:${mediaType};base64,${base64(`é in ${filename}`)}` })
      expect(lastPrompt()).toContain(isImage ? 'é in a.svg' : `name=\\"${filename}\\"`)
      expect(lastPrompt()).toContain(`é in ${filename}`)
      await say('Again.', { mediaType, filename, url: `data:${mediaType},%C3%A9%2C%20in%20${filename}%` })
      expect(lastPrompt()).toContain(`é, in ${filename}%`)
    }
  })

  test.each(all)('%s: words stand for a file that the server has refused, in all later turns', async (_, open) => {
    await start()
    const say = open()
    await say('Hello')
    await expect(say('What is in it?', image)).rejects.toThrow('image input is not supported')
    for (const text of ['And now?', 'And then?']) {
      await say(text)
      expect(lastPrompt()).toContain('(image/png, 70 bytes) here.')
      expect(lastPrompt()).not.toContain('image_url')
    }
  })

  test('a refused file is the client’s 400 in its own protocol: OpenAI’s param, and an anthropic server takes text only as text', async () => {
    await start('anthropic')
    const content = [{ type: 'file', file: { file_data: zip.url, filename: 'a.zip' } }]
    const response = await server.post('/v1/chat/completions', { model: 'a', messages: [{ role: 'user', content }] })
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { param: 'messages[0].content[0].file.file_data', type: 'invalid_request_error' } },
    ])
  })
})

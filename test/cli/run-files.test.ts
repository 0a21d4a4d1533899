/** `millrace run --file`: what the model is sent. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { folder, ran, serving } from '../support/cli.ts'
import { startUpstream } from '../support/upstream.ts'

const agent = 'workflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true } }]\n'
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

describe('millrace run: files', () => {
  test(
    'files are parts of the message: a picture as a picture, text as text; the same on a server',
    { timeout: 60_000 },
    async () => {
      const upstream = await startUpstream((reply) => {
        reply.say('Seen')
        reply.finish()
      })
      onTestFinished(() => upstream.close())
      const flags = ['--endpoint', `up=${upstream.baseURL}`]
      const cwd = folder({ 'agents/a.yaml': agent, 'notes.txt': 'Remember the milk.' })
      writeFileSync(join(cwd, 'dot.png'), png)
      const args = ['run', 'a', '-m', 'What is this?', '--file', 'dot.png', '--file', 'notes.txt', ...flags]
      expect(await ran(args, { cwd })).toMatchObject({ code: 0, out: 'Seen\n' })
      await serving(flags, { cwd })
      expect(await ran(args, { cwd })).toMatchObject({ code: 0, out: 'Seen\n' })
      const content = [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${png.toString('base64')}` } },
        { type: 'text', text: 'File notes.txt:\nRemember the milk.' },
      ]
      expect(upstream.requests.map(({ body }) => body.messages.at(-1))).toEqual([
        { role: 'user', content },
        { role: 'user', content },
      ])
      // Without a message stdin is read, as ever; nothing there is no message.
      expect(await ran(['run', 'a', '--file', 'dot.png', ...flags], { cwd })).toMatchObject({ code: 0, out: 'Seen\n' })
      expect(upstream.requests.at(-1)!.body.messages.at(-1)!.content).toEqual([content[1]])
      expect(await ran(['run', 'a', '-m', 'x', '--file', 'dot.pgn', ...flags], { cwd })).toMatchObject({
        code: 2,
        err: 'millrace: --file: there is no file dot.pgn.\n',
      })
    },
  )
})

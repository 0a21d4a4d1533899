/** `AssistantChatTransport` of assistant-ui, from npm: a message is answered, and a tool of the page is offered to the model and answered. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Chat } from '@ai-sdk/react'
import type { ChatTransport, UIMessage } from 'ai'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { lines } from '../support/chat.ts'
import { readDocument } from '../docs/documents.ts'
import { agent } from '../support/engine.ts'
import { startServer } from '../support/server.ts'

const run = promisify(execFile)
const name = '@assistant-ui/react-ai-sdk'
const [, version] = /\| assistant-ui, `AssistantChatTransport` \| ([\d.]+) \|/u.exec(
  readDocument('docs/compatibility.md'),
)!

interface Transport extends ChatTransport<UIMessage> {
  /** assistant-ui's React runtime; the transport takes the tools of the page from it. */
  setRuntime(runtime: object): void
}

describe('assistant-ui', () => {
  test(
    'a message is answered; a tool of the page is offered, called and answered in the same run',
    { timeout: 300_000 },
    async () => {
      const root = mkdtempSync(join(tmpdir(), 'millrace-assistant-ui-'))
      onTestFinished(() => rmSync(root, { recursive: true, force: true }))
      writeFileSync(join(root, 'package.json'), '{}')
      const install = [
        'install',
        '--prefer-offline',
        '--no-audit',
        '--no-fund',
        '--ignore-scripts',
        `${name}@${version}`,
      ]
      await run('npm', install, { cwd: root })
      const { AssistantChatTransport } = (await import(join(root, 'node_modules', name, 'dist/index.js'))) as {
        AssistantChatTransport: new (options: object) => Transport
      }
      const model = createScriptedModel([
        [text('Hello!'), finish()],
        [toolCall('c1', 'pick', { of: 'colours' }), finish('tool-calls')],
        [text('It is red.'), finish()],
      ])
      const server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
      onTestFinished(() => server.close())
      const transport = new AssistantChatTransport({ api: `${server.url}/api/chat`, body: { agentId: 'a' } })
      const parameters = { type: 'object', properties: { of: { type: 'string' } } }
      const tools = { pick: { type: 'frontend', description: 'Picks one.', parameters, execute: () => 'red' } }
      const thread = { getModelContext: () => ({ system: 'Be short.', tools }) }
      transport.setRuntime({ thread, threads: { mainItem: { initialize: () => ({ remoteId: 'kept-1' }) } } })

      const errors: Error[] = []
      const chat = new Chat<UIMessage>({ id: 'local-1', transport, onError: (error) => void errors.push(error) })
      await chat.sendMessage({ text: 'Hi' })
      await chat.sendMessage({ text: 'Which colour?' })
      expect(model.calls.map(({ options }) => options.tools?.map((tool) => tool.name))).toEqual([['pick'], ['pick']])
      await chat.addToolOutput({ tool: 'pick', toolCallId: 'c1', output: 'red' })
      await chat.sendMessage()
      expect(errors).toEqual([])
      expect(lines(chat.messages)).toEqual([
        'user: Hi',
        'assistant: Hello!',
        'user: Which colour?',
        'assistant: [pick output-available] It is red.',
      ])
      const runs = await server.store.runs.list({ limit: 10 })
      expect(runs.map(({ status, threadId }) => [status, threadId])).toEqual([
        ['completed', 'kept-1'],
        ['completed', 'kept-1'],
      ])
    },
  )
})

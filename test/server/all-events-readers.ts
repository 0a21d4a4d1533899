/** A server, and readers of the events of all runs. */
import { expect, onTestFinished } from 'vitest'
import { createScriptedModel, finish, text, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import { agent, type EngineOptions } from '../support/engine.ts'
import { startServer } from '../support/server.ts'

export const messages = [{ role: 'user', content: 'Hi' }]

export const says = (...script: ScriptStep[][]) =>
  createScriptedModel(script.length === 0 ? [[text('Hel', 'lo'), finish()]] : script)

export interface Body {
  text: string
  more(): Promise<void>
}

export async function start(options: Partial<EngineOptions> = {}, handler = {}) {
  const agents = { a: agent(), b: agent() }
  const server = await startServer(
    { agents, scripts: { m: says(...Array(9).fill([text('Hel', 'lo'), finish()])) }, ...options },
    handler,
  )
  onTestFinished(() => server.close())
  const watch = async (search = '', headers: Record<string, string> = {}) => {
    const response = await fetch(`${server.url}/api/events${search}`, { headers })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    onTestFinished(() => reader.cancel())
    const body: Body = {
      text: '',
      async more() {
        const { done, value } = await reader.read()
        if (done) throw new Error(`it ended: ${body.text}`)
        body.text += value
      },
    }
    await body.more()
    return body
  }
  const run = async (id = 'a', threadId?: string) => {
    const started = await server.runtime.start(id, { messages }, threadId === undefined ? {} : { threadId })
    await started.result
    return started
  }
  return { ...server, watch, run }
}

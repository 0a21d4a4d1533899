/** An engine behind a real socket: `createHandler` on Node's own HTTP server, with what tests ask of it. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { omitUndefined } from '../../src/part/omit-undefined.ts'
import { createSimpleAccess } from '../../src/server/access/simple-access.ts'
import { createHandler } from '../../src/server/handler.ts'
import type { HandlerOptions } from '../../src/server/handler-context.ts'
import { createNodeListener } from '../../src/server/http/node-listener.ts'
import { createSocketListener, type SocketListener } from '../../src/server/socket/socket-listener.ts'
import { createEngine, type Engine, type EngineOptions } from './engine.ts'

export interface TestServer extends Engine {
  /** `http://127.0.0.1:<port>` */
  url: string
  /** What the handler reported as its own failures. */
  reported: unknown[]
  sockets: SocketListener
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>
}

export async function startServer(
  options: EngineOptions,
  { port = 0, ...handlerOptions }: Partial<HandlerOptions> & { port?: number } = {},
): Promise<TestServer> {
  const engine = createEngine(options)
  const reported: unknown[] = []
  const onError = (error: unknown) => void reported.push(error)
  const handler = createHandler({ runtime: engine.runtime, authorize: () => true, onError, ...handlerOptions })
  const { runtime } = engine
  const {
    apiKey,
    access = createSimpleAccess({ apiKey, now: Date.now, report: onError }),
    allowedOrigins,
    maxBodyBytes,
    localOnly = false,
    admission,
    edit,
    editToken,
    agentEditor,
  } = handlerOptions
  const asksWho = handlerOptions.access !== undefined || apiKey !== undefined
  const sockets = createSocketListener(
    omitUndefined({
      runtime,
      onError,
      handler,
      access,
      asksWho,
      allowedOrigins,
      maxBodyBytes,
      localOnly,
      admission,
      edit,
      editToken,
      agentEditor,
    }),
  )
  const { shouldUpgradeCallback } = sockets
  const listener = sockets.before(createNodeListener(handler, onError))
  const server = createServer({ noDelay: true, shouldUpgradeCallback }, listener).on('upgrade', sockets.upgrade)
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    ...engine,
    url,
    reported,
    sockets,
    post: (path, body, init = {}) =>
      fetch(url + path, {
        method: 'POST',
        body: JSON.stringify(body),
        ...init,
        headers: { 'content-type': 'application/json', ...(init.headers as Record<string, string>) },
      }),
    async close() {
      // Clients that poll need the port until they know that their runs have ended.
      if (sockets.isPolled()) await runtime.close(0, sockets.close)
      const closed = new Promise((resolve) => server.close(resolve))
      await engine.close()
      await sockets.close()
      server.closeAllConnections()
      await closed
    },
  }
}

/** Reads a body as it comes. */
export function readBody(response: Response) {
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  const state = { text: '' }
  return {
    /** All that has come so far. */
    get text() {
      return state.text
    },
    /** Reads until the text holds this; throws when the body ends first. */
    async until(part: string | RegExp): Promise<string> {
      const isThere = () => (typeof part === 'string' ? state.text.includes(part) : part.test(state.text))
      while (!isThere()) {
        const { done, value } = await reader.read()
        if (done) throw new Error(`the body ended without ${String(part)}: ${state.text}`)
        state.text += decoder.decode(value, { stream: true })
      }
      return state.text
    },
    /** Reads to the end, which rejects when the transfer is incomplete. */
    async rest(): Promise<string> {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return state.text
        state.text += decoder.decode(value, { stream: true })
      }
    },
    leave: () => reader.cancel(),
  }
}

/** The chunks of an SSE body; `[DONE]` is `'done'`. */
export function framesOf(body: string): (Record<string, unknown> | 'done')[] {
  return body
    .split('\n\n')
    .flatMap((frame) => /^(?:event: .*\n)?data: (.*)$/u.exec(frame)?.[1] ?? [])
    .map((data) => (data === '[DONE]' ? 'done' : (JSON.parse(data) as Record<string, unknown>)))
}

/** What tests of coding CLIs share: the runs of a session, and connections that break. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import type { TestServer } from './server.ts'

/** Oldest first. */
export const runsOf = async ({ store }: TestServer) => (await store.runs.list({ limit: 100 })).toReversed()

/** The run before each, oldest first. */
export async function chainOf({ store }: TestServer): Promise<(string | undefined)[]> {
  const before: (string | undefined)[] = []
  for (const { id } of await runsOf({ store } as TestServer)) {
    for await (const [entry] of store.log.read(id, { limit: 1 })) {
      if (entry?.type === 'run-start') before.push(entry.previousRunId)
    }
  }
  return before
}

/** A proxy that cuts the first answer once it holds this. */
export async function startBreaking(url: string, behind: string, cut: () => void): Promise<string> {
  let isCut = false
  const proxy: Server = createServer((request, response) => {
    void (async () => {
      const pieces: Buffer[] = []
      for await (const piece of request) pieces.push(piece as Buffer)
      const headers = Object.fromEntries(
        Object.entries(request.headers).filter(
          ([name]) => !/^(?:host|connection|content-length|transfer-encoding)$/u.test(name),
        ),
      )
      const method = request.method ?? 'GET'
      const answer = await fetch(url + request.url, {
        method,
        headers: headers as Record<string, string>,
        ...(method === 'POST' && { body: Buffer.concat(pieces) }),
      })
      response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' })
      let sent = ''
      for await (const piece of answer.body ?? []) {
        sent += Buffer.from(piece).toString()
        response.write(piece)
        if (isCut || !sent.includes(behind)) continue
        isCut = true
        response.destroy()
        cut()
        return
      }
      response.end()
    })().catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
}

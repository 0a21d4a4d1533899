/**
 * The suite asks for addresses and prompts of its own, such as `test://static-text`. Addresses of runs are ours to choose, and a prompt has its agent in its
 * name. So what it asks for is renamed on the way, and back: nothing else is.
 */
import { createServer, request as send, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Messages of these methods alone are read. */
const renamed = /"method":"(?:resources|prompts)\//u

export async function renaming(url: string, names: ReadonlyMap<string, string>) {
  const { hostname, port } = new URL(url)
  const there = (text: string) => replaced(text, [...names])
  const back = (text: string) =>
    replaced(
      text,
      Array.from(names, ([ours, theirs]) => [theirs, ours] as const),
    )

  async function pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = (await incoming.setEncoding('utf8').toArray()).join('')
    const isRenamed = renamed.test(body)
    const headers = { ...incoming.headers }
    if (isRenamed) {
      delete headers['content-length']
      if (typeof headers['mcp-name'] === 'string') headers['mcp-name'] = there(headers['mcp-name'])
    }
    const { method, url: path } = incoming
    const upstream = send({ hostname, port, method, path, headers }, (response) => {
      if (!isRenamed) {
        outgoing.writeHead(response.statusCode!, response.headers)
        return void response.pipe(outgoing)
      }
      void (async () => {
        const text = back((await response.setEncoding('utf8').toArray()).join(''))
        const { 'content-length': _, 'transfer-encoding': __, ...rest } = response.headers
        outgoing.writeHead(response.statusCode!, rest).end(text)
      })()
    })
    upstream.on('error', () => outgoing.destroy())
    outgoing.on('close', () => upstream.destroy())
    upstream.end(isRenamed ? there(body) : body)
  }

  const server = createServer((incoming, outgoing) => void pass(incoming, outgoing))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function replaced(text: string, names: readonly (readonly [string, string])[]): string {
  return names.reduce((all, [from, to]) => all.replaceAll(from, to), text)
}

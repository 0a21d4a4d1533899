/** The transports of `millrace/client`: what is promised of one is tested over both. */
import { io, type ManagerOptions, type SocketOptions } from 'socket.io-client'
import { onTestFinished } from 'vitest'
import { MillraceClient, type ClientOptions } from '../../src/client.ts'

export type Connect = (url: string, options?: ClientOptions) => MillraceClient

const fast: Partial<ManagerOptions & SocketOptions> = {
  forceNew: true,
  reconnectionDelay: 5,
  reconnectionDelayMax: 50,
  timeout: 5000,
}

export const overHttp: Connect = (url, options) => new MillraceClient({ url, ...options })

export const overSocket = (
  url: string,
  options?: ClientOptions,
  transport: 'websocket' | 'polling' = 'websocket',
): MillraceClient => {
  const socket: ClientOptions['socket'] = (at, own) => io(at, { ...own, ...fast, transports: [transport] })
  const client = new MillraceClient({ url, socket, ...options })
  onTestFinished(() => client.close())
  return client
}

export const transports: [name: string, connect: Connect][] = [
  ['HTTP', overHttp],
  ['Socket.IO', overSocket],
]

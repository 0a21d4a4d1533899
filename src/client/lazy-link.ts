/** Socket.IO as a transport, loaded when it is used: most pages need only `fetch`. */
/** The part of a `socket.io-client` socket that we use. */
export interface ClientSocket {
  readonly connected: boolean
  /** It connects again by itself. */
  readonly active: boolean
  connect(): unknown
  disconnect(): unknown
  on(event: string, listener: (...args: any[]) => void): unknown
  emit(event: string, ...args: any[]): unknown
}

/** `io` of `socket.io-client`. */
export type OpenSocket = (url: string, options: Record<string, unknown>) => ClientSocket

export interface SocketLink {
  fetch: typeof fetch
  close(): void
}

/** `open` is called with the first request. */
export function lazyLink(open: () => ClientSocket): SocketLink {
  let loading: Promise<SocketLink> | undefined
  return {
    async fetch(input, init) {
      loading ??= import('./socket-link.ts').then(({ linkOf }) => linkOf(open))
      return (await loading).fetch(input, init)
    },
    close: () => void loading?.then(({ close }) => close()),
  }
}

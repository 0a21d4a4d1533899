/** The hub in a worker: shared by all tabs of the browser where there are such workers, else one of each tab. */
import { createHub } from './hub.ts'
import type { HubBatch, ToHub } from './messages.ts'

interface Port {
  postMessage(message: HubBatch): void
  onmessage: ((event: MessageEvent<ToHub>) => void) | null
}

const scope = globalThis as unknown as Port & { onconnect?: ((event: { ports: readonly Port[] }) => void) | null }
const hub = createHub({ fetch: globalThis.fetch.bind(globalThis) })

function serve(port: Port): void {
  const receive = hub.connect((batch) => port.postMessage(batch))
  port.onmessage = ({ data }) => receive(data)
}

if ('onconnect' in scope) scope.onconnect = ({ ports }) => serve(ports[0]!)
else serve(scope)

/**
 * MCP over stdin and stdout, one message a line, in front of `POST /mcp`. Each message is a request of its own, and everything that the server answers is
 * a line: so stdout has only MCP. A message that met a broken connection is sent again, since the server knows calls by their keys.
 */
import type { Readable } from 'node:stream'
import { pause } from '../../async/pause.ts'
import { readSse } from '../../client/follow.ts'
import { messageOf } from '../../part/error.ts'
import { isDeepText, parseJson } from '../../part/json.ts'
import { ownValue } from '../../part/own-value.ts'
import { nameSources } from '../../server/mcp/inbound.ts'
import { isObject, type Fields, type MessageId } from '../../server/mcp/json-rpc.ts'

export interface BridgeOptions {
  input: Readable
  /** Writes a line to stdout; resolves when there is room for another one. */
  write(line: string): Promise<void>
  /** Posts a message to `/mcp`. Rejects if there is no connection. */
  post(body: string, headers: Record<string, string>, signal: AbortSignal): Promise<Response>
  /** Stops a run by its id. */
  stop(run: string): Promise<void>
  /** A line for people. */
  note(text: string): void
  /** For how long a message is sent again while nobody answers, in ms. */
  patience?: number
  /** How long calls may go on when the input has ended, in ms. */
  grace?: number
}

/** Characters of a line. */
const longestLine = 64 * 1024 * 1024
const versionKey = 'io.modelcontextprotocol/protocolVersion'
interface Pending {
  abort: AbortController
  /** The client has cancelled it: it gets no answer. */
  isCancelled: boolean
  startsRun: boolean
  /** Of the run that it follows, once the server has named it. */
  run?: string
  /** The greatest progress that was sent. */
  progress: number
}

/** Resolves when the input has ended and its calls have, or have had their time. */
export async function bridgeStdio(options: BridgeOptions): Promise<void> {
  const { input, write, note, patience = 30_000, grace = 2000 } = options
  const leave = new AbortController()
  const pending = new Map<MessageId, Pending>()
  const open = new Set<Promise<void>>()
  /** Of a legacy client. */
  let session: { id: string; version: string; initialize: string } | undefined
  let initializing: Promise<void> | undefined
  let lastVersion: string | undefined

  const send = (message: object) => write(JSON.stringify(message))
  const failed = (id: unknown, code: number, message: string) =>
    send({ jsonrpc: '2.0', ...(id !== undefined && { id }), error: { code, message } })

  function headersOf(message: Fields | undefined): Record<string, string> {
    const version = message && versionOf(message)
    if (version !== undefined) lastVersion = version
    const method = message && ownValue(message, 'method')
    if (message === undefined || version === undefined || typeof method !== 'string') {
      if (session !== undefined) return { 'mcp-session-id': session.id, 'mcp-protocol-version': session.version }
      // Modern notifications need no `_meta`.
      return method === 'initialize' || lastVersion === undefined ? {} : { 'mcp-protocol-version': lastVersion }
    }
    const params = ownValue(message, 'params') as Fields
    const name = ownValue(params, ownValue(nameSources, method) ?? '')
    return {
      'mcp-protocol-version': version,
      'mcp-method': method,
      ...(typeof name === 'string' && { 'mcp-name': headerText(name) }),
    }
  }

  /** A call that is sent again joins its run. The model's own id of the call does the same. */
  function keyOf(message: Fields | undefined): Record<string, string> {
    if (message === undefined || ownValue(message, 'method') !== 'tools/call') return {}
    const params = ownValue(message, 'params')
    const meta = isObject(params) ? ownValue(params, '_meta') : undefined
    const isKnown = isObject(meta) && typeof ownValue(meta, 'claudecode/toolUseId') === 'string'
    return isKnown ? {} : { 'idempotency-key': crypto.randomUUID() }
  }

  async function exchange(line: string, message: Fields | undefined, call: Pending | undefined): Promise<void> {
    const id = idOf(message)
    const key = keyOf(message)
    const signal = call?.abort.signal ?? leave.signal
    const began = Date.now()
    for (let attempt = 0; ; attempt++) {
      try {
        const headers = { ...headersOf(message), ...key, 'x-millrace-client': 'stdio' }
        const response = await options.post(line, headers, signal)
        if (response.status === 404 && session !== undefined && 'mcp-session-id' in headers && attempt === 0) {
          await response.body?.cancel()
          // It has expired: the server would have the client begin anew, which a client of stdio does not know.
          await initialize(session.initialize, () => Promise.resolve())
          continue
        }
        return await passOn(response, message, call)
      } catch (error) {
        if (call?.isCancelled === true || leave.signal.aborted) return
        if (Date.now() - began < patience) {
          if (attempt === 0) note(`${messageOf(error)} Trying again …`)
          await pause(Math.min(250 * 2 ** attempt, 2000), leave.signal)
          if (!leave.signal.aborted) continue
          return
        }
        if (id !== undefined) await failed(id, -32603, `No server answers: ${messageOf(error)}`)
        return
      }
    }
  }

  /** Writes all messages of a response. Rejects if it breaks off before its last one. */
  async function passOn(response: Response, message: Fields | undefined, call: Pending | undefined): Promise<void> {
    const id = idOf(message)
    const run = response.headers.get('x-millrace-run-id')
    if (call !== undefined && run !== null) call.run = decodeURIComponent(run)
    // A function: it changes meanwhile.
    const isCancelled = () => call?.isCancelled === true
    if (call !== undefined && isCancelled()) {
      await stop(call)
      return void (await response.body?.cancel())
    }
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
    if (isStream && response.body !== null) {
      let isAnswered = id === undefined
      // Cancels the body, also that of an answer of this process.
      const body = response.body.pipeThrough(new TransformStream(), { signal: call?.abort.signal ?? leave.signal })
      for await (const data of readSse(body)) {
        // Its end may come before we have left.
        if (isCancelled()) return
        const part = parseJson(data)
        if (isStale(part, call)) continue
        isAnswered ||= isObject(part) && ownValue(part, 'id') === id && !Object.hasOwn(part, 'method')
        await write(JSON.stringify(part))
      }
      if (!isAnswered) throw new Error('The connection to the server broke.')
      return
    }
    const text = (await response.text()).trim()
    if (id === undefined && !Array.isArray(message)) {
      if (!response.ok) note(`The server refused a message: ${text.slice(0, 500)}`)
      if (text === '' || message !== undefined) return
    }
    const answer = read(text)
    if (answer === undefined) {
      const what = text === '' ? 'nothing' : 'something that is not JSON'
      return void (await failed(id, -32603, `The server answered ${response.status} with ${what}.`))
    }
    // It was refused before it was read.
    if (isObject(answer) && id !== undefined && !Object.hasOwn(answer, 'id')) await send({ ...answer, id })
    else await send(answer as object)
  }

  /** Progress of a call that was sent again begins anew, but must not fall. */
  function isStale(part: unknown, call: Pending | undefined): boolean {
    if (call === undefined || !isObject(part) || part['method'] !== 'notifications/progress') return false
    const params = ownValue(part, 'params')
    const value = isObject(params) ? ownValue(params, 'progress') : undefined
    if (typeof value !== 'number') return false
    if (value <= call.progress) return true
    call.progress = value
    return false
  }

  async function initialize(line: string, tell: (answer: Fields) => Promise<void>): Promise<void> {
    const response = await options.post(line, { 'x-millrace-client': 'stdio' }, leave.signal)
    const answer = read((await response.text()).trim())
    const id = response.headers.get('mcp-session-id')
    const result = isObject(answer) ? ownValue(answer, 'result') : undefined
    const version = isObject(result) ? ownValue(result, 'protocolVersion') : undefined
    if (id !== null && typeof version === 'string') session = { id, version, initialize: line }
    await tell(isObject(answer) ? answer : { jsonrpc: '2.0', error: { code: -32603, message: 'No answer.' } })
  }

  async function take(line: string): Promise<void> {
    const value = read(line)
    if (value === undefined) return failed(undefined, -32700, 'This line is not JSON.')
    const message = isObject(value) ? value : undefined
    const method = message && ownValue(message, 'method')
    const id = idOf(message)
    if (message !== undefined && method === 'initialize' && versionOf(message) === undefined) {
      initializing = retried(() => initialize(line, (answer) => send({ ...answer, id })), id)
      return initializing
    }
    await initializing
    if (message !== undefined && method === 'notifications/cancelled' && (await cancelled(message))) return
    if (id === undefined) return exchange(line, message, undefined)
    const startsRun = method === 'tools/call'
    const call: Pending = { abort: new AbortController(), isCancelled: false, startsRun, progress: -Infinity }
    pending.set(id as MessageId, call)
    try {
      await exchange(line, message, call)
    } finally {
      pending.delete(id as MessageId)
    }
  }

  async function retried(work: () => Promise<void>, id: unknown): Promise<void> {
    const began = Date.now()
    for (let attempt = 0; ; attempt++) {
      try {
        return await work()
      } catch (error) {
        if (leave.signal.aborted) return
        if (Date.now() - began > patience) return failed(id, -32603, `No server answers: ${messageOf(error)}`)
        await pause(Math.min(250 * 2 ** attempt, 2000), leave.signal)
      }
    }
  }

  /** The end of a connection does not stop a run that was called by stdio. Whether it was done here. */
  async function cancelled(message: Fields): Promise<boolean> {
    const params = ownValue(message, 'params')
    const call = isObject(params) ? pending.get(ownValue(params, 'requestId') as MessageId) : undefined
    if (call === undefined) return false
    call.isCancelled = true
    // Its run is stopped as soon as the server has named it.
    if (call.run !== undefined) await stop(call)
    else if (!call.startsRun) call.abort.abort()
    return true
  }

  async function stop({ run, abort }: Pending): Promise<void> {
    if (run !== undefined) await options.stop(run).catch((error: unknown) => note(messageOf(error)))
    abort.abort()
  }

  const track = (work: Promise<void>) => {
    const tracked = work.catch((error: unknown) => note(messageOf(error))).finally(() => open.delete(tracked))
    open.add(tracked)
  }
  for await (const line of linesOf(input, (why) => void track(failed(undefined, -32600, why)))) track(take(line))
  await Promise.race([Promise.all(open), pause(grace, leave.signal)])
  leave.abort()
  for (const { abort } of pending.values()) abort.abort()
}

/** Undefined for what gets no answer. */
function idOf(message: Fields | undefined): unknown {
  return message !== undefined && Object.hasOwn(message, 'method') ? ownValue(message, 'id') : undefined
}

function versionOf(message: Fields): string | undefined {
  const params = ownValue(message, 'params')
  const meta = isObject(params) ? ownValue(params, '_meta') : undefined
  const version = isObject(meta) ? ownValue(meta, versionKey) : undefined
  return typeof version === 'string' ? version : undefined
}

function read(text: string): unknown {
  try {
    return isDeepText(text) ? undefined : parseJson(text)
  } catch {
    return undefined
  }
}

/** A header takes visible ASCII without spaces at its ends. */
function headerText(name: string): string {
  if (/^[!-~](?:[ -~]*[!-~])?$/u.test(name) && !name.startsWith('=?base64?')) return name
  return `=?base64?${Buffer.from(name).toString('base64')}?=`
}

async function* linesOf(input: Readable, refuse: (why: string) => void): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  let isSkipping = false
  for await (const chunk of input as AsyncIterable<Uint8Array | string>) {
    const lines = (rest + (typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true }))).split('\n')
    rest = lines.pop()!
    for (const line of lines) {
      if (isSkipping) isSkipping = false
      else if (line.trim() !== '') yield line.trim()
    }
    if (isSkipping || rest.length > longestLine) {
      if (!isSkipping) refuse(`A line has more than ${longestLine} characters.`)
      isSkipping = true
      rest = ''
    }
  }
  if (!isSkipping && rest.trim() !== '') yield rest.trim()
}

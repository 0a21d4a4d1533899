/** A client of the chaos test: starts a run at one instance, reads it at another, and goes on elsewhere when that one is lost. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Entry } from '../../src/part/entry.ts'
import { says } from './model.ts'

export interface Turn {
  /** Names the turn, and is its idempotency key. */
  name: string
  agent: 'keep' | 'plain'
  tools: number
  threadId: string
}

/** What one client has seen of a run. */
export interface Seen {
  turn: Turn
  /** Every id that it was given for its turn. */
  ids: Set<string>
  /** The lines of the log as they came, over all connections. */
  text: string
  /** How often it went on at another instance. */
  moves: number
}

export interface ClientOptions {
  /** The address of some instance that runs. */
  pick(): string
  /** Called with every status that no client should see. */
  onFault(fault: string): void
  /** Called with each 503 that says when to try again. */
  onRefusal(): void
  /** How long it tries, in ms. */
  patience: number
}

/** A connection without a byte for so long is given up: its instance may be stopped. */
const silentMs = 2000

export async function play(turn: Turn, options: ClientOptions): Promise<Seen> {
  const seen: Seen = { turn, ids: new Set(), text: '', moves: 0 }
  const end = Date.now() + options.patience
  const run = await start(turn, seen, options, end)
  await follow(run, seen, options, end)
  return seen
}

async function start(turn: Turn, seen: Seen, { pick, ...tell }: ClientOptions, end: number): Promise<string> {
  const { name, agent, tools, threadId } = turn
  const input = { messages: [{ role: 'user', content: says(name, tools) }] }
  let last = 'no instance'
  while (Date.now() < end) {
    const at = pick()
    try {
      const response = await fetch(`${at}/api/runs`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': name },
        body: JSON.stringify({ agentId: agent, threadId, input }),
        signal: AbortSignal.timeout(silentMs * 2),
      })
      const text = await response.text()
      last = `${response.status} ${text}`
      if (response.status === 202) {
        const { id } = JSON.parse(text) as { id: string }
        seen.ids.add(id)
        return id
      }
      judgeRefusal(response, `POST /api/runs of ${name}: ${last}`, tell)
    } catch (error) {
      // Killed, stopped, or not there yet.
      last = String(error)
    }
    await sleep(100)
  }
  throw new Error(`${name} could not be started: ${last}`)
}

async function follow(run: string, seen: Seen, { pick, ...tell }: ClientOptions, end: number): Promise<void> {
  let last = ''
  while (Date.now() < end) {
    const after = lastSeq(seen.text)
    const at = pick()
    const leave = new AbortController()
    let silence = setTimeout(() => leave.abort(), silentMs)
    try {
      const url = `${at}/api/runs/${run}/events?follow=1&after=${after}`
      const response = await fetch(url, { signal: leave.signal })
      if (response.status !== 200) {
        last = `${response.status} ${await response.text()}`
        judgeRefusal(response, `events of ${run} after ${after}: ${last}`, tell)
      } else {
        const decoder = new TextDecoder()
        let rest = ''
        for await (const chunk of response.body!) {
          clearTimeout(silence)
          silence = setTimeout(() => leave.abort(), silentMs)
          rest += decoder.decode(chunk, { stream: true })
          const whole = rest.lastIndexOf('\n') + 1
          seen.text += rest.slice(0, whole)
          rest = rest.slice(whole)
        }
        if (parse(seen.text).at(-1)?.type === 'run-end') return
        last = `an end without run-end after ${lastSeq(seen.text)}`
      }
    } catch (error) {
      last = String(error)
    } finally {
      clearTimeout(silence)
    }
    seen.moves++
    await sleep(50)
  }
  throw new Error(`${run} (${seen.turn.name}) has no end after ${lastSeq(seen.text)}: ${last}`)
}

/** Whatever is asked: the only refusal is a 503 that says when to try again. */
function judgeRefusal(
  { status, headers }: Response,
  what: string,
  tell: Pick<ClientOptions, 'onFault' | 'onRefusal'>,
): void {
  if (status !== 503) tell.onFault(what)
  else if (!/^\d+$/u.test(headers.get('retry-after') ?? '')) tell.onFault(`a 503 without Retry-After: ${what}`)
  else tell.onRefusal()
}

export function parse(text: string): Entry[] {
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Entry)
}

function lastSeq(text: string): number {
  return parse(text.slice(text.lastIndexOf('\n', text.length - 2) + 1)).at(-1)?.seq ?? 0
}

/** `onBusy: steer`: a request with a new message of the user, while a run of its thread is active, brings it into that run and reads on from there. */
import { awaitStart, claimFor } from './announcements.ts'
import { awaitEntry } from './await-entry.ts'
import type { Turn, Turned } from './continue.ts'
import { keptOf } from '../fold/read-view.ts'
import { equal } from '../part/equal.ts'
import type { EntryOf } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import { hasEnded } from '../part/log.ts'
import type { Message, UserMessage } from '../part/message.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { KeptRun } from '../fold/kept-run.ts'
import { startNow, type StartedAs } from './own-text.ts'
import type { Runtime } from './runtime.ts'
import type { Told } from './tell-run.ts'

/** The request reads this, or starts a run with this key: another process may start the same one. Undefined: no run can take the message. */
export type Steered = { turned: Turned } | { turnKey: string } | undefined

export async function steerTurn(runtime: Runtime, turn: Turn, agent: StartedAs): Promise<Steered> {
  const { store, open, tell } = runtime
  const { threadId, protocol, labels, turnKey, messages } = turn
  if (turn.steers !== true || threadId === undefined || agent.pipeline.onBusy !== 'steer') return undefined
  if (messages.at(-1)?.role !== 'user') return undefined
  const [row] = await store.runs.list({ threadId, limit: 1 })
  const stored = row && (await keptOf(store, row))
  // Another agent's run is none of this one's business. A run that waits is answered, or ends: see `resumed`.
  if (row === undefined || stored === undefined || row.agent !== agent.id || row.status === 'suspended')
    return undefined
  // Nor is a run with another YAML than this turn asks for.
  const now = await startNow(store, row.id)
  const text = now?.ownPipeline === true ? now.pipeline : undefined
  if (text !== (agent.own ? agent.pipeline.text : undefined)) return undefined
  const again = messages.at(-1)!.id
  const isAgain = again !== undefined && stored.messages.some(({ role, id }) => role === 'user' && id === again)
  const said = isAgain ? [messages.at(-1) as UserMessage] : newWords(messages, stored)
  const id = said.at(-1)?.id ?? (turnKey === undefined ? undefined : `turn:${turnKey}`)
  if (said.length === 0 || (hasEnded(row.status) && id === undefined)) return undefined
  const about = { content: joined(said), protocol, turn: true as const, ...omitUndefined({ id, labels }) }
  const told = await tell(row.id, about).catch((error: unknown): Told | undefined => {
    if (error instanceof MillraceError && error.code === 'run-ended') return undefined
    throw error
  })
  if (told === undefined) return undefined
  const entry = await settled(runtime, row.id, told.id)
  if (entry === undefined) return { turnKey: `message:${row.id}:${told.id}` }
  if (entry.outcome === 'dropped' || entry.outcome === 'withdrawn') throw notDelivered(entry)
  const next = entry.outcome === 'next' ? entry.runId : undefined
  if (next !== undefined) await awaitStart(store, next, new AbortController().signal)
  // For the same request after this run is no longer the last.
  if (turnKey !== undefined) await claimFor(store.log, threadId, `${agent.id}:${turnKey}`, next ?? row.id)
  const run = await open(next ?? row.id)
  if (run === undefined) throw notDelivered(entry)
  return { turned: next === undefined ? { run, how: 'steered', from: entry.seq } : { run, how: 'started', from: 0 } }
}

/** What became of the message. Undefined if the run has ended before its owner saw it. */
async function settled({ store }: Runtime, run: string, id: string): Promise<EntryOf<'message'> | undefined> {
  const isIt = (entry: { type: string; id?: unknown }) => entry.type === 'message' && entry.id === id
  const found = await awaitEntry(store.log, run, (entry) => isIt(entry) || entry.type === 'run-end')
  return found?.type === 'message' ? found : undefined
}

/**
 * The messages at the end of the client's copy of the conversation that the run does not have: those behind the last one with a known id. Without
 * ids, those at the end that are not what the run was asked, or was told before.
 */
function newWords(messages: readonly Message[], { asked, messages: own, runId }: KeptRun): UserMessage[] {
  const known = [...asked, ...own].filter((each): each is UserMessage => each.role === 'user')
  const ids = new Set([runId, ...known.flatMap(({ id }) => (id === undefined ? [] : [id]))])
  const isKnown = ({ id }: Message) => id !== undefined && (ids.has(id) || id.startsWith(`${runId}.`))
  const from = messages.findLastIndex((each) => each.role !== 'user' || isKnown(each)) + 1
  const said = messages.slice(from) as UserMessage[]
  if (said.length < 2) return said
  return said.filter(
    ({ id, content }, i) =>
      i === said.length - 1 || id !== undefined || !known.some((each) => equal(each.content, content)),
  )
}

function joined(said: readonly UserMessage[]): UserMessage['content'] {
  if (said.length === 1) return said[0]!.content
  return said.flatMap(({ content }) =>
    typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content,
  )
}

function notDelivered({ id, outcome = 'dropped' }: EntryOf<'message'>): MillraceError {
  const why = outcome === 'withdrawn' ? 'was taken back' : 'was not delivered: the run was stopped first'
  return new MillraceError('message-dropped', `Message ${id} ${why}.`, { status: 409 })
}

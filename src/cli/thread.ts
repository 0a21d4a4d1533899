/** Threads that a command continues, and the run of a thread that is still suspended. */
import type { CommandContext } from './context.ts'
import type { EntryOf } from '../part/entry.ts'
import { MillraceError } from '../part/error.ts'
import type { RunRow } from '../part/log.ts'
import type { Message } from '../part/message.ts'
import type { AgentConnection, Connection } from './connection.ts'
import { printable } from './printable.ts'

export interface Thread {
  /** Only the newest. */
  runs: RunRow[]
  /** The whole conversation. */
  messages: Message[]
}

/** Undefined if the thread has no runs. */
export async function readThread(connection: Connection, id: string): Promise<Thread | undefined> {
  try {
    return await connection.thread(id, { runs: 1 })
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'unknown-thread') return undefined
    throw error
  }
}

export interface WaitingRun {
  id: string
  /** Its last entry so far. */
  lastSeq: number
  protocol: string
  requests: EntryOf<'request'>[]
}

/** The run that the next message of the thread would end: the newest one, if it is suspended. */
export async function waitingRun(
  { client }: AgentConnection,
  thread: Thread | undefined,
): Promise<WaitingRun | undefined> {
  const [newest] = thread?.runs ?? []
  if (newest?.status !== 'suspended') return undefined
  const { id, lastSeq, protocol, requests } = await client.show(newest.id)
  return requests.length === 0 ? undefined : { id, lastSeq, protocol, requests }
}

/** A new message ends a suspended run of its thread. */
export function warnOfEnd(context: CommandContext, { id, requests }: WaitingRun, ...more: string[]): void {
  const tools = [...new Set(requests.map(({ toolName, kind }) => toolName ?? kind))].join(', ')
  const line = `warning: ${id} of this thread waits for an answer (${tools}); a new message ends that run`
  context.stderr.write(`${printable([line, ...more].join('\n'))}\n`)
}

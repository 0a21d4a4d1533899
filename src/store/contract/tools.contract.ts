/** Shared by the sections of the store's contract. */
import { expect } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import type { Appended, InboxMessage, Store } from '../../part/log.ts'
import { entry } from '../example-run.contract.ts'

/** Reads everything stored so far; with a signal, reads until the run ends. */
export async function readAll(store: Store, run: string, after?: number, signal?: AbortSignal): Promise<Entry[]> {
  return collect(store.log.read(run, { after, signal }))
}

export async function collect<T>(batches: AsyncIterable<T[]>): Promise<T[]> {
  const all: T[] = []
  for await (const batch of batches) all.push(...batch)
  return all
}

/** A signal that never aborts, to follow a run. */
export const live = () => new AbortController().signal

export const delta = (seq: number) => entry(seq, { type: 'text-delta', id: 'a', delta: `${seq}` })

export const other = (seq: number) => entry(seq, { type: 'text-delta', id: 'a', delta: 'other' })

export const fenced = async (appended: Promise<Appended>) => expect(await appended).toBe('fenced')

export const refused = (appended: Promise<Appended>) => expect(appended).rejects.toMatchObject({ code: 'bad-entry' })

export async function firstMessages(store: Store, run: string, count: number, after?: number, signal?: AbortSignal) {
  const messages: InboxMessage[] = []
  for await (const message of store.log.inbox(run, { after, signal })) {
    messages.push(message)
    if (messages.length === count) break
  }
  return messages
}

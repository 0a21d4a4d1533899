/** A server that dies (SIGKILL) again and again while a run goes on, and the next one that goes on with it. */
import { expect } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import type { ServerProcess } from './server-process.ts'

/** What a client reads of a run. */
interface RunShown {
  status: string
  text: string
  output?: Record<string, unknown>
}

export interface MortalOptions {
  /** Starts a server on a data folder of this name. */
  boot(data: string): Promise<ServerProcess>
  /** Another server stands by on the same store and takes over; a further one is started for the next death. */
  spare: boolean
  /** Called with each server that goes on after a death. */
  onNext?(): Promise<unknown>
}

export type MortalServer = Awaited<ReturnType<typeof startMortalServer>>

export async function startMortalServer({ boot, spare, onNext }: MortalOptions) {
  let data = 0
  const another = () => boot(`data${data++}`)
  let server = await another()
  let other: ServerProcess | undefined
  let death: Promise<void> | undefined
  let deaths = 0

  /** After a death that nobody has seen yet: the next server. */
  async function goOn(): Promise<void> {
    if (death === undefined) return
    await death
    death = undefined
    deaths++
    if (spare) {
      server = other!
      other = await another()
    } else server = await boot('data0')
    await onNext?.()
  }

  async function view(run: string): Promise<RunShown | undefined> {
    await goOn()
    const found = await fetch(`${server.url}/api/runs/${run}`).catch(() => undefined)
    return found?.ok === true ? ((await found.json()) as RunShown) : undefined
  }

  return {
    /** Kills the one that runs the run; until the next one is known, the same death. Resolves when it is gone. */
    kill: () => (death ??= server.kill()),
    /** It dies, or has died, and the next one is not known yet. */
    isDying: () => death !== undefined,
    deaths: () => deaths,
    /** Starts the server that stands by, if there is one. */
    async standBy(): Promise<void> {
      if (spare) other ??= await another()
    },
    post: (path: string, body: object) =>
      fetch(server.url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    /** Reads the run until it is completed, over all deaths. */
    async completed(run: string, timeout: number): Promise<RunShown> {
      let shown: RunShown | undefined
      const status = async () => (shown = (await view(run)) ?? shown)?.status
      await expect.poll(status, { interval: 100, timeout }).toBe('completed')
      return shown!
    },
    async entries(run: string): Promise<Entry[]> {
      const headers = { accept: 'application/x-ndjson' }
      const lines = await (await fetch(`${server.url}/api/runs/${run}/events`, { headers })).text()
      return lines.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as Entry] : []))
    },
    end: () => Promise.all([server.kill(), other?.kill()]),
  }
}

/** The agents of a server, and whether one of them is the one that the user means. */
import { readFileSync } from 'node:fs'
import { MillraceError } from '../part/error.ts'
import { pause } from '../part/pause.ts'
import { hashText } from '../server/hash-text.ts'
import { faultyAgent } from './agent-file.ts'
import type { RemoteRequest } from './remote-request.ts'

/** What `GET /api/agents` answers, as far as commands show it. */
export interface AgentList {
  agents: { id: string; name?: string; description?: string; aliases?: string[]; history?: 'client' | 'server' }[]
  errors: { file: string; message: string }[]
}

/** A server takes a changed file at once; a slow disk gets this long, in ms. */
const enough = 2000
const interval = 50

export interface Checked {
  id: string
  /** The agent's file, when it is on this machine. */
  file: string | undefined
  request: RemoteRequest
  url: string
  /** ms in which the server may read a changed file. */
  patience?: number
}

/** Throws when the server has no such agent, when its file has faults, or when the server has another version of the file. */
export async function checkServed({ id, file, request, url, patience = enough }: Checked): Promise<void> {
  const wanted = file === undefined ? undefined : await hashText(readFileSync(file, 'utf8'))
  for (let waited = 0; ; waited += interval) {
    const { errors } = (await (await request('/api/agents')).json()) as AgentList
    const broken = errors.find((each) => each.file.replace(/\.ya?ml$/u, '') === id)
    if (broken !== undefined) throw faultyAgent(broken.message)
    const isLate = wanted !== undefined && waited < patience
    const found = await request(`/api/agents/${encodeURIComponent(id)}`).catch((error: unknown) => {
      // A new file is taken as soon as a changed one.
      if (isLate && error instanceof MillraceError && error.code === 'unknown-agent') return undefined
      throw error
    })
    const hash = found === undefined ? undefined : ((await found.json()) as { hash?: string }).hash
    if (wanted === undefined || hash === wanted) return
    if (!isLate) {
      const cure = 'Restart the server, or name another folder for this run with --data.'
      throw new MillraceError('stale-agent', `The server at ${url} has another version of ${file}. ${cure}`)
    }
    await pause(interval)
  }
}

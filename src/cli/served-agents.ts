/** Checks that a server has the agent that the user means, in the same version. */
import { readFileSync } from 'node:fs'
import type { CommandContext } from './context.ts'
import { MillraceError } from '../part/error.ts'
import { pause } from '../async/pause.ts'
import { hashText } from '../server/http/hash-text.ts'
import { faultyAgent } from './agent-file.ts'
import type { RemoteRequest } from './remote-request.ts'

/** The response of `GET /api/agents`, as far as it is used here. */
export interface AgentList {
  agents: { id: string; name?: string; description?: string; aliases?: string[]; history?: 'client' | 'server' }[]
  errors: { file: string; message: string }[]
}

/** How long to wait until the server has reloaded a changed file, in ms. */
const enough = 2000
const interval = 50

export interface Checked {
  id: string
  /** The agent's file, if it is on this machine. */
  file: string | undefined
  request: RemoteRequest
  url: string
  /** How long to wait for a changed file, in ms. */
  patience?: number
}

/** Throws if the server has no such agent, the file has errors, or the server has another version of it. */
export async function checkServed(
  context: CommandContext,
  { id, file, request, url, patience = enough }: Checked,
): Promise<void> {
  const wanted = file === undefined ? undefined : await hashText(readFileSync(context.path(file), 'utf8'))
  for (let waited = 0; ; waited += interval) {
    const { errors } = (await (await request('/api/agents')).json()) as AgentList
    const broken = errors.find((each) => each.file.replace(/\.ya?ml$/u, '') === id)
    if (broken !== undefined) throw faultyAgent(broken.message)
    const isLate = wanted !== undefined && waited < patience
    const found = await request(`/api/agents/${encodeURIComponent(id)}`).catch((error: unknown) => {
      // The server may not have loaded a new file yet.
      if (isLate && error instanceof MillraceError && error.code === 'unknown-agent') return undefined
      throw error
    })
    const hash = found === undefined ? undefined : ((await found.json()) as { hash?: string }).hash
    if (wanted === undefined || hash === wanted) return
    if (!isLate) {
      const cure = 'Restart the server, or run in this process with another --data folder.'
      throw new MillraceError('stale-agent', `The server at ${url} has another version of ${file}. ${cure}`)
    }
    await pause(interval)
  }
}

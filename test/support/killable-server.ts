/** A server of one test, on SQLite, that the test kills and starts anew. */
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { folder } from './cli.ts'
import { spawnServer } from './server-process.ts'
import { startUpstream, type Upstream, type UpstreamReply } from './upstream.ts'

export interface KillableServer {
  /** Of the process that runs now. */
  readonly url: string
  /** Its files are those that the test has given; its store is in `data`. */
  dir: string
  upstream: Upstream
  /** SIGKILL. */
  kill(): Promise<void>
  start(): Promise<void>
}

/** `files`: the agents and their config. `answer`: that of the endpoint `up`. Everything is gone when the test has ended. */
export async function startKillableServer(
  files: Record<string, string>,
  answer: (reply: UpstreamReply, n: number) => unknown,
): Promise<KillableServer> {
  const dir = folder(Object.fromEntries(Object.entries(files).map(([name, text]) => [`agents/${name}`, text])))
  const upstream = await startUpstream(answer)
  const spawn = () => spawnServer(join(dir, 'agents'), join(dir, 'data'), '--endpoint', `up=${upstream.baseURL}`)
  let server = await spawn()
  onTestFinished(async () => {
    await server.kill()
    await upstream.close()
  })
  return {
    get url() {
      return server.url
    },
    dir,
    upstream,
    kill: () => server.kill(),
    async start() {
      server = await spawn()
    },
  }
}

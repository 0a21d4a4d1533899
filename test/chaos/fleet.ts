/** Redis and the instances of the chaos test, as processes that can be killed, stopped and replaced. */
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startRedis, type RedisServer } from '../support/redis-server.ts'
import { spawnServer, type ServerProcess } from '../support/server-process.ts'

export interface Fleet {
  redis: RedisServer
  /** `undefined`: there is none at this place now. */
  instances: (ServerProcess | undefined)[]
  /** Those that were told to end: clients come to them until they are gone, as through a balancer that has not noticed yet. */
  leaving: Set<ServerProcess>
  /** Starts an instance at a place. */
  boot(place: number): Promise<void>
  /** Keeps a copy of Redis's append-only file; what it returns kills Redis and starts it again from the copy. */
  remember(): () => Promise<void>
  /** `run call` for each tool that ran. */
  effects(): string[]
  /** What an instance prints is kept here. */
  said: string[]
  close(): Promise<void>
}

const agent = (top: string) => `${top}
onBusy: queue
onDisconnect: detach
workflow:
  - id: answer
    type: llm
    config: { model: "up:m", stream: true, retries: 0, tools: [mark], messages: "$input.messages" }
`

export async function startFleet(baseURL: string, size: number): Promise<Fleet> {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-chaos-'))
  const agents = join(dir, 'agents')
  const effects = join(dir, 'effects.txt')
  mkdirSync(agents)
  writeFileSync(join(agents, 'keep.yaml'), agent('recover: true'))
  writeFileSync(join(agents, 'plain.yaml'), agent('recover: false'))
  // Plain JavaScript and JSON Schema: the folder has no packages to import from.
  writeFileSync(
    join(agents, 'millrace.config.mjs'),
    `import { appendFileSync } from 'node:fs'
const parameters = { type: 'object', properties: { n: { type: 'number' } } }
const mark = async ({ n }, { runId, toolCallId }) => {
  appendFileSync(${JSON.stringify(effects)}, runId + ' ' + toolCallId + '\\n')
  await new Promise((resolve) => setTimeout(resolve, n))
  return { marked: toolCallId }
}
// A model call may take longer here than on a machine that does nothing else: only those that fit are handed over between two calls.
export default { server: { graceMs: 10_000 }, tools: { mark: { parameters, execute: mark } } }
`,
  )
  appendFileSync(effects, '')
  const redis = await startRedis({ aof: true })
  const instances: (ServerProcess | undefined)[] = []
  const said: string[] = []

  async function boot(place: number): Promise<void> {
    const data = join(dir, `data-${place}`)
    const server = await spawnServer(agents, data, '--store', redis.url, '--endpoint', `up=${baseURL}`)
    void server.exit.then(() => said.push(`instance ${place} (${server.pid}) said: ${server.stderr()}`))
    instances[place] = server
  }

  await Promise.all(Array.from({ length: size }, (_, place) => boot(place)))
  return {
    redis,
    instances,
    leaving: new Set(),
    boot,
    remember() {
      const [file, copy] = [join(redis.dir, 'appendonlydir'), join(dir, 'older')]
      rmSync(copy, { recursive: true, force: true })
      cpSync(file, copy, { recursive: true })
      return async () => {
        await redis.kill()
        rmSync(file, { recursive: true })
        cpSync(copy, file, { recursive: true })
        await redis.restart()
      }
    },
    effects: () => readFileSync(effects, 'utf8').split('\n').filter(Boolean),
    said,
    async close() {
      await Promise.all(instances.map(async (server) => server?.kill()))
      await redis.close()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

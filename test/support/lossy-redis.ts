/** Redis with files, started again with those of an earlier moment. */
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startRedis, type RedisServer } from './redis.ts'

export interface LossyRedis extends RedisServer {
  /** What is stored now is found again after `lose`. */
  remember(): Promise<void>
  /** Kills it, and starts it again as it was when it was told to remember. */
  lose(): Promise<void>
}

export async function startLossyRedis(flags: string[] = []): Promise<LossyRedis> {
  const server = await startRedis({ aof: true, flags })
  const [files, copy] = [join(server.dir, 'appendonlydir'), join(server.dir, 'earlier')]
  return {
    ...server,
    async remember() {
      // The file is flushed by then.
      await sleep(50)
      cpSync(files, copy, { recursive: true })
    },
    async lose() {
      await server.kill()
      rmSync(files, { recursive: true })
      cpSync(copy, files, { recursive: true })
      await server.restart()
    },
  }
}

/** Makes the server take so many ms to read its files; it must have been started with {@link slowFlags}. It answers `-LOADING` meanwhile. */
export async function slowDown(server: RedisServer, ms: number): Promise<void> {
  const script = `for i = 1, ${ms / loadMs} do redis.call('SET', 'slow:' .. i, i) end`
  await server.command('EVAL', script, '0')
}

const loadMs = 0.5
/** µs for each command of the file. */
export const slowFlags = ['--key-load-delay', String(loadMs * 1000)]

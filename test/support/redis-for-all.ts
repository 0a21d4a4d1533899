/** One Redis server for a whole vitest project. */
import type { TestProject } from 'vitest/node'
import { startRedis } from './redis-server.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    redis: string
  }
}

export default async function setUp({ provide }: TestProject): Promise<() => Promise<void>> {
  const server = await startRedis()
  provide('redis', server.url)
  return () => server.close()
}

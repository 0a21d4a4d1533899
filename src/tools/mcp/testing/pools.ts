/** A pool of MCP servers whose starts and ends are seen. */
import { afterEach, beforeEach, expect, vi } from 'vitest'
import { createMcpPool, type McpPool } from '../pool.ts'
import type { ReadLimits } from '../../../models/limits/read-limits.ts'
import type { McpServer } from '../server.ts'
import { createJournal, isAlive, type Journal } from './everything.ts'

/** Of the test that runs. */
export let journal: Journal

const pools: McpPool[] = []

/** On a busy machine a server takes long to start: it has a minute, unless the test is about that. */
export function poolOf(servers: Record<string, McpServer>, limits?: ReadLimits): McpPool {
  const patient = Object.entries(servers).map(([name, server]) => [name, { connectTimeout: 60_000, ...server }])
  const pool = createMcpPool(Object.fromEntries(patient), limits === undefined ? {} : { limits })
  pools.push(pool)
  return pool
}

export const eventually = (check: () => void) => vi.waitFor(check)

export const node = process.execPath

export const script = (text: string) => ({ command: node, args: ['-e', text] })

export const mute = script('setInterval(() => {}, 1000)')

/** Gives each test of a file a journal; behind it, closes its pools and expects that none of their processes is left. */
export function journalEachTest(): void {
  beforeEach(() => {
    journal = createJournal()
  })

  afterEach(async () => {
    await Promise.all(pools.splice(0).map((pool) => pool.close()))
    // The server has exited by now. Its killed children may take a moment to disappear.
    const left = () => journal.pids().filter(isAlive)
    await eventually(() => expect(left()).toEqual([])).finally(() =>
      left().forEach((pid) => process.kill(pid, 'SIGKILL')),
    )
    journal.remove()
  })
}

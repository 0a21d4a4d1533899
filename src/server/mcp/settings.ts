/** What the parts of MCP share in one server, and its settings. */
import type { McpConfig } from '../../project/config.ts'
import { timeOf, type Store } from '../../part/log.ts'
import { systemClock, type Clock } from './clock.ts'
import { ageOf } from '../../record/policy.ts'
import { createKnownWords, type KnownWords } from './run-words.ts'
import { createSealedTokens, type SealedTokens } from './sealed-token.ts'

/** `server.mcp`, and what it means for tokens and links. */
export interface McpOptions extends McpConfig {
  /** The age in ms at which runs are deleted, and tasks with them. Absent: never. */
  keepsRunsMs?: number | undefined
  /** The origin of this server for people. Without it no links are sent. */
  publicUrl?: string | undefined
  /** The issuer of the tokens that `access.jwt` accepts. */
  issuer?: string | undefined
  clock?: Clock
}

export interface McpServices {
  options: McpOptions
  tokens: SealedTokens
  clock: Clock
  words: KnownWords
  taskAfterMs: number
}

const defaultTaskAfterMs = 1000

export function createMcpServices(store: Store, options: McpOptions): McpServices {
  return {
    options,
    tokens: createSealedTokens(store.log, { now: () => timeOf(store) }),
    clock: options.clock ?? systemClock,
    words: createKnownWords(),
    taskAfterMs: (options.taskAfter === undefined ? undefined : ageOf(options.taskAfter)) ?? defaultTaskAfterMs,
  }
}

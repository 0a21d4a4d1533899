/**
 * What a run needs to go on, and nobody may read: the state that an MCP server wants back, the id of its task. It stands in the log, sealed with a key of
 * the store. So no reader of the log, no export, no search and no trace shows it, and redaction does not change a byte of it.
 */
import { parseJson } from '../part/json.ts'
import type { Log } from '../part/log.ts'
import { createSeal, type Seal } from '../part/sealed-text.ts'

/** Characters: a state of 64 KiB, questions of 64 KiB, as JSON and in base64. */
const longest = 600_000

const seals = new WeakMap<Pick<Log, 'post'>, Seal>()

function sealOf(log: Pick<Log, 'post'>): Seal {
  const known = seals.get(log)
  if (known !== undefined) return known
  const seal = createSeal(log, 'call', { inbox: 'mcp:seals', longest })
  seals.set(log, seal)
  return seal
}

export function sealSecret(log: Pick<Log, 'post'>, value: object): Promise<string> {
  return sealOf(log).seal(JSON.stringify(value))
}

/** Undefined for what another store has sealed, or what somebody has changed. */
export async function openSecret<T>(log: Pick<Log, 'post'>, sealed: unknown): Promise<T | undefined> {
  const text = typeof sealed === 'string' ? await sealOf(log).open(sealed) : undefined
  return text === undefined ? undefined : (parseJson(text) as T)
}

/**
 * What an MCP client keeps for us and must not read or make up: the id of a task, the state of a call that waits, a legacy session, the id of a legacy
 * question. Each is sealed with a key that the store holds, so every instance reads the tokens of all others and none stores them. A token counts for
 * its caller only.
 */
import type { Log } from '../../part/log.ts'
import type { Principal } from '../../part/principal.ts'
import { parseJson } from '../../part/json.ts'
import { MillraceError } from '../../part/error.ts'
import { createSeal, type Seal } from '../../part/sealed-text.ts'
import { hashText } from '../http/key.ts'
import { canonicalJson } from '../routes/idempotency.ts'

/** `state`: of a call that asks and is sent again. `session`: of a legacy client. `request`: the id of a question to a legacy client. */
export type TokenKind = 'state' | 'session' | 'request'

/** Whose tokens they are. */
export type TokenCaller = Pick<Principal, 'id' | 'tenant'>

export interface SealedTokens {
  /**
   * The id of the task of a run: visible ASCII, at most {@link longestTaskId} characters, another one each time. `expiresAt`: epoch ms; absent: never.
   * Rejects with `bad-input` for a run whose id is longer than {@link longestTaskRun} bytes.
   */
  sealTask(task: { run: string; expiresAt?: number | undefined }, caller: TokenCaller): Promise<string>
  /**
   * Resolves with what `find` finds of the task's run. Undefined for a token that was changed, is another caller's, has expired or is none at all, and
   * for a run that `find` does not find. All of these take the same time: `find` is called each time, if need be for a run that is nobody's.
   */
  openTask<T>(
    token: unknown,
    caller: TokenCaller,
    find: (run: string) => Promise<T | undefined>,
  ): Promise<T | undefined>
  /** `data`: JSON, with its time at most {@link longestState} characters. `expiresAt`: epoch ms; absent: never. */
  seal(kind: TokenKind, data: Record<string, unknown>, caller: TokenCaller, expiresAt?: number): Promise<string>
  /** What was sealed as this kind for this caller, and has not expired. Undefined for anything else. */
  open(kind: TokenKind, token: unknown, caller: TokenCaller): Promise<Record<string, unknown> | undefined>
}

export const longestTaskId = 200
export const longestTaskRun = 72
/** Characters of a token that is no task id. */
export const longestState = 65_536

/** The answer to every id of a task that does not count, whatever is wrong with it. */
export const unknownTaskText = 'There is no such task.'

/** Begin the tokens, so that logs can leave them out. */
const prefixes = { task: 'mrtask_', state: 'mrstate_', session: 'mrsession_', request: 'mrask_' }
const anyToken = /\bmr(?:task|state|session|ask)_[\w-]+/gu

/** A text without the tokens in it, for logs. */
export function withoutTokens(text: string): string {
  return text.replaceAll(anyToken, (token) => `${token.slice(0, token.indexOf('_') + 1)}***`)
}

/** Opens as nothing, and takes as long as a token. */
const decoy = 'A'.repeat(120)
/** Stands for the run of a token that does not count. */
const nobodysRun = 'run_00000000000000000000000000000000'

/** Tasks that callers have opened, and callers: a client polls its task again and again. */
const mostKnown = 10_000

function remember<V>(known: Map<string, V>, key: string, value: V): V {
  known.delete(key)
  known.set(key, value)
  if (known.size > mostKnown) known.delete(known.keys().next().value!)
  return value
}

/** `log`: of the whole store, not of a caller. `now`: epoch ms. */
export function createSealedTokens(log: Pick<Log, 'post'>, { now }: { now: () => number }): SealedTokens {
  const seals = new Map<keyof typeof prefixes, Seal>()
  const marks = new Map<string, string>()
  /** By caller and token: for anybody else the token takes as long as any other. */
  const opened = new Map<string, { run: string; expiresAt: number }>()

  async function markOf(caller: TokenCaller): Promise<string> {
    const key = keyOf(caller)
    return marks.get(key) ?? remember(marks, key, await newMark(key))
  }

  function sealOf(kind: keyof typeof prefixes): Seal {
    const known = seals.get(kind)
    if (known !== undefined) return known
    const seal = createSeal(log, kind, { inbox: 'mcp:seals', longest: kind === 'task' ? longestTaskId : longestState })
    seals.set(kind, seal)
    return seal
  }

  async function unseal(kind: keyof typeof prefixes, token: unknown): Promise<string | undefined> {
    const prefix = prefixes[kind]
    const inside = typeof token === 'string' && token.startsWith(prefix) ? token.slice(prefix.length) : decoy
    const longest = (kind === 'task' ? longestTaskId : longestState) - prefix.length
    const isToken = inside.length > 0 && inside.length <= longest && /^[\w-]+$/u.test(inside) && inside.length % 4 !== 1
    return sealOf(kind).open(isToken ? inside : decoy)
  }

  async function sealText(kind: keyof typeof prefixes, text: string): Promise<string> {
    return prefixes[kind] + (await sealOf(kind).seal(text))
  }

  const isOver = (expiresAt: number) => expiresAt !== 0 && expiresAt <= now()

  return {
    async sealTask({ run, expiresAt = 0 }, caller) {
      if (new TextEncoder().encode(run).length > longestTaskRun) {
        const cure = `Start it with an id of at most ${longestTaskRun} bytes.`
        throw new MillraceError('bad-input', `A run with this long an id cannot be a task. ${cure}`, { status: 400 })
      }
      return sealText('task', `${expiresAt.toString(36)}.${await markOf(caller)}.${run}`)
    },
    async openTask(token, caller, find) {
      const key = `${keyOf(caller)}\n${String(token)}`
      const known = opened.get(key)
      if (known !== undefined && !isOver(known.expiresAt)) return find(known.run)
      const [inside, mark] = await Promise.all([unseal('task', token), markOf(caller)])
      const [, until = '', sealedMark, run] = /^([0-9a-z]+)\.([0-9a-f]+)\.(.+)$/su.exec(inside ?? '') ?? []
      const expiresAt = Number.parseInt(until, 36)
      const isOurs = run !== undefined && sealedMark === mark && !isOver(expiresAt)
      const found = await find(isOurs ? run : nobodysRun)
      if (!isOurs) return undefined
      if (found !== undefined) remember(opened, key, { run, expiresAt })
      return found
    },
    async seal(kind, data, caller, expiresAt = 0) {
      return sealText(kind, JSON.stringify({ by: await markOf(caller), until: expiresAt, data }))
    },
    async open(kind, token, caller) {
      const [inside, mark] = await Promise.all([unseal(kind, token), markOf(caller)])
      if (inside === undefined) return undefined
      const { by, until, data } = parseJson(inside) as { by: string; until: number; data: Record<string, unknown> }
      return by === mark && !isOver(until) ? data : undefined
    },
  }
}

/** 128 bits of the caller: a token has no room for an id, which has up to 256 characters. */
async function newMark(key: string): Promise<string> {
  return (await hashText(key)).slice(0, 32)
}

function keyOf({ id, tenant }: TokenCaller): string {
  return JSON.stringify([id, tenant ?? null])
}

/** What a state is bound to: the tool and its arguments, whatever the order of their keys. */
export function hashCall(tool: string, given: unknown): Promise<string> {
  return hashText(canonicalJson([tool, given]))
}

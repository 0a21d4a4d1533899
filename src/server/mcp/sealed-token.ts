/**
 * What an MCP client keeps for us and must not read or make up: the id of a task, the state of a call that waits, a legacy session, the id of a legacy
 * question. Each is sealed with a key that the store holds, so every instance reads the tokens of all others and none stores them. A token counts for
 * its caller only.
 */
import type { Log } from '../../part/log.ts'
import type { Principal } from '../../part/principal.ts'
import { parseJson } from '../../part/json.ts'
import { ownValue } from '../../part/own-value.ts'
import { createSeal, type Seal } from '../http/sealed-text.ts'
import { hashText } from '../http/key.ts'

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
  openTask<T>(token: unknown, caller: TokenCaller, find: (run: string) => Promise<T | undefined>): Promise<T | undefined>
  /** `data`: JSON, with its time at most {@link longestState} characters. `expiresAt`: epoch ms; absent: never. */
  seal(kind: TokenKind, data: Record<string, unknown>, caller: TokenCaller, expiresAt?: number): Promise<string>
  /** What was sealed as this kind for this caller, and has not expired. Undefined for anything else. */
  open(kind: TokenKind, token: unknown, caller: TokenCaller): Promise<Record<string, unknown> | undefined>
}

export const longestTaskId = 200
export const longestTaskRun = 90
/** Characters of a token that is no task id. */
export const longestState = 65_536

/** The answer to every id of a task that does not count, whatever is wrong with it. */
export const unknownTaskText = 'There is no such task.'

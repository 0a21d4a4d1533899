/** Why an authorization server has given no token. */
import * as oauth from 'oauth4webapi'
import { MillraceError } from '../../../part/error.ts'
import { unauthorized } from './unauthorized.ts'

const longestDescription = 300

/** The causes of the library's errors have tokens and secrets in them: they are dropped. `clean`: removes ours from what the other side said. */
export function noToken(who: string, error: unknown, clean: (text: string) => string): MillraceError {
  if (error instanceof MillraceError) return error
  const [why, detail] = whyNoToken(error, clean)
  return unauthorized(who, `its authorization server ${why}`, detail)
}

/** What an authorization server did: the end of a sentence about it, and what only the log has. */
export function whyNoToken(error: unknown, clean: (text: string) => string): [why: string, detail?: string] {
  if (error instanceof oauth.ResponseBodyError || error instanceof oauth.AuthorizationResponseError) {
    const code = /^[a-z_]{1,60}$/u.test(error.error) ? error.error : 'an error'
    const { error_description: said } = error
    const detail = said === undefined ? undefined : clean(said).slice(0, longestDescription)
    return detail === undefined ? [`answered ${code}`] : [`answered ${code}`, detail]
  }
  if (error instanceof oauth.WWWAuthenticateChallengeError) {
    return [`answered HTTP ${error.status}`]
  }
  if (error instanceof oauth.OperationProcessingError) {
    if (error.cause instanceof Response && !error.cause.ok) return [`answered HTTP ${error.cause.status}`]
    return ['gave an answer that cannot be used', clean(error.message)]
  }
  if (error instanceof Error && error.name === 'TimeoutError') {
    return ['did not answer in time']
  }
  const { code } = ((error as { cause?: unknown } | undefined)?.cause ?? {}) as { code?: unknown }
  const why = typeof code === 'string' ? ` (${code})` : ''
  return [`cannot be reached${why}`]
}

/** Who is asking: the interface between the routes, which need a principal, and the ways to prove one. `create-access.ts` implements it. */
import type { MillraceError } from '../../part/error.ts'
import type { Principal } from '../../part/principal.ts'

/** A request, as much of it as says who makes it. */
export interface AccessRequest {
  method: string
  headers: Headers
  /** A real `Request` without its body, for code of the application. */
  request(): Request
  /** Adds a `Set-Cookie` header to the response. */
  setCookie(value: string): void
}

export interface Access {
  /**
   * Who makes a request. Throws or rejects with a `MillraceError`: `unauthorized` (401, with `WWW-Authenticate`, one text for every credential that
   * does not count), `two-credentials` (400), `access-unavailable` (503).
   */
  identify(request: AccessRequest): Principal | Promise<Principal>
  /** Calls back once when the principal's open streams must end: its key was revoked, its token has expired. Returns a function that stops waiting. */
  onExpired(principal: Principal, end: (error: MillraceError) => void): () => void
  /** Routes of the page's sign-in, without a principal: `/auth/…`. */
  signIn?: (request: Request, path: string) => Promise<Response> | undefined
  /** Where `millrace login` signs in. */
  readonly login?: { issuer: string; clientId: string; scope?: string }
  /** The ways to sign in that the page offers. */
  readonly ways: { key: boolean; login: boolean; anonymous: boolean }
  /** Cookies may say who asks, so pages of other sites must be refused. */
  readonly readsCookies: boolean
  close(): void
}

/** Cookies of the server's own: read, set and removed. */

export function cookieOf(header: string | null, name: string): string | undefined {
  for (const pair of (header ?? '').split(';')) {
    const at = pair.indexOf('=')
    if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim()
  }
  return undefined
}

export interface CookieOptions {
  /** In seconds. 0 removes the cookie. */
  maxAge: number
  /** Only over https. */
  isSecure: boolean
  /** Default `/`. */
  path?: string
}

/** A `Set-Cookie` header. Scripts cannot read the cookie, and requests that pages of other sites make do not carry it. */
export function setCookie(name: string, value: string, { maxAge, isSecure, path = '/' }: CookieOptions): string {
  return `${name}=${value}; Path=${path}; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
}

/** The address of an archive in Postgres: `postgres://user:password@host:5432/database?sslmode=verify-full`. */
import { MillraceError } from '../../part/error.ts'

/** Whether a place is an address of Postgres. */
export function isPostgresUrl(text: string): boolean {
  return /^postgres(?:ql)?:\/\//iu.test(text)
}

/** The address without user, password and options, for the details of errors. Throws `bad-config`, and never quotes the address. */
export function shownPostgresUrl(url: string): string {
  const match = /^(postgres(?:ql)?:\/\/)(?:[^@/?#\s]*@)?([^@/?#\s]*)(\/[^@?#\s]*)?(?:\?[^@#\s]*)?$/iu.exec(url)
  if (match === null || !URL.canParse(url)) {
    const cure =
      'Write postgres://user:password@host:5432/database; escape @, /, ?, # and % in a password as %40, %2F, %3F, %23 and %25'
    throw new MillraceError('bad-config', `record.archive: not an address of Postgres. ${cure}.`)
  }
  const [, scheme = '', host = '', database = ''] = match
  return scheme + host + database
}

/** The text without the password of an address. */
export function withoutPassword(text: string, url: string): string {
  const { password, searchParams } = new URL(url)
  let shown = text
  for (const secret of [password, decoded(password), searchParams.get('password') ?? ''])
    if (secret !== '') shown = shown.replaceAll(secret, '…')
  return shown
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

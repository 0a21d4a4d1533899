/** Reads SQL far enough to refuse what does not only read, and to find its parameters. */
import { MillraceError } from '../../part/error.ts'

/** Strings, quoted names and comments, in which nothing counts. */
const quoted = /'(?:[^']|'')*'?|"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|\[[^\]]*\]?|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/gu

/** Pragmas that only read. */
const pragmas: ReadonlySet<string> = new Set([
  'table_info',
  'table_xinfo',
  'table_list',
  'index_list',
  'index_info',
  'index_xinfo',
  'user_version',
  'page_count',
  'page_size',
  'freelist_count',
  'function_list',
  'integrity_check',
  'quick_check',
])

const reads: ReadonlySet<string> = new Set(['select', 'with', 'values', 'explain', 'pragma'])

export function badQuery(message: string, cause?: unknown): MillraceError {
  return new MillraceError('bad-query', message, { cause })
}

/** Throws `bad-query` unless the text is one statement that only reads. Returns the names of its parameters. */
export function checkStatement(sql: string): string[] {
  const bare = sql.replace(quoted, (found) => (/^(?:--|\/\*)/u.test(found) ? ' ' : ' x '))
  const [statement = '', ...rest] = bare.split(';')
  if (rest.some((more) => more.trim() !== '')) throw badQuery('There is more than one statement. Run one at a time.')
  const word = /^\s*([a-z]+)/iu.exec(statement)?.[1]?.toLowerCase() ?? ''
  if (word === '') throw badQuery('There is no SQL statement.')
  if (!reads.has(word))
    throw badQuery(`Queries only read: ${word.toUpperCase()} is not allowed. Begin with SELECT or WITH.`)
  const pragma = /^\s*(?:explain\s+(?:query\s+plan\s+)?)?pragma\s+(?:\w+\s*\.\s*)?(\w+)\s*(=)?/iu.exec(statement)
  if (pragma !== null && (pragma[2] !== undefined || !pragmas.has(pragma[1]!.toLowerCase()))) {
    throw badQuery(`Queries only read: PRAGMA ${pragma[1]} is not allowed.`)
  }
  return [...new Set(Array.from(statement.matchAll(/[:$@]([a-z_]\w*)/giu), ([, name]) => name!))]
}

/**
 * Finds tools by words: in their names, descriptions and parameters. No embeddings: what a model writes as a query has the words of the thing it looks
 * for, and a few verbs mean the same everywhere. Loads MiniSearch, so it is imported with the first search.
 */
import MiniSearch from 'minisearch'

export interface FindableTool {
  name: string
  description?: string | undefined
  inputSchema: Record<string, unknown>
}

export interface ToolIndex {
  /** Names, the best first; of equally good ones in the order of the tools. */
  find(query: string, most: number): string[]
}

export function createToolIndex(tools: readonly FindableTool[]): ToolIndex {
  const index = new MiniSearch<{ id: number; name: string; description: string; parameters: string }>({
    fields: ['name', 'description', 'parameters'],
    tokenize: wordsOf,
    processTerm: termOf,
    searchOptions: {
      boost: { name: 3, description: 1.5 },
      prefix: (term) => term.length > 3,
      fuzzy: (term) => (term.length > 5 ? 0.2 : false),
    },
  })
  index.addAll(
    tools.map(({ name, description = '', inputSchema }, id) => ({
      id,
      name,
      description,
      parameters: wordsIn(inputSchema),
    })),
  )
  return {
    find(query, most) {
      const found = index.search(query.slice(0, 1000))
      return found
        .toSorted((a, b) => b.score - a.score || Number(a.id) - Number(b.id))
        .slice(0, most)
        .map(({ id }) => tools[Number(id)]!.name)
    },
  }
}

/** `listOpenIssues`, `list_open_issues` → list, open, issues; `to-do` → to, do, todo. */
function wordsOf(text: string): string[] {
  const joined = (text.match(/\p{L}+(?:-\p{L}+)+/gu) ?? []).map((word) => word.replaceAll('-', ''))
  const words = text
    .replaceAll(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2')
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '')
  return [...words, ...joined]
}

/** The names and descriptions of parameters, two levels deep. */
function wordsIn(schema: unknown, depth = 2): string {
  const { properties } = (schema ?? {}) as { properties?: unknown }
  if (depth === 0 || typeof properties !== 'object' || properties === null) return ''
  return Object.entries(properties)
    .map(([name, inner]: [string, { description?: unknown } | null]) => {
      const description = typeof inner?.description === 'string' ? inner.description : ''
      return `${name} ${description} ${wordsIn(inner, depth - 1)}`
    })
    .join(' ')
}

const stopwords: ReadonlySet<string> = new Set(
  'a an and any are as at be by can do does for from get how i in into is it its me my new of on one or our please some that the their them there these this to up us use want we what when where which who will with you your'.split(
    ' ',
  ),
)

/** Words that name the same thing to do. */
const verbs = new Map(
  [
    ['create', 'add', 'make', 'insert', 'open', 'register', 'start', 'write', 'compose', 'draft', 'raise'],
    ['delete', 'remove', 'erase', 'destroy', 'drop', 'discard', 'rid'],
    ['update', 'edit', 'change', 'modify', 'rename', 'set', 'correct', 'fix', 'adjust', 'alter', 'revise'],
    ['search', 'find', 'look', 'query', 'lookup', 'locate', 'seek'],
    ['list', 'all', 'browse', 'enumerate', 'every', 'overview'],
    ['read', 'show', 'fetch', 'view', 'retrieve', 'display', 'see', 'details'],
    ['send', 'deliver', 'post', 'submit', 'mail', 'forward'],
    ['cancel', 'abort', 'revoke', 'stop', 'undo', 'void', 'withdraw'],
    ['share', 'invite', 'grant', 'give'],
    ['export', 'download', 'save', 'dump'],
    ['import', 'upload', 'load'],
    ['count', 'number', 'many', 'total'],
    ['merge', 'combine', 'join'],
    ['copy', 'duplicate', 'clone'],
    ['archive', 'store', 'shelve'],
  ].flatMap(([word, ...others]) => [word!, ...others].map((each) => [stem(each), word!] as const)),
)

function termOf(term: string): string | null {
  const lower = term.toLowerCase()
  if (stopwords.has(lower) && !verbs.has(lower)) return null
  const short = stem(lower)
  return verbs.get(short) ?? short
}

/** Enough for English words to meet: invoices, invoice; creating, created, creates. */
function stem(word: string): string {
  if (word.length < 4) return word
  return word
    .replace(/ies$/u, 'y')
    .replace(/(ss|sh|ch|x|z)es$/u, '$1')
    .replace(/([^su])s$/u, '$1')
    .replace(/(?:ing|ed)$/u, '')
    .replace(/e$/u, '')
}

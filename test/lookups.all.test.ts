/**
 * No key that comes from outside is looked up in a plain object: `table['constructor']` finds what every object inherits.
 * The compiler's own types say which keys are any text; those lookups go through `ownValue`, a Map or a Set.
 */
import { relative, resolve, sep } from 'node:path'
import { SyntaxKind, type Node, type SourceFile } from 'typescript/unstable/ast'
import { API } from 'typescript/unstable/sync'
import { expect, test } from 'vitest'

/** File and expression → why the key cannot be one that the object inherits. */
const harmless = new Map([
  ['store/redis/stored-row.ts: (value as never)[name]', 'a list of fixed names'],
  ['store/redis/stored-row.ts: known[name]', 'a list of fixed names'],
  ['store/redis/stored-row.ts: row[name as keyof StoredRow]', 'a list of fixed names'],
  ['cli/env-files.ts: context.env[name]', 'behind Object.hasOwn'],
  ['part/own-value.ts: table[key]', 'behind Object.hasOwn: this is the lookup that all others use'],
  ['part/json.ts: (value as Record<string, unknown>)[key]', 'its own keys'],
  ['part/json.ts: copy[key]', '__proto__ is refused one line above'],
  ['fold/result-files.ts: fields[key]', 'a key that is in it'],
  ['fold/result-shape.ts: (value as Record<string, unknown>)[key]', 'its own keys'],
  ['engine/json-path.ts: (value as Record<string, unknown>)[key]', 'behind Object.hasOwn'],
  ['fold/redact.ts: part[key as keyof P]', 'its own keys'],
  ['fold/redact.ts: (copy ??= { ...part })[key]', 'the own keys of a part, whose names are fixed'],
  ['fold/redact.ts: item[key]', 'its own keys'],
  ['fold/redact.ts: item[before]', 'its own keys'],
  ['models/call-shape.ts: call.providerOptions?.[key]', 'a name of ours'],
  ['models/decode/fields.ts: fields[name]', 'a list of fixed names'],
  ['models/decode/chat.ts: last[key]', '__proto__ is refused above'],
  ['models/decode/google.ts: this.last[key]', 'the names that are in `last` from the start'],
  ['models/decode/google.ts: candidate[key]', 'the names that are in `last` from the start'],
  ['ingest/claude/messages.ts: providerMetadata?.[key]', 'a name of ours'],
  ['server/openai/request.ts: settings.providerOptions?.[provider]', 'a name of ours'],
  ['models/decode/google.ts: at[key]', '__proto__ is refused above'],
  ['models/decode/google.ts: at[last]', '__proto__ is refused above'],
  ['pipeline/agent-schema.ts: definitions[type]', 'the names of the built-in step types'],
  ['pipeline/agent-schema.ts: schema[key]', 'keywords that zod writes'],
  ['project/packs.ts: all[kind][name]', 'no prototype'],
  ['models/langchain/langchain.ts: record[key]', 'a list of fixed names'],
  ['pipeline/json-schema/validate.ts: properties[key]', 'behind Object.hasOwn'],
  ['pipeline/json-schema/validate.ts: value[key]', 'its own keys'],
  ['pipeline/json-schema/validate.ts: (at as Record<string, unknown>)[key]', 'behind Object.hasOwn'],
  ['cli/commands/run-query.ts: tableDocs[table]', 'the names of our tables'],
  ['delivery/stand-in.ts: made[key as keyof T]', 'the names that the prototype of the real object has'],
  ['server/openai/request.ts: input[name]', '__proto__ is refused on the same line'],
])

interface Lookup {
  place: string
  /** The key may be any text, or of no known type. */
  open: boolean
}

const wrappers = new Set([
  SyntaxKind.AsExpression,
  SyntaxKind.ParenthesizedExpression,
  SyntaxKind.NonNullExpression,
  SyntaxKind.SatisfiesExpression,
])

/** What stands inside casts: a cast to `keyof` says nothing about the text that comes. */
function inside(node: Node): Node {
  let at = node
  while (wrappers.has(at.kind)) at = (at as Node & { expression: Node }).expression
  return at
}

/** The key of `object[key]` and of `key in object`. */
function keyOf(node: Node): Node | undefined {
  if (node.kind === SyntaxKind.ElementAccessExpression) {
    return (node as Node & { argumentExpression: Node }).argumentExpression
  }
  if (node.kind !== SyntaxKind.BinaryExpression) return undefined
  const { operatorToken, left } = node as Node & { operatorToken: Node; left: Node }
  return operatorToken.kind === SyntaxKind.InKeyword && left.kind !== SyntaxKind.PrivateIdentifier ? left : undefined
}

function lookupsOf(root: string): Lookup[] {
  const api = new API({ cwd: resolve(root, '..') })
  try {
    const [project] = api.updateSnapshot({ openProjects: [resolve(root, '../tsconfig.build.json')] }).getProjects()
    const { program, checker } = project!
    const found: Lookup[] = []
    for (const name of program.getSourceFileNames()) {
      const file = relative(root, name).split(sep).join('/')
      if (file.startsWith('..') || /\.(?:test|contract)\.tsx?$|\/testing\//u.test(file)) continue
      const source: SourceFile = program.getSourceFile(name)!
      const visit = (node: Node): void => {
        const key = keyOf(node)
        if (key !== undefined) {
          const type = checker.getTypeAtLocation(inside(key))
          const text = type === undefined ? 'unknown' : checker.typeToString(type)
          const place = `${file}: ${source.text.slice(node.pos, node.end).trim()}`
          found.push({ place, open: /(?:^|\| )(?:string|any|unknown)(?:$| \|)/u.test(text) })
        }
        node.forEachChild(visit)
      }
      source.forEachChild(visit)
    }
    return found
  } finally {
    api.close()
  }
}

test('a key that may be any text is looked up with ownValue, in a Map or in a Set', () => {
  const lookups = lookupsOf(resolve(import.meta.dirname, '../src'))
  const open = [...new Set(lookups.filter(({ open: isOpen }) => isOpen).map(({ place }) => place))]
  // The lookups were seen, those with fixed keys among them.
  expect(lookups.length).toBeGreaterThan(300)
  expect(lookups.map(({ place }) => place)).toContain('engine/steps/condition.ts: config[branch]')
  expect(open.filter((place) => !harmless.has(place))).toEqual([])
  // What is no longer there is no longer excused.
  expect([...harmless.keys()].filter((place) => !open.includes(place))).toEqual([])
})

/** Checks a tree against a schema: returns typed data, or adds faults at their places in the text. */
import type { z } from 'zod'
import { mostFaults, type FaultCollector } from './fault.ts'
import { listNames, nearest } from './nearest.ts'
import { toText } from './template.ts'
import type { MapNode, Node } from './tree.ts'

/** `subject` names the node in faults about the whole node; `elsewhere` returns where an unknown key belongs. */
export function check<S extends z.ZodType>(
  schema: S,
  node: Node,
  faults: FaultCollector,
  subject: string,
  elsewhere: (key: string) => string | undefined = () => undefined,
): z.infer<S> | undefined {
  // Code generated for a schema is not worth its cost: even 400 agent files load no faster with it, and one loads slower.
  const parsed = schema.safeParse(toText(node), { jitless: true })
  if (parsed.success) return parsed.data
  const issues = parsed.error.issues.flatMap(flatten)
  // A misspelt `id` is one fault, not an unknown key and a missing one. Only the first fault of a value is reported.
  const meant = new Set<string>()
  const reported = new Set<string>()
  for (const issue of issues)
    if (issue.code === 'unrecognized_keys') reportUnknownKeys(issue, node, faults, meant, elsewhere)
  for (const issue of issues) {
    const key = pathKey(issue.path)
    if (issue.code === 'unrecognized_keys' || reported.has(key)) continue
    reported.add(key)
    reportValue(issue, node, faults, meant, subject)
  }
  return undefined
}

export function child(node: Node | undefined, key: PropertyKey): Node | undefined {
  if (node?.kind === 'list') return node.items[Number(key)]
  return node?.kind === 'map' ? node.entries.get(String(key))?.value : undefined
}

type Issue = z.core.$ZodIssue

function reportUnknownKeys(
  issue: Issue & { code: 'unrecognized_keys' },
  root: Node,
  faults: FaultCollector,
  meant: Set<string>,
  elsewhere: (key: string) => string | undefined,
): void {
  const owner = issue.path.reduce(child, root as Node | undefined) as MapNode
  const known = issue.message.split(', ')
  const free = known.filter((name) => !owner.entries.has(name))
  for (const [i, key] of issue.keys.entries()) {
    const at = owner.entries.get(key)?.at ?? owner.at
    // Further faults are only counted.
    const suggestion = i < mostFaults ? nearest(key, free) : undefined
    const place = issue.path.length === 0 ? elsewhere(key) : undefined
    if (place !== undefined) faults.add(at, `"${key}" belongs ${place}; move it there`)
    else {
      if (suggestion !== undefined) meant.add(pathKey([...issue.path, suggestion]))
      const hint = suggestion === undefined ? '' : ` (did you mean "${suggestion}"?)`
      faults.add(at, `unknown key "${key}"${hint}; known keys: ${listNames(known)}`)
    }
  }
}

function reportValue(
  issue: Issue,
  root: Node,
  faults: FaultCollector,
  meant: ReadonlySet<string>,
  whole: string,
): void {
  let node = root
  for (const [depth, key] of issue.path.entries()) {
    const next = child(node, key)
    if (next === undefined) {
      const path = issue.path.slice(0, depth + 1)
      if (!meant.has(pathKey(path))) reportMissing(issue, String(key), node, faults)
      return
    }
    node = next
  }
  const subject = issue.path.length === 0 ? whole : nameOfPath(issue.path)
  let given = ''
  if (node.kind === 'scalar' && issue.message.startsWith('must')) {
    given = node.text === '' ? ', but is empty' : `, not ${JSON.stringify(shorten(node.text))}`
  }
  faults.add(node.at, `${subject} ${issue.message}${given}`)
}

function reportMissing(issue: Issue, key: string, owner: Node, faults: FaultCollector): void {
  // Without its discriminator a map has no known keys, so a misspelt discriminator is found by similarity.
  const misspelt =
    issue.code === 'invalid_union' && owner.kind === 'map' ? nearest(key, owner.entries.keys()) : undefined
  if (misspelt === undefined) faults.add(owner.at, `missing key "${key}"; add it`)
  else {
    const at = (owner as MapNode).entries.get(misspelt)?.at ?? owner.at
    faults.add(at, `unknown key "${misspelt}" (did you mean "${key}"?)`)
  }
}

/** The issue of a union or, if the value clearly belongs to one branch, the issues of that branch. */
function flatten(issue: Issue): Issue[] {
  if (issue.code !== 'invalid_union') return [issue]
  const branches = issue.errors.map((branch) => branch.flatMap(flatten))
  const fits = ({ path, code }: Issue) => path.length > 0 || code === 'unrecognized_keys'
  const fitting = branches.filter((branch) => branch.length > 0 && branch.every(fits))
  // The branch with the fewest issues is the one that was meant; the first of several.
  const meant = fitting.toSorted((a, b) => weigh(a) - weigh(b))[0]
  if (meant === undefined) return [issue]
  return meant.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] }))
}

function weigh(issues: readonly Issue[]): number {
  return issues.reduce((sum, issue) => sum + (issue.code === 'unrecognized_keys' ? issue.keys.length : 1), 0)
}

function nameOfPath(path: readonly PropertyKey[]): string {
  const last = path.at(-1)
  return typeof last === 'number' ? `item ${last + 1} of ${nameOfPath(path.slice(0, -1))}` : `"${String(last)}"`
}

function shorten(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text
}

function pathKey(path: readonly PropertyKey[]): string {
  return path.map(String).join('\n')
}

/** Resolves a `$ref` within a document. Returns `true`, which accepts any value, if the target is not in the document. */
import { isObject } from './keywords.ts'
import type { Work } from './work.ts'

export function resolveReference(root: unknown, reference: string, work: Work): unknown {
  const hash = reference.indexOf('#')
  const address = hash < 0 ? reference : reference.slice(0, hash)
  if (!isObject(root) || (address !== '' && address !== root['$id'] && address !== root['id'])) return true
  const fragment = decode(hash < 0 ? '' : reference.slice(hash + 1))
  if (fragment === '') return root
  return fragment.startsWith('/') ? follow(root, fragment) : findAnchor(root, fragment, work)
}

function decode(fragment: string): string {
  try {
    return decodeURIComponent(fragment)
  } catch {
    return fragment
  }
}

function follow(root: unknown, pointer: string): unknown {
  let at = root
  for (const part of pointer.slice(1).split('/')) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return true
    at = (at as Record<string, unknown>)[key]
  }
  return at
}

function findAnchor(root: unknown, name: string, work: Work): unknown {
  const open = [root]
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    work.spend(1)
    if (typeof at !== 'object' || at === null) continue
    const { $anchor, $id } = at as Record<string, unknown>
    if ($anchor === name || $id === `#${name}`) return at
    open.push(...Object.values(at))
  }
  return true
}

/** Checks the path of a reference whose root is known against the known shape of its value. */
import { listNames, type Hint } from './nearest.ts'
import type { Place, Reader } from './reader.ts'
import type { Reference } from './reference.ts'
import { requestKeys } from './request-keys.ts'
import { deadEnd, type DeadEnd } from './shape.ts'
import { rootOf } from './root-shape.ts'

/**
 * Adds a fault for a reference that can never have a value. References with `?` are not checked, nor are those of a recorded
 * run, where no names are known.
 */
export function checkPath({ text, path, optional }: Reference, at: number, place: Place, reader: Reader): void {
  const { known, faults } = reader
  if (optional || known === undefined) return
  if (path[0] === 'env') {
    const name = path[1]
    const { env } = known
    if (name === undefined || env === undefined || env.includes(name)) return
    const cure = `add "${name}" to "env" in millrace.config.ts`
    faults.add(
      at,
      (hint) => `$env.${name} is not allowed${hint(name, env)}; allowed variables: ${listNames(env)}; ${cure}`,
    )
    return
  }
  const { shape, rest } = rootOf(path, place, reader)
  const end = deadEnd(shape, rest)
  if (end === undefined) return
  const owner = `$${[...path.slice(0, path.length - rest.length), ...end.seen].join('.')}`
  const isInput = owner === '$input'
  faults.add(at, (hint) => `${text} has no value: ${isInput ? undeclared(text, end, hint) : reason(owner, end, hint)}`)
}

const always: ReadonlySet<string> = new Set(requestKeys)

function undeclared(text: string, { key, at }: DeadEnd, hint: Hint): string {
  const declared = fieldsOf(at).filter((name) => !always.has(name))
  const cure = `declare it, or write ${text}? if it may be missing`
  return `"input" does not declare "${key}"${hint(key, declared)}; declared keys: ${listNames(declared)}; ${cure}`
}

function reason(owner: string, { key, at }: DeadEnd, hint: Hint): string {
  const fields = fieldsOf(at)
  if (fields.length > 0) return `${owner} has no "${key}"${hint(key, fields)}; known fields: ${listNames(fields)}`
  if (at.some(({ kind }) => kind === 'list')) return `${owner} is a list; use an index, such as ${owner}.0`
  return `${owner} is ${at.map(({ kind }) => words[kind]).join(' or ')}, which has no fields`
}

const words = { text: 'a string', number: 'a number', flag: 'a boolean', null: 'null', list: 'a list', map: 'a map' }

function fieldsOf(at: DeadEnd['at']): string[] {
  return [...new Set(at.flatMap((each) => (each.kind === 'map' ? [...each.fields.keys()] : [])))]
}

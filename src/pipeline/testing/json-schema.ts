/** Checks a value against as much of JSON Schema as agent-schema.ts writes; throws at a keyword it does not know. */
import { equal } from '../../part/equal.ts'
import type { JsonSchema } from '../agent-schema.ts'

const notes = new Set(['$schema', 'title', 'description', 'default', 'definitions'])

/** Every complaint with its path; empty when the value fits. */
export function validate(root: JsonSchema, value: unknown, schema: JsonSchema = root, path = ''): string[] {
  const again = (other: unknown, at = value, where = path) => validate(root, at, other as JsonSchema, where)
  if (typeof schema['$ref'] === 'string') {
    const name = schema['$ref'].replace('#/definitions/', '')
    return again((root['definitions'] as JsonSchema)[name])
  }
  const map = typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : undefined
  const properties = (schema['properties'] ?? {}) as JsonSchema
  return Object.entries(schema).flatMap(([keyword, wanted]) => {
    const complain = (fits: boolean) => (fits ? [] : [`${path} ${keyword} ${JSON.stringify(wanted)}`])
    switch (keyword) {
      case 'type':
        return complain([wanted].flat().some((type) => isOfType(value, type as string)))
      case 'enum':
        // Draft 7 wants one at least, and editors refuse a schema with less.
        if ((wanted as unknown[]).length === 0) throw new Error(`${path}: an empty enum is no valid schema.`)
        return complain((wanted as unknown[]).some((each) => equal(each, value)))
      case 'const':
        return complain(equal(wanted, value))
      case 'minimum':
        return complain(typeof value !== 'number' || value >= (wanted as number))
      case 'maximum':
        return complain(typeof value !== 'number' || value <= (wanted as number))
      case 'minLength':
        return complain(typeof value !== 'string' || value.length >= (wanted as number))
      case 'maxLength':
        return complain(typeof value !== 'string' || value.length <= (wanted as number))
      case 'pattern':
        return complain(typeof value !== 'string' || new RegExp(wanted as string, 'u').test(value))
      case 'minItems':
        return complain(!Array.isArray(value) || value.length >= (wanted as number))
      case 'items':
        return Array.isArray(value) ? value.flatMap((item, i) => again(wanted, item, `${path}/${i}`)) : []
      case 'required':
        return map ? complain((wanted as string[]).every((key) => map.some(([own]) => own === key))) : []
      case 'properties':
        return (map ?? []).flatMap(([key, item]) =>
          Object.hasOwn(properties, key) ? again(properties[key], item, `${path}/${key}`) : [],
        )
      case 'additionalProperties':
        return (map ?? []).flatMap(([key, item]) => {
          if (Object.hasOwn(properties, key)) return []
          return wanted === false ? [`${path}/${key} is unknown`] : again(wanted, item, `${path}/${key}`)
        })
      case 'anyOf': {
        const forms = (wanted as JsonSchema[]).map((form) => again(form))
        return forms.some((faults) => faults.length === 0) ? [] : forms.flat()
      }
      case 'allOf':
        return (wanted as JsonSchema[]).flatMap((form) => again(form))
      case 'if':
        return again(wanted).length === 0 ? again(schema['then']) : []
      case 'then':
        return []
      case 'not':
        return complain(again(wanted).length > 0)
      default:
        if (notes.has(keyword)) return []
        throw new Error(`The test's validator does not know the keyword "${keyword}".`)
    }
  })
}

function isOfType(value: unknown, type: string): boolean {
  if (type === 'array') return Array.isArray(value)
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value)
  return typeof value === type
}

/** The keywords of JSON Schema. In an untrusted schema, their values may have any type. */

export type Keywords = Readonly<
  Partial<
    Record<
      | '$ref'
      | 'type'
      | 'enum'
      | 'const'
      | 'minLength'
      | 'maxLength'
      | 'pattern'
      | 'minimum'
      | 'maximum'
      | 'exclusiveMinimum'
      | 'exclusiveMaximum'
      | 'multipleOf'
      | 'minItems'
      | 'maxItems'
      | 'uniqueItems'
      | 'prefixItems'
      | 'items'
      | 'additionalItems'
      | 'contains'
      | 'minContains'
      | 'maxContains'
      | 'required'
      | 'minProperties'
      | 'maxProperties'
      | 'properties'
      | 'patternProperties'
      | 'additionalProperties'
      | 'propertyNames'
      | 'dependentRequired'
      | 'dependentSchemas'
      | 'dependencies'
      | 'allOf'
      | 'anyOf'
      | 'oneOf'
      | 'not'
      | 'if'
      | 'then'
      | 'else',
      unknown
    >
  >
>

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isOfType(value: unknown, type: unknown): boolean {
  switch (type) {
    case 'integer':
      return Number.isInteger(value)
    case 'array':
      return Array.isArray(value)
    case 'null':
      return value === null
    case 'object':
      return isObject(value)
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === type
    default:
      // Unknown types accept any value.
      return true
  }
}

export function typeName(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

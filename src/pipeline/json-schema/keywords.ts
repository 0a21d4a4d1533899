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

export function typeName(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

/** The subset of JSON Schema for inputs and outputs of agent files. Plain data and valid JSON Schema. */
export interface ValueSchema {
  /** Any type if undefined. */
  type?: ValueType
  title?: string
  description?: string
  default?: unknown
  enum?: unknown[]
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  /** A hint for models and clients; not enforced. */
  format?: string
  items?: ValueSchema
  minItems?: number
  maxItems?: number
  properties?: Record<string, ValueSchema>
  required?: string[]
  additionalProperties?: boolean | ValueSchema
  anyOf?: ValueSchema[]
}

export const valueTypes = ['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'] as const
export type ValueType = (typeof valueTypes)[number]

/** Whether a value has a type of JSON Schema. A type that JSON Schema does not define matches every value. */
export function isOfType(value: unknown, type: unknown): boolean {
  switch (type) {
    case 'integer':
      return Number.isInteger(value)
    case 'array':
      return Array.isArray(value)
    case 'null':
      return value === null
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value)
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === type
    default:
      return true
  }
}

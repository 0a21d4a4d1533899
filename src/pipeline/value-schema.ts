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

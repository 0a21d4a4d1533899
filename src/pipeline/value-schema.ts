/** The part of JSON Schema that an agent file may use for its inputs and outputs. Plain data, valid JSON Schema as it is. */
export interface ValueSchema {
  /** Left out: any type. */
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
  /** A note for models and clients; not enforced. */
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

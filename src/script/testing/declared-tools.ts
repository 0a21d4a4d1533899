/** Tools with schemas, good and strange. */
import type { DeclaredTool } from '../declarations.ts'

export const declaredTools: DeclaredTool[] = [
  {
    name: 'orders',
    description: 'Reads an order.',
    input: {
      type: 'object',
      properties: {
        id: { type: 'integer', description: 'Number of the order.', minimum: 1 },
        with: { type: 'array', items: { enum: ['lines', 'customer'] } },
      },
      required: ['id'],
    },
    output: {
      type: 'object',
      properties: { total: { type: 'number' }, state: { enum: ['open', 'closed'] } },
      required: ['total', 'state'],
    },
  },
  {
    name: 'crm_find',
    description: 'Searches\n  the CRM.',
    input: {
      type: 'object',
      properties: {
        words: { type: 'string', nullable: true },
        near: { type: 'array', prefixItems: [{ type: 'number' }, { type: 'number' }], items: false },
      },
    },
  },
  { name: 'refund-now', input: true },
  { name: 'ping', input: { type: 'object', properties: {}, additionalProperties: false }, output: { type: 'string' } },
]

export function manyTools(count: number): DeclaredTool[] {
  return Array.from({ length: count }, (_, i) => ({
    name: `tool_${i}`,
    description: `Tool number ${i}.`,
    input: { type: 'object', properties: { n: { type: 'integer', minimum: i } }, required: ['n'] },
  }))
}

const nested = (levels: number) => {
  let schema: unknown = { type: 'string' }
  for (let i = 0; i < levels; i++) schema = { type: 'object', properties: { a: schema }, additionalProperties: schema }
  return schema
}
/** Each definition names the next one twice. */
const doubling = {
  $ref: '#/$defs/d0',
  $defs: Object.fromEntries(
    Array.from({ length: 30 }, (_, i) => [
      `d${i}`,
      { type: 'object', properties: { a: { $ref: `#/$defs/d${i + 1}` }, b: { $ref: `#/$defs/d${i + 1}` } } },
    ]),
  ),
}

export const strangeTools: DeclaredTool[] = [
  ...[null, 1, 'x', [], true, false, undefined, {}].map((input, i) => ({ name: `plain${i}`, input })),
  { name: 'nested', input: nested(40) },
  { name: 'doubling', input: doubling },
  {
    name: 'wrong',
    input: { type: 'object', properties: [], required: 'a', enum: {}, anyOf: 3, allOf: null, items: 1, $ref: 7 },
  },
  { name: 'types', input: { type: ['object', 7, null], properties: { a: null, b: 3 } } },
  { name: 'empty', input: { anyOf: [], enum: [] }, output: { type: 'array', items: { anyOf: [] } } },
  { name: 'values', input: { enum: [null, 1, 'a', true, { a: 1 }, [1]] }, output: { const: null } },
  { name: 'line\u2028break "quoted" */', description: '\u2028*/\u2029', input: { const: '\u2028' } },
  {
    name: 'big',
    input: { type: 'object', properties: Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`p${i}`, {}])) },
  },
]

import { expect, test } from 'vitest'
import { readFields, type Schema } from './SchemaForm.tsx'

const schema: Schema = {
  properties: {
    topic: { type: 'string' },
    words: { type: 'integer', default: 100 },
    tone: { enum: ['plain', 'grand'] },
    draft: { type: 'boolean' },
    tags: { type: 'array' },
    any: {},
  },
  required: ['topic'],
}

test('fields become values of their types; empty ones are absent; defaults are taken', () => {
  const fields = { topic: '12', tone: 'plain', draft: 'true', tags: '["a"]', any: 'words' }
  expect(readFields(schema, fields)).toEqual({
    values: { topic: '12', words: 100, tone: 'plain', draft: true, tags: ['a'], any: 'words' },
    faults: [],
  })
  expect(readFields(schema, { topic: 'x', words: '' }).values).toEqual({ topic: 'x' })
})

test('what is missing and what is not JSON is told by name', () => {
  expect(readFields(schema, { tags: 'a, b' }).faults).toEqual(['topic is missing.', 'tags must be JSON of type array.'])
})

import { expect, test } from 'vitest'
import { formOfArguments, readArguments } from './argument-form.ts'

const schema = {
  properties: {
    city: { type: 'string', description: 'Where' },
    days: { type: 'integer', default: 3 },
    class: { enum: ['first', 'second'] },
  },
  required: ['city'],
}

test('the fields of the tool come first, with what the model gave; then what no schema has', () => {
  const form = formOfArguments({ city: 'Rome', more: [1], note: null }, schema)!
  expect(Object.entries(form.properties!)).toEqual([
    ['city', { type: 'string', description: 'Where', default: 'Rome' }],
    // A default of the schema is not an argument.
    ['days', { type: 'integer' }],
    ['class', { enum: ['first', 'second'] }],
    ['more', { type: 'array', default: [1] }],
    ['note', { default: null }],
  ])
  expect(formOfArguments({ amount: 7 })).toEqual({
    properties: { amount: { type: 'number', default: 7 } },
    required: [],
  })
})

test('what is no object, or has no fields or too many, is JSON', () => {
  expect(formOfArguments('words', schema)).toBeUndefined()
  expect(formOfArguments([1])).toBeUndefined()
  expect(formOfArguments({})).toBeUndefined()
  expect(formOfArguments(Object.fromEntries(Array.from({ length: 31 }, (_, i) => [`a${i}`, i])))).toBeUndefined()
})

test('only what was changed is changed', () => {
  const input = { city: '42', days: 2, note: null, text: '' }
  const form = formOfArguments(input, schema)!
  expect(readArguments(form, input, {})).toEqual({ value: input, faults: [] })
  // Written and taken back.
  expect(readArguments(form, input, { city: '42', note: 'null', text: '' })).toEqual({ value: input, faults: [] })
  expect(readArguments(form, input, { city: 'Oslo', days: '' }).value).toEqual({ city: 'Oslo', note: null, text: '' })
  expect(readArguments(form, input, { class: 'first', days: '5' }).value).toEqual({ ...input, class: 'first', days: 5 })
  expect(readArguments(form, input, { city: '' }).faults).toEqual(['city is missing.'])
  expect(readArguments(form, input, { days: 'x' }).faults).toEqual(['days must be JSON of type integer.'])
})

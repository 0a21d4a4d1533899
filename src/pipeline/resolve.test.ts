import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MillraceError } from '../part/error.ts'
import { references } from './reference.ts'
import { resolve, type Scope } from './evaluate.ts'

const usage = { totalTokens: 7 }
const scope: Scope = {
  input: {
    messages: [{ role: 'user', content: 'Hi' }],
    name: 'Ada',
    'user-agent': 'curl',
    nothing: null,
    no: false,
    zero: 0,
    empty: '',
    sneaky: '$env.HOME and $input.name',
    long_name: 1,
  },
  variables: new Map<string, unknown>([
    ['llmOutput', { text: 'Hello', usage, list: ['a', { b: 'c' }] }],
    ['my-step', 'done'],
  ]),
  env: { HOME: '/home/ada' },
  user: { id: 'u1', tenant: 'acme', roles: ['user'], claims: { plan: 'pro', seats: 3 }, key: 'k' },
}

describe('whole-string references keep the type', () => {
  test.each<[string, unknown]>([
    ['$input', scope.input],
    ['$input.messages', [{ role: 'user', content: 'Hi' }]],
    ['$input.messages.0.content', 'Hi'],
    ['$input.messages.length', 1],
    ['$input.user-agent', 'curl'],
    ['$input.nothing', null],
    ['$input.nothing?', null],
    ['$input.no', false],
    ['$input.zero', 0],
    ['$input.empty', ''],
    ['$llmOutput.list.1.b', 'c'],
    ['$my-step', 'done'],
    ['$stepResult.llmOutput.text', 'Hello'],
    ['$stepResult.my-step', 'done'],
    ['$env.HOME', '/home/ada'],
    ['$input.nope?', undefined],
    ['$nobody.at.all?', undefined],
  ])('%s', (template, value) => expect(resolve(template, scope)).toEqual(value))

  test('the value itself, not a copy', () => expect(resolve('$llmOutput.usage', scope)).toBe(usage))
})

describe('inside a text', () => {
  test.each<[string, string]>([
    ['Hello $input.name.', 'Hello Ada.'],
    ['$input.name, $input.name; ($input.name)! "$input.name"', 'Ada, Ada; (Ada)! "Ada"'],
    ['$input.name...', 'Ada...'],
    ['$input.name: $my-step', 'Ada: done'],
    ['$input.name-', 'Ada-'],
    ['$my-step--', 'done--'],
    ['$input.name/$input.long_name', 'Ada/1'],
    [' $input.name', ' Ada'],
    ['$input.name\n', 'Ada\n'],
    ['usage: $llmOutput.usage', 'usage: {"totalTokens":7}'],
    ['$input.no $input.zero $input.nothing <$input.empty>', 'false 0 null <>'],
    ['Who is $input.name?', 'Who is Ada?'],
    ['Who is $input.nope?', 'Who is '],
    ['($input.name?)', '(Ada)'],
    ['($input.nope?)', '()'],
    ['$input.name?? Yes', 'Ada? Yes'],
    ['$100', '$100'],
    ['costs $5', 'costs $5'],
    ['$', '$'],
    ['a $ b $. $- ${x}', 'a $ b $. $- ${x}'],
    ['$$', '$'],
    ['$$input.name', '$input.name'],
    ['$$$input.name', '$Ada'],
    ['$$$$', '$$'],
    ['US$$5', 'US$5'],
    ['Größe: $input.name', 'Größe: Ada'],
  ])('%j', (template, value) => expect(resolve(template, scope)).toBe(value))
})

describe('missing values', () => {
  test.each<[string, string]>([
    ['$input.user.name', '$input.user.name has no value: $input has no "user"'],
    ['$input.messages.3.content', '$input.messages has no "3"'],
    ['$input.messages.-1', ''],
    ['$input.nothing.x', '$input.nothing has no "x"'],
    ['$input.name.0', '$input.name has no "0"'],
    ['Hi $input.nope!', 'write $input.nope? if it may be missing'],
    ['$nobody', '"nobody" is not set'],
    ['$stepResult.nobody.x', '$stepResult has no "nobody"'],
    ['$env.PATH', '$env has no "PATH"'],
  ])('%s', (template, fragment) => {
    if (fragment === '') return expect(resolve(template, scope)).toMatch(/\.-1$/)
    const error = thrownBy(() => resolve(template, scope))
    expect(error).toBeInstanceOf(MillraceError)
    expect(error).toMatchObject({ code: 'missing-value', message: expect.stringContaining(fragment) })
  })

  test('an optional one leaves its key out, and its place in a list null', () => {
    const value = resolve({ a: '$input.nope?', b: ['$input.nope?', 1], c: '$input.nothing' }, scope)
    expect(Object.keys(value as object)).toEqual(['b', 'c'])
    expect(value).toEqual({ b: [null, 1], c: null })
  })
})

describe('safety', () => {
  test('what is resolved is never resolved again', () => {
    expect(resolve('$input.sneaky', scope)).toBe('$env.HOME and $input.name')
    expect(resolve('say $input.sneaky', scope)).toBe('say $env.HOME and $input.name')
    expect(resolve({ a: { b: ['$input'] } }, scope)).toEqual({ a: { b: [scope.input] } })
  })
  test.each([
    'constructor',
    '__proto__',
    'toString',
    'hasOwnProperty.constructor',
    'messages.map',
    'name.length',
    'name.constructor',
  ])('own properties only: %s', (path) => {
    for (const root of ['$input', '$llmOutput', '$env', '$stepResult.llmOutput']) {
      expect(thrownBy(() => resolve(`${root}.${path}`, scope))).toMatchObject({ code: 'missing-value' })
    }
    expect(thrownBy(() => resolve(`$${path}`, scope))).toMatchObject({ code: 'missing-value' })
  })
  test('own functions are no values', () => {
    expect(resolve('$input.run?', { ...scope, input: { run: () => 1 } })).toBeUndefined()
  })
  test('an own __proto__ key of a template reaches no prototype', () => {
    const value = resolve(JSON.parse('{"__proto__": {"polluted": "$input.name"}}'), scope) as Record<string, unknown>
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(value.polluted).toBeUndefined()
    expect(Object.hasOwn(value, '__proto__')).toBe(true)
  })
  test('a circular value inside a text is a clear error', () => {
    const circle: Record<string, unknown> = {}
    circle.self = circle
    expect(thrownBy(() => resolve('x $input', { ...scope, input: circle }))).toMatchObject({ code: 'bad-value' })
  })
  test('other values pass through as they are', () => {
    const date = new Date(0)
    expect(resolve({ date, n: 4, b: true, z: null }, scope)).toEqual({ date, n: 4, b: true, z: null })
  })
})

describe('properties', () => {
  const name = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,5}(-[a-z0-9]{1,3})?$/)

  test('a text without a dollar is itself', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const plain = text.replaceAll('$', '')
        expect(resolve(plain, scope)).toBe(plain)
      }),
    )
  })
  test('with its dollars doubled any text comes back', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('$', 'a', '.', '-', '?', '1', ' ') }), (text) => {
        expect(resolve(text.replaceAll('$', '$$$$'), scope)).toBe(text)
      }),
    )
  })
  test('any value under any path comes back the same', () => {
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 4 }), fc.jsonValue(), (path, value) => {
        const input = path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value)
        expect(resolve(`$input.${path.join('.')}`, { ...scope, input })).toBe(value)
        expect(resolve(`<$input.${path.join('.')}>`, { ...scope, input })).toBe(
          `<${typeof value === 'string' ? value : JSON.stringify(value)}>`,
        )
      }),
    )
  })
  test('a long text of near references takes no time', () => {
    expect(references(`$${'a-'.repeat(50_000)}$${'a.'.repeat(50_000)}`)).toHaveLength(2)
  })
})

test('references lists what a template refers to', () => {
  const found = references({ a: '$x.y-z.0?', b: ['say $input.name. $$no $5', 4, { c: '$env.A$env.B' }] })
  expect(found.map(({ text, optional }) => [text, optional])).toEqual([
    ['$x.y-z.0', true],
    ['$input.name', false],
    ['$env.A', false],
    ['$env.B', false],
  ])
  expect(found[0]?.path).toEqual(['x', 'y-z', '0'])
})

function thrownBy(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

describe('$user', () => {
  test.each<[string, unknown]>([
    ['$user.id', 'u1'],
    ['$user.tenant', 'acme'],
    ['$user.roles', ['user']],
    ['$user.roles.0', 'user'],
    ['$user.claims.seats', 3],
    ['$user.name?', undefined],
    ['For $user.id of $user.tenant ($user.claims.plan)', 'For u1 of acme (pro)'],
    ['$user', { id: 'u1', tenant: 'acme', roles: ['user'], claims: { plan: 'pro', seats: 3 } }],
  ])('%s', (template, value) => expect(resolve(template, scope)).toEqual(value))

  test.each([
    ['$user.name', '$user.name has no value: $user has no "name"; write $user.name? if it may be missing'],
    ['$user.claims.age', '$user.claims has no "age"'],
    ['$user.key', '$user has no "key"'],
    ['$user.claims.constructor', '$user.claims has no "constructor"'],
  ])('%s is an error', (template, words) => {
    const error = thrownBy(() => resolve(template, scope))
    expect(error).toMatchObject({ code: 'missing-value', message: expect.stringContaining(words) as string })
  })

  test('of a run that belongs to no one there is nothing', () => {
    const nobody = { ...scope, user: undefined }
    expect(thrownBy(() => resolve('$user.id', nobody))).toMatchObject({
      message: '$user.id has no value: the run belongs to no one; write $user.id? if it may be missing',
    })
    expect(resolve({ id: '$user.id?', all: '$user?' }, nobody)).toEqual({})
  })

  test('a variable of this name, as in older recordings, comes first', () => {
    expect(resolve('$user.id', { ...scope, variables: new Map([['user', { id: 7 }]]) })).toBe(7)
  })
})

test('a reference is read anew behind as many others as anybody may bring', () => {
  const names = Array.from({ length: 2500 }, (_, i) => `n${i}`)
  const variables = new Map(names.map((name, i) => [name, i]))
  const scope: Scope = { input: { deep: 1 }, variables, env: {}, user: undefined }
  for (let round = 0; round < 2; round++) {
    expect(names.map((name) => resolve(`$${name}`, scope))).toEqual([...variables.values()])
    expect(resolve('$input.deep', scope)).toBe(1)
    expect(resolve('$input.none?', scope)).toBeUndefined()
    expect(resolve('$$', scope)).toBe('$')
  }
})

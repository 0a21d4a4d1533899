import { describe, expect, test } from 'vitest'
import type { EntryOf } from '../../part/entry.ts'
import {
  elicitationKey,
  elicitationModes,
  fromElicitation,
  namedKeys,
  toElicitation,
  type ElicitationContext,
} from './elicitation.ts'

type Request = EntryOf<'request'>
const runId = 'run_1'
const envelope = { type: 'request', seq: 5, timestamp: 0, step: 'main/desk/2', deadline: 9 } as const
const approval = (input: unknown = {}, more: object = {}): Request =>
  ({
    ...envelope,
    requestId: 'run_1.1.4',
    kind: 'approval',
    toolCallId: 'c',
    toolName: 'deploy',
    input,
    ...more,
  }) as Request
const question = (more: object = {}): Request =>
  ({ ...envelope, requestId: 'run_1.1.7', kind: 'input', message: 'Which city?', ...more }) as Request
const context: ElicitationContext = {
  modes: { form: true, url: true },
  runId,
  agents: ['desk'],
  publicUrl: 'https://mill.example/',
  redact: (value) => JSON.parse(JSON.stringify(value).replaceAll('s3cret', '***')) as typeof value,
}
const formOf = (request: Request, more: Partial<ElicitationContext> = {}) => {
  const made = toElicitation(request, { ...context, ...more })
  return made?.mode === 'form' ? made.requestedSchema : made
}
const accept = (request: Request, content?: unknown) => fromElicitation(request, 'form', { action: 'accept', content })

describe('an approval', () => {
  test('shows the chain of agents, the tool and its arguments without secrets', () => {
    const made = toElicitation(approval({ to: 'prod', key: 's3cret' }), { ...context, agents: ['desk', 'writer'] })
    expect(made).toMatchObject({
      mode: 'form',
      message: 'desk > writer wants to call deploy with:\n{\n  "to": "prod",\n  "key": "***"\n}',
      requestedSchema: { properties: { approved: { type: 'boolean', default: true }, reason: { type: 'string' } } },
    })
  })

  test('shows at most 2,000 characters of arguments, none of them half', () => {
    for (const text of ['x'.repeat(9000), '😀'.repeat(5000), `y${'😀'.repeat(5000)}`]) {
      const { message } = toElicitation(approval(text), context)!
      const shown = message.slice(message.indexOf('\n') + 1)
      expect(shown.length).toBeLessThanOrEqual(2000)
      expect(shown.length).toBeGreaterThan(1990)
      expect(shown.isWellFormed()).toBe(true)
      expect(shown.endsWith('…')).toBe(true)
    }
  })

  test('shows what cannot be seen as escapes, and never as it is', () => {
    const sly = 'rm\u202E a\u200Bb\u0007\u2028\u00AD\uFEFF\u{E0041}c\u3164'
    const { message } = toElicitation(approval({ [sly]: sly }, { toolName: `de\u202Eploy\n\u0007now` }), context)!
    expect(message).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Default_Ignorable_Code_Point}]/u)
    expect(message).toContain(String.raw`rm\u202e a\u200bb\u0007\u2028\u00ad\ufeff\udb40\udc41c\u3164`)
    expect(message.split('\n')[0]).toBe('desk wants to call deploy now with:')
  })

  test('is not asked of those who may not give it, of clients without forms, and never by a link', () => {
    const request = approval({}, { roles: ['operator'] })
    expect(formOf(request, { roles: ['user'] })).toBeUndefined()
    expect(formOf(request, { roles: ['operator'] })).toBeDefined()
    expect(formOf(request, { roles: ['admin'] })).toBeDefined()
    expect(formOf(approval(), { modes: { form: false, url: true } })).toBeUndefined()
  })

  test.each([
    [{ approved: true }, { approved: true }],
    [{}, { approved: true }],
    [undefined, { approved: true }],
    [{ approved: true, reason: '' }, { approved: true }],
    [
      { approved: false, reason: 'Not today' },
      { approved: false, reason: 'Not today' },
    ],
    [{ approved: false, reason: null }, { approved: false }],
  ])('accepted with %j is %j', (content, reply) => {
    expect(accept(approval(), content)).toEqual({ kind: 'reply', reply: { kind: 'approval', ...reply } })
  })

  test('declined is denied', () => {
    const declined = (content?: unknown) => fromElicitation(approval(), 'form', { action: 'decline', content })
    expect(declined()).toEqual({ kind: 'reply', reply: { kind: 'approval', approved: false } })
    expect(declined({ reason: 'No' })).toMatchObject({ reply: { approved: false, reason: 'No' } })
  })

  test('does not take other arguments', () => {
    expect(accept(approval(), { approved: true, input: { to: 'prod' } })).toEqual({
      kind: 'reply',
      reply: { kind: 'approval', approved: true },
    })
  })

  test.each([{ approved: 'yes' }, { approved: null }, { approved: true, reason: 7 }, [], 'yes', 7])(
    'accepted with %j is no answer',
    (content) => expect(accept(approval(), content).kind).toBe('misfit'),
  )
})

describe('a question', () => {
  test('without a schema asks for a text', () => {
    expect(formOf(question())).toEqual({
      type: 'object',
      properties: { value: { type: 'string' } },
      required: ['value'],
    })
    expect(accept(question(), { value: 'Rome' })).toEqual({ kind: 'reply', reply: { kind: 'input', value: 'Rome' } })
    for (const content of [{}, { value: 3 }, { city: 'Rome' }, { ['__proto__']: { value: 'x' } }])
      expect(accept(question(), content).kind).toBe('misfit')
  })

  test.each([
    [
      { type: 'integer', minimum: 1, maximum: 5, multipleOf: 2, default: 2 },
      4,
      3,
      { type: 'integer', minimum: 1, maximum: 5, default: 2 },
    ],
    [{ type: 'boolean', description: 'Sure?' }, false, 'no', { type: 'boolean', description: 'Sure?' }],
    [{ enum: ['a', 'b'] }, 'b', 'c', { type: 'string', enum: ['a', 'b'] }],
    [
      { type: 'string', oneOf: [{ const: 'a', title: 'A' }, { const: 'b' }] },
      'b',
      'c',
      {
        type: 'string',
        oneOf: [
          { const: 'a', title: 'A' },
          { const: 'b', title: 'b' },
        ],
      },
    ],
    [
      { type: 'array', items: { type: 'string', enum: ['a', 'b'] }, minItems: 1 },
      ['a'],
      [],
      { type: 'array', items: { type: 'string', enum: ['a', 'b'] }, minItems: 1 },
    ],
    [
      { type: 'array', items: { anyOf: [{ const: 'a', title: 'A' }, { const: 'b' }] } },
      ['b'],
      ['c'],
      {
        type: 'array',
        items: {
          anyOf: [
            { const: 'a', title: 'A' },
            { const: 'b', title: 'b' },
          ],
        },
      },
    ],
    [
      { enum: ['a', 'b'], enumNames: ['A', 'B'] },
      'a',
      'A',
      { type: 'string', enum: ['a', 'b'], enumNames: ['A', 'B'] },
    ],
    [{ enum: ['a', 'b'], enumNames: ['A'] }, 'a', 'A', { type: 'string', enum: ['a', 'b'] }],
    [{ type: 'string', format: 'email', minLength: 3 }, 'a@b', 'a', { type: 'string', format: 'email', minLength: 3 }],
    [{ type: 'string', format: 'uuid', pattern: '^a' }, 'ab', 'ba', { type: 'string', description: 'Must match ^a' }],
    [{ type: 'number', default: 'x' }, 1.5, '1.5', { type: 'number' }],
  ])('for one value of %j asks for it as {value}', (schema, good, bad, field) => {
    const request = question({ schema })
    expect(formOf(request)).toEqual({ type: 'object', properties: { value: field }, required: ['value'] })
    expect(accept(request, { value: good })).toEqual({ kind: 'reply', reply: { kind: 'input', value: good } })
    expect(accept(request, { value: bad }).kind).toBe('misfit')
    expect(accept(request, {}).kind).toBe('misfit')
  })

  test('with a flat object is a form, and its content is the value', () => {
    const schema = {
      type: 'object',
      properties: { name: { type: 'string', title: 'Na\u202Eme' }, n: { type: 'integer' } },
      required: ['name'],
      additionalProperties: false,
    }
    const request = question({ schema })
    expect(formOf(request)).toEqual({
      type: 'object',
      properties: { name: { type: 'string', title: 'Name' }, n: { type: 'integer' } },
      required: ['name'],
    })
    expect(accept(request, { name: 'Ann' })).toEqual({
      kind: 'reply',
      reply: { kind: 'input', value: { name: 'Ann' } },
    })
    for (const content of [{}, { name: 1 }, { name: 'Ann', n: 1.5 }, { name: 'Ann', x: 1 }]) {
      const outcome = accept(request, content)
      expect(outcome.kind, JSON.stringify(content)).toBe('misfit')
    }
  })

  test.each([
    { type: 'object', properties: { a: { type: 'object' } } },
    { type: 'object', properties: { a: { type: ['string', 'null'] } } },
    { type: 'object', properties: { a: { type: 'array', items: { type: 'string' } } } },
    { type: 'object', properties: { a: { type: 'string' } }, anyOf: [{ required: ['a'] }] },
    { type: 'object', properties: { a: { type: 'string' } }, required: ['b'] },
    { type: 'object', properties: { a: true } },
    { type: 'object' },
    { type: 'array', items: { type: 'integer' } },
    { enum: [1, 2] },
    { enum: ['a', 'a\u200B'] },
    { $ref: '#/x' },
    {},
  ])('with the schema %j is a link to the page, or is not asked', (schema) => {
    const request = question({ schema })
    expect(toElicitation(request, context)).toEqual({
      mode: 'url',
      message: 'Which city?',
      url: 'https://mill.example/runs/run_1',
      elicitationId: 'ask-1.7',
    })
    expect(toElicitation(request, { ...context, publicUrl: undefined })).toBeUndefined()
    expect(toElicitation(request, { ...context, modes: { form: true, url: false } })).toBeUndefined()
    expect(accept(request, { a: 'x' }).kind).toBe('misfit')
  })

  test('a sign-in to an MCP server is a link to where that is done, and never a form', () => {
    const request = question({ reason: 'mcp-sign-in', metadata: { server: 'drive' } })
    const url = `https://mill.example/mcp/connect/${request.requestId}`
    expect(toElicitation(request, context)).toMatchObject({ mode: 'url', url })
    expect(toElicitation(request, { ...context, publicUrl: undefined })).toBeUndefined()
  })

  test.each([
    { metadata: { secret: true } },
    { schema: { type: 'string', format: 'password' } },
    { schema: { type: 'object', properties: { key: { type: 'string', writeOnly: true } } } },
  ])('for a secret is never a form: %j', (more) => {
    expect(toElicitation(question(more), context)).toMatchObject({ mode: 'url' })
    expect(toElicitation(question(more), { ...context, modes: { form: true, url: false } })).toBeUndefined()
  })

  test('of a called agent is shown with the agents, its text without what cannot be seen', () => {
    const message = 'Li\u202Ene one\n\tline\u200B two s3cret\u2029'
    expect(toElicitation(question({ message }), { ...context, agents: ['desk', 'writer'] })?.message).toBe(
      'desk > writer: Line one\n line two ***',
    )
    expect(toElicitation(question({ message: 'x'.repeat(9000) }), context)?.message).toHaveLength(4000)
  })

  test('that was answered with something else says so', () => {
    expect(toElicitation(question(), { ...context, refused: 1 })?.message).toBe(
      'The last reply did not fit.\nWhich city?',
    )
  })

  test('declined gets no value; cancelled stays open; opened on the page stays open', () => {
    const request = question()
    const reply = { kind: 'input', cancelled: true, declined: true }
    expect(fromElicitation(request, 'form', { action: 'decline' })).toEqual({ kind: 'reply', reply })
    expect(fromElicitation(request, 'url', { action: 'decline' })).toEqual({ kind: 'reply', reply })
    expect(fromElicitation(request, 'form', { action: 'cancel' })).toEqual({ kind: 'open', why: 'cancelled' })
    expect(fromElicitation(request, 'url', { action: 'accept' })).toEqual({ kind: 'open', why: 'on-page' })
  })

  test.each([undefined, null, 7, 'accept', [], {}, { action: 'yes' }, { action: ['accept'] }])(
    'answered with %j is not answered',
    (result) => expect(fromElicitation(question(), 'form', result).kind).toBe('misfit'),
  )

  test('takes at most 64 KiB', () => {
    expect(accept(question(), { value: 'x'.repeat(65_000) }).kind).toBe('reply')
    expect(accept(question(), { value: 'x'.repeat(65_530) }).kind).toBe('misfit')
    expect(accept(question(), { value: 'ü'.repeat(33_000) }).kind).toBe('misfit')
  })
})

test('a client tool is never asked', () => {
  const request = { ...approval(), kind: 'tool' } as Request
  expect(toElicitation(request, context)).toBeUndefined()
})

test.each([
  [{ elicitation: {} }, { form: true, url: false }],
  [{ elicitation: { form: {} } }, { form: true, url: false }],
  [{ elicitation: { url: {} } }, { form: false, url: true }],
  [{ elicitation: { form: {}, url: {} } }, { form: true, url: true }],
  [{}, { form: false, url: false }],
  [{ elicitation: true }, { form: false, url: false }],
  [undefined, { form: false, url: false }],
])('the capabilities %j show %j', (capabilities, modes) => {
  expect(elicitationModes(capabilities)).toEqual(modes)
})

describe('keys', () => {
  test('do not show the run, and are others after content that did not fit', () => {
    expect(elicitationKey(approval(), runId)).toBe('ask-1.4')
    expect(elicitationKey(approval(), runId, 2)).toBe('ask-1.4~2')
    expect(elicitationKey({ requestId: 'own' }, runId)).toBe('own')
  })

  test('of a blocking call are the words of its questions, as long as they differ', () => {
    const first = question({ reason: 'city' })
    const second = question({ reason: 'city', requestId: 'run_1.1.9' })
    const odd = question({ reason: 'which city', requestId: 'run_1.1.10' })
    expect([...namedKeys([first, second, odd, approval()], runId)]).toEqual([
      ['city', first],
      ['ask-1.9', second],
      ['ask-1.10', odd],
      ['ask-1.4', approval()],
    ])
  })
})
